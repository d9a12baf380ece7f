// Upstream's placement cases as data (tests/corpus/placement/lx-patterns.json): what each classic solver does
// with them, and that ours never does worse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "spyre/base/json.h"
#include "spyre/solve/bounds.h"
#include "spyre/solve/solver.h"
#include "spyre/solve/validate.h"

namespace spyre::solve {
namespace {

/// Groups this layer answers for; the others are about work division and the joint search.
const std::set<std::string> kPlacementGroups = {
    "placement",   "alignment",  "eligibility",  "in_place",        "liveness",
    "score_order", "gap_policy", "spill_reason", "placement_exact", "pattern"};

const Json& all_cases() {
  static const Json file = read_json(SPYRE_PLACEMENT_CORPUS "/lx-patterns.json").value();
  return file.at("cases");
}

Json find_case(std::string_view id) {
  for (const Json& c : all_cases()) {
    if (c.at("id") == id) return c;
  }
  ADD_FAILURE() << "no case " << id;
  return {};
}

Result<Problem> problem_of(const Json& c) {
  Problem problem{.capacity = Bytes(c.value("capacity", int64_t{1} << 40))};
  std::map<std::string, BufferIndex> ids;
  for (const Json& b : c.at("buffers")) ids.emplace(b.at("name"), std::ssize(ids));
  for (const Json& b : c.at("buffers")) {
    const auto uses = b.at("uses").get<std::vector<int64_t>>();
    std::optional<Step> end;
    if (b.contains("lifetime_end_override")) end = Step(b.at("lifetime_end_override"));
    SPYRE_ASSIGN_OR_RETURN(Buffer buffer, buffer_of_uses(b.at("name"), Bytes(b.at("size")), uses,
                                                         b.at("first_use_is_read"), end));
    buffer.align = Bytes(c.value("alignment", 1));
    if (b.contains("residency_reason")) buffer.ineligible = b.at("residency_reason");
    for (const Json& parent : b.at("in_place_parents")) buffer.in_place_parents.push_back(ids.at(parent));
    problem.buffers.push_back(std::move(buffer));
  }
  SPYRE_TRY(check_problem(problem));
  return problem;
}

std::vector<Json> offsets_json(const Placement& placement) {
  std::vector<Json> out;
  for (const auto& offset : placement.offset)
    out.push_back(offset.has_value() ? Json(offset->count()) : Json());
  return out;
}

BufferIndex id_of(const Problem& problem, const std::string& name) {
  const auto found = std::find_if(problem.buffers.begin(), problem.buffers.end(),
                                  [&](const Buffer& b) { return b.name == name; });
  return BufferIndex(found - problem.buffers.begin());
}

int64_t placed_count(const Placement& placement) {
  return std::count_if(placement.offset.begin(), placement.offset.end(),
                       [](const auto& o) { return o.has_value(); });
}

/// Off-chip bytes of a pattern: every operand of every operation that is not in LX.
int64_t hbm_bytes(const Json& c, const Problem& problem, const Placement& placement) {
  int64_t sum = 0;
  const auto charge = [&](const std::string& name) {
    const BufferIndex id = id_of(problem, name);
    if (id == std::ssize(problem.buffers)) {
      sum += c.at("hbm_only_buffers").at(name).get<int64_t>();
    } else if (!placement.offset[id].has_value()) {
      sum += problem.buffers[id].size.count();
    }
  };
  for (const Json& op : c.at("operations")) {
    for (const Json& name : op.at("in")) charge(name);
    charge(op.at("out"));
  }
  return sum;
}

void expect_named_buffers(const Json& expect, const Problem& problem, const Placement& placement) {
  const auto offset = [&](const std::string& name) { return placement.offset[id_of(problem, name)]; };
  for (const Json& name : expect.value("must_place", Json::array()))
    EXPECT_TRUE(offset(name).has_value()) << name;
  for (const Json& name : expect.value("must_not_place", Json::array()))
    EXPECT_FALSE(offset(name).has_value()) << name;
  for (const Json& chain : expect.value("same_address", Json::array())) {
    for (const Json& name : chain) EXPECT_EQ(offset(name), offset(chain[0])) << name;
  }
  const Json reasons = expect.value("spill_reason", Json::object());
  for (const auto& [name, reason] : reasons.items()) {
    EXPECT_EQ(spill_reason(problem, id_of(problem, name)), reason) << name;
  }
}

/// Exact solvers may pick any legal packing that places as much; the others are held to the recorded
/// addresses.
void expect_addresses(const Json& expect, bool exact, const Placement& placement) {
  std::vector<std::vector<Json>> allowed;
  if (expect.contains("addresses")) allowed.push_back(expect.at("addresses").get<std::vector<Json>>());
  for (const Json& option : expect.value("addresses_any_of", Json::array()))
    allowed.push_back(option.get<std::vector<Json>>());
  if (allowed.empty()) return;
  if (!exact) {
    EXPECT_THAT(allowed, testing::Contains(offsets_json(placement)));
    return;
  }
  const auto& first = allowed.front();
  EXPECT_GE(placed_count(placement),
            std::count_if(first.begin(), first.end(), [](const Json& a) { return !a.is_null(); }));
}

void expect_pattern(const Json& c, const std::string& solver, const Problem& problem,
                    const Placement& placement) {
  const Json& expect = c.at("expect");
  const int64_t found = hbm_bytes(c, problem, placement);
  if (expect.at("passes").contains(solver)) {
    EXPECT_EQ(found <= expect.at("max_hbm_bytes").get<int64_t>(), expect.at("passes").at(solver).get<bool>())
        << found;
  }
  if (expect.at("reference_results").contains(solver)) {
    const Json& reference = expect.at("reference_results").at(solver);
    EXPECT_EQ(found, reference.at("hbm_bytes").get<int64_t>());
    for (const Json& name : reference.at("spilled")) {
      EXPECT_FALSE(placement.offset[id_of(problem, name)].has_value()) << name;
    }
  }
}

class LxPattern : public testing::TestWithParam<std::string> {};

TEST_P(LxPattern, EachSolverDoesWhatIsRecorded) {
  const Json c = find_case(GetParam());
  const Json& expect = c.at("expect");
  const auto problem = problem_of(c);
  if (expect.contains("error")) {
    EXPECT_FALSE(problem.ok());
    return;
  }
  ASSERT_TRUE(problem.ok()) << problem.error().to_string();
  if (c.contains("peak_live_bytes")) {
    EXPECT_EQ(peak_live_bytes(problem.value()).count(), c.at("peak_live_bytes").get<int64_t>());
  }
  for (const Json& name : c.value("solvers", Json::array())) {
    SCOPED_TRACE(name.get<std::string>());
    const bool exact = name == "cpsat_placement";
    const auto solution = place(problem.value(), exact ? "exact" : name.get<std::string>());
    ASSERT_TRUE(solution.ok()) << solution.error().to_string();
    const Placement& placement = solution.value().placement;
    const Status verdict = validate(problem.value(), placement);
    EXPECT_TRUE(verdict.ok()) << verdict.error().to_string();
    expect_addresses(expect, exact, placement);
    if (c.at("group") == "pattern") {
      expect_pattern(c, name, problem.value(), placement);
    } else {
      expect_named_buffers(expect, problem.value(), placement);
    }
    const Json own = expect.value("by_solver", Json::object()).value(name, Json::object());
    const Json addresses = own.value("address_of", Json::object());
    for (const auto& [buffer, address] : addresses.items()) {
      EXPECT_EQ(placement.offset[id_of(problem.value(), buffer)], Bytes(address)) << buffer;
    }
  }
}

TEST_P(LxPattern, OursIsProvenAndNeverWorseThanAnyOther) {
  const Json c = find_case(GetParam());
  const auto problem = problem_of(c);
  if (!problem.ok()) return;
  const Solution ours = place(problem.value()).value();
  ASSERT_TRUE(validate(problem.value(), ours.placement).ok());
  EXPECT_TRUE(ours.optimal);
  for (const SolverRow& row : all_solvers()) {
    const Solution other = place(problem.value(), row.name).value();
    EXPECT_TRUE(validate(problem.value(), other.placement).ok()) << row.name;
    EXPECT_LE(bytes_saved(problem.value(), other.placement), bytes_saved(problem.value(), ours.placement))
        << row.name;
  }
  if (c.at("group") == "pattern") {
    for (const Json& name : c.at("expect").value("must_place", Json::array())) {
      EXPECT_TRUE(ours.placement.offset[id_of(problem.value(), name)].has_value()) << name;
    }
  }
}

std::vector<std::string> placement_cases() {
  std::vector<std::string> ids;
  for (const Json& c : all_cases()) {
    if (kPlacementGroups.contains(c.at("group")) && c.contains("buffers")) ids.push_back(c.at("id"));
  }
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Corpus, LxPattern, testing::ValuesIn(placement_cases()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(LxContract, InPlacePairsAreCheckedBeforeSolving) {
  int seen = 0;
  for (const Json& c : all_cases()) {
    if (c.at("group") != "in_place_contract") continue;
    ++seen;
    EXPECT_EQ(problem_of(c).ok(), c.at("expect").at("error").is_null()) << c.at("id");
  }
  EXPECT_EQ(seen, 3);
}

TEST(LxContract, UsesAreStrictlyIncreasing) {
  const Json expect = find_case("liveness.uses_strictly_increasing").at("expect");
  const auto accepted = [](const Json& uses) {
    return buffer_of_uses("b", Bytes(1), uses.get<std::vector<int64_t>>(), false).ok();
  };
  // A buffer without uses has no life; upstream accepts the list, we refuse the buffer.
  for (const Json& uses : expect.at("accept")) EXPECT_EQ(accepted(uses), !uses.empty()) << uses;
  for (const Json& uses : expect.at("reject")) EXPECT_FALSE(accepted(uses)) << uses;
}

TEST(LxContract, ReadsAreCountedAsRecorded) {
  for (const Json& row : find_case("liveness.read_count").at("expect").at("rows")) {
    EXPECT_EQ(read_count(std::ssize(row.at("uses")), row.at("first_use_is_read")), row.at("read_count"))
        << row;
  }
}

TEST(LxContract, AnOverrideKeepsABufferLive) {
  const Problem overlap = problem_of(find_case("liveness.end_override_overlap")).value();
  EXPECT_EQ(overlap.buffers[0].live.end, Step(7));
  EXPECT_TRUE(overlap.buffers[0].live.meets(overlap.buffers[1].live));
  EXPECT_EQ(problem_of(find_case("liveness.override_extends")).value().buffers[0].live.end, Step(12));
}

/// Joint cases with one division per buffer are placement cases once the buffers nobody reads are ineligible.
TEST(LxJointCases, WithFixedDivisionsExactPlacesTheSame) {
  for (const std::string id : {"joint.chain_with_inplace_tight", "joint.inplace_chain_one_slot"}) {
    SCOPED_TRACE(id);
    const Json c = find_case(id);
    Problem problem = problem_of(c).value();
    for (const Json& name : c.at("expect").value("must_not_place", Json::array())) {
      problem.buffers[id_of(problem, name)].ineligible = "no consumer reads it from LX";
    }
    const Solution solution = place(problem, "exact").value();
    EXPECT_TRUE(validate(problem, solution.placement).ok());
    EXPECT_TRUE(solution.optimal);
    Json must_place = {{"must_place", c.at("expect").at("must_place")}};
    expect_named_buffers(must_place, problem, solution.placement);
  }
}

}  // namespace
}  // namespace spyre::solve
