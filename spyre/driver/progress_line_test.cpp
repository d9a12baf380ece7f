#include "spyre/driver/progress_line.h"

#include <gmock/gmock.h>

#include <map>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/driver/compile.h"

namespace spyre {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A screen that remembers, and a clock that stands until it is moved.
struct Watched {
  explicit Watched(int columns) {
    ProgressLine::Screen screen{.write = [this](std::string_view bytes) { written.emplace_back(bytes); },
                                .columns = nullptr};
    if (columns > 0) screen.columns = [columns] { return columns; };
    line = std::make_unique<ProgressLine>(std::move(screen), [this] { return now; });
  }
  void after(std::chrono::milliseconds time) {
    now += time;
    line->draw();
  }

  std::chrono::steady_clock::time_point now;
  std::vector<std::string> written;
  std::unique_ptr<ProgressLine> line;
};

using std::chrono::milliseconds;

TEST(ProgressLine, SaysNothingOfWorkThatTakesLessThanASecond) {
  Watched watched(80);
  watched.line->begin_without_thread();
  watched.line->now("tracing");
  watched.after(milliseconds(999));
  watched.line->end();
  EXPECT_THAT(watched.written, IsEmpty());
}

TEST(ProgressLine, SaysNothingBeforeTheWorkSaysWhatItIs) {
  Watched watched(80);
  watched.line->begin_without_thread();
  watched.after(milliseconds(5000));
  watched.line->end();
  EXPECT_THAT(watched.written, IsEmpty());
}

TEST(ProgressLine, IsWrittenOverOnATerminalAndGoesAtTheEnd) {
  Watched watched(80);
  watched.line->begin_without_thread();
  watched.line->now("tracing", "layer 1 of 2");
  watched.after(milliseconds(1000));
  watched.line->now("compiling kernel 1 of 3");
  watched.line->pass("co-optimize", 0);
  watched.after(milliseconds(1100));
  watched.line->pass("co-optimize", 4096);
  watched.after(milliseconds(100));
  watched.line->end();
  EXPECT_THAT(
      watched.written,
      ElementsAre("\r\x1b[Kspyre: tracing: layer 1 of 2, 1 s",
                  "\r\x1b[Kspyre: compiling kernel 1 of 3: co-optimize, 2 s",
                  "\r\x1b[Kspyre: compiling kernel 1 of 3: co-optimize, 4096 plans, 2 s", "\r\x1b[K"));
}

TEST(ProgressLine, IsALineASecondWhereNothingCanBeWrittenOver) {
  Watched watched(0);
  watched.line->begin_without_thread();
  watched.line->now("tracing");
  for (int i = 0; i < 35; ++i) watched.after(milliseconds(100));
  watched.line->end();
  EXPECT_THAT(watched.written,
              ElementsAre("spyre: tracing, 1 s\n", "spyre: tracing, 2 s\n", "spyre: tracing, 3 s\n"));
}

TEST(ProgressLine, GetsOutOfTheWayOfOthersAndWaitsForTheEndOfTheirLine) {
  Watched watched(80);
  watched.line->begin_without_thread();
  watched.line->now("tracing");
  watched.after(milliseconds(1000));
  watched.line->erase();
  watched.line->others_wrote(false);  // "half a wor"
  watched.after(milliseconds(100));
  EXPECT_THAT(watched.written, ElementsAre("\r\x1b[Kspyre: tracing, 1 s", "\r\x1b[K"));
  watched.line->erase();
  watched.line->others_wrote(true);  // "ning\n"
  watched.after(milliseconds(100));
  watched.line->end();
  EXPECT_THAT(watched.written, ElementsAre("\r\x1b[Kspyre: tracing, 1 s", "\r\x1b[K",
                                           "\r\x1b[Kspyre: tracing, 1 s", "\r\x1b[K"));
}

TEST(ProgressLine, NeverReachesTheLastColumn) {
  Watched watched(16);
  watched.line->begin_without_thread();
  watched.line->now("tracing", "layer 12 of 40");
  watched.after(milliseconds(1000));
  EXPECT_THAT(watched.written, ElementsAre("\r\x1b[Kspyre: tracing:"));
  watched.line->end();
}

TEST(ProgressLine, InsideOtherWorkBelongsToIt) {
  Watched watched(0);
  watched.line->begin_without_thread();
  watched.after(milliseconds(800));
  watched.line->begin_without_thread();
  watched.line->now("compiling");
  watched.after(milliseconds(300));
  watched.line->end();
  watched.after(milliseconds(1000));
  watched.line->end();
  watched.after(milliseconds(1000));
  EXPECT_THAT(watched.written, ElementsAre("spyre: compiling, 1 s\n", "spyre: compiling, 2 s\n"));
}

// The thread draws while whoever works does not call.
TEST(ProgressLine, IsDrawnByAThreadOfItsOwn) {
  std::mutex mutex;
  std::condition_variable drawn;
  std::string written;
  auto start = std::chrono::steady_clock::now();
  std::atomic<bool> late = false;
  ProgressLine line({.write =
                         [&](std::string_view bytes) {
                           const std::scoped_lock lock(mutex);
                           written += bytes;
                           drawn.notify_all();
                         },
                     .columns = nullptr},
                    [&] { return start + std::chrono::seconds(late ? 7 : 0); });
  line.begin();
  line.now("tracing");
  late = true;
  {
    std::unique_lock lock(mutex);
    drawn.wait(lock, [&] { return !written.empty(); });
    EXPECT_EQ(written, "spyre: tracing, 7 s\n");
  }
  line.end();
}

// Work is counted, not timed, so it is told the same number of times everywhere.
TEST(Compile, TellsOfEveryPassAndOfEveryPlanItLooksAt) {
  const std::string path = SPYRE_GRAPH_CORPUS "/gated_mlp_small.ir";
  PassLog log;
  std::map<std::string, int64_t> told;
  log.on_progress([&](std::string_view pass, int64_t plans) { told[std::string(pass)] = plans; });
  const CompiledGraph compiled = compile(parse_graph(read_text(path).value(), path).value(), {}, log).value();
  EXPECT_GT(compiled.joint->evaluated, 0);
  EXPECT_EQ(told["co-optimize"], compiled.joint->evaluated);
  for (const PassLog::Entry& entry : log.entries()) EXPECT_TRUE(told.contains(entry.pass)) << entry.pass;
}

}  // namespace
}  // namespace spyre
