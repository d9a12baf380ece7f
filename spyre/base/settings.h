#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  std::string_view config = {};      ///< its name in `torch_spyre._inductor.config`; empty: it is not there
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

/// What kind of terminal the process says it has (TERM), which is no setting of ours; empty: none.
std::string_view terminal_kind();

/// Typed forms for rows of that type; same errors.
Result<bool> read_bool(std::string_view name);
Result<int64_t> read_int(std::string_view name);
Result<double> read_float(std::string_view name);
Result<std::string> read_string(std::string_view name);

/// What a setting of that type is where nobody sets it.
template <typename T>
T setting_default(std::string_view name) {
  return std::get<T>(setting_row(name).fallback);
}

/// Settings as values: what a program asks for, and for the rest what the environment says. Nothing is written to the
/// environment, so two threads may ask for different things.
class SettingValues {
 public:
  /// Refused: a name that has no row, a value that its row does not allow.
  Status set(std::string_view name, SettingValue value);

  /// The value that was set, else the environment's, with its errors.
  template <typename T>
  Result<T> read(std::string_view name) const {
    SPYRE_ASSIGN_OR_RETURN(SettingValue value, find(name));
    SPYRE_CHECK(std::holds_alternative<T>(value), std::string(name) + " is read with the wrong type");
    return std::get<T>(std::move(value));
  }

 private:
  Result<SettingValue> find(std::string_view name) const;

  std::map<std::string, SettingValue, std::less<>> given_;
};

/// Whether every variable that is set has a value that is allowed. The error is that of the first that has not; the
/// others are its notes. Asked when a device is first used, so that a typing error shows then and not in the middle.
Status check_settings();

/// True when the variable is set to something in the environment.
bool setting_is_set(std::string_view name);

/// Names that are set in the environment but not implemented: each deserves one warning.
std::vector<std::string_view> ignored_settings();

/// Variables of the environment that look like ours and are not, most likely typing errors: each with the name of the
/// setting that is nearest to it.
struct UnknownSetting {
  std::string name, nearest;
};
std::vector<UnknownSetting> unknown_settings();

/// The table as Markdown: the content of docs/settings.md.
std::string settings_markdown();

/// The value as text: `1`, `0.2`, `greedy`.
std::string to_string(const SettingValue& value);

}  // namespace spyre
