// spyre-report: shows recorded facts about time, of a program or a run, as text, as a page, or beside others.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "spyre/base/file.h"
#include "spyre/base/json.h"
#include "spyre/report/time_comparison.h"
#include "spyre/report/time_facts.h"
#include "spyre/report/time_page.h"
#include "spyre/report/time_text.h"
#include "tools/exit_code.h"

namespace {

using namespace spyre;  // NOLINT: a program of its own

struct Command {
  std::string facts, compare, html;
  std::vector<std::string> names;
  bool json = false;
};

Result<Json> facts_of(const std::string& file) {
  // Of a long run they are longer than any text that a person writes.
  SPYRE_ASSIGN_OR_RETURN(const std::string text, read_file(file, int64_t{1} << 30));
  SPYRE_ASSIGN_OR_RETURN(Json facts, parse_json(text, file));
  SPYRE_TRY(report::check_time(facts, file));
  return facts;
}

/// Writes the page where one is asked for, else prints.
int give(const Command& command, const std::string& page, const Json& json, const std::string& text) {
  if (!command.html.empty()) {
    const Status written = write_text(command.html, page);
    if (!written.ok()) return tools::report(written.error(), tools::kBadUsage);
  }
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else if (command.html.empty()) {
    fmt::print("{}", text);
  }
  return tools::kDone;
}

int run(const Command& command) {
  Result<Json> facts = facts_of(command.facts);
  if (!facts.ok()) return tools::report(facts.error(), tools::kBadArtifact);
  if (command.compare.empty()) {
    const std::string page = command.html.empty() ? "" : report::time_page(facts.value());
    return give(command, page, facts.value(), report::time_report_text(facts.value()));
  }
  Result<Json> other = facts_of(command.compare);
  if (!other.ok()) return tools::report(other.error(), tools::kBadArtifact);
  Json comparison = report::compare_times(facts.value(), other.value());
  if (!command.names.empty()) comparison["names"] = {{"from", command.names[0]}, {"to", command.names[1]}};
  const std::string page =
      command.html.empty() ? "" : report::comparison_page(facts.value(), other.value(), comparison);
  return give(command, page, comparison, report::time_comparison_text(comparison));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Shows facts about time that `spyre-run --facts` or `python -m torch_spyre.profile` wrote: as text, as "
      "a page, or "
      "beside others. Exit codes: 0 done, 1 command line or files, 2 the facts are refused, 4 bug.",
      "spyre-report");
  Command command;
  app.add_option("facts", command.facts, "Recorded facts (.json)")->required()->check(CLI::ExistingFile);
  app.add_option("--html", command.html, "Write a self-contained page");
  app.add_option("--compare", command.compare, "Show what differs in these facts")->check(CLI::ExistingFile);
  app.add_option("--names", command.names, "What the two are called in a comparison")->expected(2);
  app.add_flag("--json", command.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tools::kDone : tools::kBadUsage;
  }
  return tools::guarded_main([&] { return run(command); });
}
