// Reports of profiles for `python -m torch_spyre.profile`: facts of the last record, and their page.

#include <mutex>

#include "glue/bindings.h"
#include "glue/error.h"
#include "glue/kernel_facts.h"
#include "glue/profile_report.h"
#include "spyre/base/json.h"
#include "spyre/report/time_facts.h"
#include "spyre/report/time_page.h"
#include "spyre/runtime/profile_facts.h"

namespace spyre::glue {
namespace {

struct Kept {
  std::mutex mutex;  // guards the rest; a leaf
  bool wanted = false;
  ActivityLog::Record record;
};

Kept& kept() {
  static Kept the_one;
  return the_one;
}

KernelOrigins origins_of(const ProgramRun& run) {
  KernelOrigins origins;
  if (const auto* const artifact = dynamic_cast<const ArtifactFacts*>(run.kernel.get())) {
    origins.by_file = artifact->origins();
  }
  if (const auto* const call = dynamic_cast<const CallFacts*>(run.launch_facts.get())) {
    origins.modules = call->modules();
    origins.artifact = call->artifact();
  }
  return origins;
}

void keep_profile() {
  const std::lock_guard lock(kept().mutex);
  kept().wanted = true;
}

std::string profile_facts_text(const std::string& name, const std::map<std::string, std::string>& made) {
  ActivityLog::Record record;
  {
    const std::lock_guard lock(kept().mutex);
    kept().wanted = false;
    record = std::move(kept().record);
    kept().record = {};
  }
  Json facts = profile_facts(name, record, origins_of);
  facts["made"] = made;
  return facts.dump();
}

std::string time_page_text(const std::string& facts_text) {
  const Json facts = unwrap(parse_json(facts_text, "facts"));
  check(report::check_time(facts, "facts"));
  return report::time_page(facts);
}

}  // namespace

void keep_for_report(ActivityLog::Record record) {
  const std::lock_guard lock(kept().mutex);
  if (kept().wanted) {
    kept().record = std::move(record);
  }
}

void bind_profile(py::module& module) {
  module.def("_keep_profile", &keep_profile, "The next profile is kept until `_profile_facts`.");
  module.def("_profile_facts", &profile_facts_text, py::arg("name"), py::arg("made"),
             py::call_guard<py::gil_scoped_release>(), "Facts of the profile that was kept, as JSON.");
  module.def("_time_page", &time_page_text, py::arg("facts"), py::call_guard<py::gil_scoped_release>(),
             "Facts of time as a self-contained HTML page.");
}

}  // namespace spyre::glue
