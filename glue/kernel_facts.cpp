#include "glue/kernel_facts.h"

#include <regex>
#include <sstream>

namespace spyre::glue {

std::map<std::string, program::OpOrigin> ArtifactFacts::origins() const {
  std::map<std::string, program::OpOrigin> origins;
  for (const auto& [name, content] : artifact_->bundle.files) {
    if (name.starts_with("sdsc_") && name.ends_with(".json")) {
      origins[name] = program::origin_in(content);
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
