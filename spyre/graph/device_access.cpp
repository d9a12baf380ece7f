#include "spyre/graph/device_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "spyre/layout/tile_axis.h"

namespace spyre {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
constexpr int kMostCuts = 64;

// constant + sum of coefficient * digit (+ coefficient * index value).
struct Linear {
  int64_t constant = 0;
  std::map<int, int64_t> digits;
  std::map<std::string, int64_t> indirect;
};

// Part of a loop: loop = sum of weight * digit over its digits.
struct Digit {
  int loop;
  int64_t extent;
  int64_t weight;
};

// The loops as digits. Cutting one makes everything computed before stale, so callers start again.
class Digits {
 public:
  explicit Digits(const std::vector<Loop>& loops) : loops_(loops) {
    for (size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].extent != 1) digits_.push_back({static_cast<int>(i), loops[i].extent, 1});
    }
  }

  const Digit& operator[](int digit) const { return digits_[static_cast<size_t>(digit)]; }
  const std::vector<Digit>& all() const { return digits_; }

  // The digit becomes two: the high one first, as in a written number.
  Status cut(int digit, int64_t at) {
    const Digit whole = digits_[static_cast<size_t>(digit)];
    if (++cuts_ > kMostCuts || at <= 1 || whole.extent % at != 0) {
      return unsupported(fmt::format("loop '{}' of {} would have to be cut at {}",
                                     loops_[static_cast<size_t>(whole.loop)].name, whole.extent, at));
    }
    digits_[static_cast<size_t>(digit)] = {whole.loop, whole.extent / at, whole.weight * at};
    digits_.insert(digits_.begin() + digit + 1, Digit{whole.loop, at, whole.weight});
    return Status();
  }

  Linear of_loop(std::string_view name) const {
    Linear linear;
    for (size_t d = 0; d < digits_.size(); ++d) {
      if (loops_[static_cast<size_t>(digits_[d].loop)].name == name)
        linear.digits[static_cast<int>(d)] = digits_[d].weight;
    }
    return linear;
  }

  // A loop that was cut gives `name_1`, `name_0`, the high part first.
  std::vector<Loop> as_loops() const {
    std::map<int, int> parts;
    for (const Digit& digit : digits_) ++parts[digit.loop];
    std::map<int, int> left = parts;
    std::vector<Loop> result;
    for (const Digit& digit : digits_) {
      Loop loop = loops_[static_cast<size_t>(digit.loop)];
      loop.extent = digit.extent;
      if (parts[digit.loop] > 1) loop.name = fmt::format("{}_{}", loop.name, --left[digit.loop]);
      result.push_back(std::move(loop));
    }
    return result;
  }

 private:
  const std::vector<Loop>& loops_;
  std::vector<Digit> digits_;
  int cuts_ = 0;
};

// What a step found: an answer, or that some digit must be cut first.
struct Cut {
  int digit = -1;
  int64_t at = 0;
};

void add(Linear& to, const Linear& from, int64_t factor) {
  to.constant += factor * from.constant;
  for (const auto& [digit, c] : from.digits) to.digits[digit] += factor * c;
  for (const auto& [name, c] : from.indirect) to.indirect[name] += factor * c;
}

// Index expressions as linear forms of digits.
class Linearizer {
 public:
  Linearizer(const Digits& digits, Cut& cut) : digits_(digits), cut_(cut) {}

  // Empty with `cut` set: cut and start again. Otherwise a failure.
  Result<Linear> linear(const Expr& e) {
    Linear sum;
    sum.constant = e.constant_term();
    for (const ExprTerm& term : e.terms()) {
      SPYRE_ASSIGN_OR_RETURN(const Linear atom, atom_of(term));
      add(sum, atom, term.coefficient);
    }
    return sum;
  }

 private:
  Result<Linear> atom_of(const ExprTerm& term) {
    switch (term.kind) {
      case AtomKind::kSymbol:
        return digits_.of_loop(term.name);
      case AtomKind::kIndirect: {
        Linear linear;
        linear.indirect[term.name] = 1;
        return linear;
      }
      case AtomKind::kFloorDiv:
      case AtomKind::kMod:
        break;
    }
    SPYRE_ASSIGN_OR_RETURN(const Linear inner, linear(term.inner));
    return divided(inner, term.divisor, term.kind == AtomKind::kFloorDiv);
  }

  // Whole multiples of the divisor make the quotient, what is left must stay below it and is the remainder.
  Result<Linear> divided(const Linear& inner, int64_t divisor, bool want_quotient) {
    if (!inner.indirect.empty()) return unsupported("divides the value of an index tensor");
    Linear quotient, remainder;
    quotient.constant = inner.constant / divisor;
    remainder.constant = inner.constant % divisor;
    int64_t highest = remainder.constant;
    int largest = -1;
    for (const auto& [digit, c] : inner.digits) {
      if (c == 0) continue;
      if (c < 0 || inner.constant < 0) return unsupported("divides an index that runs backwards");
      if (c % divisor == 0) {
        quotient.digits[digit] = c / divisor;
        continue;
      }
      remainder.digits[digit] = c;
      highest += c * (digits_[digit].extent - 1);
      if (largest < 0 || c > inner.digits.at(largest)) largest = digit;
    }
    if (highest < divisor) return want_quotient ? quotient : remainder;
    if (largest >= 0) {
      const int64_t c = inner.digits.at(largest);
      if (divisor % c == 0 && digits_[largest].extent > divisor / c) {
        cut_ = {largest, divisor / c};
        return unsupported("cut");
      }
    }
    return unsupported(
        fmt::format("a reshape that is not a product of whole loops (divides by {})", divisor));
  }

  const Digits& digits_;
  Cut& cut_;
};

// A host axis of a layout: positions `stride` host elements apart.
struct HostAxis {
  int64_t stride;
  int dim;  // device dimension; -1: a stick without tile dimension
  bool stick;
};

// The axes of a layout, by falling stride.
std::vector<HostAxis> host_axes(const DeviceLayout& layout) {
  std::vector<HostAxis> axes;
  const size_t rank = layout.device_size.size();
  const int64_t lane_stride = layout.device_size.back() > 1 ? layout.stride_map.back() : -1;
  const std::optional<size_t> found = layout.device_size.back() > 1 ? tile_axis(layout) : std::nullopt;
  const int tile = found ? static_cast<int>(*found) : -1;
  for (size_t d = 0; d + 1 < rank; ++d) {
    const bool walked = layout.stride_map[d] > 0 && layout.device_size[d] > 1;
    if (walked && static_cast<int>(d) != tile)
      axes.push_back({layout.stride_map[d], static_cast<int>(d), false});
  }
  if (lane_stride > 0) axes.push_back({lane_stride, tile, true});
  std::stable_sort(axes.begin(), axes.end(),
                   [](const HostAxis& a, const HostAxis& b) { return a.stride > b.stride; });
  return axes;
}

// Digits that walk one axis; multiplicity in steps of the axis.
struct AxisTerms {
  std::vector<std::pair<int64_t, int>> digits;  // (multiplicity, digit), falling
  int64_t offset = 0;
  std::string indirect;
};

// Lays one operand's index onto its layout.
class AccessBuilder {
 public:
  AccessBuilder(const DeviceLayout& layout, const Digits& digits, Cut& cut)
      : layout_(layout), digits_(digits), cut_(cut), axes_(host_axes(layout)), terms_(axes_.size()) {}

  Result<DeviceAccess> build(const Linear& index) {
    SPYRE_TRY(distribute(index));
    access_.lanes = layout_.device_size.back();
    const size_t rank = layout_.device_size.size();
    bool tile_done = false;
    for (size_t d = 0; d + 1 < rank; ++d) {
      const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                     [&](const HostAxis& a) { return a.dim == static_cast<int>(d); });
      if (axis == axes_.end()) {
        access_.dims.push_back({.size = layout_.device_size[d], .unused = layout_.stride_map[d] <= 0});
        continue;
      }
      const AxisTerms& terms = terms_[static_cast<size_t>(axis - axes_.begin())];
      tile_done = tile_done || axis->stick;
      SPYRE_TRY(axis->stick ? stick(terms, layout_.device_size[d]) : plain(terms, layout_.device_size[d]));
    }
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].stick && !tile_done) SPYRE_TRY(stick(terms_[a], 1));
    }
    return std::move(access_);
  }

 private:
  Status distribute(const Linear& index) {
    if (index.constant < 0) return unsupported("starts before its buffer");
    int64_t rest = index.constant;
    for (size_t a = 0; a < axes_.size(); ++a) {
      terms_[a].offset = rest / axes_[a].stride;
      rest %= axes_[a].stride;
    }
    if (rest != 0) return unsupported("starts between the elements of its layout");
    for (const auto& [digit, c] : index.digits) {
      if (c != 0) SPYRE_TRY(place(digit, c));
    }
    for (const auto& [name, c] : index.indirect) {
      const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                     [&, step = c](const HostAxis& a) { return a.stride == step; });
      if (axis == axes_.end() || axis->stick)
        return unsupported("indexes along the stick, or across dimensions");
      const auto a = static_cast<size_t>(axis - axes_.begin());
      // How far an index reaches nobody knows: over the whole next axis, if nothing else walks that one.
      if (a > 0 && terms_[a - 1].digits.empty() && terms_[a - 1].offset == 0)
        return unsupported("indexes across dimensions");
      terms_[a].indirect = name;
    }
    return fits();
  }

  int64_t next_stride(size_t axis) const { return axis == 0 ? kEndless : axes_[axis - 1].stride; }

  Status place(int digit, int64_t c) {
    if (c < 0) return unsupported("runs backwards");
    size_t a = 0;
    while (a < axes_.size() && axes_[a].stride > c) ++a;
    if (a == axes_.size()) return unsupported("steps between the elements of its layout");
    const int64_t next = next_stride(a);
    if (next != kEndless && c * (digits_[digit].extent - 1) >= next) {
      if (next % c != 0) return unsupported("walks across a dimension in steps that do not divide it");
      cut_ = {digit, next / c};
      return unsupported("cut");
    }
    if (c % axes_[a].stride != 0) return unsupported("steps between the elements of its layout");
    terms_[a].digits.emplace_back(c / axes_[a].stride, digit);
    return Status();
  }

  // No sum of an axis' digits may carry into the next axis.
  Status fits() {
    for (size_t a = 0; a < axes_.size(); ++a) {
      AxisTerms& terms = terms_[a];
      std::sort(terms.digits.rbegin(), terms.digits.rend());
      int64_t last = terms.offset;
      for (const auto& [m, digit] : terms.digits) last += m * (digits_[digit].extent - 1);
      if (next_stride(a) != kEndless && last * axes_[a].stride >= next_stride(a)) {
        return unsupported("a slice or window runs over the end of a dimension");
      }
      if (!terms.indirect.empty() && (!terms.digits.empty() || terms.offset != 0)) {
        return unsupported("mixes an index tensor with a loop in one dimension");
      }
    }
    return Status();
  }

  // One device dimension of `size` positions becomes one per digit: size / m1, m1 / m2, ..., mk.
  Status plain(const AxisTerms& terms, int64_t size) {
    if (!terms.indirect.empty()) {
      access_.dims.push_back({.size = size, .indirect = terms.indirect});
      return Status();
    }
    std::vector<std::pair<int64_t, int>> digits = terms.digits;
    return split_dim(digits, size, terms.offset, std::nullopt);
  }

  Status stick(const AxisTerms& terms, int64_t tiles) {
    const int64_t lanes = layout_.device_size.back();
    // Widened elements alternate over two sticks: their slices are whole pairs.
    const bool pairs = layout_.element_arrangement == ElementArrangement::DL16_TO_FP32;
    const int64_t unit = pairs ? 2 * lanes : lanes;
    if (terms.offset % unit != 0) return unsupported("starts inside a stick");
    std::vector<std::pair<int64_t, int>> outer;
    SPYRE_TRY(find_weave(terms));
    for (const auto& [m, digit] : terms.digits) {
      if (std::find(access_.lane_loops.begin(), access_.lane_loops.end(), digit) !=
          access_.lane_loops.end()) {
        access_.lane = access_.lane_loops.back();
      } else if (m == 1 && access_.lane < 0) {
        access_.lane = digit;
      } else if (m % unit == 0) {
        outer.emplace_back(m / lanes, digit);
      } else {
        return unsupported("a stick is shared by two loops");
      }
    }
    return split_dim(outer, tiles, terms.offset / lanes,
                     access_.lane >= 0 ? std::optional(access_.lane) : std::nullopt);
  }

  // Narrowed sticks interleave groups of 4 of their two half-sticks: column 32 h + 4 g + e is lane 8 g + 4 h + e. Cut in
  // these three, a loop runs along such a stick; `lane_loops` has them in the order of the lanes.
  Status find_weave(const AxisTerms& terms) {
    if (layout_.element_arrangement != ElementArrangement::FP32_TO_DL16) return Status();
    int g = -1, h = -1, e = -1;
    for (const auto& [m, digit] : terms.digits) {
      const int64_t extent = digits_[digit].extent, whole = m == 4 ? 8 : m == 32 ? 2 : 4;
      if ((m == 4 || m == 32) && extent > whole && extent % whole == 0) {
        cut_ = {digit, whole};
        return unsupported("cut");
      }
      if (extent != whole) continue;
      if (m == 1) e = digit;
      if (m == 4) g = digit;
      if (m == 32) h = digit;
    }
    if (g >= 0 && h >= 0 && e >= 0) access_.lane_loops = {g, h, e};
    return Status();
  }

  Status split_dim(const std::vector<std::pair<int64_t, int>>& digits, int64_t size, int64_t offset,
                   std::optional<int> tiled) {
    int64_t above = size;
    for (const auto& [m, digit] : digits) {
      if (above % m != 0)
        return unsupported(fmt::format("a dimension of {} is read in groups of {}", above, m));
      SPYRE_TRY(push({.size = above / m, .loop = digit, .offset = offset / m}, digits_[digit].extent));
      offset %= m;
      above = m;
    }
    if (tiled) {
      const int64_t count = (digits_[*tiled].extent + access_.lanes - 1) / access_.lanes;
      return push({.size = above, .loop = *tiled, .tile = true, .offset = offset}, count);
    }
    if (above > 1 || digits.empty()) access_.dims.push_back({.size = above, .offset = offset});
    return Status();
  }

  Status push(AccessDim dim, int64_t count) {
    if (dim.offset + count > dim.size) return unsupported("a slice runs over the end of a dimension");
    access_.dims.push_back(std::move(dim));
    return Status();
  }

  const DeviceLayout& layout_;
  const Digits& digits_;
  Cut& cut_;
  std::vector<HostAxis> axes_;
  std::vector<AxisTerms> terms_;
  DeviceAccess access_;
};

struct Attempt {
  std::vector<DeviceAccess> operands;
  std::vector<Linear> indices;
};

// All operands against the digits as they are.
Result<Attempt> try_all(const Digits& digits, std::span<const OperandIndex> operands, Cut& cut) {
  Attempt attempt;
  for (const OperandIndex& operand : operands) {
    SPYRE_ASSIGN_OR_RETURN(Linear index, Linearizer(digits, cut).linear(*operand.index));
    SPYRE_ASSIGN_OR_RETURN(DeviceAccess access, AccessBuilder(*operand.layout, digits, cut).build(index));
    attempt.operands.push_back(std::move(access));
    attempt.indices.push_back(std::move(index));
  }
  return attempt;
}

Expr expression(const Linear& linear, const std::vector<Loop>& loops) {
  Expr e = Expr::constant(linear.constant);
  for (const auto& [digit, c] : linear.digits)
    e = e + c * Expr::symbol(loops[static_cast<size_t>(digit)].name);
  for (const auto& [name, c] : linear.indirect) e = e + c * Expr::indirect(name);
  return e;
}

// Dims of 8, 2 and 4 that walk the lanes of an interleaved stick in their order are one of 64.
Status merge_rows(DeviceAccess& access, const std::vector<int>& lane_loops) {
  for (size_t d = 0; d + 2 < access.dims.size(); ++d) {
    const auto walks = [&](size_t i, int64_t size) {
      const AccessDim& dim = access.dims[d + i];
      return dim.loop == lane_loops[i] && dim.size == size && dim.offset == 0 && !dim.tile;
    };
    if (!walks(0, 8) || !walks(1, 2) || !walks(2, 4)) continue;
    access.dims[d] = {.size = 64, .loop = lane_loops[2]};
    access.dims.erase(access.dims.begin() + static_cast<std::ptrdiff_t>(d) + 1,
                      access.dims.begin() + static_cast<std::ptrdiff_t>(d) + 3);
    return Status();
  }
  return unsupported("the rows of an interleaved stick come in another order");
}

// The three loops along an interleaved stick become one of 64, in the order of the lanes. Host indices are no longer
// sums of loops then.
Status join_weave(NormalAccess& access) {
  const auto interleaved = std::find_if(access.operands.begin(), access.operands.end(),
                                        [](const DeviceAccess& a) { return !a.lane_loops.empty(); });
  if (interleaved == access.operands.end()) return Status();
  const std::vector<int> lane_loops = interleaved->lane_loops;
  for (DeviceAccess& operand : access.operands) {
    if (operand.lane_loops.empty()) SPYRE_TRY(merge_rows(operand, lane_loops));
  }
  access.loops[static_cast<size_t>(lane_loops[2])].extent = 64;
  for (const int gone : {std::max(lane_loops[0], lane_loops[1]), std::min(lane_loops[0], lane_loops[1])}) {
    access.loops.erase(access.loops.begin() + gone);
    const auto renumber = [&](int& loop) { loop -= loop > gone ? 1 : 0; };
    for (DeviceAccess& operand : access.operands) {
      renumber(operand.lane);
      for (AccessDim& dim : operand.dims) renumber(dim.loop);
    }
  }
  access.indices.clear();
  return Status();
}

}  // namespace

bool DeviceAccess::uses(int loop) const {
  if (lane == loop) return true;
  return std::any_of(dims.begin(), dims.end(), [&](const AccessDim& d) { return d.loop == loop; });
}

std::vector<int64_t> DeviceAccess::device_size() const {
  std::vector<int64_t> sizes;
  for (const AccessDim& dim : dims) sizes.push_back(dim.size);
  sizes.push_back(lanes);
  return sizes;
}

std::vector<Expr> DeviceAccess::coordinates(const std::vector<Loop>& loops) const {
  const auto symbol = [&](int loop) { return Expr::symbol(loops[static_cast<size_t>(loop)].name); };
  std::vector<Expr> result;
  for (const AccessDim& dim : dims) {
    if (!dim.indirect.empty()) {
      result.push_back(Expr::indirect(dim.indirect));
    } else if (dim.loop < 0) {
      result.push_back(Expr::constant(dim.offset));
    } else {
      const Expr position = dim.tile ? Expr::floor_div(symbol(dim.loop), lanes) : symbol(dim.loop);
      result.push_back(position + Expr::constant(dim.offset));
    }
  }
  result.push_back(lane < 0 ? Expr::constant(0) : Expr::mod(symbol(lane), lanes));
  return result;
}

Result<NormalAccess> normalize_access(const std::vector<Loop>& loops,
                                      std::span<const OperandIndex> operands) {
  Digits digits(loops);
  while (true) {
    Cut cut;
    Result<Attempt> attempt = try_all(digits, operands, cut);
    if (attempt.ok()) {
      NormalAccess access{
          .loops = digits.as_loops(), .operands = std::move(attempt.value().operands), .indices = {}};
      for (const Linear& index : attempt.value().indices)
        access.indices.push_back(expression(index, access.loops));
      SPYRE_TRY(join_weave(access));
      return access;
    }
    if (cut.digit < 0) return attempt.error();
    SPYRE_TRY(digits.cut(cut.digit, cut.at));
  }
}

}  // namespace spyre
