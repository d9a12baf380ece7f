#include "spyre/report/plan_page.h"

#include "spyre/base/json.h"
#include "spyre/report/page.h"

namespace spyre::report {

std::string plan_page(const Json& plan) {
  return render({.title = plan["graph"].get<std::string>() + ": scratchpad plan",
                 .styles = {"plan.css"},
                 .body = "plan.html",
                 .scripts = {"plan.js"}},
                plan);
}

}  // namespace spyre::report
