#include "glue/kernel_facts.h"

#include <regex>
#include <sstream>

#include "spyre/base/json.h"

namespace spyre::glue {
namespace {

/// Nothing where the file is of another kind, or says nothing.
OpOrigin origin_in(const std::string& sdsc) {
  const Result<Json> parsed = parse_json(sdsc, "sdsc");
  if (!parsed.ok() || !parsed.value().is_object() || parsed.value().empty()) {
    return {};
  }
  const Json& body = *parsed.value().begin();
  const auto handle = body.is_object() ? body.find("debug_handle_") : body.end();
  if (!body.is_object() || handle == body.end() || !handle->is_object()) {
    return {};
  }
  const Json& source = handle->at("source");
  const std::string file = source.value("file", "");
  return {.aten = handle->value("aten_op", ""),
          .source = file.empty() ? "" : file + ":" + std::to_string(source.value("start_line", int64_t{0}))};
}

}  // namespace

std::map<std::string, OpOrigin> ArtifactFacts::origins() const {
  std::map<std::string, OpOrigin> origins;
  for (const auto& [name, content] : artifact_->bundle.files) {
    if (name.starts_with("sdsc_") && name.ends_with(".json")) {
      origins[name] = origin_in(content);
    }
  }
  return origins;
}

std::map<std::pair<std::string, std::string>, std::vector<std::string>> CallFacts::nodes() const {
  // node buf0 (p0: 4) aten="aten.add.Tensor" at="model.py:12" {      call buf1 aten.mm.default(...) -> (buf1) at="..."
  static const std::regex node(R"rx(^\s*node (\w+) .*?aten="([^"]*)"(?:.*? at="([^"]*)")?)rx");
  static const std::regex call(R"rx(^\s*call (\w+) ([\w.:]+)\((?:.*? at="([^"]*)")?)rx");
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> nodes;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, node) || std::regex_search(line, found, call)) {
      nodes[{found[2], found[3]}].push_back(found[1]);
    }
  }
  return nodes;
}

}  // namespace spyre::glue
