#include "glue/trace_details.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace spyre::glue {
namespace {

/// Operations that are listed one by one; a kernel may have a thousand.
constexpr size_t kListed = 10;

/// Kineto writes texts as they are, so what JSON would escape is replaced.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? '\'' : c == '\\' ? '/' : static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    out += (out.size() > 1 ? ", " : "") + json_text(text);
  }
  return out + "]";
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (!text.empty() && std::ranges::find(texts, text) == texts.end()) {
    texts.push_back(text);
  }
}

std::string with_decimals(double value) {
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

std::string microseconds(Nanos time) {
  return with_decimals(time.us());
}

}  // namespace

TraceDetails::Details TraceDetails::of(const Activity& activity) {
  Details details = {{"simulated begin (us)", microseconds(activity.span.begin)}};
  if (activity.run == nullptr) {
    details.emplace_back("bytes", std::to_string(activity.size.count()));
    const double time = activity.span.length().ns;
    if (time > 0) {
      details.emplace_back("memory bandwidth (GB/s)",
                           with_decimals(static_cast<double>(activity.size.count()) / time));
    }
  } else {
    add_kernel(*activity.run, details);
  }
  return details;
}

void TraceDetails::add_kernel(const ProgramRun& run, Details& details) {
  const RunFacts& facts = facts_.of(run);
  const Origins& origins = origins_of(run);
  details.emplace_back("launch of the host (us)", microseconds(run.launch));
  details.emplace_back("bound by", json_text(facts.bound));
  details.emplace_back("HBM bytes read", std::to_string(facts.read.count()));
  details.emplace_back("HBM bytes written", std::to_string(facts.written.count()));
  details.emplace_back("HBM busy (us)", microseconds(facts.memory_busy));
  if (const auto* const call = dynamic_cast<const CallFacts*>(run.launch_facts.get())) {
    details.emplace_back("modules", json_text(call->modules()));
    details.emplace_back("artifact", json_text(call->artifact()));
  }
  std::vector<std::string> aten, source;
  std::vector<size_t> by_time;
  for (size_t i = 0; i < facts.ops.size(); ++i) {
    by_time.push_back(i);
    if (const auto origin = origins.by_file.find(facts.ops[i].file); origin != origins.by_file.end()) {
      add_once(aten, origin->second.aten);
      add_once(source, origin->second.source);
    }
  }
  details.emplace_back("aten", json_list(aten));
  details.emplace_back("source", json_list(source));
  details.emplace_back("operations", std::to_string(facts.ops.size()));
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](size_t a, size_t b) { return facts.ops[a].time > facts.ops[b].time; });
  by_time.resize(std::min(by_time.size(), kListed));
  std::vector<std::string> longest;
  for (const size_t i : by_time) {
    const OpFacts& op = facts.ops[i];
    const auto origin = origins.by_file.find(op.file);
    std::string line = c10::str(op.name, " (", op.file, "): ", microseconds(op.time), " us, ", op.bound);
    if (origin != origins.by_file.end() && !origin->second.aten.empty()) {
      line += ", " + origin->second.aten;
      line += origin->second.source.empty() ? "" : " at " + origin->second.source;
    }
    longest.push_back(std::move(line));
  }
  details.emplace_back("longest operations", json_list(longest));
}

TraceDetails::Details TraceDetails::of(const ProgramRun& run, size_t op) {
  const OpFacts& facts = facts_.of(run).ops.at(op);
  const Origins& origins = origins_of(run);
  Details details = {{"operation", json_text(facts.name)},
                     {"file", json_text(facts.file)},
                     {"bound by", json_text(facts.bound)}};
  if (const auto origin = origins.by_file.find(facts.file); origin != origins.by_file.end()) {
    details.emplace_back("aten", json_text(origin->second.aten));
    details.emplace_back("source", json_text(origin->second.source));
    if (const auto nodes = origins.nodes.find({origin->second.aten, origin->second.source});
        nodes != origins.nodes.end()) {
      details.emplace_back("nodes", json_list(nodes->second));
    }
  }
  return details;
}

const TraceDetails::Origins& TraceDetails::origins_of(const ProgramRun& run) {
  const auto [place, fresh] = origins_.try_emplace({run.kernel.get(), run.launch_facts.get()});
  if (fresh) {
    if (const auto* const artifact = dynamic_cast<const ArtifactFacts*>(run.kernel.get())) {
      place->second.by_file = artifact->origins();
    }
    if (const auto* const call = dynamic_cast<const CallFacts*>(run.launch_facts.get())) {
      place->second.nodes = call->nodes();
    }
  }
  return place->second;
}

}  // namespace spyre::glue
