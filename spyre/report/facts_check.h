#pragma once

#include <span>
#include <string>
#include <string_view>

#include "spyre/base/json_fwd.h"
#include "spyre/base/result.h"

namespace spyre::report {

/// What a field of recorded facts must be.
enum class Kind { kNumber, kText, kFlag, kList, kObject, kNumberOrNull };

struct Field {
  const char* name;
  Kind kind;
};

/// Whether JSON that comes from a file is what it should be. A refusal names the first field that is missing or of
/// another type, and says in a note what writes such facts.
class FactsCheck {
 public:
  FactsCheck(std::string_view origin, std::string_view written_by)
      : origin_(origin), written_by_(written_by) {}

  /// `path` is where the object stands; empty for the whole.
  Status fields(const Json& object, std::span<const Field> fields, const std::string& path) const;
  /// Each of a list of objects.
  Status rows(const Json& rows, std::span<const Field> fields, const std::string& path) const;

  Error refuse(const std::string& what) const;

 private:
  std::string_view origin_, written_by_;
};

}  // namespace spyre::report
