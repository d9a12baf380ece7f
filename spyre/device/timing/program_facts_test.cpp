#include "spyre/device/timing/program_facts.h"

#include <gtest/gtest.h>

#include "spyre/base/json.h"
#include "spyre/device/timing/advice.h"
#include "spyre/device/timing/least_bytes.h"
#include "spyre/device/timing/test_published.h"

namespace spyre::timing {
namespace {

CardModel toy_model() {
  return {.name = "toy rates", .machine = spyre_card(), .rates = toy_rates()};
}

Json facts_of(const program::DeviceProgram& program, const CardModel& card, Detail detail = Detail::kCores) {
  const LaunchedProgram launched = {.program = &program, .launch = largest_extents(program)};
  auto facts = program_facts("test", {&launched, 1}, card, detail);
  EXPECT_TRUE(facts.ok()) << facts.error().to_string();
  return facts.ok() ? std::move(facts).value() : Json();
}

double sum_of(const Json& rows, const char* field) {
  double sum = 0;
  for (const Json& row : rows) sum += row[field].get<double>();
  return sum;
}

double sum_of_values(const Json& object) {
  double sum = 0;
  for (const auto& [name, value] : object.items()) sum += value.get<double>();
  return sum;
}

/// What a rate comes to over time: its values, each times how long it holds.
double integral(const Json& points) {
  double sum = 0;
  for (size_t i = 2; i < points.size(); i += 2)
    sum += points[i - 1].get<double>() * (points[i].get<double>() - points[i - 2].get<double>());
  return sum;
}

class Sums : public testing::TestWithParam<program::DeviceProgram> {};

TEST_P(Sums, WindowsBoundsStepsAndCoresAddUpToTheTotal) {
  const Json facts = facts_of(GetParam(), spyre_model());
  const Json& totals = facts["totals"];
  const double total = totals["total_us"], kernel = totals["kernel_us"], launch = totals["launch_us"];
  EXPECT_NEAR(kernel + launch, total, 1e-9 * total);
  EXPECT_NEAR(sum_of(facts["items"], "us"), kernel, 1e-9 * total);
  EXPECT_NEAR(sum_of_values(facts["bound"]["us"]), total, 1e-9 * total);
  EXPECT_NEAR(sum_of(facts["waterfall"], "us"), total, 1e-9 * total);
  EXPECT_NEAR(sum_of_values(totals["core_us"]), kernel, 1e-9 * total);
  for (const Json& step : facts["waterfall"]) EXPECT_GE(step["us"].get<double>(), 0) << step;
  EXPECT_LE(totals["compulsory_bytes"].get<int64_t>(),
            totals["read_bytes"].get<int64_t>() + totals["written_bytes"].get<int64_t>());
}

TEST_P(Sums, RowsOfCoresHaveNoGapsAndRatesAddUpToTheBytes) {
  const Json facts = facts_of(GetParam(), spyre_model());
  const Json& totals = facts["totals"];
  const auto begin = std::llround(totals["launch_us"].get<double>() * 1000);
  const auto end = std::llround(totals["total_us"].get<double>() * 1000);
  int cores = 0;
  for (const Json& row : facts["rows"]) {
    const Json& slices = row["slices"];
    int64_t at = row["name"] == "host" ? 0 : begin;
    for (size_t i = 0; i < slices.size(); i += 4) {
      EXPECT_EQ(slices[i + 2].get<int64_t>(), at) << row["name"] << " slice " << i / 4;
      at = slices[i + 2].get<int64_t>() + slices[i + 3].get<int64_t>();
    }
    EXPECT_EQ(at, row["name"] == "host" ? begin : end) << row["name"];
    cores += row["name"].get<std::string>().starts_with("core ");
  }
  EXPECT_EQ(cores, spyre_card().cores);
  const double read = totals["read_bytes"].get<double>(), written = totals["written_bytes"].get<double>();
  // Moments are rounded to a ns, at which memory moves some 200 bytes.
  EXPECT_NEAR(integral(facts["counters"][0]["points"]), read, 0.002 * read + 500);
  EXPECT_NEAR(integral(facts["counters"][1]["points"]), written, 0.002 * written + 500);
}

INSTANTIATE_TEST_SUITE_P(Programs, Sums,
                         testing::Values(softmax(512, 2048, 32, Stage::kIntermediates),
                                         softmax(512, 1024, 4, Stage::kInputToo),
                                         streaming("add", 2, 512, 512).program,
                                         square_matmul(512, 512, 512, {.m = 8, .n = 4}).program));

TEST(ProgramFacts, TotalsAloneAreTheSameWithoutRows) {
  const program::DeviceProgram program = softmax(512, 2048, 32, Stage::kReductions);
  const Json all = facts_of(program, spyre_model()),
             brief = facts_of(program, spyre_model(), Detail::kExecutes);
  EXPECT_EQ(all["items"], brief["items"]);
  EXPECT_EQ(all["waterfall"], brief["waterfall"]);
  EXPECT_FALSE(brief.contains("rows"));
}

//   execute 0  reads 4096 B of memory, writes LX 256      execute 1  reads LX 256, writes 4096 B
//   LX 256         |========== a value =========================|
TEST(ProgramFacts, AValueLivesInLxFromItsWriterToItsLastReader) {
  const program::DeviceProgram program =
      program_of({in_lx(unary("neg", 32, 0, 256), {1}), in_lx(unary("neg", 32, 256, 8192), {0})});
  const Json facts = facts_of(program, toy_model());
  ASSERT_EQ(facts["lx"].size(), 1u);
  const Json& life = facts["lx"][0];
  EXPECT_EQ(life["address"], 256);
  EXPECT_EQ(life["bytes"], 4096);
  EXPECT_EQ(life["cores"], 1);
  EXPECT_EQ(life["item"], 0);
  EXPECT_EQ(life["begin_ns"], std::llround(facts["totals"]["launch_us"].get<double>() * 1000));
  EXPECT_EQ(life["end_ns"], std::llround(facts["totals"]["total_us"].get<double>() * 1000));
  EXPECT_EQ(facts["totals"]["lx_top_bytes"], 256 + 4096);
}

// 4096 B read twice and written twice to one place: one of each is compulsory. At 1 B per ns memory takes 16384 ns.
TEST(ProgramFacts, WhatIsMovedAgainIsNoPartOfTheIdeal) {
  const program::DeviceProgram program =
      program_of({unary("neg", 32, 0, 1 << 20), unary("exp", 32, 0, 1 << 20)});
  const Json facts = facts_of(program, toy_model());
  EXPECT_EQ(facts["totals"]["compulsory_bytes"], 2 * 4096);
  EXPECT_EQ(facts["totals"]["read_bytes"], 2 * 4096);
  EXPECT_DOUBLE_EQ(facts["waterfall"][0]["us"].get<double>(), 8.192);
  EXPECT_DOUBLE_EQ(facts["waterfall"][1]["us"].get<double>(), 8.192);
}

TEST(LeastBytes, WhatAProgramMadeItselfIsNotRead) {
  LeastBytes least;
  const auto pool = [](int64_t address) { return address >= 1000; };
  least.add(
      {.loads = {{.bytes = 100}}, .stores = {{.bytes = 100}}, .reads = {{0, 100}}, .writes = {{1000, 1100}}},
      pool);
  least.add({.loads = {{.bytes = 150}},
             .stores = {{.bytes = 100}},
             .reads = {{1000, 1100}, {50, 150}},
             .writes = {{200, 300}}},
            pool);
  EXPECT_EQ(least.total(), 100 + 50 + 100);
}

TEST(Advice, NamesTheNearestThingThatWouldLowerTheLimit) {
  CardModel card = spyre_model();
  const OpTotals few = {.executes = 1,
                        .time = {800},
                        .vector = {800},
                        .bound = Bound::kVector,
                        .cores = 4,
                        .busiest = {800},
                        .evens = {100}};
  EXPECT_EQ(advise(few, card).text, "More cores: 4 of 32 work on it");
  EXPECT_DOUBLE_EQ(advise(few, card).saves.ns, 700);
  const OpTotals spills = {.executes = 1,
                           .time = {100},
                           .memory = {100},
                           .vector = {60},
                           .bound = Bound::kMemory,
                           .read = 10'000,
                           .written = 10'000,
                           .spilled = 10'000,
                           .cores = 32};
  EXPECT_EQ(advise(spills, card).text,
            "Keep intermediate results in LX: 9.77 KiB of its 19.53 KiB are results of this program");
  EXPECT_DOUBLE_EQ(advise(spills, card).saves.ns, 40);  // half of its bytes; then vectors are the limit
  const OpTotals waits = {
      .executes = 1, .time = {1000}, .memory = {100}, .bound = Bound::kMemory, .read = 20'000, .cores = 32};
  EXPECT_DOUBLE_EQ(advise(waits, card).saves.ns, 900);
  EXPECT_EQ(advise({}, card).text, "");
}

}  // namespace
}  // namespace spyre::timing
