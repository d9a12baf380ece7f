// The checker's rules about what an execute reads: written before, whole, by the right core, padding known.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "spyre/device/exec/checker.h"
#include "spyre/device/exec/checker_parts.h"
#include "spyre/device/exec/padding_flow.h"

namespace spyre::exec {

namespace {

/// What a buffer takes, gaps included.
int64_t bytes_of(const MemoryShape& buffer) {
  int64_t bytes = kStick;
  for (const MemoryDim& dim : buffer.dims) {
    bytes = std::max(bytes, dim.stride * dim.steps);
  }
  return bytes;
}

/// Whether sticks lie in a buffer.
bool lies_in(const StickRun& sticks, const MemoryShape& buffer) {
  const int64_t begin = sticks.first * kStick - buffer.base;
  return begin >= 0 && begin + sticks.count * kStick <= bytes_of(buffer);
}

/// Whether what another writer wrote, `hull`, is a part of this one's buffer: slices name its whole extents, the rest as
/// gaps, and lie inside of it.
bool same_buffer(const MemoryShape& other, const StickRun& hull, const MemoryShape& writer) {
  if (!lies_in(hull, writer)) {
    return false;
  }
  const auto steps = [](const MemoryShape& shape) {
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const MemoryDim& dim : shape.dims) {
      if (dim.steps > 1) {
        found.emplace_back(dim.stride, dim.steps);
      }
    }
    return found;
  };
  return steps(other) == steps(writer);
}

}  // namespace

/// The part of an input that a core wants where it reads more: a turn reads whole tiles, and whoever wrote a
/// tensor of fewer rows declared the rest of them a gap. An empty box for a core whose rows are all in the gap.
/// Nothing where there is no gap, or where somebody else filled it: slices of one buffer are written so.
std::optional<Box> Checker::without_gap(const BoundOp& bound, int tensor, int core) const {
  const Tensor& t = bound.tensors[tensor];
  if (bound.op->info->family != OpFamily::kCopy || t.residence != Residence::kHbm || !is_plain(t)) {
    return std::nullopt;
  }
  const Footprint& touched = sticks_[tensor][core];
  const auto writer_of = [&](int64_t stick) {
    uint32_t found = 0;
    hbm_.for_each_run(stick, 1, [&](uint32_t number, int64_t, int64_t) { found = number; });
    return found;
  };
  uint32_t first = writer_of(hull_of(touched).first);
  Footprint known = touched;
  if (first == 0) {  // all of the core's part may be gap: then ask where the tensor begins
    known = {*hull_of(sticks_[tensor])};
    first = writer_of(known.front().first);
  }
  const auto each_writer = [&](const Footprint& sticks, const auto& see) {
    for (const StickRun& run : sticks) {
      hbm_.for_each_run(run.first, run.count, [&](uint32_t number, int64_t, int64_t) {
        if (number != 0 && number != first) {
          see(number);
        }
      });
    }
  };
  // Where steps or slices were written over a whole buffer, its own writer knows where the gap begins; not if anything
  // else was written over it before.
  const auto in_use = [&](const Record& record) {
    return std::ranges::none_of(records_, [&](const Record& over) {
      return over.overwrote.contains(record.sequence) && !over.updated.contains(record.sequence);
    });
  };
  each_writer(known, [&](uint32_t number) {
    const Record &slice = records_[first], &whole = records_[number];
    if (slice.updated.contains(whole.sequence) && in_use(whole) &&
        is_slice_of(slice.shape, slice.hull, whole.shape, whole.hull)) {
      first = number;
    }
  });
  const Record& writer = records_[first];
  if (first == 0 || writer.from_host) {
    return std::nullopt;
  }
  const MemoryShape view = shape_of(bound, tensor);
  Box box = touched_box(bound, tensor, core);
  bool smaller = false;
  for (const MemoryDim& dim : view.dims) {
    const int64_t end = std::max(written_extent(view, dim, writer.shape), box.lower[dim.op_dim]);
    smaller |= end < box.upper[dim.op_dim];
    box.upper[dim.op_dim] = std::min(box.upper[dim.op_dim], end);
  }
  // What it wrote itself is in none of its gaps: who reads that as such steps through more than the dim with the gap.
  const auto own_sticks = [&](const Footprint& sticks) {
    int64_t own = 0;
    for (const StickRun& run : sticks) {
      hbm_.for_each_run(run.first, run.count,
                        [&](uint32_t number, int64_t, int64_t count) { own += number == first ? count : 0; });
    }
    return own;
  };
  smaller = smaller && own_sticks(footprint(bound, tensor, core, box)) == own_sticks(touched);
  bool filled = false;
  each_writer(touched, [&](uint32_t number) {
    const Record& other = records_[number];
    // Whoever was read together with what is not of this buffer is a part of another one, and left over; so is whoever
    // was read, and then written over by something else in between.
    const bool of_another = other.read.count != 0 && !lies_in(other.read, view);
    filled |= !writer.overwrote.contains(other.sequence) && other.who.launch == writer.who.launch &&
              !of_another && same_buffer(other.shape, other.hull, writer.shape) && in_use(other);
  });
  return smaller && !filled ? std::optional(box) : std::nullopt;
}

/// The part of an input that narrowing wants of it: pairs of sticks become one, and of an odd number of them the last
/// has no partner. Nothing where the partner is there: the same writer wrote both.
std::optional<Box> Checker::without_odd_end(const BoundOp& bound, int tensor, int core) {
  const Tensor& t = bound.tensors[tensor];
  if (bound.op->info->id != OpId::fp32todl16 || !is_plain(t)) {
    return std::nullopt;
  }
  const auto stick = std::ranges::find_if(t.dims, [](const TensorDim& dim) { return dim.per_stick > 1; });
  Box box = touched_box(bound, tensor, core);
  if (stick == t.dims.end() || box.upper[stick->dim] - box.lower[stick->dim] < 2 * stick->per_stick) {
    return std::nullopt;
  }
  box.upper[stick->dim] -= stick->per_stick;
  const auto writers = [&](int64_t lower, int64_t upper) {
    Box part = box;
    part.lower[stick->dim] = lower;
    part.upper[stick->dim] = upper;
    std::set<uint32_t> found;
    for (const StickRun& run : footprint(bound, tensor, core, part)) {
      shadow(t.residence, bound.op->cores[core].core)
          .for_each_run(run.first, run.count,
                        [&](uint32_t number, int64_t, int64_t) { found.insert(number); });
    }
    return found;
  };
  const int64_t end = box.upper[stick->dim];
  const std::set<uint32_t> last = writers(end - stick->per_stick, end),
                           partner = writers(end, end + stick->per_stick);
  const bool shared =
      std::ranges::any_of(partner, [&](uint32_t number) { return number != 0 && last.contains(number); });
  return shared ? std::nullopt : std::optional(box);
}

/// The part of a slice that a restickify wants of it: squares of sticks are transposed whole, so a slice may end no
/// earlier than its last square does, and the rows behind those that were written become lanes that hold nothing. Nothing
/// where the slice ends with its dim, where it could end with its data.
std::optional<Box> Checker::without_square_end(const BoundOp& bound, int tensor, int core) {
  const Tensor &t = bound.tensors[tensor], &out = bound.tensors[bound.op->output];
  if (bound.op->info->family != OpFamily::kCopy || !is_plain(t) || !is_plain(out)) {
    return std::nullopt;
  }
  const auto lanes = std::ranges::find_if(out.dims, [](const TensorDim& dim) { return dim.per_stick > 1; });
  if (lanes == out.dims.end()) {
    return std::nullopt;
  }
  const auto rows = std::ranges::find(t.dims, lanes->dim, &TensorDim::dim);
  if (rows == t.dims.end() || rows->per_stick > 1 || rows->gap <= 0) {
    return std::nullopt;
  }
  Box box = touched_box(bound, tensor, core);
  const int64_t end = box.upper[rows->dim];
  const auto missing = [&](int64_t row) {
    Box part = box;
    part.lower[rows->dim] = row;
    part.upper[rows->dim] = row + 1;
    bool found = false;
    for (const StickRun& run : footprint(bound, tensor, core, part)) {
      shadow(t.residence, bound.op->cores[core].core)
          .for_each_run(run.first, run.count,
                        [&](uint32_t number, int64_t, int64_t) { found |= number == 0; });
    }
    return found;
  };
  int64_t row = box.lower[rows->dim] + (end - 1 - box.lower[rows->dim]) / lanes->per_stick * lanes->per_stick;
  if (missing(row)) {
    return std::nullopt;
  }
  while (row < end && !missing(row)) {
    ++row;
  }
  box.upper[rows->dim] = row;
  return row < end ? std::optional(box) : std::nullopt;
}

/// Those of the writers found whose sticks are all in the gap that the last of them declared, and of another buffer that
/// was there before: a copy of the gap finds them where it would find nothing in fresh memory.
std::vector<uint32_t> Checker::left_over(const BoundOp& bound, const ShadowMemory& memory,
                                         const Footprint& sticks, const std::vector<uint32_t>& found) const {
  if (found.size() < 2 || !moves_bits(bound)) {
    return {};
  }
  const Record& last =
      records_[std::ranges::max(found, {}, [&](uint32_t n) { return records_[n].sequence; })];
  std::vector<uint32_t> old;
  for (const uint32_t number : found) {
    const Record& under = records_[number];
    if (last.overwrote.contains(under.sequence) &&
        !is_slice_of(last.shape, last.hull, under.shape, under.hull)) {
      old.push_back(number);
    }
  }
  for (const StickRun& run : sticks) {
    memory.for_each_run(run.first, run.count, [&](uint32_t number, int64_t at, int64_t count) {
      for (int64_t stick = at; stick < at + count; ++stick) {
        if (!in_gap(last.shape, stick * kStick)) {
          std::erase(old, number);
        }
      }
    });
  }
  return old;
}

Checker::Input Checker::check_input(const BoundOp& bound, int tensor) {
  const Tensor& t = bound.tensors[tensor];
  Input input{.padding = PaddedInput(bound.dims())};
  std::vector<uint32_t> all;
  std::vector<int> seen;  // one core of each different slice
  bool missing = false, gap = false;
  std::vector<int64_t> wanted(bound.dims(), kNoPadding);
  for (int core = 0; core < core_count(bound); ++core) {
    Footprint sticks = sticks_[tensor][core];
    const bool shared =
        t.residence == Residence::kHbm &&
        std::any_of(seen.begin(), seen.end(), [&](int other) { return sticks_[tensor][other] == sticks; });
    if (sticks.empty() || shared) {
      continue;
    }
    std::optional<Box> box = without_gap(bound, tensor, core);
    if (!box) {
      box = without_odd_end(bound, tensor, core);
    }
    if (!box) {
      box = without_square_end(bound, tensor, core);
    }
    if (box) {
      gap = true;
      bool wants_any = true;
      const Box touched = touched_box(bound, tensor, core);
      for (int d = 0; d < bound.dims(); ++d) {
        wants_any &= box->extent(d) > 0;
        if (box->upper[d] < touched.upper[d]) {
          wanted[d] = std::min(wanted[d], box->upper[d]);
        }
      }
      if (!wants_any) {
        continue;
      }
      sticks = footprint(bound, tensor, core, *box);
    }
    std::vector<uint32_t> found;
    ShadowMemory& memory = shadow(t.residence, bound.op->cores[core].core);
    for (const StickRun& run : sticks) {
      memory.for_each_run(run.first, run.count, [&](uint32_t number, int64_t, int64_t) {
        missing |= number == 0;
        if (number != 0 && std::find(found.begin(), found.end(), number) == found.end()) {
          found.push_back(number);
        }
      });
    }
    for (const uint32_t number : left_over(bound, memory, sticks, found)) {
      missing = true;
      input.left_over.insert(number);
      std::erase(found, number);
    }
    check_found(bound, tensor, core, hull_of(sticks), found);
    for (const uint32_t number : found) {
      if (std::find(all.begin(), all.end(), number) == all.end()) {
        all.push_back(number);
      }
    }
    seen.push_back(core);
  }
  for (const uint32_t number : all) {
    StickRun& read = records_[number].read;
    const StickRun touched = hull_of(sticks_[tensor]).value();
    read = read.count == 0 ? touched : join(read, touched);
  }
  learn(bound, tensor, all, input);
  if (gap) {
    for (int d = 0; d < bound.dims(); ++d) {
      if (wanted[d] != kNoPadding && wanted[d] <= input.padding[d].begin) {
        input.padding[d] = {.begin = wanted[d], .value = {.kind = PadValue::Kind::kUndefined}};
      }
    }
  }
  if (missing && !t.through) {
    // Loops that share a dim of the buffer see no part of it that ends at the gap: a copy reads the gap, too.
    const bool copies = moves_bits(bound) && all.size() == 1;
    const MemoryShape* gaps = copies ? &records_[all[0]].shape : nullptr;
    Input result = input;
    for (const int core : seen) {
      check_missing(bound, tensor, core, gaps, input, result);
    }
    input = result;
  }
  return input;
}

namespace {

/// A number is the same along all dims, a ramp has its values along the stick, where nothing else has more than one.
void learn_constant(const Fill& fill, const MemoryShape& view, PaddedInput& input) {
  if (fill.step == 0) {
    for (Padding& padding : input) {
      padding.fill = fill;
    }
    return;
  }
  const auto along_stick = [](const MemoryDim& dim) { return dim.per_stick > 1; };
  const auto alone = [&](const MemoryDim& dim) { return along_stick(dim) || dim.steps == 1; };
  const auto stick = std::ranges::find_if(view.dims, along_stick);
  if (stick != view.dims.end() && std::ranges::all_of(view.dims, alone)) {
    input[stick->op_dim].fill = fill;
  }
}

}  // namespace

const Checker::Region* Checker::argument_at(Residence memory, int64_t address) const {
  const Region* region = memory == Residence::kHbm ? region_of(address) : nullptr;
  return region != nullptr && region->arg != nullptr ? region : nullptr;
}

MemoryShape Checker::buffer_of(const Record& record, Residence memory, int64_t address) const {
  const Region* region = record.from_host ? argument_at(memory, address) : nullptr;
  return region != nullptr ? shape_of(*region->arg, region->begin) : record.shape;
}

void Checker::learn(const BoundOp& bound, int tensor, const std::vector<uint32_t>& found,
                    Input& input) const {
  const MemoryShape view = shape_of(bound, tensor);
  const Region* region = argument_at(bound.tensors[tensor].residence, view.base);
  bool first = true;
  for (const uint32_t number : found) {
    const Record& record = records_[number];
    const bool known_arg = record.from_host && region != nullptr;
    const MemoryShape buffer = buffer_of(record, bound.tensors[tensor].residence, view.base);
    for (const MemoryDim& dim : view.dims) {
      const Padding part = padding_along(view, dim, buffer);
      Padding& whole = input.padding[dim.op_dim];
      if (part.begin != kNoPadding) {
        whole.value = whole.begin == kNoPadding ? part.value : join(whole.value, part.value);
        whole.begin = std::min(whole.begin, part.begin);
      }
      whole.tail = found.size() == 1 ? part.tail : Tail();
    }
    if (known_arg && region->arg->fill && view.base == region->begin) {
      learn_constant(*region->arg->fill, view, input.padding);
    }
    const DataFormat format =
        known_arg ? region->arg->device_format.value_or(DataFormat::INVALID) : record.format;
    input.format = first || input.format == format ? format : DataFormat::INVALID;
    first = false;
  }
}

void Checker::check_missing(const BoundOp& bound, int tensor, int core, const MemoryShape* gaps,
                            const Input& input, Input& result) {
  const Tensor& t = bound.tensors[tensor];
  const Box touched = touched_box(bound, tensor, core);
  Box data = touched;
  for (int d = 0; d < bound.dims(); ++d) {
    data.upper[d] = std::min(data.upper[d], std::max(input.padding[d].begin, data.lower[d]));
  }
  const int id = bound.op->cores[core].core;
  const auto first_missing = [&](const Box& box, const MemoryShape* excused) {
    std::optional<StickRun> gone;
    for (const StickRun& run : footprint(bound, tensor, core, box)) {
      shadow(t.residence, id)
          .for_each_run(run.first, run.count, [&](uint32_t number, int64_t at, int64_t count) {
            const bool nobody = number == 0 || input.left_over.contains(number);
            for (int64_t stick = at; nobody && !gone && stick < at + count; ++stick) {
              if (excused == nullptr || !in_gap(*excused, stick * kStick)) {
                gone = StickRun{stick, at + count - stick};
              }
            }
          });
    }
    return gone;
  };
  const std::optional<StickRun> gone = first_missing(data, gaps);
  if (!gone) {
    // Data in the gap is beside padding along every dim; otherwise it is missing along those where it is with data.
    const bool along_all = first_missing(data, nullptr).has_value();
    for (int d = 0; d < bound.dims(); ++d) {
      Box beside = data;
      beside.upper[d] = touched.upper[d];
      if (along_all || (touched.upper[d] > data.upper[d] && first_missing(beside, nullptr))) {
        result.padding[d].value = {.kind = PadValue::Kind::kUndefined};
      }
    }
    return;
  }
  for (const auto& [other, memory] : lx_) {
    uint32_t holder = 0;
    memory.for_each_run(gone->first, 1, [&](uint32_t number, int64_t, int64_t) { holder = number; });
    if (t.residence == Residence::kLx && other != id && holder != 0) {
      Party who = records_[holder].who;
      who.core = other;
      report(Rule::kNotHeld, bound, tensor, core, *gone, "nobody wrote this here; another core holds it",
             who);
      return;
    }
  }
  report(Rule::kUninitialised, bound, tensor, core, *gone, "reads what nobody wrote");
}

void Checker::check_found(const BoundOp& bound, int tensor, int core, const StickRun& hull,
                          const std::vector<uint32_t>& found) {
  const Tensor& t = bound.tensors[tensor];
  const MemoryShape view = shape_of(bound, tensor);
  check_clobber(bound, tensor, core, found);
  // Steps and slices written over a buffer step as they like within it: the buffer's own writer says how to read it,
  // also where nothing of what it wrote is left among what is read here.
  const auto steps_alike = [&](const Record& record) {
    return views(view, record.shape) || std::ranges::any_of(records_, [&](const Record& whole) {
             if (!record.overwrote.contains(whole.sequence)) {
               return false;
             }
             const MemoryShape buffer = buffer_of(whole, t.residence, view.base);
             return views(view, buffer) && is_slice_of(record.shape, record.hull, buffer, whole.hull);
           });
  };
  for (const uint32_t number : found) {
    const Record& record = records_[number];
    if (record.from_host || !is_plain(t)) {
      continue;
    }
    Party who = record.who;
    if (t.residence == Residence::kLx) {
      check_held(bound, tensor, core, record, hull);
    } else if (!record.shape.dims.empty() && !steps_alike(record)) {
      report(Rule::kLayout, bound, tensor, core, hull,
             "steps through the buffer in another way than its writer", who);
    }
    if (record.format != t.format && !moves_bits(bound)) {
      report(Rule::kFormat, bound, tensor, core, hull,
             fmt::format("reads {} as {}", to_string(record.format), to_string(t.format)), who);
    }
  }
}

void Checker::check_clobber(const BoundOp& bound, int tensor, int core, const std::vector<uint32_t>& found) {
  for (const uint32_t newer : found) {
    for (const uint32_t older : found) {
      const Record &over = records_[newer], &under = records_[older];
      if (!over.overwrote.contains(under.sequence) || under.from_host ||
          is_slice_of(over.shape, over.hull, under.shape, under.hull)) {
        continue;
      }
      report(Rule::kClobbered, bound, tensor, core, over.hull,
             fmt::format("wants what {} wrote, part of which is overwritten", to_string(under.who)),
             over.who);
    }
  }
}

void Checker::check_held(const BoundOp& bound, int tensor, int core, const Record& record,
                         const StickRun& hull) {
  const MemoryShape view = shape_of(bound, tensor);
  Party who = record.who;
  who.core = bound.op->cores[core].core;
  if (!same_strides(view, record.shape)) {
    report(Rule::kLayout, bound, tensor, core, hull,
           "steps through the buffer in another way than its writer", who);
    return;
  }
  const auto held = record.held.find(who.core);
  if (held == record.held.end() || view.base != record.shape.base) {
    return;
  }
  const int64_t wanted = first_held_stick(bound, tensor, core);
  if (held->second != wanted) {
    report(Rule::kNotHeld, bound, tensor, core, hull,
           fmt::format("wants the buffer from stick {} on, but this core holds it from stick {}", wanted,
                       held->second),
           who);
  }
}

void Checker::check_padding(const BoundOp& bound, const std::vector<Input>& inputs) {
  std::vector<PaddedInput> padded;
  for (const Input& input : inputs) {
    padded.push_back(input.padding);
  }
  for (const PaddingLeak& leak : padding_leaks(bound, padded)) {
    const int tensor = bound.op->inputs[leak.input];
    const Footprint& sticks = sticks_[tensor][0];
    std::optional<Party> other;
    const StickRun where = sticks.empty() ? StickRun{} : hull_of(sticks);
    if (!sticks.empty()) {
      shadow(bound.tensors[tensor].residence, bound.op->cores[0].core)
          .for_each_run(where.first, where.count, [&](uint32_t number, int64_t, int64_t) {
            if (number != 0 && !other) {
              other = records_[number].who;
            }
          });
    }
    report(Rule::kPadding, bound, tensor, -1, where, leak.detail, other);
  }
}

}  // namespace spyre::exec
