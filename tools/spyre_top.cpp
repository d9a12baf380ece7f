// spyre-top: what the cards of this user's processes do now: memory, streams, the running kernel.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "spyre/base/json.h"
#include "spyre/base/text.h"
#include "spyre/runtime/status_page.h"
#include "tools/exit_code.h"

namespace {

using namespace spyre;  // NOLINT: a program of its own

volatile std::sig_atomic_t stopped = 0;

/// How busy a card was since the look before, or since its runtime started.
class BusyShare {
 public:
  double of(const SeenProcess& process, const SeenCard& card) {
    const int64_t busy = card.busy_ns + card.running_ns;
    Look& last = looks_[{process.pid, card.index}];
    const Look now = {busy, process.age_ns};
    const bool known = last.age > 0 && last.age < now.age;
    const double share =
        known ? static_cast<double>(now.busy - last.busy) / static_cast<double>(now.age - last.age)
              : static_cast<double>(now.busy) / static_cast<double>(std::max<int64_t>(1, now.age));
    last = now;
    return std::clamp(share, 0.0, 1.0);
  }

 private:
  struct Look {
    int64_t busy = 0, age = 0;
  };
  std::map<std::pair<int64_t, int>, Look> looks_;
};

Json json_of(const std::vector<SeenProcess>& processes, BusyShare& busy) {
  Json rows = Json::array();
  for (const SeenProcess& process : processes) {
    Json cards = Json::array();
    for (const SeenCard& card : process.cards) {
      cards.push_back({{"card", card.index},
                       {"memory_total_bytes", card.total.count()},
                       {"memory_allocated_bytes", card.allocated.count()},
                       {"memory_peak_bytes", card.peak.count()},
                       {"launches", card.launches},
                       {"busy_share", busy.of(process, card)},
                       {"kernel", card.kernel},
                       {"running_ms", static_cast<double>(card.running_ns) / 1e6},
                       {"streams", card.streams},
                       {"waiting", card.waiting}});
    }
    rows.push_back({{"pid", process.pid},
                    {"command", process.command},
                    {"age_s", static_cast<double>(process.age_ns) / 1e9},
                    {"cards", std::move(cards)}});
  }
  return {{"processes", std::move(rows)}};
}

std::string bar(double share) {
  constexpr int kWide = 10;
  const int full = static_cast<int>(share * kWide + 0.5);
  return fmt::format("[{}{}]", std::string(static_cast<size_t>(full), '#'),
                     std::string(static_cast<size_t>(kWide - full), '.'));
}

std::string duration(int64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return ms >= 1000 ? fmt::format("{:.1f} s", ms / 1000) : fmt::format("{:.0f} ms", ms);
}

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string text_of(const std::vector<SeenProcess>& processes, BusyShare& busy) {
  size_t cards = 0;
  for (const SeenProcess& process : processes) cards += process.cards.size();
  std::string text =
      fmt::format("spyre-top: {} {}, {} {}\n", processes.size(),
                  processes.size() == 1 ? "process" : "processes", cards, cards == 1 ? "card" : "cards");
  if (cards == 0) return text + "No process of this user has a card in use.\n";
  text += fmt::format("{:>8} {:>4}  {:<33}  {:<17} {:>9} {:>10}  {}\n", "pid", "card", "memory", "busy",
                      "waiting", "launches", "kernel");
  for (const SeenProcess& process : processes) {
    for (const SeenCard& card : process.cards) {
      const double used = card.total > Bytes(0) ? static_cast<double>(card.allocated.count()) /
                                                      static_cast<double>(card.total.count())
                                                : 0;
      const double share = busy.of(process, card);
      const std::string kernel =
          card.running_ns > 0
              ? fmt::format("{} for {}", shortened(card.kernel, 44), duration(card.running_ns))
          : card.kernel.empty() ? "none yet"
                                : fmt::format("idle; last {}", shortened(card.kernel, 44));
      text += fmt::format("{:>8} {:>4}  {} {:<20}  {} {:>3.0f} % {:>9} {:>10}  {}\n", process.pid, card.index,
                          bar(used),
                          fmt::format("{} of {}", human_bytes(card.allocated), human_bytes(card.total)),
                          bar(share), 100 * share, card.waiting, card.launches, kernel);
    }
    text += fmt::format("{:>8}       {}\n", "", shortened(process.command, 100));
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Shows what the cards of this user's processes do now: memory, streams, the running kernel. Busy is "
      "the emulator's "
      "time, since the last look or since the process began to use its cards. Exit codes: 0 done, 1 command "
      "line.",
      "spyre-top");
  bool json = false;
  double watch = 0;
  int times = 0;
  app.add_flag("--json", json, "Print JSON, one line for each look");
  const CLI::Option* watching =
      app.add_option("--watch", watch, "Look again every so many seconds; 1 if it is not said")
          ->expected(0, 1)
          ->check(CLI::Range(0.05, 3600.0));
  app.add_option("--times", times, "With --watch: stop after so many looks")->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tools::kDone : tools::kBadUsage;
  }
  if (watching->count() > 0 && watch <= 0) watch = 1;
  std::signal(SIGINT, [](int) { stopped = 1; });
  return tools::guarded_main([&]() -> int {
    BusyShare busy;
    for (int looks = 1;; ++looks) {
      const std::vector<SeenProcess> processes = seen_processes();
      if (json) {
        fmt::print("{}\n", json_of(processes, busy).dump());
      } else {
        const bool fresh_screen = watch > 0 && isatty(STDOUT_FILENO) == 1;
        fmt::print("{}{}", fresh_screen ? "\x1b[H\x1b[2J" : "", text_of(processes, busy));
      }
      std::fflush(stdout);
      if (watch <= 0 || looks == times || stopped != 0) return tools::kDone;
      std::this_thread::sleep_for(std::chrono::duration<double>(watch));
      if (stopped != 0) return tools::kDone;
    }
  });
}
