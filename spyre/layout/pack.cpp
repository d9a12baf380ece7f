#include "spyre/layout/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "spyre/base/text.h"
#include "spyre/base/thread_pool.h"
#include "spyre/layout/element_map.h"
#include "spyre/layout/transfer_plan.h"
#include "spyre/layout/walk.h"

namespace spyre {
namespace {

constexpr int64_t kZeroGrain = 1 << 20;     ///< bytes a thread zeroes at least
constexpr int64_t kElementGrain = 1 << 12;  ///< elements a thread places one by one at least

bool shows_an_element_twice(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1 && strides[i] == 0) {
      return true;
    }
  }
  return false;
}

Status check_shapes(const ViewGeometry& view, std::span<const int64_t> host_sizes,
                    std::span<const int64_t> host_strides) {
  if (!std::ranges::equal(view.sizes, host_sizes)) {
    return invalid(fmt::format("Invalid device sizes for host sizes. Expected: {}, got: {}",
                               list_text(host_sizes), list_text(view.sizes)));
  }
  if (view.strides.size() != view.sizes.size() || host_strides.size() != host_sizes.size()) {
    return invalid(fmt::format("Sizes {}, device strides {} and host strides {} must have the same length",
                               list_text(view.sizes), list_text(view.strides), list_text(host_strides)));
  }
  return {};
}

Status check_room(const DeviceLayout& layout, size_t device_bytes) {
  SPYRE_ASSIGN_OR_RETURN(const Bytes needed, layout.byte_size());
  if (needed > Bytes(static_cast<int64_t>(device_bytes))) {
    return Error(ErrorKind::kOutOfRange,
                 fmt::format("The layout takes {} bytes, the device memory given has {}", needed.count(),
                             device_bytes))
        .note(layout.to_string());
  }
  return {};
}

void zero(std::span<std::byte> bytes) {
  parallel_for(static_cast<int64_t>(bytes.size()), kZeroGrain, [&](int64_t begin, int64_t end) {
    std::memset(bytes.data() + begin, 0, static_cast<size_t>(end - begin));
  });
}

/// Steps through the elements of a tensor in row-major order and keeps two offsets up to date.
class Odometer {
 public:
  Odometer(std::span<const int64_t> sizes, std::span<const int64_t> a_strides,
           std::span<const int64_t> b_strides, int64_t position)
      : sizes_(sizes), a_strides_(a_strides), b_strides_(b_strides), index_(sizes.size()) {
    for (size_t i = sizes.size(); i-- > 0;) {
      index_[i] = position % sizes[i];
      position /= sizes[i];
      a += index_[i] * a_strides[i];
      b += index_[i] * b_strides[i];
    }
  }

  void advance() {
    for (size_t i = sizes_.size(); i-- > 0;) {
      a += a_strides_[i];
      b += b_strides_[i];
      if (++index_[i] < sizes_[i]) {
        return;
      }
      a -= sizes_[i] * a_strides_[i];
      b -= sizes_[i] * b_strides_[i];
      index_[i] = 0;
    }
  }

  std::span<const int64_t> index() const { return index_; }

  int64_t a = 0;
  int64_t b = 0;

 private:
  std::span<const int64_t> sizes_, a_strides_, b_strides_;
  std::vector<int64_t> index_;
};

/// Calls `body(host_offset, device_offset)` for each element of the view, in elements, on all threads. False
/// from the body stops its piece. For views that are no loop nests.
template <typename Body>
Status for_each_element(const ElementMap& map, const ViewGeometry& view,
                        std::span<const int64_t> host_strides, const Body& body) {
  std::atomic<int64_t> misplaced{-1};
  parallel_for(view.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    Odometer at(view.sizes, host_strides, view.strides, begin);
    for (int64_t i = begin; i < end; ++i, at.advance()) {
      const auto device = map.find(view.storage_offset + at.b);
      if (!device) {
        misplaced.store(view.storage_offset + at.b);
        return;
      }
      if (!body(at.a, *device)) {
        return;
      }
    }
  });
  return misplaced.load() < 0 ? Status() : Status(map.device_offset(misplaced.load()).error());
}

/// The first element, in row-major order, that has no image: found again, slowly, to say which it was.
Error first_misfit(const ConstHostBuffer& src, const Convert& convert) {
  Odometer at(src.sizes, src.strides, src.strides, 0);
  std::array<std::byte, 8> image;
  for (int64_t n = numel_of(src.sizes); n > 0; --n, at.advance()) {
    const std::byte* element = src.data + at.a * convert.src_bytes();
    if (convert.run(element, image.data(), 1) == 1) {
      continue;
    }
    if (src.type == HostType::kInt64 && convert.dst_bytes() == 4) {
      int64_t value;
      std::memcpy(&value, element, sizeof(value));
      return Error(ErrorKind::kOutOfRange,
                   fmt::format("value {} at index {} does not fit the card's 32-bit integers", value,
                               list_text(at.index())))
          .try_instead("keeping int64 tensors with large values on the host, or clamping them");
    }
    return convert.misfit(element).note(fmt::format("at index {}", list_text(at.index())));
  }
  return Error(ErrorKind::kOutOfRange, "a value changed while it was being copied to the card");
}

/// How the padding of a whole base gets its zeros.
struct PaddingPlan {
  bool zero_first = false;   ///< zero the whole image, then write the elements
  bool inline_tail = false;  ///< each nest fills up the sticks it starts
};

/// Nests that each start sticks at lane 0 and together start every stick can zero the lanes they leave free.
PaddingPlan plan_padding(const DeviceLayout& layout, const ViewGeometry& view, std::span<const Nest> nests,
                         int64_t device_elements) {
  if (!view.whole_base) {
    return {};
  }
  const int64_t lanes = layout.elems_per_stick();
  int64_t elements = 0;
  int64_t sticks = 0;
  bool start_at_lane_0 = layout.element_arrangement == ElementArrangement::STANDARD;
  for (const Nest& nest : nests) {
    elements += numel_of(nest.counts);
    sticks += numel_of(nest.counts) / nest.counts.back();
    start_at_lane_0 = start_at_lane_0 && nest.device_offset % lanes == 0 && nest.device_strides.back() == 1;
    for (size_t i = 0; i + 1 < nest.counts.size(); ++i) {
      start_at_lane_0 = start_at_lane_0 && (nest.counts[i] == 1 || nest.device_strides[i] % lanes == 0);
    }
  }
  if (elements == device_elements) {
    return {};
  }
  const bool every_stick = start_at_lane_0 && sticks * lanes == device_elements;
  return {.zero_first = !every_stick, .inline_tail = every_stick};
}

Walk walk_of(const Nest& nest, int64_t host_bytes, int64_t device_bytes, Direction direction) {
  const bool to_device = direction == Direction::kHostToDevice;
  Walk walk;
  for (size_t i = 0; i < nest.counts.size(); ++i) {
    const int64_t host = nest.host_strides[i] * host_bytes;
    const int64_t device = nest.device_strides[i] * device_bytes;
    walk.loops.push_back({nest.counts[i], to_device ? host : device, to_device ? device : host});
  }
  const int64_t host = nest.host_offset * host_bytes;
  const int64_t device = nest.device_offset * device_bytes;
  walk.src_offset = to_device ? host : device;
  walk.dst_offset = to_device ? device : host;
  return walk;
}

/// Runs nests from `src` into the image, padding included. False when an element has no image.
bool write_image(std::span<const Nest> nests, const DeviceLayout& layout, const ViewGeometry& view,
                 const Convert& convert, const std::byte* src, std::span<std::byte> image) {
  const int64_t width = convert.dst_bytes();
  const PaddingPlan padding = plan_padding(layout, view, nests, static_cast<int64_t>(image.size()) / width);
  if (padding.zero_first) {
    zero(image);
  }
  bool fits = true;
  for (const Nest& nest : nests) {
    Walk walk = walk_of(nest, convert.src_bytes(), width, Direction::kHostToDevice);
    walk.pad_bytes = padding.inline_tail ? kStickBytes.count() - nest.counts.back() * width : 0;
    fits = run_walk(walk, convert, src, image.data()) && fits;
  }
  return fits;
}

template <int kWidth>
int64_t copy_elements(const std::byte* src, std::byte* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n * kWidth));
  return n;
}

/// Moves elements that are in the card's format already.
Convert copy_of(DataFormat format) {
  const Encoding encoding = device_encoding(format);
  const ConvertKernel kernel = encoding.bytes == 1   ? copy_elements<1>
                               : encoding.bytes == 2 ? copy_elements<2>
                               : encoding.bytes == 4 ? copy_elements<4>
                                                     : copy_elements<8>;
  return {encoding, encoding, kernel, false};
}

using Stick = std::array<std::byte, 128>;

/// A stick of one element, repeated.
Stick stick_of(uint64_t element_bits, int width) {
  Stick stick;
  for (size_t i = 0; i < stick.size(); i += static_cast<size_t>(width)) {
    std::memcpy(stick.data() + i, &element_bits, static_cast<size_t>(width));
  }
  return stick;
}

/// The same device positions, each written once, from one stick that is read again and again.
std::vector<Nest> repeating(std::vector<Nest> nests) {
  for (Nest& nest : nests) {
    for (size_t i = 0; i < nest.counts.size(); ++i) {
      nest.counts[i] = nest.device_strides[i] == 0 ? 1 : nest.counts[i];
      nest.host_strides[i] = i + 1 == nest.counts.size() ? 1 : 0;
    }
    nest.host_offset = 0;
  }
  return nests;
}

}  // namespace

Status pack(const ConstHostBuffer& src, const DeviceLayout& layout, const ViewGeometry& view,
            std::span<std::byte> device_bytes, Sen169Policy policy) {
  SPYRE_TRY(check_shapes(view, src.sizes, src.strides));
  SPYRE_TRY(check_room(layout, device_bytes.size()));
  if (shows_an_element_twice(view.sizes, view.strides)) {
    return invalid(fmt::format(
        "A view with sizes {} and strides {} shows one element several times and cannot be written",
        list_text(view.sizes), list_text(view.strides)));
  }
  SPYRE_ASSIGN_OR_RETURN(const Convert convert,
                         find_conversion(src.type, layout.device_dtype, Direction::kHostToDevice, policy));
  SPYRE_ASSIGN_OR_RETURN(const ElementMap map, ElementMap::of(layout));
  if (view.numel() == 0) {
    return {};
  }
  const std::span<std::byte> image =
      device_bytes.first(static_cast<size_t>(layout.byte_size().value().count()));
  const int64_t width = convert.dst_bytes();
  std::atomic<bool> fits{true};

  SPYRE_ASSIGN_OR_RETURN(const std::optional<std::vector<Nest>> nests, plan_nests(map, view, src.strides));
  if (nests) {
    fits = write_image(*nests, layout, view, convert, src.data, image);
  } else {
    if (view.whole_base) {
      zero(image);
    }
    const std::vector<int64_t> copies = map.copies();
    SPYRE_TRY(for_each_element(map, view, src.strides, [&](int64_t host, int64_t device) {
      for (const int64_t copy : copies) {
        if (convert.run(src.data + host * convert.src_bytes(), image.data() + (device + copy) * width, 1) !=
            1) {
          fits = false;
          return false;
        }
      }
      return true;
    }));
  }
  return fits ? Status() : Status(first_misfit(src, convert));
}

Status unpack(std::span<const std::byte> device_bytes, const DeviceLayout& layout, const ViewGeometry& view,
              const HostBuffer& dst, Sen169Policy policy) {
  SPYRE_TRY(check_shapes(view, dst.sizes, dst.strides));
  SPYRE_TRY(check_room(layout, device_bytes.size()));
  if (shows_an_element_twice(dst.sizes, dst.strides)) {
    return invalid(fmt::format("A host tensor with sizes {} and strides {} is expanded and cannot be written",
                               list_text(dst.sizes), list_text(dst.strides)));
  }
  SPYRE_ASSIGN_OR_RETURN(const Convert convert,
                         find_conversion(dst.type, layout.device_dtype, Direction::kDeviceToHost, policy));
  SPYRE_ASSIGN_OR_RETURN(const ElementMap map, ElementMap::of(layout));
  if (view.numel() == 0) {
    return {};
  }
  std::atomic<bool> fits{true};
  SPYRE_ASSIGN_OR_RETURN(const std::optional<std::vector<Nest>> nests, plan_nests(map, view, dst.strides));
  if (nests) {
    for (Nest nest : *nests) {
      for (size_t i = 0; i < nest.counts.size(); ++i) {
        // Copies of an element are equal: one is enough.
        nest.counts[i] = nest.host_strides[i] == 0 ? 1 : nest.counts[i];
      }
      const Walk walk = walk_of(nest, convert.dst_bytes(), convert.src_bytes(), Direction::kDeviceToHost);
      if (!run_walk(walk, convert, device_bytes.data(), dst.data)) {
        fits = false;
      }
    }
  } else {
    SPYRE_TRY(for_each_element(map, view, dst.strides, [&](int64_t host, int64_t device) {
      const bool ok = convert.run(device_bytes.data() + device * convert.src_bytes(),
                                  dst.data + host * convert.dst_bytes(), 1) == 1;
      fits = fits && ok;
      return ok;
    }));
  }
  return fits ? Status()
              : Status(Error(ErrorKind::kOutOfRange,
                             fmt::format("The device tensor holds values that {} cannot, NaN for example",
                                         to_string(dst.type))));
}

Status fill(std::span<std::byte> device_bytes, const DeviceLayout& layout, const ViewGeometry& view,
            uint64_t element_bits) {
  SPYRE_TRY(check_room(layout, device_bytes.size()));
  const int width = device_encoding(layout.device_dtype).bytes;
  if (width == 0) {
    return Error(ErrorKind::kUnsupported,
                 fmt::format("Cannot fill elements of {}: they are narrower than a byte",
                             to_string(layout.device_dtype)));
  }
  SPYRE_ASSIGN_OR_RETURN(const ElementMap map, ElementMap::of(layout));
  if (view.numel() == 0) {
    return {};
  }
  const std::span<std::byte> image =
      device_bytes.first(static_cast<size_t>(layout.byte_size().value().count()));
  if (view.whole_base && element_bits == 0) {
    zero(image);
    return {};
  }
  const std::vector<int64_t> still(view.sizes.size(), 0);
  SPYRE_ASSIGN_OR_RETURN(std::optional<std::vector<Nest>> nests, plan_nests(map, view, still));
  if (nests) {
    SPYRE_CHECK(write_image(repeating(*std::move(nests)), layout, view, copy_of(layout.device_dtype),
                            stick_of(element_bits, width).data(), image),
                "copying bytes cannot fail");
    return {};
  }
  if (view.whole_base) {
    zero(image);
  }
  const std::vector<int64_t> copies = map.copies();
  return for_each_element(map, view, still, [&](int64_t, int64_t device) {
    for (const int64_t offset : copies) {
      std::memcpy(image.data() + (device + offset) * width, &element_bits, static_cast<size_t>(width));
    }
    return true;
  });
}

}  // namespace spyre
