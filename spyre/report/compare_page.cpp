#include "spyre/report/compare_page.h"

#include "spyre/base/json.h"
#include "spyre/report/page.h"

namespace spyre::report {

std::string compare_page(const Json& facts) {
  return render({.title = facts["model"].get<std::string>() + ": which layer lost the digits",
                 .styles = {"digits.css"},
                 .body = "digits.html",
                 .scripts = {"digits.js"}},
                facts);
}

}  // namespace spyre::report
