#include "spyre/report/time_page.h"

#include "spyre/base/json.h"
#include "spyre/report/page.h"

namespace spyre::report {

std::string time_page(const Json& facts) {
  return render({.title = facts["name"].get<std::string>() + ": time",
                 .styles = {"time.css"},
                 .body = "time.html",
                 .scripts = {"timeline.js", "views.js", "time.js"}},
                facts);
}

std::string comparison_page(const Json& from, const Json& to, const Json& comparison) {
  Json facts = comparison;
  facts["sides"] = {{"from", from}, {"to", to}};
  return render({.title = comparison["names"]["from"].get<std::string>() + " and " +
                          comparison["names"]["to"].get<std::string>() + ": time",
                 .styles = {"time.css"},
                 .body = "compare.html",
                 .scripts = {"timeline.js", "views.js", "compare.js"}},
                facts);
}

}  // namespace spyre::report
