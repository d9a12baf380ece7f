#include "spyre/base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

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
       .changes_code = true,
       .meaning = "Search core splits and LX placement together."},
      {.name = "DXP_LX_FRAC_AVAIL",
       .type = kFloat,
       .fallback = 0.2,
       .min = 0,
       .max = 1,
       .layer = "passes",
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
       .changes_code = true,
       .meaning = "Inputs read several times may be copied into LX, results read again be made there and "
                  "copied out."},
      {.name = "LX_PLANNING",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .changes_code = true,
       .meaning = "Keep intermediate buffers in the LX scratchpad."},
      {.name = "SENCORES",
       .type = kInt,
       .fallback = int64_t{32},
       .min = 1,
       .max = 32,
       .layer = "passes",
       .changes_code = true,
       .meaning = "How many of the 32 cores work is divided over."},
      {.name = "SPYRE_BUNDLE_OPS",
       .type = kInt,
       .fallback = int64_t{0},
       .min = 0,
       .max = 1000000,
       .layer = "passes",
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
       .choices = {"fast", "interpreter"},
       .layer = "runtime",
       .meaning =
           "Who computes on the emulated card: the fast executor, or the interpreter that defines it."},
      {.name = "SPYRE_KEEP_SUM_ORDER",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .changes_code = true,
       .meaning = "Joint planning leaves every sum divided as it is, so that results keep every bit; 0 lets "
                  "it divide "
                  "sums too, for less traffic."},
      {.name = "SPYRE_LX_PLANNER_EVICTION",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .changes_code = true,
       .meaning = "Buffers that rest may leave LX and be fetched again when that saves traffic."},
      {.name = "SPYRE_LX_PLANNER_RELAYOUT",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .changes_code = true,
       .meaning = "Cores that share a buffer in different divisions may exchange it over the ring."},
      {.name = "SPYRE_LX_PLANNER_REORDER",
       .type = kBool,
       .fallback = true,
       .layer = "passes",
       .changes_code = true,
       .meaning = "Operations may run in another order when more fits into LX then."},
      {.name = "SPYRE_NON_TERMINAL",
       .type = kBool,
       .fallback = true,
       .layer = "runtime",
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
      {.name = "SPYRE_THREADS",
       .type = kInt,
       .fallback = int64_t{0},
       .min = 0,
       .max = 1024,
       .layer = "base",
       .meaning = "Host threads used for transfers and emulation; 0 uses every CPU this process may use."},
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
                  "reads it."},
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
      if (!parse_number(text, value) || value < row.min || value > row.max) {
        return malformed(row, text);
      }
      return SettingValue(value);
    }
    case kFloat: {
      double value = 0;
      const auto low = static_cast<double>(row.min), high = static_cast<double>(row.max);
      if (!parse_number(text, value) || !(value >= low && value <= high)) {
        return malformed(row, text);
      }
      return SettingValue(value);
    }
    case kChoice:
      if (std::find(row.choices.begin(), row.choices.end(), text) == row.choices.end()) {
        return malformed(row, text);
      }
      return SettingValue(std::string(text));
    case kText:
      return SettingValue(std::string(text));
  }
  return malformed(row, text);
}

template <typename T>
Result<T> read_as(std::string_view name) {
  SPYRE_ASSIGN_OR_RETURN(const SettingValue value, read_setting(name));
  SPYRE_CHECK(std::holds_alternative<T>(value), std::string(name) + " is read with the wrong type");
  return std::get<T>(value);
}

}  // namespace

std::span<const Setting> all_settings() {
  return table();
}

const Setting& setting_row(std::string_view name) {
  const auto& rows = table();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Setting& s) { return s.name == name; });
  SPYRE_CHECK(row != rows.end(), std::string(name) + " has no row in the settings table");
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
  return read_as<bool>(name);
}
Result<int64_t> read_int(std::string_view name) {
  return read_as<int64_t>(name);
}
Result<double> read_float(std::string_view name) {
  return read_as<double>(name);
}
Result<std::string> read_string(std::string_view name) {
  return read_as<std::string>(name);
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
      "Each is an environment variable. *Key* says whether compiled artifacts depend on it.\n\n"
      "| name | allowed | default | layer | key | meaning |\n|---|---|---|---|---|---|\n";
  for (const Setting& row : table()) {
    const std::string fallback = to_string(row.fallback);
    out += fmt::format("| `{}` | {} | {} | {} | {} | {}{} |\n", row.name, allowed_text(row),
                       fallback.empty() ? "(empty)" : "`" + fallback + "`", row.layer,
                       row.changes_code ? "yes" : "no", row.meaning,
                       row.implemented ? "" : " *Not implemented yet: setting it warns.*");
  }
  return out;
}

}  // namespace spyre
