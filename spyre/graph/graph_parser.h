#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "spyre/graph/graph.h"
#include "spyre/graph/lexer.h"

namespace spyre {

/// Reads what captured graphs and device graphs have in common; bodies are read by who knows which it is. Each method
/// takes what it names, its keyword included unless the caller had to look at it.
class GraphParser {
 public:
  /// What is read goes into `table`; nodes go where the derived reader puts them.
  GraphParser(Lexer lexer, GraphBuffers& table) : lex_(std::move(lexer)), table_(table) {}
  virtual ~GraphParser() = default;

  /// The whole text.
  Status graph();

 protected:
  static constexpr std::string_view kNumber = "a number, inf or nan";

  virtual Status node() = 0;
  virtual Status call() = 0;

  /// Up to the mark that opens the body.
  Status head(NodeHead& node);
  Status origin(NodeHead& node, std::string_view key);
  /// One of the `count` values that a node has so far, by position.
  Result<int> value(int count, std::string_view node);
  /// `v3 =`, of which the caller has taken the first word.
  Status next_value(const std::string& found, int count);
  Status attributes(std::vector<std::pair<std::string, double>>& out);
  Status integers(std::vector<int64_t>& out);
  Result<HostType> dtype();
  Result<BufferId> buffer_name();
  Result<Expr> bracketed();
  const Buffer& buffer(BufferId id) const { return table_.buffers[static_cast<size_t>(id)]; }

  Lexer lex_;

 private:
  Status extent();
  Result<ExtentId> extent_name();
  Status declaration(bool is_input);
  Status sizes(Buffer& buffer);
  Result<DeviceLayout> layout();
  Status loops(NodeHead& node);
  Status results();

  GraphBuffers& table_;
  std::unordered_map<std::string, BufferId> ids_;
};

}  // namespace spyre
