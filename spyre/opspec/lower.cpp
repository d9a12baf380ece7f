#include "spyre/opspec/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "spyre/graph/core_map.h"
#include "spyre/graph/normal_op.h"
#include "spyre/ops/ops.h"

namespace spyre {
namespace {

// Turns one node into one OpSpec.
class OpLowering {
 public:
  OpLowering(const DeviceGraph& graph, const DeviceNode& node, const std::map<BufferId, int>& arguments)
      : graph_(graph), node_(node), arguments_(arguments) {}

  Result<OpSpec> run() {
    SPYRE_TRY(normalize());
    order_ = iteration_order(normal_);
    const std::vector<int64_t> steps = core_steps(normal_);
    const bool shuffles = normal_.op.op == OpId::shuffle;
    spec_.op = restickify_ ? OpId::ReStickifyOpHBM : normal_.op.op;
    spec_.is_reduction = normal_.op.reduces;
    if (!shuffles) spec_.constants = normal_.op.constants;
    const bool by_target = shuffles && cores_after(loops()) > cores_used(loops());
    std::vector<int64_t> splits, work_steps;
    for (const int loop : order_) {
      const Loop& l = loops()[static_cast<size_t>(loop)];
      splits.push_back(by_target ? l.to_split : l.split);
      work_steps.push_back(steps[static_cast<size_t>(loop)]);
    }
    // Who works on a relayout does not matter; who holds what is said of its tensors.
    if (shuffles) work_steps = default_core_steps(splits, false);
    for (size_t i = 0; i < order_.size(); ++i) {
      const Loop& l = loops()[static_cast<size_t>(order_[i])];
      spec_.iteration_space.push_back(
          {.symbol = l.name, .extent = l.extent, .split = splits[i], .dynamic = {}});
      spec_.core_id_to_work_slice.emplace_back(l.name, work_slice(work_steps[i], splits[i]));
    }
    for (size_t i = 0; i < normal_.op.indices.size(); ++i)
      add(normal_.op.indices[i].second, normal_.index(i), true);
    for (size_t i = 0; i < normal_.op.inputs.size(); ++i) add(normal_.op.inputs[i], normal_.input(i), true);
    add(normal_.op.output, normal_.output(), false);
    if (shuffles) add_ownership(steps);
    add_origin();
    return std::move(spec_);
  }

 private:
  const std::vector<Loop>& loops() const { return normal_.access.loops; }

  Status normalize() {
    SPYRE_ASSIGN_OR_RETURN(normal_, normal_form(graph_, node_));
    restickify_ = is_restickify(normal_);
    if (restickify_) give_lanes_a_loop();
    if (info_of(node_.op.op).family == OpFamily::kConversion) give_single_elements_a_stick();
    if (loops().empty()) give_one_loop();
    complete_pairs(operand_layouts(graph_, node_));
    return Status();
  }

  // Between whole sticks and single elements: the lanes of the single side are a loop of the other.
  void give_lanes_a_loop() {
    DeviceAccess& in = normal_.access.operands.front();
    DeviceAccess& out = normal_.access.operands.back();
    if (in.lane >= 0 && out.lane >= 0) return;
    DeviceAccess& single = in.lane < 0 ? in : out;
    DeviceAccess& sticks = in.lane < 0 ? out : in;
    const int lane = static_cast<int>(loops().size());
    normal_.access.loops.push_back({.name = "lane", .extent = sticks.lanes});
    const AccessDim* room = spare_dim(sticks, sticks.lanes, /*written=*/in.lane < 0);
    SPYRE_CHECK(room != nullptr, "a turn of single elements has room for their lanes");
    sticks.dims[static_cast<size_t>(room - sticks.dims.data())].loop = lane;
    single.lane = lane;
    single.dims.insert(single.dims.begin(), {.size = 1, .loop = lane, .tile = true});
  }

  // A conversion of single elements runs over the sticks they lie in.
  void give_single_elements_a_stick() {
    if (normal_.output().lane >= 0 || normal_.input(0).lane >= 0) return;
    const int lane = static_cast<int>(loops().size());
    normal_.access.loops.push_back({.name = "lane", .extent = 1});
    for (DeviceAccess& access : normal_.access.operands) {
      access.lane = lane;
      const bool written = &access == &normal_.access.operands.back();
      if (const AccessDim* pair = spare_dim(access, 2, written)) {
        AccessDim& dim = access.dims[static_cast<size_t>(pair - access.dims.data())];
        dim.loop = lane;
        dim.tile = true;
      } else {
        access.dims.insert(access.dims.begin(), {.size = 1, .loop = lane, .tile = true});
      }
    }
  }

  // Widened elements alternate over pairs of sticks, so a loop along them covers whole pairs.
  void complete_pairs(const std::vector<const DeviceLayout*>& layouts) {
    constexpr int64_t kPair = 64;
    for (size_t i = 0; i < layouts.size(); ++i) {
      const int lane = normal_.access.operands[i].lane;
      if (lane < 0 || layouts[i]->element_arrangement != ElementArrangement::DL16_TO_FP32) continue;
      int64_t& extent = normal_.access.loops[static_cast<size_t>(lane)].extent;
      extent = (extent + kPair - 1) / kPair * kPair;
    }
  }

  // A single element still takes one step. Its position stays where it is: what it chooses has no other loop.
  void give_one_loop() {
    normal_.access.loops.push_back({.name = "c0", .extent = 1});
    for (size_t i = normal_.index_count(); i < normal_.access.operands.size(); ++i) {
      DeviceAccess& access = normal_.access.operands[i];
      access.lane = 0;
      access.dims.insert(access.dims.begin(), {.size = 1, .loop = 0, .tile = true});
    }
  }

  void add(const Access& access, const DeviceAccess& device, bool is_input) {
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(access.buffer)];
    TensorArg arg{.name = buffer.name, .is_input = is_input, .format = buffer.layout->device_dtype};
    arg.device_size = device.device_size();
    arg.device_coordinates = device.coordinates(loops());
    for (Expr& e : arg.device_coordinates) {
      for (const auto& [value, index] : normal_.op.indices) {
        e = rename_index_tensor(e, value, graph_.buffers[static_cast<size_t>(index.buffer)].name);
      }
    }
    arg.arrangement = buffer.layout->element_arrangement;
    if (const auto argument = arguments_.find(graph_.owner(access.buffer)); argument != arguments_.end()) {
      arg.allocation = {Place::kHbm, argument->second};
    } else {
      SPYRE_CHECK(buffer.place.has_value(), fmt::format("'{}' has a place", buffer.name));
      arg.allocation = {buffer.place->kind == BufferPlace::Kind::kLx ? Place::kLx : Place::kHbmPool,
                        buffer.place->offset};
      arg.kernel_local = true;
    }
    spec_.args.push_back(std::move(arg));
  }

  // A relayout says of both sides which core holds what; where a side is cut in fewer slices than there are
  // cores, the slices repeat.
  void add_ownership(const std::vector<int64_t>& steps) {
    const ShuffleCores cores = shuffle_cores(normal_.op);
    const int64_t working = std::max(cores_used(loops()), cores_after(loops()));
    if (cores.from != working || cores.to > working) {
      spec_.completed_producer_cores.resize(static_cast<size_t>(cores.from));
      std::iota(spec_.completed_producer_cores.begin(), spec_.completed_producer_cores.end(), 0);
      spec_.receiving_cores = cores.to;
    }
    for (const int loop : order_) {
      const auto i = static_cast<size_t>(loop);
      const Loop& l = loops()[i];
      spec_.args.front().work_division.push_back({l.name, l.split, work_slice(steps[i], l.split)});
      spec_.args.back().work_division.push_back(
          {l.name, l.to_split, work_slice(std::max<int64_t>(l.to_step, 1), l.to_split)});
    }
  }

  void add_origin() {
    if (node_.aten.empty() && node_.source.empty()) return;
    DebugHandle handle{.aten_op = node_.aten};
    const size_t colon = node_.source.rfind(':');
    handle.file = node_.source.substr(0, colon);
    if (colon != std::string::npos) {
      const char* const end = node_.source.data() + node_.source.size();
      std::from_chars(node_.source.data() + colon + 1, end, handle.start_line);
      handle.end_line = handle.start_line;
    }
    spec_.debug_handle = std::move(handle);
  }

  const DeviceGraph& graph_;
  const DeviceNode& node_;
  const std::map<BufferId, int>& arguments_;
  NormalOp normal_;
  bool restickify_ = false;
  std::vector<int> order_;
  OpSpec spec_;
};

std::set<BufferId> written_buffers(const DeviceGraph& graph) {
  std::set<BufferId> written;
  for (const DeviceNode& node : graph.nodes) written.insert(graph.owner(node.op.output.buffer));
  return written;
}

}  // namespace

std::vector<BufferId> launch_buffers(const DeviceGraph& graph) {
  std::vector<BufferId> ids;
  const auto count = static_cast<BufferId>(graph.buffers.size());
  for (BufferId id = 0; id < count; ++id) {
    if (graph.buffers[static_cast<size_t>(id)].is_input) ids.push_back(id);
  }
  for (const BufferId id : graph.results) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  for (BufferId id = 0; id < count; ++id) {
    if (graph.buffers[static_cast<size_t>(id)].fill && std::find(ids.begin(), ids.end(), id) == ids.end())
      ids.push_back(id);
  }
  return ids;
}

Result<Kernel> lower_to_kernel(const DeviceGraph& graph) {
  Kernel kernel{.name = graph.name};
  const std::set<BufferId> written = written_buffers(graph);
  std::map<BufferId, int> arguments;
  for (const BufferId id : launch_buffers(graph)) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
    LaunchArgument argument{.index = static_cast<int64_t>(kernel.arguments.size()),
                            .dtype = std::string(to_string(buffer.dtype))};
    argument.role = buffer.fill             ? ArgumentRole::kConstant
                    : !written.contains(id) ? ArgumentRole::kInput
                    : buffer.is_input       ? ArgumentRole::kInputOutput
                                            : ArgumentRole::kOutput;
    argument.shape.assign(buffer.size.begin(), buffer.size.end());
    if (buffer.stride != contiguous_strides(buffer.size)) argument.stride = buffer.stride;
    argument.offset = buffer.offset;
    argument.storage = buffer.storage;
    argument.fill = buffer.fill;
    argument.device_size = buffer.layout->device_size;
    argument.stride_map = buffer.layout->stride_map;
    argument.format = buffer.layout->device_dtype;
    argument.arrangement = buffer.layout->element_arrangement;
    arguments[id] = static_cast<int>(argument.index);
    kernel.arguments.push_back(std::move(argument));
  }
  for (const Buffer& buffer : graph.buffers) {
    if (!buffer.place || buffer.place->kind != BufferPlace::Kind::kPool) continue;
    kernel.pool_bytes =
        std::max(kernel.pool_bytes, buffer.place->offset + buffer.layout->byte_size().value().count());
  }
  for (const DeviceNode& node : graph.nodes) {
    Result<OpSpec> op = OpLowering(graph, node, arguments).run();
    if (!op.ok()) return op.error();
    kernel.body.emplace_back(std::move(op).value());
  }
  return kernel;
}

}  // namespace spyre
