#include "spyre/report/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/base/text.h"

namespace spyre::report {
namespace {

constexpr size_t kMostItems = 20;

double us_of(const Json& object, const char* field) {
  return object[field].get<double>();
}

std::vector<size_t> longest_first(const Json& items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return us_of(items[a], "us") > us_of(items[b], "us"); });
  return order;
}

std::string items_text(const Json& facts) {
  const Json& items = facts["items"];
  const double total = us_of(facts["totals"], "total_us");
  std::string text = fmt::format("{:<26} {:>6} {:>12} {:>7}  {:<8} {:>12}  {}\n", "name", "runs", "us",
                                 "share", "bound by", "bytes", "what would help");
  const std::vector<size_t> order = longest_first(items);
  for (size_t i = 0; i < std::min(order.size(), kMostItems); ++i) {
    const Json& item = items[order[i]];
    std::string help = item["help"];
    if (us_of(item, "help_us") > 0) help += fmt::format(" (up to {:.2f} us)", us_of(item, "help_us"));
    text += fmt::format("{:<26} {:>6} {:>12.2f} {:>5.1f} %  {:<8} {:>12}  {}\n",
                        item["name"].get<std::string>(), item["count"].get<int64_t>(), us_of(item, "us"),
                        total > 0 ? 100 * us_of(item, "us") / total : 0, item["bound_by"].get<std::string>(),
                        item["read_bytes"].get<int64_t>() + item["written_bytes"].get<int64_t>(), help);
  }
  if (order.size() > kMostItems)
    text += fmt::format("... and {} more, with --json\n", order.size() - kMostItems);
  return text;
}

}  // namespace

std::string time_report_text(const Json& facts) {
  const Json& totals = facts["totals"];
  const double total = us_of(totals, "total_us");
  const std::string by = facts["bound"]["by"];
  const Bytes moved(totals["read_bytes"].get<int64_t>() + totals["written_bytes"].get<int64_t>());
  std::string text = fmt::format(
      "{}: {:.2f} us on {}; {:.1f} % of it is bound by {}\n"
      "kernels {:.2f} us, launches {:.2f} us; {} of device memory moved, {} of it compulsory\n\n",
      facts["name"].get<std::string>(), total, facts["machine"]["name"].get<std::string>(),
      total > 0 ? 100 * us_of(facts["bound"]["us"], by.c_str()) / total : 0, by, us_of(totals, "kernel_us"),
      us_of(totals, "launch_us"), human_bytes(moved),
      human_bytes(Bytes(totals["compulsory_bytes"].get<int64_t>())));
  for (const Json& step : facts["waterfall"]) {
    if (us_of(step, "us") > 0)
      text += fmt::format("{:>12.2f} us  {:<22} {}\n", us_of(step, "us"), step["step"].get<std::string>(),
                          step["why"].get<std::string>());
  }
  return text + fmt::format("{:>12.2f} us  total\n\n", total) + items_text(facts);
}

}  // namespace spyre::report
