#include "spyre/report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/report/plan_facts.h"

namespace spyre::report {
namespace {

int64_t number(const Json& object, const char* field) {
  return object[field].get<int64_t>();
}
std::string bytes(const Json& object, const char* field) {
  return human_bytes(Bytes(number(object, field)));
}

std::string buffer_table(const Json& buffers) {
  size_t width = 6;
  for (const Json& row : buffers) width = std::max(width, row["buffer"].get<std::string>().size());
  std::string text = fmt::format("{:<{}} {:>9} {:>12}  {:<13} {:>12} {:>12}  {}\n", "buffer", width, "nodes",
                                 "B per core", "place", "B saved", "B moved", "remark");
  for (const Json& row : buffers) {
    text += fmt::format("{:<{}} {:>9} {:>12}  {:<13} {:>12} {:>12}  {}\n", row["buffer"].get<std::string>(),
                        width, fmt::format("{}..{}", number(row, "first"), number(row, "last")),
                        number(row, "bytes_per_core"), place_text(row),
                        row["address"].is_null() ? 0 : number(row, "saves"), number(row, "moves"),
                        row["remark"].get<std::string>());
  }
  return text;
}

std::string summary(const Json& plan) {
  const int64_t gap = number(plan, "bound") - number(plan, "saved");
  const Json& cost = plan["cost"];
  std::string text =
      fmt::format("avoided  {} of {} B of device memory traffic; no placement avoids more than {} B{}\n",
                  number(plan, "saved"), number(plan, "at_stake"), number(plan, "bound"),
                  gap > 0 ? fmt::format(", {} B more", gap) : "");
  text += fmt::format("moved    {} B ({}); every input and result once: {} B\n", number(plan, "moved"),
                      bytes(plan, "moved"), number(plan, "compulsory"));
  text += fmt::format("LX       {} of {} B of every core\n", number(plan, "peak"), number(plan, "capacity"));
  text += fmt::format("solver   {}, {}, {} units of work\n", plan["solver"].get<std::string>(),
                      plan["optimal"].get<bool>() ? "proven best" : "not proven best", number(plan, "work"));
  if (plan.contains("order")) {
    const Json& order = plan["order"];
    const std::string gain =
        fmt::format("{} nodes run at another place: {} B moved instead of {} B", number(order, "moved"),
                    number(order, "after"), number(order, "before"));
    text += fmt::format("order    {}, {} orders looked at\n",
                        number(order, "moved") > 0 ? gain : "the program's", number(order, "evaluated"));
  }
  for (const Json& hint : plan.value("refused_hints", Json::array())) {
    text += fmt::format("refused  {}\n", hint["reason"].get<std::string>());
  }
  text +=
      fmt::format("model    {:.2f} us: memory {:.2f}, compute {:.2f}, vector {:.2f}, ring {:.2f}\n",
                  cost["us"].get<double>(), cost["memory_us"].get<double>(), cost["compute_us"].get<double>(),
                  cost["vector_us"].get<double>(), cost["ring_us"].get<double>());
  return text;
}

std::string alternatives_table(const Json& rows) {
  std::string text = fmt::format("\n{:<20} {:>12} {:>12} {:>10} {:>14}  {}\n", "other solvers", "B saved",
                                 "B moved", "us", "work", "");
  for (const Json& row : rows) {
    text += fmt::format("{:<20} {:>12} {:>12} {:>10.2f} {:>14}  {}\n", row["solver"].get<std::string>(),
                        number(row, "saved"), number(row, "moved"), row["us"].get<double>(),
                        number(row, "work"), row["optimal"].get<bool>() ? "proven best" : "");
  }
  return text;
}

}  // namespace

std::string plan_text(const Json& plan) {
  std::string text = buffer_table(plan["buffers"]) + summary(plan);
  if (plan.contains("alternatives")) text += alternatives_table(plan["alternatives"]);
  return text;
}

}  // namespace spyre::report
