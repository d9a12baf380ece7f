#include "spyre/layout/number_policy.h"

#include "spyre/base/settings.h"

namespace spyre {

Result<Sen169Policy> number_policy_setting() {
  SPYRE_ASSIGN_OR_RETURN(const std::string name, read_string("SPYRE_NUMBER_FORMAT"));
  return name == "vendor" ? Sen169Policy::kVendor : Sen169Policy::kPublished;
}

}  // namespace spyre
