#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spyre/base/result.h"

namespace spyre {

/// Every environment variable this project reads is one row of one table; `docs/settings.md` and
/// `torch.spyre.show_config()` are printed from it, and nothing else calls getenv.
enum class SettingType { kBool, kInt, kFloat, kChoice, kText };

using SettingValue = std::variant<bool, int64_t, double, std::string>;

struct Setting {
  std::string_view name;  ///< the environment variable
  SettingType type;
  SettingValue fallback;             ///< value when the variable is unset or empty
  std::vector<std::string> choices;  ///< for kChoice
  int64_t min = 0, max = 0;          ///< inclusive range for kInt and kFloat
  std::string_view layer;            ///< who reads it
  bool changes_code = false;  ///< true: the compiled artifact depends on it, so it belongs in cache keys
  bool implemented = true;    ///< false: known from upstream, not honoured yet; setting it warns
  std::string_view meaning;   ///< one sentence
};

/// All settings, sorted by name.
std::span<const Setting> all_settings();

/// The row of a name. Asking for a name that has no row is a bug.
const Setting& setting_row(std::string_view name);

/// The current value: the environment's, checked against the row, else the fallback. A malformed value is an
/// error that names the variable, what was found and what is allowed.
Result<SettingValue> read_setting(std::string_view name);

/// Typed forms for rows of that type; same errors.
Result<bool> read_bool(std::string_view name);
Result<int64_t> read_int(std::string_view name);
Result<double> read_float(std::string_view name);
Result<std::string> read_string(std::string_view name);

/// Whether every variable that is set has a value that is allowed. The error is that of the first that has not; the
/// others are its notes. Asked when a device is first used, so that a typing error shows then and not in the middle.
Status check_settings();

/// True when the variable is set to something in the environment.
bool setting_is_set(std::string_view name);

/// Names that are set in the environment but not implemented: each deserves one warning.
std::vector<std::string_view> ignored_settings();

/// The table as Markdown: the content of docs/settings.md.
std::string settings_markdown();

/// The value as text: `1`, `0.2`, `greedy`.
std::string to_string(const SettingValue& value);

}  // namespace spyre
