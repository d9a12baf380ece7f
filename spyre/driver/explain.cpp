#include "spyre/driver/explain.h"

#include <map>

#include "spyre/base/json.h"
#include "spyre/lx/compulsory.h"
#include "spyre/lx/plan_cost.h"
#include "spyre/passes/bundle/cut_bundles.h"

namespace spyre {
namespace {

Json cost_json(const lx::PlanCost& cost, lx::Objective objective) {
  return {{"us", cost.total(objective).us()}, {"memory_us", cost.memory(objective).us()},
          {"compute_us", cost.compute.us()},  {"vector_us", cost.vector.us()},
          {"ring_us", cost.ring.us()},        {"read", cost.read.count()},
          {"written", cost.written.count()}};
}

Json nodes_json(const DeviceGraph& graph, const std::vector<std::string>& names) {
  std::map<std::string, Json> rows;
  for (const DeviceNode& node : graph.nodes) {
    rows[node.name] = {{"name", node.name}, {"op", to_string(node.op.op)}, {"bundle", node.bundle}};
  }
  Json nodes = Json::array();
  for (const std::string& name : names) nodes.push_back(rows[name]);
  return nodes;
}

}  // namespace

Result<Json> explain(const CompiledGraph& compiled) {
  const DeviceGraph& graph = compiled.graph;
  if (!compiled.options.lx_planning) {
    return Error(ErrorKind::kInvalidArgument,
                 "graph '" + graph.name + "' was compiled without LX planning: there is no plan to explain")
        .try_instead("LX_PLANNING=1");
  }
  SPYRE_ASSIGN_OR_RETURN(const lx::PlanCost cost, lx::cost_of(graph));
  SPYRE_ASSIGN_OR_RETURN(const std::vector<Bytes> traffic, lx::traffic_by_buffer(graph));
  SPYRE_ASSIGN_OR_RETURN(const Bytes compulsory, lx::compulsory_bytes(graph));
  Json facts = {{"graph", graph.name}, {"cores", compiled.options.cores}};
  facts.update(compiled.scratchpad.to_json());
  facts["moved"] = (cost.read + cost.written).count();
  facts["compulsory"] = compulsory.count();
  facts["cost"] = cost_json(cost, compiled.options.objective);
  if (compiled.joint) {
    facts["joint"] = {{"separate_us", compiled.joint->separate.total(compiled.options.objective).us()},
                      {"evaluated", compiled.joint->evaluated},
                      {"exact", compiled.joint->exact}};
  }
  facts["refused_hints"] = Json::array();
  for (const RefusedHint& hint : compiled.refused_hints) {
    facts["refused_hints"].push_back(
        {{"node", hint.node}, {"loop", hint.loop}, {"split", hint.split}, {"reason", hint.reason}});
  }
  facts["bundles"] = Json::array();
  for (const bool mark : non_terminal_bundles(graph)) facts["bundles"].push_back({{"non_terminal", mark}});
  if (compiled.order && compiled.order->evaluated > 0) facts["order"] = compiled.order->to_json();
  facts["nodes"] = nodes_json(graph, compiled.scratchpad.nodes);
  for (Json& row : facts["buffers"]) {
    const std::optional<BufferId> id = graph.find(row["buffer"].get<std::string>());
    // A copy in another division is made over the ring: no such buffer touches device memory.
    row["moves"] = id ? traffic[static_cast<size_t>(*id)].count() : 0;
  }
  return facts;
}

Result<Bytes> compulsory_traffic(const CompiledGraph& compiled) {
  return lx::compulsory_bytes(compiled.graph);
}

}  // namespace spyre
