#include "spyre/passes/layout/part_of_buffer.h"

#include <algorithm>

namespace spyre {
namespace {

// The dimensions with more than one position, the outermost in memory first. None: two of them share elements.
std::optional<std::vector<size_t>> outermost_first(const Buffer& buffer) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] > 1) dims.push_back(d);
  }
  std::ranges::stable_sort(dims, [&](size_t a, size_t b) { return buffer.stride[a] > buffer.stride[b]; });
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t inside =
        i + 1 < dims.size() ? buffer.size[dims[i + 1]] * buffer.stride[dims[i + 1]] : int64_t{1};
    if (buffer.stride[dims[i]] < inside) return std::nullopt;
  }
  return dims;
}

int64_t extent_of(const std::vector<Loop>& loops, const std::string& name) {
  const auto loop = std::ranges::find(loops, name, &Loop::name);
  return loop == loops.end() ? 0 : loop->extent;
}

std::optional<size_t> dimension_of_stride(const Buffer& buffer, int64_t stride) {
  for (size_t d = 0; d < buffer.size.size(); ++d) {
    if (buffer.size[d] > 1 && buffer.stride[d] == stride) return d;
  }
  return std::nullopt;
}

// With dimensions that follow one another without a gap as one, the outermost first.
Buffer with_joined_dimensions(const Buffer& buffer, const std::vector<size_t>& outermost_first) {
  Buffer found{.offset = buffer.offset};
  for (const size_t d : outermost_first) {
    const int64_t size = buffer.size[d], stride = buffer.stride[d];
    if (!found.size.empty() && found.stride.back() == size * stride) {
      found.size.back() *= size;
      found.stride.back() = stride;
    } else {
      found.size.push_back(size);
      found.stride.push_back(stride);
    }
  }
  return found;
}

// Steps along the dimensions of a buffer, the outermost first; what is left of them lies between its elements.
struct Steps {
  std::vector<int64_t> along;
  int64_t rest;
};

Steps steps_of(const Buffer& buffer, int64_t elements) {
  Steps steps{.along = {}, .rest = elements};
  for (const int64_t stride : buffer.stride) {
    steps.along.push_back(steps.rest / stride);
    steps.rest %= stride;
  }
  return steps;
}

int64_t sticks(int64_t elements, int64_t lanes) {
  return (elements + lanes - 1) / lanes;
}

}  // namespace

int64_t BufferPart::start(const Buffer& buffer) const {
  int64_t element = 0;
  for (size_t d = 0; d < low.size(); ++d) element += low[d] * buffer.stride[d];
  return element;
}

std::optional<BufferPart> part_read(const Buffer& buffer, const Expr& index, const std::vector<Loop>& loops) {
  const std::optional<std::vector<size_t>> dims = outermost_first(buffer);
  if (!dims) return std::nullopt;
  BufferPart part{.low = std::vector<int64_t>(buffer.size.size(), 0),
                  .size = std::vector<int64_t>(buffer.size.size(), 1)};
  int64_t rest = index.constant_term() - buffer.offset;
  if (rest < 0) return std::nullopt;
  for (const size_t d : *dims) {
    part.low[d] = rest / buffer.stride[d];
    rest %= buffer.stride[d];
  }
  if (rest != 0) return std::nullopt;
  for (const ExprTerm& term : index.terms()) {
    const int64_t extent = term.kind == AtomKind::kSymbol ? extent_of(loops, term.name) : 0;
    const auto dim =
        std::ranges::find_if(*dims, [&](size_t d) { return buffer.stride[d] <= term.coefficient; });
    if (extent == 0 || dim == dims->end() || term.coefficient % buffer.stride[*dim] != 0) return std::nullopt;
    part.size[*dim] += (extent - 1) * (term.coefficient / buffer.stride[*dim]);
  }
  // What walks past the end of a dimension is further along the next one.
  for (size_t d = 0; d < part.size.size(); ++d) {
    if (part.low[d] + part.size[d] > buffer.size[d]) return std::nullopt;
  }
  return part;
}

bool keeps_to_dimensions(const Buffer& buffer, const Expr& index, const std::vector<Loop>& loops) {
  const std::optional<std::vector<size_t>> dims = outermost_first(buffer);
  if (!dims || buffer.elements() >= buffer.reach() || !index.index_tensors().empty()) return true;
  const Buffer dense = with_joined_dimensions(buffer, *dims);
  const Steps start = steps_of(dense, index.constant_term() - buffer.offset);
  std::vector<int64_t> low = start.along, high = start.along;
  bool between = start.rest != 0;
  for (const ExprTerm& term : index.terms()) {
    const int64_t last = term.kind == AtomKind::kSymbol ? extent_of(loops, term.name) - 1 : 0;
    const Steps steps = steps_of(dense, term.coefficient);
    between |= last > 0 && steps.rest != 0;
    for (size_t d = 0; d < low.size(); ++d) (steps.along[d] < 0 ? low : high)[d] += last * steps.along[d];
  }
  for (size_t d = 0; d < low.size(); ++d) between |= low[d] < 0 || high[d] >= dense.size[d];
  return !between;
}

BufferPart joined(const BufferPart& a, const BufferPart& b) {
  BufferPart both = a;
  for (size_t d = 0; d < both.low.size(); ++d) {
    both.low[d] = std::min(a.low[d], b.low[d]);
    both.size[d] = std::max(a.low[d] + a.size[d], b.low[d] + b.size[d]) - both.low[d];
  }
  return both;
}

BufferPart with_whole_sticks(BufferPart part, const Buffer& buffer, const DeviceLayout& layout) {
  const std::optional<size_t> along = dimension_of_stride(buffer, layout.stride_map.back());
  if (!along) return part;
  const int64_t lanes = layout.elems_per_stick(), end = part.low[*along] + part.size[*along];
  part.low[*along] -= part.low[*along] % lanes;
  part.size[*along] = std::min(sticks(end, lanes) * lanes, buffer.size[*along]) - part.low[*along];
  return part;
}

std::optional<DeviceLayout> layout_of_part(const Buffer& buffer, const DeviceLayout& layout,
                                           const BufferPart& part) {
  if (layout.element_arrangement != ElementArrangement::STANDARD) return std::nullopt;
  const int64_t lanes = layout.elems_per_stick();
  const std::optional<size_t> along = dimension_of_stride(buffer, layout.stride_map.back());
  DeviceLayout small = layout;
  for (size_t k = 0; k + 1 < small.device_size.size(); ++k) {
    int64_t& extent = small.device_size[k];
    if (extent == 1) continue;
    const int64_t stride = layout.stride_map[k];
    if (along && stride == lanes * buffer.stride[*along] && extent == sticks(buffer.size[*along], lanes)) {
      extent = sticks(part.size[*along], lanes);
      continue;
    }
    const std::optional<size_t> dim = dimension_of_stride(buffer, stride);
    if (!dim || dim == along || extent != buffer.size[*dim]) return std::nullopt;
    extent = part.size[*dim];
  }
  return small;
}

}  // namespace spyre
