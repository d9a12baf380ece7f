// Device coordinates become an order of dimensions, innermost first, and a stick.

#include <fmt/format.h>

#include <algorithm>

#include "spyre/codegen/superdsc/plan.h"
#include "spyre/opspec/validate.h"

namespace spyre::superdsc {
namespace {

// Reads the coordinates of one tensor.
class Reader {
 public:
  Reader(SdscPlan& plan, Tensor& tensor) : plan_(plan), tensor_(tensor) {}

  Status read() {
    SPYRE_TRY(lanes());
    const auto& coordinates = tensor_.arg->device_coordinates;
    for (size_t i = coordinates.size() - 1; i-- > 0;) {
      SPYRE_TRY(coordinate(coordinates[i], tensor_.arg->device_size[i]));
    }
    return place_uncollected_stick();
  }

 private:
  Error refuse(const Expr& coordinate, std::string_view why) const {
    return plan_.refuse(tensor_, fmt::format("coordinate '{}' {}", coordinate.to_string(), why));
  }

  // The lane coordinate: nothing, one symbol, or a sum of remainders whose factors nest (2-D sticks).
  Status lanes() {
    const Expr& lane = tensor_.arg->device_coordinates.back();
    if (lane.constant_term() != 0) {
      return refuse(lane, "starts inside a stick; slices start on stick boundaries");
    }
    std::vector<ExprTerm> terms = lane.terms();
    std::sort(terms.begin(), terms.end(),
              [](const ExprTerm& a, const ExprTerm& b) { return a.coefficient < b.coefficient; });
    int64_t inner = 1;
    for (const ExprTerm& term : terms) {
      SPYRE_ASSIGN_OR_RETURN(const StickPart part, stick_part(lane, term, inner, terms.size() == 1));
      tensor_.stick.push_back(part);
      inner *= part.size;
    }
    if (!terms.empty() && inner != tensor_.lanes) {
      return refuse(lane, fmt::format("covers {} of the {} lanes of a stick", inner, tensor_.lanes));
    }
    tensor_.own_stick = !terms.empty();
    return Status();
  }

  Result<StickPart> stick_part(const Expr& lane, const ExprTerm& term, int64_t inner, bool alone) {
    const bool plain = term.kind == AtomKind::kSymbol && alone;
    const bool remainder =
        term.kind == AtomKind::kMod && term.inner.terms().size() == 1 && term.inner.constant_term() == 0 &&
        term.inner.terms()[0].kind == AtomKind::kSymbol && term.inner.terms()[0].coefficient == 1;
    if ((!plain && !remainder) || term.coefficient != inner) {
      return refuse(
          lane,
          "is no lane: allowed are 0, c, Mod(c, n), or nested remainders such as Mod(k, 2) + 2*Mod(n, 64)");
    }
    const int dim = *plan_.find_symbol(plain ? term.name : term.inner.terms()[0].name);
    if (plain && plan_.dims[dim].extent > tensor_.lanes) {
      return refuse(lane, fmt::format("runs to {}, past the {} lanes of a stick", plan_.dims[dim].extent,
                                      tensor_.lanes));
    }
    return StickPart{.dim = dim, .size = plain ? tensor_.lanes : term.divisor};
  }

  // The first part of the stick whose tile index no coordinate spells out: the dimension fits in one stick.
  std::optional<int> untiled_stick_dim() const {
    for (const StickPart& part : tensor_.stick) {
      bool spelled = tensor_.find(part.dim) != nullptr;
      const auto& coordinates = tensor_.arg->device_coordinates;
      for (size_t i = 0; i + 1 < coordinates.size(); ++i) {
        spelled |= coordinates[i].symbols().contains(plan_.dims[part.dim].symbol);
      }
      if (!spelled) return part.dim;
    }
    return std::nullopt;
  }

  Status coordinate(const Expr& e, int64_t size) {
    if (e.is_constant()) return constant(e, size);
    if (plan_.has_window()) return windowed(e, size);
    if (e.terms().size() != 1 || e.terms()[0].coefficient != 1) {
      return refuse(e, "mixes symbols or skips; allowed is one symbol with factor 1 and a constant");
    }
    const ExprTerm& term = e.terms()[0];
    if (term.kind == AtomKind::kIndirect) return indirect(e, size);
    return single(e, term, size);
  }

  Status single(const Expr& e, const ExprTerm& term, int64_t size) {
    const bool tile = term.kind == AtomKind::kFloorDiv && term.inner.constant_term() == 0 &&
                      term.inner.terms().size() == 1 && term.inner.terms()[0].kind == AtomKind::kSymbol &&
                      term.inner.terms()[0].coefficient == 1;
    if (!tile && term.kind != AtomKind::kSymbol) {
      return refuse(e, "is neither a symbol nor the tile floor(c/n) of one");
    }
    const int dim = *plan_.find_symbol(tile ? term.inner.terms()[0].name : term.name);
    const int64_t step = tile ? term.divisor : 1;
    if (step != tensor_.part(dim)) {
      return refuse(e, fmt::format("advances by {} of '{}', a stick holds {} of it", step,
                                   plan_.dims[dim].symbol, tensor_.part(dim)));
    }
    return add(e, dim, size, e.constant_term());
  }

  Status add(const Expr& e, int dim, int64_t size, int64_t offset) {
    if (tensor_.find(dim) != nullptr) return refuse(e, "uses a symbol that another coordinate already uses");
    if (offset < 0 || offset >= size) {
      return refuse(e, fmt::format("starts at {}, allowed are 0 to {}", offset, size - 1));
    }
    tensor_.dims.push_back({.dim = dim, .steps = size, .offset = offset});
    return Status();
  }

  // A constant is the tile index of a short stick dimension, or a position chosen once for the whole op.
  Status constant(const Expr& e, int64_t size) {
    const int64_t at = e.constant_term();
    if (at < 0 || at >= size) return refuse(e, fmt::format("is outside 0 to {}", size - 1));
    if (const auto dim = untiled_stick_dim()) return add(e, *dim, size, at);
    if (size == 1) return Status();
    if (tensor_.dims.empty()) {
      // Nothing lies further inside that could carry the stride: the choice becomes a dimension of one step.
      SPYRE_ASSIGN_OR_RETURN(std::string label, unused_label(plan_));
      return add(e, plan_.add_dim(std::move(label), 1), size, at);
    }
    // The dimension inside it appears longer by this factor; what is not iterated is a gap.
    TensorDim& inside = tensor_.dims.back();
    inside.offset += at * inside.steps;
    inside.steps *= size;
    return Status();
  }

  // out*stride + window*dilation - pad: the row that a window position reads, listed under the output's
  // dimension.
  Status windowed(const Expr& e, int64_t size) {
    std::optional<int> outer;
    std::optional<int> window;
    for (const std::string& symbol : e.symbols()) {
      const int dim = *plan_.find_symbol(symbol);
      (plan_.dims[dim].window ? window : outer) = dim;
    }
    const bool whole_input = tensor_.arg == &plan_.op->args.front();
    if (!whole_input || (!window && e.terms().size() == 1 && e.terms()[0].kind == AtomKind::kFloorDiv)) {
      if (e.terms().size() != 1 || e.terms()[0].coefficient != 1)
        return refuse(e, "mixes symbols outside the input");
      return single(e, e.terms()[0], size);
    }
    if (window && !outer) outer = plan_.find_label(plan_.dims[*window].label == "ki" ? "i" : "j");
    return add_windowed(e, *outer, size);
  }

  Status add_windowed(const Expr& e, int dim, int64_t size) {
    const bool vertical = plan_.dims[dim].label == "i";
    if (!vertical && plan_.dims[dim].label != "j") return single(e, e.terms()[0], size);
    const WindowParams& w = *plan_.op->window;
    const int64_t pad = vertical ? w.pad_i : w.pad_j;
    const int64_t stride = vertical ? w.stride_i : w.stride_j;
    const std::string& symbol = plan_.dims[dim].symbol;
    if (e.constant_term() != -pad || (!symbol.empty() && e.coefficient(symbol) != stride)) {
      return refuse(e, fmt::format("disagrees with conv_params: stride {}, padding {}", stride, pad));
    }
    tensor_.dims.push_back({.dim = dim, .steps = size});
    return Status();
  }

  Status indirect(const Expr& e, int64_t size) {
    const std::string name = *e.index_tensors().begin();
    if (tensor_.indirection == Indirection::kValue) return refuse(e, "is a second indirection in one tensor");
    const auto index = std::find_if(plan_.tensors.begin(), plan_.tensors.end(), [&](const Tensor& t) {
      return t.arg->name == name && t.indirection == Indirection::kIndex;
    });
    SPYRE_CHECK(index != plan_.tensors.end(), "validated: index tensors are the first arguments");
    tensor_.indirection = Indirection::kValue;
    tensor_.partner = static_cast<int>(index - plan_.tensors.begin());
    index->partner = static_cast<int>(&tensor_ - plan_.tensors.data());
    const int dim = index->own_stick ? index->stick[0].dim : index->dims.front().dim;
    SPYRE_TRY(add(e, dim, size, e.constant_term()));
    tensor_.dims.back().max_size = 1;
    return Status();
  }

  Status place_uncollected_stick() {
    while (const auto dim = untiled_stick_dim()) tensor_.dims.push_back({.dim = *dim});
    if (tensor_.indirection != Indirection::kValue) return Status();
    // Outer loops of a many-dimensional index run over the table without moving in it.
    for (const TensorDim& d : plan_.tensors[tensor_.partner].dims) {
      if (tensor_.find(d.dim) != nullptr || plan_.dims[d.dim].extent == 1) continue;
      tensor_.dims.push_back({.dim = d.dim, .max_size = plan_.dims[d.dim].extent});
    }
    return Status();
  }

  SdscPlan& plan_;
  Tensor& tensor_;
};

// N of a matmul with a single row may appear in the left operand's coordinates, where it never moves.
void strip_leaked_n(SdscPlan& plan) {
  if (!plan.is(OpFamily::kMatmul) || plan.output().stick.empty()) return;
  const int n = plan.output().stick[0].dim;
  Tensor& x = plan.tensors.front();
  if (x.part(n) == 1) std::erase_if(x.dims, [&](const TensorDim& d) { return d.dim == n; });
}

}  // namespace

Status order_tensor_dims(SdscPlan& plan) {
  const std::set<std::string> indices = index_tensor_names(*plan.op);
  for (const TensorArg& arg : plan.op->args) {
    Tensor tensor{.arg = &arg, .lanes = elems_per_stick(arg.format)};
    tensor.word_length = kStickBytes.count() / tensor.lanes;
    if (tensor.word_length == 0) {
      return plan.refuse(tensor,
                         fmt::format("format {} packs several elements in a byte", to_string(arg.format)));
    }
    if (arg.is_input && indices.contains(arg.name)) tensor.indirection = Indirection::kIndex;
    plan.tensors.push_back(std::move(tensor));
  }
  for (Tensor& tensor : plan.tensors) {
    SPYRE_TRY(Reader(plan, tensor).read());
    if (tensor.indirection == Indirection::kIndex && tensor.dims.empty()) {
      // A constant index: one position, so that there is something to index along.
      SPYRE_ASSIGN_OR_RETURN(std::string label, unused_label(plan));
      tensor.dims.push_back({.dim = plan.add_dim(std::move(label), 1)});
    }
    const bool single = tensor.dims.size() == 1 && plan.dims[tensor.dims[0].dim].extent == 1;
    if (tensor.indirection == Indirection::kIndex && !tensor.own_stick && single) {
      tensor.stick = {{.dim = tensor.dims[0].dim, .size = tensor.lanes}};
      tensor.own_stick = true;
    }
    if (tensor.indirection == Indirection::kIndex && !tensor.own_stick) {
      // One position a stick: a stick of one step, around which the others lie.
      SPYRE_ASSIGN_OR_RETURN(std::string label, unused_label(plan));
      const int dim = plan.add_dim(std::move(label), 1);
      tensor.dims.insert(tensor.dims.begin(), {.dim = dim});
      tensor.stick = {{.dim = dim, .size = tensor.lanes}};
      tensor.own_stick = true;
    }
  }
  strip_leaked_n(plan);
  return Status();
}

}  // namespace spyre::superdsc
