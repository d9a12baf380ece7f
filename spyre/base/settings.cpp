#include "spyre/base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "spyre/base/text.h"

namespace spyre {
namespace {

using enum SettingType;

/// The one table. Sorted by name; a test checks that.
const std::vector<Setting>& table() {
  static const auto& rows = *new std::vector<Setting>{
      // never destroyed: threads may outlive `exit`
      {.name = "AIU_WORLD_SIZE",
       .type = kInt,
       .fallback = int64_t{1},
       .min = 1,
       .max = 8,
       .layer = "runtime",
       .meaning = "Number of emulated cards in this process."},
      {.name = "CO_OPTIMIZING_LX_PLANNING",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "co_optimizing_lx_planning",
       .changes_code = true,
       .meaning = "Search core splits and LX placement together."},
      {.name = "DXP_LX_FRAC_AVAIL",
       .type = kFloat,
       .fallback = 0.2,
       .min = 0,
       .max = 1,
       .layer = "passes",
       .config = "dxp_lx_frac_avail",
       .changes_code = true,
       .meaning = "Fraction of LX left to the back end; the rest is planned."},
      {.name = "EAGER_MODE",
       .type = kBool,
       .fallback = false,
       .layer = "glue",
       .implemented = false,
       .meaning = "Earlier upstream revisions compiled eager graphs under it; here every eager operator has "
                  "a kernel of "
                  "its own, and SPYRE_EAGER switches those."},
      {.name = "FLEX_DEVICE",
       .type = kChoice,
       .fallback = std::string("MOCK"),
       .choices = {"MOCK", "PF", "VF"},
       .layer = "runtime",
       .meaning =
           "How the card is presented. MOCK and PF: the whole emulated card. VF: a shared card, 7 windows of "
           "12 GiB, whose LX is wiped after every bundle that is not marked non-terminal."},
      {.name = "IS_INDUCTOR_SPAWNED_SUBPROCESS",
       .type = kBool,
       .fallback = false,
       .layer = "glue",
       .meaning = "Set by Inductor in its compile workers: such a process never opens the device."},
      {.name = "LAYOUT_SOLVER",
       .type = kChoice,
       .fallback = std::string("portfolio"),
       .choices = {"greedy", "firstfit", "bestfit", "simulated_annealing", "cpsat", "exact", "portfolio"},
       .layer = "passes",
       .config = "layout_solver",
       .changes_code = true,
       .meaning = "Which solver places buffers in LX; cpsat, upstream's name, means exact."},
      {.name = "LOCAL_RANK",
       .type = kInt,
       .fallback = int64_t{0},
       .min = 0,
       .max = 127,
       .layer = "glue",
       .meaning = "Device index a process starts on; set by torchrun."},
      {.name = "LX_BOUNDARY_CLONES",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "lx_boundary_clones",
       .changes_code = true,
       .meaning = "Inputs read several times may be copied into LX, results read again be made there and "
                  "copied out."},
      {.name = "LX_PLANNING",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "lx_planning",
       .changes_code = true,
       .meaning = "Keep intermediate buffers in the LX scratchpad."},
      {.name = "SENCORES",
       .type = kInt,
       .fallback = int64_t{32},
       .min = 1,
       .max = 32,
       .layer = "passes",
       .config = "sencores",
       .changes_code = true,
       .meaning = "How many of the 32 cores work is divided over."},
      {.name = "SPYRE_BUNDLE_OPS",
       .type = kInt,
       .fallback = int64_t{0},
       .min = 0,
       .max = 1000000,
       .layer = "passes",
       .config = "bundle_ops",
       .changes_code = true,
       .meaning =
           "Operations in one bundle; a graph with more is cut into several, launched in order. 0: no cut."},
      {.name = "SPYRE_CARD_MEMORY_GIB",
       .type = kInt,
       .fallback = int64_t{128},
       .min = 1,
       .max = 128,
       .layer = "runtime",
       .meaning = "Device memory of each emulated card that tensors may use, for testing out-of-memory "
                  "behaviour on small "
                  "cards; at most the segments outside the program segment, 112 GiB (VF: 84 GiB)."},
      {.name = "SPYRE_CHECKER",
       .type = kBool,
       .fallback = false,
       .layer = "runtime",
       .meaning =
           "Look at every launch before it runs, as a sanitizer would, and fault when it breaks a rule."},
      {.name = "SPYRE_COUNTERS",
       .type = kBool,
       .fallback = true,
       .layer = "runtime",
       .meaning = "Count the bytes and operations of every program that runs on a card."},
      {.name = "SPYRE_DEVICES",
       .type = kText,
       .fallback = std::string(),
       .layer = "runtime",
       .meaning = "Comma-separated indices of the cards to expose; empty exposes all."},
      {.name = "SPYRE_DEVICE_TIME",
       .type = kBool,
       .fallback = true,
       .layer = "runtime",
       .meaning = "Keep the simulated clock of each card: events measure it and profiles show it. 0: it "
                  "stands still."},
      {.name = "SPYRE_EAGER",
       .type = kBool,
       .fallback = true,
       .layer = "glue",
       .meaning =
           "Run eager operators as kernels of the card; 0 sends all of them to the counted CPU fallback."},
      {.name = "SPYRE_EAGER_CACHE_SIZE",
       .type = kInt,
       .fallback = int64_t{4096},
       .min = 1,
       .max = 1000000,
       .layer = "glue",
       .meaning = "How many kernels of eager operators are kept; the least recently used goes first."},
      {.name = "SPYRE_EXECUTOR",
       .type = kChoice,
       .fallback = std::string("fast"),
       .choices = {"fast", "fast-only", "interpreter", "exact-sums"},
       .layer = "runtime",
       .meaning =
           "Who computes on the emulated card: the fast executor, which leaves what it has no code "
           "for to the interpreter (counted as `interpreted_executes`), the same with an error instead, the "
           "interpreter that defines it, or that one with sums in doubles: results that still differ then do "
           "not differ by the order in which something was added."},
      {.name = "SPYRE_INDUCTOR_IGNORE_HINTS",
       .type = kBool,
       .fallback = false,
       .layer = "python",
       .config = "ignore_work_division_hints",
       .changes_code = true,
       .meaning = "Compile as if no spyre_hint(work_div=...) had been written."},
      {.name = "SPYRE_KEEP_SUM_ORDER",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "keep_sum_order",
       .changes_code = true,
       .meaning = "Joint planning leaves every sum divided as it is, so that results keep every bit; 0 lets "
                  "it divide "
                  "sums too, for less traffic."},
      {.name = "SPYRE_LX_PLANNER_EVICTION",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "lx_planner_eviction",
       .changes_code = true,
       .meaning = "Buffers that rest may leave LX and be fetched again when that saves traffic."},
      {.name = "SPYRE_LX_PLANNER_RELAYOUT",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "lx_planner_relayout",
       .changes_code = true,
       .meaning = "Cores that share a buffer in different divisions may exchange it over the ring."},
      {.name = "SPYRE_LX_PLANNER_REORDER",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .config = "lx_planner_reorder",
       .changes_code = true,
       .meaning = "Operations may run in another order when more fits into LX then."},
      {.name = "SPYRE_NON_TERMINAL",
       .type = kBool,
       .fallback = true,
       .layer = "runtime",
       .config = "non_terminal",
       .changes_code = true,
       .meaning =
           "The runtime gives the cores to nobody else after a bundle marked non-terminal, so LX carries "
           "data to the next bundle. 0: no mark is written or honoured, and nothing stays in LX across "
           "bundles."},
      {.name = "SPYRE_NUMBER_FORMAT",
       .type = kChoice,
       .fallback = std::string("published"),
       .choices = {"published", "vendor"},
       .layer = "layout",
       .meaning =
           "Rules for fp16 on its way to and from the 16-bit device format. vendor: those of the card's host "
           "library, quirks included, for byte comparison with hardware (see ADR 0032)."},
      {.name = "SPYRE_PLAN_OBJECTIVE",
       .type = kChoice,
       .fallback = std::string("traffic"),
       .choices = {"traffic", "time"},
       .layer = "passes",
       .config = "plan_objective",
       .changes_code = true,
       .meaning = "What joint planning makes small: the bytes of device memory that the card counts, or the "
                  "time of the kernel."},
      {.name = "SPYRE_PROFILE",
       .type = kChoice,
       .fallback = std::string("streams"),
       .choices = {"streams", "cores"},
       .layer = "glue",
       .meaning =
           "Rows of a card in torch.profiler's traces. cores: beside its streams every core, and counters of "
           "memory, scratchpads, ring and arithmetic."},
      {.name = "SPYRE_PROGRESS",
       .type = kChoice,
       .fallback = std::string("auto"),
       .choices = {"auto", "lines", "off"},
       .layer = "driver",
       .meaning = "What a compilation of more than a second does, shown on stderr. auto: one line that is "
                  "written over, on a "
                  "terminal only. lines: a line a second, anywhere. off: nothing."},
      {.name = "SPYRE_REQUIRE_PRECOMPILED",
       .type = kChoice,
       .fallback = std::string("0"),
       .choices = {"0", "1", "all"},
       .layer = "glue",
       .meaning = "Compiling is an error that names the graph and the shapes of its inputs. 1: graphs of "
                  "torch.compile, so that "
                  "only packages run (torch_spyre.load). all: eager operators too, which are compiled one "
                  "by one when first "
                  "called."},
      {.name = "SPYRE_STATUS",
       .type = kBool,
       .fallback = true,
       .layer = "runtime",
       .meaning =
           "Other processes of the same user see cards, memory, streams and the running kernel (spyre-top)."},
      {.name = "SPYRE_THREADS",
       .type = kInt,
       .fallback = int64_t{0},
       .min = 0,
       .max = 1024,
       .layer = "base",
       .meaning = "Host threads used for transfers and emulation; 0 uses every CPU this process may use."},
      {.name = "SPYRE_TRACE_CACHE",
       .type = kBool,
       .fallback = true,
       .layer = "python",
       .meaning = "torch.compile without gradients reads what earlier processes traced from Inductor's cache "
                  "directory, and leaves there what it traces (see ADR 0076). 0: every process traces."},
      {.name = "TORCH_SPYRE_DEBUG",
       .type = kBool,
       .fallback = false,
       .layer = "glue",
       .meaning = "Print the log messages of the C++ layers to stderr."},
      {.name = "TORCH_SPYRE_DOWNCAST_WARN",
       .type = kBool,
       .fallback = true,
       .layer = "glue",
       .meaning = "Warn once when int64 data is stored as int32."},
      {.name = "TORCH_SPYRE_FALLBACK",
       .type = kChoice,
       .fallback = std::string("warn"),
       .choices = {"warn", "error", "silent"},
       .layer = "glue",
       .meaning =
           "What happens when an operator without a device path runs on the CPU instead. Always counted."},
      {.name = "TORCH_SPYRE_FFDC",
       .type = kBool,
       .fallback = false,
       .layer = "python",
       .meaning = "A compilation or launch that fails writes a report; torch.spyre.get_diagnostic_report() "
                  "reads it. A fault of a device leaves beside it what runs its kernel again."},
      {.name = "TORCH_SPYRE_NUM_HOST_COMPUTE_STREAMS",
       .type = kInt,
       .fallback = int64_t{4},
       .min = 1,
       .max = 1024,
       .layer = "runtime",
       .meaning = "Host-compute streams per card, ids 65 and up; more than 8 is taken as 8."},
  };
  return rows;
}

const char* environment(std::string_view name) {
  const char* text = std::getenv(std::string(name).c_str());
  return text != nullptr && *text != '\0' ? text : nullptr;
}

std::string allowed_text(const Setting& row) {
  switch (row.type) {
    case kBool:
      return "0, 1, false, true, off, on";
    case kInt:
      return fmt::format("{} to {}", row.min, row.max);
    case kFloat:
      return fmt::format("a number from {} to {}", row.min, row.max);
    case kChoice:
      return fmt::format("{}", fmt::join(row.choices, ", "));
    case kText:
      return "text";
  }
  return "";
}

Error malformed(const Setting& row, std::string_view found) {
  return Error(ErrorKind::kInvalidArgument,
               fmt::format("{}='{}' is not allowed: expected {}", row.name, found, allowed_text(row)))
      .note(std::string(row.meaning));
}

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc() && end == text.data() + text.size();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool in_range(const Setting& row, double value) {
  return value >= static_cast<double>(row.min) && value <= static_cast<double>(row.max);  // a NaN is not
}

// The value as its row has it: a whole number is a number, too, and 0 and 1 are as good as words.
Result<SettingValue> allowed(const Setting& row, SettingValue value) {
  const auto* const whole = std::get_if<int64_t>(&value);
  if (row.type == kFloat && whole != nullptr) {
    value = static_cast<double>(*whole);
  } else if (row.type == kBool && whole != nullptr && (*whole == 0 || *whole == 1)) {
    value = *whole == 1;
  }
  bool fits = value.index() == row.fallback.index();
  if (fits && row.type == kInt) {
    fits = std::get<int64_t>(value) >= row.min && std::get<int64_t>(value) <= row.max;
  } else if (fits && row.type == kFloat) {
    fits = in_range(row, std::get<double>(value));
  } else if (fits && row.type == kChoice) {
    fits = std::ranges::count(row.choices, std::get<std::string>(value)) > 0;
  }
  if (!fits) {
    return malformed(row, to_string(value));
  }
  return value;
}

Result<SettingValue> parse(const Setting& row, std::string_view text) {
  switch (row.type) {
    case kBool: {
      const std::string word = lower(text);
      if (word == "1" || word == "true" || word == "on") {
        return SettingValue(true);
      }
      if (word == "0" || word == "false" || word == "off") {
        return SettingValue(false);
      }
      return malformed(row, text);
    }
    case kInt: {
      int64_t value = 0;
      if (!parse_number(text, value)) {
        return malformed(row, text);
      }
      return allowed(row, value);
    }
    case kFloat: {
      double value = 0;
      if (!parse_number(text, value)) {
        return malformed(row, text);
      }
      return allowed(row, value);
    }
    case kChoice:
    case kText:
      return allowed(row, std::string(text));
  }
  return malformed(row, text);
}

const Setting* find_row(std::string_view name) {
  const auto row = std::ranges::find(table(), name, &Setting::name);
  return row == table().end() ? nullptr : &*row;
}

// Insertions, deletions and replacements from one text to the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

// What our tests read to find programs; no part of the product.
constexpr std::array<std::string_view, 6> kOfTests = {"SPYRE_BUNDLE",     "SPYRE_CASE_RUNNER", "SPYRE_PLACE",
                                                      "SPYRE_SCREENSHOT", "SPYRE_TEST_FULL",   "SPYRE_TOOLS"};

}  // namespace

std::span<const Setting> all_settings() {
  return table();
}

const Setting& setting_row(std::string_view name) {
  const Setting* row = find_row(name);
  SPYRE_CHECK(row != nullptr, std::string(name) + " has no row in the settings table");
  return *row;
}

Result<SettingValue> read_setting(std::string_view name) {
  const Setting& row = setting_row(name);
  const char* text = environment(name);
  if (text == nullptr) {
    return row.fallback;
  }
  return parse(row, text);
}

Result<bool> read_bool(std::string_view name) {
  return SettingValues().read<bool>(name);
}
Result<int64_t> read_int(std::string_view name) {
  return SettingValues().read<int64_t>(name);
}
Result<double> read_float(std::string_view name) {
  return SettingValues().read<double>(name);
}
std::string_view terminal_kind() {
  const char* const kind = environment("TERM");
  return kind != nullptr ? kind : "";
}

Result<std::string> read_string(std::string_view name) {
  return SettingValues().read<std::string>(name);
}

Status SettingValues::set(std::string_view name, SettingValue value) {
  const Setting* row = find_row(name);
  if (row == nullptr) {
    return Error(ErrorKind::kNotFound, fmt::format("there is no setting '{}'", name));
  }
  SPYRE_ASSIGN_OR_RETURN(given_[std::string(name)], allowed(*row, std::move(value)));
  return {};
}

Result<SettingValue> SettingValues::find(std::string_view name) const {
  const auto given = given_.find(name);
  return given == given_.end() ? read_setting(name) : given->second;
}

Status check_settings() {
  std::optional<Error> first;
  for (const Setting& row : table()) {
    const Result<SettingValue> value = read_setting(row.name);
    if (value.ok()) {
      continue;
    }
    if (!first) {
      first = value.error();
    } else {
      first->notes.push_back(value.error().message);
    }
  }
  return first ? Status(*first) : Status();
}

bool setting_is_set(std::string_view name) {
  return environment(name) != nullptr;
}

std::vector<std::string_view> ignored_settings() {
  std::vector<std::string_view> names;
  for (const Setting& row : table()) {
    if (!row.implemented && setting_is_set(row.name)) {
      names.push_back(row.name);
    }
  }
  return names;
}

std::vector<UnknownSetting> unknown_settings() {
  std::vector<UnknownSetting> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool ours = name.starts_with("SPYRE_") || name.starts_with("TORCH_SPYRE_");
    if (!ours || find_row(name) != nullptr || std::ranges::count(kOfTests, name) > 0) {
      continue;
    }
    const auto nearest = std::ranges::min_element(
        table(), {}, [&](const Setting& row) { return edit_distance(name, row.name); });
    found.push_back({std::string(name), std::string(nearest->name)});
  }
  std::ranges::sort(found, {}, &UnknownSetting::name);
  return found;
}

std::string to_string(const SettingValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) {
    return *flag ? "1" : "0";
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    return fmt::format("{}", *number);
  }
  if (const double* number = std::get_if<double>(&value)) {
    return fmt::format("{}", *number);
  }
  return std::get<std::string>(value);
}

std::string settings_markdown() {
  std::string out =
      "# Settings\n\n"
      "Generated from the table in `spyre/base/settings.cpp` by `scripts/generate_docs.py`; do not edit.\n"
      "Each is an environment variable; some are also attributes of `torch_spyre._inductor.config`. *Key* "
      "says whether\n"
      "compiled artifacts depend on it.\n\n"
      "| name | in config | allowed | default | layer | key | meaning |\n|---|---|---|---|---|---|---|\n";
  for (const Setting& row : table()) {
    const std::string fallback = to_string(row.fallback);
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {}{} |\n", row.name,
                       row.config.empty() ? std::string() : fmt::format("`{}`", row.config),
                       allowed_text(row), fallback.empty() ? "(empty)" : "`" + fallback + "`", row.layer,
                       row.changes_code ? "yes" : "no", row.meaning,
                       row.implemented ? "" : " *Not implemented yet: setting it warns.*");
  }
  return out;
}

}  // namespace spyre
