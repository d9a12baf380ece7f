#include "spyre/graph/normal_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "spyre/ops/legality.h"
#include "spyre/ops/ops.h"

namespace spyre {
namespace {

// The rules of one op; operands left out are null.
class StickRules {
 public:
  /// `operands` are indices, inputs and the output.
  StickRules(const GraphBuffers& graph, const NormalOp& op, const std::vector<const DeviceAccess*>& operands,
             std::span<const DeviceLayout* const> layouts)
      : graph_(graph),
        op_(op),
        indices_(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(op.index_count())),
        inputs_(operands.begin() + static_cast<std::ptrdiff_t>(op.index_count()), operands.end() - 1),
        output_(operands.back()),
        layouts_(layouts) {}

  Status check() {
    SPYRE_TRY(few_loops());
    SPYRE_TRY(keeps_neighbours());
    SPYRE_TRY(leaves_no_gap());
    if (op_.op.is_matmul()) return matmul();
    if (op_.op.reduces) return reduction();
    if (info_of(op_.op.op).family == OpFamily::kConversion) SPYRE_TRY(conversion());
    if (op_.op.op == OpId::identity && copies_into_other_stick()) return restickify();
    if (!op_.op.indices.empty()) SPYRE_TRY(moves_rows());
    return pointwise();
  }

 private:
  const DeviceLayout* input_layout(size_t i) const { return layouts_[op_.op.indices.size() + i]; }
  const DeviceLayout* output_layout() const { return layouts_.back(); }
  bool reduced(int loop) const { return loop >= 0 && op_.access.loops[static_cast<size_t>(loop)].reduced; }

  static bool moves_whole_sticks(const DeviceAccess* access) {
    return access == nullptr || access->lane >= 0 ||
           std::none_of(access->dims.begin(), access->dims.end(),
                        [](const AccessDim& dim) { return !dim.indirect.empty(); });
  }

  ElementArrangement arrangement(const DeviceAccess* access, const DeviceLayout* layout) const {
    return access->lane < 0 ? ElementArrangement::STANDARD : layout->element_arrangement;
  }

  Status same_arrangement(size_t i) const {
    if (inputs_[i] == nullptr || output_ == nullptr || inputs_[i]->lane < 0) return Status();
    if (input_layout(i)->element_arrangement == output_layout()->element_arrangement) return Status();
    return unsupported("two operands order the elements of their sticks differently");
  }

  // A turn between whole sticks and single elements has a loop for their lanes besides.
  Status few_loops() const {
    const bool turns = op_.op.op == OpId::identity && copies_into_other_stick();
    const bool single = turns && (inputs_[0]->lane < 0 || output_->lane < 0);
    const size_t dims = op_.access.loops.size() + (single ? 1 : 0);
    if (dims <= kMostDims) return Status();
    return unsupported(fmt::format("{} dimensions, an op has at most {}", dims, kMostDims));
  }

  // The card writes whole sticks. Where a store ends inside one, nothing of the buffer may lie behind it.
  Status keeps_neighbours() const {
    if (output_ == nullptr) return Status();
    if (output_->lane < 0) return alone_in_stick();
    const int64_t extent = op_.access.loops[static_cast<size_t>(output_->lane)].extent;
    if (extent % output_->lanes == 0) return Status();
    const DeviceLayout& layout = *output_layout();
    const int64_t lane_stride = layout.stride_map.back();
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(op_.op.output.buffer)];
    int64_t length = std::min((buffer.reach() + lane_stride - 1) / lane_stride, dense_run(lane_stride));
    for (size_t d = 0; d + 1 < layout.stride_map.size(); ++d) {
      const int64_t stride = layout.stride_map[d];
      const bool tile = stride == lane_stride * layout.device_size.back();
      if (stride > lane_stride && !tile && layout.device_size[d] > 1)
        length = std::min(length, stride / lane_stride);
    }
    for (const AccessDim& dim : output_->dims) {
      if (dim.loop != output_->lane) continue;
      // Loops outside this one on the same dimension step over groups of `size` whole sticks.
      const bool grouped = dim.size * output_->lanes < length;
      const int64_t real = grouped ? dim.size * output_->lanes : length;
      if (dim.offset * output_->lanes + extent < real)
        return unsupported("writes part of a stick whose other part is in use");
    }
    return Status();
  }

  // A local buffer with room behind its rows is copied with it. Along a stick the room is written with the
  // row.
  Status leaves_no_gap() const {
    const BufferId id = op_.op.output.buffer;
    if (output_ == nullptr || !graph_.is_local(id) || graph_.buffers[static_cast<size_t>(id)].storage == 0)
      return Status();
    const bool gap = std::any_of(output_->dims.begin(), output_->dims.end(), [&](const AccessDim& dim) {
      return dim.loop >= 0 && !dim.tile && op_.access.loops[static_cast<size_t>(dim.loop)].extent < dim.size;
    });
    return gap ? Status(unsupported("leaves the room behind its rows unwritten")) : Status();
  }

  // How many elements `step` apart follow each other before a gap in which nothing of the buffer lies.
  int64_t dense_run(int64_t step) const {
    constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(op_.op.output.buffer)];
    if (graph_.is_given(op_.op.output.buffer)) return kUnknown;  // part of a storage that others use
    int64_t end = step;
    for (size_t count = 0; count < buffer.size.size(); ++count) {
      for (size_t d = 0; d < buffer.size.size(); ++d) {
        if (buffer.stride[d] == end && buffer.size[d] > 1) end = buffer.stride[d] * buffer.size[d];
      }
    }
    return end == step ? kUnknown : end / step;
  }

  // A store of one element per stick, into a layout whose sticks hold one element each.
  Status alone_in_stick() const {
    const DeviceLayout& layout = *output_layout();
    const int64_t lane_stride = layout.stride_map.back();
    if (lane_stride < 0) return Status();
    const int64_t reach = graph_.buffers[static_cast<size_t>(op_.op.output.buffer)].reach();
    int64_t length = (reach + lane_stride - 1) / lane_stride;
    for (size_t d = 0; d + 1 < layout.stride_map.size(); ++d) {
      const int64_t stride = layout.stride_map[d];
      const bool tile = stride == lane_stride * layout.device_size.back();
      if (stride >= lane_stride && !tile && layout.device_size[d] > 1)
        length = std::min(length, stride / lane_stride);
    }
    return length <= 1 ? Status()
                       : Status(unsupported("writes one element of a stick whose others are in use"));
  }

  // A gather or scatter: what positions from memory choose are sticks, each chosen once for all its elements. Rows of one
  // element have a stick each, on both sides.
  Status moves_rows() const {
    const bool alone = (output_ == nullptr || output_->lane < 0) &&
                       std::all_of(inputs_.begin(), inputs_.end(), [](const DeviceAccess* input) {
                         return input == nullptr || input->lane < 0;
                       });
    const bool sticks = std::all_of(inputs_.begin(), inputs_.end(), moves_whole_sticks);
    const bool once = output_ == nullptr ||
                      (output_->lane >= 0 &&
                       std::none_of(op_.op.indices.begin(), op_.op.indices.end(),
                                    [&](const auto& index) { return depends(index.second, output_->lane); }));
    return alone || (sticks && once)
               ? Status()
               : Status(unsupported("a gather or scatter moves whole sticks of each row"));
  }

  Status pointwise() const {
    const bool converts = info_of(op_.op.op).family == OpFamily::kConversion;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const DeviceAccess* input = inputs_[i];
      if (input == nullptr || output_ == nullptr) continue;
      if (input->lane >= 0 && input->lane != output_->lane)
        return unsupported("an input's stick runs along another dimension than the output's");
      if (input->lane < 0 && output_->lane >= 0 && input->uses(output_->lane)) {
        return unsupported("an input holds one element per stick along the output's stick");
      }
      if (!converts) SPYRE_TRY(same_arrangement(i));
    }
    return Status();
  }

  // Single elements convert by whole 16-bit sticks: the 32-bit side needs a pair of sticks for each.
  Status single_conversion() const {
    if (op_.op.op != OpId::dl16tofp32 && op_.op.op != OpId::fp32todl16) return Status();
    const bool widens = op_.op.op == OpId::dl16tofp32;
    return spare_dim(widens ? *output_ : *inputs_[0], 2, /*written=*/widens) != nullptr
               ? Status()
               : Status(unsupported("a single 32-bit element needs a pair of sticks"));
  }

  // Whether widening goes from one order to the other.
  static bool widens(ElementArrangement from, ElementArrangement to) {
    using enum ElementArrangement;
    return (from == STANDARD && to == DL16_TO_FP32) || (from == FP32_TO_DL16 && to == STANDARD);
  }

  // The 32-bit side holds whole pairs of sticks, one for each 16-bit stick.
  Status holds_pairs(const DeviceAccess& wide) const {
    if (wide.lane < 0) return Status();  // refused as any pointwise operation between such sticks is
    const int64_t extent = op_.access.loops[static_cast<size_t>(wide.lane)].extent;
    const int64_t needed = (extent + 2 * wide.lanes - 1) / (2 * wide.lanes) * 2;
    for (const AccessDim& dim : wide.dims) {
      if (dim.loop == wide.lane && dim.offset + needed > dim.size) {
        return unsupported("a conversion needs pairs of 32-bit sticks");
      }
    }
    return Status();
  }

  Status conversion() const {
    if (inputs_[0] == nullptr || output_ == nullptr) return Status();
    if (inputs_[0]->lane < 0) return single_conversion();
    const bool widening = op_.op.op == OpId::dl16tofp32, narrowing = op_.op.op == OpId::fp32todl16;
    if (widening || narrowing) SPYRE_TRY(holds_pairs(widening ? *output_ : *inputs_[0]));
    const ElementArrangement from = input_layout(0)->element_arrangement,
                             to = output_layout()->element_arrangement;
    const bool fine = widening ? widens(from, to) : narrowing ? widens(to, from) : from == to;
    return fine ? Status() : Status(unsupported("the conversion leaves its elements in another order"));
  }

  Status reduction() const {
    const auto& loops = op_.access.loops;
    const auto folded = std::count_if(loops.begin(), loops.end(), [](const Loop& l) { return l.reduced; });
    if (folded != 1) return unsupported(fmt::format("folds {} loops, one at a time is allowed", folded));
    if (inputs_[0] == nullptr) return Status();
    const int lane = inputs_[0]->lane;
    const bool along_stick = reduced(lane);
    // Which lanes are masked goes by their place, not by the element that conversions put there.
    const bool ragged = along_stick && loops[static_cast<size_t>(lane)].extent % 64 != 0;
    if (ragged && input_layout(0)->element_arrangement != ElementArrangement::STANDARD) {
      return unsupported("folding part of a stick needs the standard order");
    }
    const OpInfo& info = info_of(op_.op.op);
    const bool stick_only = info.family == OpFamily::kLayerNorm;
    if (along_stick && info.family == OpFamily::kReduction && !info.stick_variant) {
      return unsupported("cannot fold along the stick");
    }
    if (stick_only && !along_stick) return unsupported("folds along the stick only");
    if (output_ == nullptr) return Status();
    if (output_->lane != (along_stick ? -1 : lane)) {
      return unsupported(along_stick ? "folding the stick leaves one element per stick"
                                     : "folding keeps the stick of the input");
    }
    if (stick_only) {
      return output_layout()->element_arrangement == ElementArrangement::EXX2
                 ? Status()
                 : Status(unsupported("moments are kept two a stick"));
    }
    return along_stick ? Status() : same_arrangement(0);
  }

  Status matmul() const {
    const auto& loops = op_.access.loops;
    int k = -1;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (!loops[i].reduced) continue;
      if (k >= 0) return unsupported("the summed dimension of a matmul is in two pieces");
      k = static_cast<int>(i);
    }
    const DeviceAccess *x = inputs_[0], *w = inputs_[1];
    if (x != nullptr && x->lane != k)
      return unsupported("the left operand's stick must run along the summed dimension");
    if (w != nullptr) {
      if (w->lane < 0 || w->lane == k) return unsupported("the right operand's stick must run along n");
      if (x != nullptr && x->uses(w->lane)) return unsupported("the right operand's stick must run along n");
    }
    if (output_ != nullptr) {
      if (output_->lane < 0) return unsupported("the result's stick must run along n");
      if (w != nullptr && output_->lane != w->lane) return unsupported("the result's stick must run along n");
      if (x != nullptr && x->uses(output_->lane)) return unsupported("the result's stick must run along n");
    }
    SPYRE_TRY(product_order());
    return few_loops_each(k);
  }

  // A 16-bit result has the columns in the order of the right operand; an fp32 one as widening that would leave them.
  Status product_order() const {
    using enum ElementArrangement;
    if (inputs_[0] != nullptr && input_layout(0)->element_arrangement != STANDARD)
      return unsupported("a matmul takes rows in the standard order only");
    if (output_ == nullptr) return Status();
    const ElementArrangement to = output_layout()->element_arrangement;
    const bool wide = output_layout()->device_dtype == DataFormat::IEEE_FP32;
    if (wide) SPYRE_TRY(holds_pairs(*output_));
    if (inputs_[1] == nullptr) return Status();
    const ElementArrangement from = input_layout(1)->element_arrangement;
    const bool fine = wide ? widens(from, to) : from == STANDARD && to == STANDARD;
    return fine ? Status() : Status(unsupported("a matmul leaves its columns in another order"));
  }

  // Whether an operand depends on a loop, by its index before loops were cut: it may have no layout yet.
  bool depends(const Access& access, int loop) const {
    const std::string& name = op_.access.loops[static_cast<size_t>(loop)].name;
    const std::set<std::string> symbols = access.index.symbols();
    return std::any_of(symbols.begin(), symbols.end(), [&](const std::string& whole) {
      return name == whole || name.starts_with(whole + "_");
    });
  }

  // One loop of the right operand alone is n; along others the left operand is repeated.
  Status few_loops_each(int k) const {
    int columns = 0, rows = 0, batches = 0;
    for (size_t i = 0; i < op_.access.loops.size(); ++i) {
      const int loop = static_cast<int>(i);
      if (loop == k || op_.access.loops[i].extent == 1) continue;
      const bool in_x = depends(op_.op.inputs[0], loop), in_w = depends(op_.op.inputs[1], loop);
      ++(in_x && in_w ? batches : in_w ? columns : rows);
    }
    const int repeated = std::max(columns - 1, 0);
    const MatmulLoops loops{.contracted = 1, .generated = 1, .preserved = rows, .shared = batches + repeated};
    const std::optional<Illegality> found = check_matmul_loops(loops);
    if (!found) return Status();
    return unsupported(fmt::format("a matmul with {}; allowed: {}", found->found, found->allowed));
  }

  bool copies_into_other_stick() const {
    if (inputs_[0] == nullptr || output_ == nullptr) return false;
    const int in = inputs_[0]->lane, out = output_->lane;
    if (in >= 0 && out >= 0) return in != out;
    return (in < 0 && out >= 0 && inputs_[0]->uses(out)) || (in >= 0 && out < 0 && output_->uses(in));
  }

  // Squares of whole sticks are transposed: a loop that ends inside one runs over its whole dimension on the
  // other side, where what lies past the end is dropped. Around it no position may be chosen: artifacts have
  // no dimension for that, the next one inside appears longer instead.
  Status turns_whole(int lane, const DeviceAccess& other) const {
    if (lane < 0) return Status();
    const int64_t extent = op_.access.loops[static_cast<size_t>(lane)].extent;
    for (size_t d = 0; d < other.dims.size(); ++d) {
      const AccessDim& dim = other.dims[d];
      if (dim.loop != lane || extent % other.lanes == 0) continue;
      if (dim.offset != 0 || dim.size != extent || chosen_around(other, d))
        return unsupported("turns a slice that ends inside a stick");
    }
    return Status();
  }

  static bool chosen_around(const DeviceAccess& access, size_t d) {
    while (d > 0 && access.dims[d - 1].loop < 0 && access.dims[d - 1].indirect.empty()) {
      if (access.dims[--d].size > 1) return true;
    }
    return false;
  }

  Status restickify() const {
    if (input_layout(0)->device_dtype != DataFormat::SEN169_FP16) {
      return unsupported("the card turns sticks of 16-bit values only");
    }
    // An interleaved stick is restickified into rows that its loops put in order, and such rows into an interleaved stick.
    const auto in_order = [](const DeviceLayout& layout, const DeviceAccess& access) {
      return layout.element_arrangement == ElementArrangement::STANDARD || !access.lane_loops.empty();
    };
    if (!in_order(*input_layout(0), *inputs_[0]) || !in_order(*output_layout(), *output_)) {
      return unsupported("turning a stick needs the standard order");
    }
    if (!op_.op.indices.empty()) return unsupported("a gather cannot turn the stick as well");
    const DeviceAccess &in = *inputs_[0], &out = *output_;
    SPYRE_TRY(turns_whole(in.lane, out));
    SPYRE_TRY(turns_whole(out.lane, in));
    if (in.lane >= 0 && out.lane >= 0) {
      const bool both = in.uses(out.lane) && out.uses(in.lane);
      return both ? Status() : Status(unsupported("a broadcast cannot turn the stick as well"));
    }
    // Between sticks and single elements the lanes of the single ones are a dimension of their own.
    const DeviceAccess& sticks = in.lane >= 0 ? in : out;
    const bool has_room = spare_dim(sticks, sticks.lanes, /*written=*/in.lane < 0) != nullptr;
    return has_room ? Status() : Status(unsupported("needs a dimension for the unused lanes"));
  }

  const GraphBuffers& graph_;
  const NormalOp& op_;
  std::vector<const DeviceAccess*> indices_, inputs_;
  const DeviceAccess* output_;
  std::span<const DeviceLayout* const> layouts_;
};

}  // namespace

const AccessDim* spare_dim(const DeviceAccess& access, int64_t size, bool written) {
  const auto spare = [&](const AccessDim& d) {
    return d.loop < 0 && d.indirect.empty() && d.offset == 0 && d.size == size;
  };
  const AccessDim* found = nullptr;
  for (const AccessDim& dim : access.dims) {
    if (spare(dim) && dim.unused) return &dim;
    if (spare(dim) && !written && found == nullptr) found = &dim;
  }
  return found;
}

bool is_restickify(const NormalOp& op) {
  if (op.op.op != OpId::identity || op.input(0).lane == op.output().lane) return false;
  const int in = op.input(0).lane, out = op.output().lane;
  return (in >= 0 && op.output().uses(in)) || (out >= 0 && op.input(0).uses(out));
}

namespace {

Result<NormalOp> normalized(const GraphBuffers& graph, const DeviceNode& node,
                            std::span<const DeviceLayout* const> layouts) {
  NormalOp normal{.op = node.op};
  std::vector<const Expr*> indices;
  for (const auto& [name, access] : normal.op.indices) indices.push_back(&access.index);
  for (const Access& access : normal.op.inputs) indices.push_back(&access.index);
  indices.push_back(&normal.op.output.index);

  std::vector<OperandIndex> operands;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i] != nullptr) operands.push_back({layouts[i], indices[i]});
  }
  SPYRE_ASSIGN_OR_RETURN(normal.access, normalize_access(node.loops, operands));

  std::vector<const DeviceAccess*> found;
  size_t next = 0;
  for (const DeviceLayout* layout : layouts) {
    found.push_back(layout == nullptr ? nullptr : &normal.access.operands[next++]);
  }
  SPYRE_TRY(StickRules(graph, normal, found, layouts).check());
  return normal;
}

}  // namespace

Result<NormalOp> normalize_op(const GraphBuffers& graph, const DeviceNode& node,
                              std::span<const DeviceLayout* const> layouts) {
  Result<NormalOp> normal = normalized(graph, node, layouts);
  if (normal.ok()) return normal;
  return Error(normal.error()).about(origin_of(node));
}

std::vector<const DeviceLayout*> operand_layouts(const GraphBuffers& graph, const DeviceNode& node) {
  std::vector<const DeviceLayout*> layouts;
  const auto layout = [&](const Access& access) {
    const auto& chosen = graph.buffers[static_cast<size_t>(access.buffer)].layout;
    SPYRE_CHECK(chosen.has_value(), "layouts are assigned");
    return &*chosen;
  };
  for_each_access(node.op, [&](const Access& access) { layouts.push_back(layout(access)); });
  return layouts;
}

Result<NormalOp> normal_form(const GraphBuffers& graph, const DeviceNode& node) {
  return normalize_op(graph, node, operand_layouts(graph, node));
}

}  // namespace spyre
