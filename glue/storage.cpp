#include "glue/storage.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "glue/bindings.h"
#include "glue/device_state.h"
#include "glue/error.h"
#include "glue/tensor_access.h"
#include "spyre/base/text.h"
#include "spyre/layout/element_map.h"
#include "spyre/runtime/fork.h"

namespace spyre::glue {
namespace {

/// Every live context, by its token.
class Contexts {
 public:
  static Contexts& instance() {
    static auto* contexts = new Contexts;  // Never destroyed: tensors may be freed at exit.
    return *contexts;
  }

  void add(const void* token, StorageContext* context) {
    const std::lock_guard lock(mutex_);
    by_token_[token] = context;
  }
  void remove(const void* token) {
    const std::lock_guard lock(mutex_);
    by_token_.erase(token);
  }
  StorageContext* find(const void* token) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_token_.find(token);
    return found == by_token_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, StorageContext*> by_token_;
};

/// Tells a profiler that listens to memory; `change` is negative for what was freed.
void report_memory(const Memory& memory, int64_t change) {
  if (!c10::memoryProfilingEnabled() || !Runtime::instance().started()) {
    return;
  }
  const auto device = static_cast<c10::DeviceIndex>(memory.device_index());
  const MemoryStats stats = card(device).allocator().stats();
  c10::reportMemoryUsageToProfiler(const_cast<void*>(memory.token()), change,  // NOLINT: a name, not read
                                   static_cast<size_t>(stats.allocated_bytes.current),
                                   static_cast<size_t>(stats.reserved_bytes.current), spyre_device(device));
}

void delete_context(void* data) {
  auto* context = static_cast<StorageContext*>(data);
  if (context == nullptr) {
    return;
  }
  // A bad fork may have inherited the lock, taken for ever; it has no use for the entry.
  if (context->memory != nullptr && !forked_after_start()) {
    Contexts::instance().remove(context->memory->token());
    report_memory(*context->memory, -context->memory->requested().count());
  }
  delete context;
}

/// The storage's own context, with or without memory.
StorageContext* own_context(const c10::StorageImpl& storage) {
  return storage.data_ptr().cast_context<StorageContext>(&delete_context);
}

/// Strides that place every element once, without a gap: some permutation of a contiguous tensor.
bool is_dense(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t dim : order) {
    if (sizes[dim] == 1) {
      continue;
    }
    if (strides[dim] != expected) {
      return false;
    }
    expected *= sizes[dim];
  }
  return true;
}

int64_t reach(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      return 0;
    }
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

BaseImage flat_image(int64_t numel, HostType type) {
  const std::array<int64_t, 1> size = {numel};
  return {unwrap(DeviceLayout::standard(size, info_of(type).device_format)), type, numel};
}

}  // namespace

StorageContext* context_of(const c10::StorageImpl& storage) {
  if (storage.data_ptr().get() == nullptr) {
    return nullptr;
  }
  StorageContext* const own = own_context(storage);
  return own != nullptr ? own : Contexts::instance().find(storage.data_ptr().get());
}

StorageContext& require_memory(const c10::StorageImpl& storage) {
  StorageContext* const context = context_of(storage);
  TORCH_CHECK(context != nullptr, "a Spyre storage has no memory behind it",
              image_of(storage) != nullptr ? ": it was freed by resize_(0)" : "",
              "\n  try  storage.resize_(nbytes) before it is used");
  return *context;
}

const BaseImage* image_of(const c10::StorageImpl& storage) {
  const StorageContext* own = own_context(storage);
  const StorageContext* context = own != nullptr ? own : context_of(storage);
  return context != nullptr && context->image.has_value() ? &*context->image : nullptr;
}

int64_t element_capacity(const c10::StorageImpl& storage, HostType type) {
  const StorageContext* context = context_of(storage);
  if (context != nullptr && context->image.has_value() && context->image->type == type) {
    return context->image->numel;
  }
  return static_cast<int64_t>(storage.nbytes()) / info_of(type).host_bytes;
}

c10::DataPtr allocate_bytes(c10::DeviceIndex device, Bytes size, std::string description) {
  const c10::DeviceIndex index = resolve_index(device);
  if (size == Bytes(0)) {
    return c10::DataPtr(nullptr, nullptr, &delete_context, spyre_device(index));
  }
  MemoryRef memory = unwrap(
      card(index).allocate(size, {.description = std::move(description), .frames = allocation_frames()}));
  void* token =
      const_cast<void*>(memory->token());  // NOLINT: PyTorch wants void*; nobody may write through it
  report_memory(*memory, memory->requested().count());
  auto* context = new StorageContext{std::move(memory), std::nullopt};
  Contexts::instance().add(token, context);
  return c10::DataPtr(token, context, &delete_context, spyre_device(index));
}

Bytes storage_bytes_of(const BaseImage& image) {
  return storage_bytes(unwrap(image.layout.byte_size()), image.numel, Bytes(info_of(image.type).host_bytes));
}

c10::Storage allocate_image(c10::DeviceIndex device, BaseImage image, const std::string& description) {
  const Bytes size = storage_bytes_of(image);
  c10::DataPtr data = allocate_bytes(device, size, description);
  if (size > Bytes(0)) {
    static_cast<StorageContext*>(data.get_context())->image = std::move(image);
  }
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(size.count()), std::move(data),
      c10::GetAllocator(c10::kPrivateUse1), /*resizable=*/true));
}

void replace_image(c10::StorageImpl& storage, BaseImage image) {
  const c10::DeviceIndex device = storage.device().index();
  const std::string description = c10::str(std::string(to_string(image.type)), "[", image.numel, "]");
  const Bytes size = storage_bytes_of(image);
  c10::DataPtr data = allocate_bytes(device, size, description);
  if (size > Bytes(0)) {
    static_cast<StorageContext*>(data.get_context())->image = std::move(image);
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(static_cast<size_t>(size.count()));
}

BaseImage image_for(c10::IntArrayRef sizes, c10::IntArrayRef strides, HostType type) {
  // The stick takes a dimension of its own.
  if (!is_dense(sizes, strides) || sizes.size() >= kMaxLayoutDims) {
    return flat_image(reach(sizes, strides), type);
  }
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return {unwrap(DeviceLayout::ordered(sizes, strides, info_of(type).device_format, order)), type,
          c10::multiply_integers(sizes)};
}

void adopt_storage(c10::StorageImpl& storage, HostType type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   int64_t storage_offset) {
  StorageContext* context = context_of(storage);
  if (context == nullptr) {
    return;
  }
  if (context->image.has_value()) {
    TORCH_CHECK(
        context->image->type == type, "a Spyre storage that holds ",
        std::string(to_string(context->image->type)), " cannot be viewed as ", std::string(to_string(type)),
        ": on the card elements have the card's own format\n  try  .to(dtype) to convert, or .cpu() first");
    return;
  }
  const auto numel = static_cast<int64_t>(storage.nbytes()) / info_of(type).host_bytes;
  std::vector<std::byte> bytes = read_raw_bytes(*context, storage.nbytes());
  // A tensor smaller than the storage may be one of several, so all elements are kept.
  const bool fills_storage =
      storage_offset == 0 && is_dense(sizes, strides) && c10::multiply_integers(sizes) == numel;
  BaseImage image = fills_storage ? image_for(sizes, strides, type) : flat_image(numel, type);
  replace_image(storage, std::move(image));
  write_logical_elements(*context_of(storage), bytes);
}

namespace {

void resize_plain_bytes(c10::StorageImpl& storage, size_t new_bytes) {
  std::vector<std::byte> kept;
  if (const StorageContext* context = context_of(storage); context != nullptr && new_bytes > 0) {
    kept = read_raw_bytes(*context, std::min(storage.nbytes(), new_bytes));
  }
  storage.set_data_ptr_noswap(
      allocate_bytes(storage.device().index(), Bytes(static_cast<int64_t>(new_bytes)), "bytes"));
  storage.set_nbytes(new_bytes);
  if (!kept.empty()) {
    write_raw_bytes(*context_of(storage), kept);
  }
}

void free_memory(c10::StorageImpl& storage, BaseImage image) {
  auto* context = new StorageContext{nullptr, std::move(image)};
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, context, &delete_context, storage.device()));
}

}  // namespace

void resize_storage(c10::StorageImpl& storage, size_t new_bytes) {
  SPYRE_CHECK(storage.resizable(),
              "storages of the card are its own: never shared, never mapped from a file");
  const BaseImage* const known = image_of(storage);
  if (known == nullptr) {
    resize_plain_bytes(storage, new_bytes);
    return;
  }
  const BaseImage before = *known;
  const auto item = static_cast<size_t>(info_of(before.type).host_bytes);
  const size_t padded = static_cast<size_t>(storage_bytes_of(before).count());
  const bool same = new_bytes == padded || new_bytes == static_cast<size_t>(before.numel) * item;
  const StorageContext* const context = context_of(storage);
  if (new_bytes < item) {
    free_memory(storage, before);
  } else if (!same || context == nullptr) {
    const bool had_memory = context != nullptr;
    std::vector<std::byte> logical = had_memory ? read_logical_elements(*context) : std::vector<std::byte>();
    logical.resize(new_bytes / item * item);
    replace_image(storage, same ? before : flat_image(static_cast<int64_t>(new_bytes / item), before.type));
    if (had_memory) {
      write_logical_elements(*context_of(storage), logical);
    }
  }
  storage.set_nbytes(new_bytes);
}

}  // namespace spyre::glue
