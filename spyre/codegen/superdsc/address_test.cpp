// The judge of addresses. Two computations that share nothing must meet for every element a core touches:
//  - what the OpSpec says: device coordinates evaluated at the iteration point, times row-major strides;
//  - what a reader of the artifact gets: the core's start plus its local coordinates through layoutDimOrder_,
//    extents, gaps and sticks of the JSON text.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/corpus_for_test.h"
#include "spyre/codegen/superdsc/plan.h"

namespace spyre::superdsc {
namespace {

constexpr int64_t kPickedRow = 2;  // what every index tensor is said to hold

using Point = std::map<std::string, int64_t>;

// Bytes from the argument's base, by the OpSpec.
int64_t meant_address(const TensorArg& arg, const std::map<std::string, int64_t, std::less<>>& symbols) {
  int64_t element = 0;
  for (size_t i = 0; i < arg.device_size.size(); ++i) {
    const Expr& e = arg.device_coordinates[i];
    const int64_t at =
        e.index_tensors().empty() ? e.evaluate(symbols).value() : kPickedRow + e.constant_term();
    if (at < 0 || at >= arg.device_size[i]) return -1;  // a window position in the padding
    element = element * arg.device_size[i] + at;
  }
  return element * kStickBytes.count() / elems_per_stick(arg.format);
}

// The reader's side: everything from JSON text.
class ArtifactReader {
 public:
  ArtifactReader(const Json& super_dsc, const Json& launch_spec)
      : outer_(super_dsc), dsc_(super_dsc["dscs_"][0].front()) {
    for (const Json& symbol : launch_spec["symbols"]) {
      if (!symbol.contains("offset")) continue;
      int64_t& offset = offset_of_[symbol["id"]] = symbol["offset"];
      if (!symbol.contains("per_extent")) continue;
      for (const auto& [name, bytes] : symbol["per_extent"].items())
        offset += bytes.get<int64_t>() * largest(launch_spec, name);
    }
  }

  int64_t slice(int64_t core, const std::string& dim) const {
    return outer_["coreIdToWkSlice_"][std::to_string(core)][dim];
  }
  int64_t per_core(const std::string& dim) const { return dsc_["dataStageParam_"]["0"]["ss_"][dim + "_"]; }
  bool in_lx(size_t tensor) const { return dsc_["scheduleTree_"][tensor]["component_"] == "lx"; }

  // `point` holds global coordinates by label.
  int64_t address(size_t tensor, int64_t core, const Point& point) const {
    const Json& node = dsc_["scheduleTree_"][tensor];
    const Json& labeled = dsc_["labeledDs_"][tensor];
    const Json& layout = dsc_["primaryDsInfo_"][labeled["dsType_"].get<std::string>()];
    int64_t lanes = 1;
    for (const int64_t size : layout["stickSize_"]) lanes *= size;
    int64_t element = lane(layout, labeled, core, point);
    int64_t stride = lanes;
    for (size_t i = 0; i < node["layoutDimOrder_"].size(); ++i) {
      const std::string dim = node["layoutDimOrder_"][i];
      if (scale(layout, labeled, dim) < 0 || node["maxDimSizes_"][i] > 1) continue;
      const int64_t part = stick_part(layout, dim);
      int64_t local = point.at(dim) - slice(core, dim) * per_core(dim);
      int64_t extent = ceil_div(dsc_["N_"][dim + "_"].get<int64_t>() + gap(node, dim), part);
      if (node["maxDimSizes_"][i] == 1) local = kPickedRow;
      if (tensor == 0 && dsc_["N_"].contains("paddingSizes_") && dsc_["N_"]["paddingSizes_"].contains(dim)) {
        const Json& window = dsc_["N_"]["paddingSizes_"][dim];
        const int64_t front = window["padFront_"];
        local = local * window["stride_"].get<int64_t>() - front +
                point.at(window["windowDim_"]) * window["dilation_"].get<int64_t>();
        extent = window["totalSize_"].get<int64_t>() - front - window["padBack_"].get<int64_t>();
      }
      element += local / part * stride;
      stride *= extent;
    }
    const std::string start = node["startAddressCoreCorelet_"]["data_"][fmt::format("[{}, 0, 0]", core)];
    return offset_of_.at(std::stoll(start)) + element * labeled["wordLength"].get<int64_t>();
  }

 private:
  // Runtime extents are judged at their largest value.
  static int64_t largest(const Json& launch_spec, const std::string& extent) {
    for (const Json& parameter : launch_spec["symbol_kinds"]) {
      if (parameter.value("symbol", "") == extent) return parameter["max_value"];
    }
    return -1;
  }
  static int64_t scale(const Json& layout, const Json& labeled, const std::string& dim) {
    for (size_t i = 0; i < layout["layoutDimOrder_"].size(); ++i) {
      if (layout["layoutDimOrder_"][i] == dim) return labeled["scale_"][i];
    }
    return 0;
  }
  static int64_t stick_part(const Json& layout, const std::string& dim) {
    for (size_t i = 0; i < layout["stickDimOrder_"].size(); ++i) {
      if (layout["stickDimOrder_"][i] == dim) return layout["stickSize_"][i];
    }
    return 1;
  }
  int64_t lane(const Json& layout, const Json& labeled, int64_t core, const Point& point) const {
    int64_t lane = 0;
    int64_t inner = 1;
    for (size_t i = 0; i < layout["stickDimOrder_"].size(); ++i) {
      const std::string dim = layout["stickDimOrder_"][i];
      const int64_t size = layout["stickSize_"][i];
      const int64_t local = point.at(dim) - slice(core, dim) * per_core(dim);
      if (scale(layout, labeled, dim) > 0) lane += local % size * inner;
      inner *= size;
    }
    return lane;
  }
  static int64_t gap(const Json& node, const std::string& dim) {
    if (!node.contains("backGapCore_") || !node["backGapCore_"].contains(dim)) return 0;
    const int64_t gap = std::stoll(node["backGapCore_"][dim]["-1"].get<std::string>());
    const bool shortfall = node.contains("spyreShortfallCore_") && node["spyreShortfallCore_"].contains(dim);
    return shortfall ? -gap : gap;
  }

  const Json& outer_;
  const Json& dsc_;
  std::map<int64_t, int64_t> offset_of_;
};

// Compares the two at random points of every core; answers with how many it compared.
int compare(const OpSpec& op, const Json& super_dsc, const Json& launch_spec, std::mt19937& rng) {
  const SdscPlan plan = plan_sdsc(op, spyre_card()).value();  // only for which symbol has which label
  const ArtifactReader reader(super_dsc, launch_spec);
  int compared = 0;
  for (int64_t core = 0; core < plan.cores; ++core) {
    for (int sample = 0; sample < 40; ++sample) {
      Point point;
      std::map<std::string, int64_t, std::less<>> symbols;
      bool padding = false;
      for (const Dim& dim : plan.dims) {
        const int64_t per_core = reader.per_core(dim.label);
        const int64_t first = reader.slice(core, dim.label) * per_core;
        const int64_t last = std::min(first + per_core, dim.logical) - 1;
        padding |= last < first;  // this core has nothing but padding
        point[dim.label] = dim.symbol.empty()
                               ? 0
                               : std::uniform_int_distribution<int64_t>(first, std::max(first, last))(rng);
        symbols[dim.symbol] = point[dim.label];
      }
      for (size_t i = 0; i < op.args.size() && !padding; ++i) {
        const int64_t meant = reader.in_lx(i) ? -1 : meant_address(op.args[i], symbols);
        if (meant < 0) continue;
        const int64_t base = op.args[i].allocation.place == Place::kHbmPool ? op.args[i].allocation.value : 0;
        const int64_t read = reader.address(i, core, point);
        EXPECT_EQ(read, base + meant) << to_text(op) << "tensor " << op.args[i].name << " core " << core;
        if (read != base + meant) return compared;
        ++compared;
      }
    }
  }
  return compared;
}

void for_each_op(const std::vector<KernelItem>& items, std::vector<const OpSpec*>& out) {
  for (const KernelItem& item : items) {
    if (const auto* op = std::get_if<OpSpec>(&item)) {
      out.push_back(op);
    } else {
      for_each_op(std::get<LoopSpec>(item).body, out);
    }
  }
}

TEST(Addresses, OfEveryCorpusOpAreWhatItsCoordinatesMean) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 rng(kSeed);
  for (const std::string& name : corpus_names()) {
    SCOPED_TRACE(name);
    const Kernel kernel = corpus_kernel(name);
    const Bundle bundle = write_bundle(kernel, {.share_equal_sdscs = false}).value();
    const Json launch_spec = file_json(bundle, "spyreCodeDir/launch_spec.json");
    std::vector<const OpSpec*> ops;
    for_each_op(kernel.body, ops);
    int compared = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      compared += compare(*ops[i], super_dsc(bundle, static_cast<int>(i)), launch_spec, rng);
    }
    EXPECT_GT(compared, 20);
  }
}

// Random ops: any order of dimensions, broadcasts, slices, physical room, selected positions, splits.
class RandomOp {
 public:
  explicit RandomOp(uint32_t seed) : rng_(seed) {}

  Kernel add() {
    const int64_t n = pick(1, 4);
    stick_ = pick(0, n - 1);
    op_ = {.op = OpId::add};
    for (int64_t i = 0; i < n; ++i) {
      dim(fmt::format("c{}", i),
          i == stick_ ? std::vector<int64_t>{20, 64, 100, 256}[pick(0, 3)] : pick(1, 6), i == stick_);
    }
    op_.core_id_to_work_slice = default_core_map(op_.iteration_space, false);
    for (int i = 0; i < 3; ++i) {
      std::vector<int64_t> kept;
      for (int64_t d = 0; d < n; ++d) {
        if (i == 2 || pick(0, 3) != 0) kept.push_back(d);
      }
      tensor(kept, stick_);
    }
    return kernel();
  }

  // Batch, M, N, K; the left operand may lack the batch.
  Kernel matmul() {
    op_ = {.op = OpId::batchmatmul, .is_reduction = true};
    dim("b", pick(2, 4), false);
    dim("m", pick(1, 6), false);
    dim("n", 64 * pick(1, 4), true);
    dim("k", 64 * pick(1, 4), true);
    op_.core_id_to_work_slice = default_core_map(op_.iteration_space, true);
    tensor(pick(0, 1) == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{0, 1, 3}, 3);
    tensor({0, 2, 3}, 2);
    tensor({0, 1, 2}, 2);
    return kernel();
  }

  // One dimension folded, the stick or another one.
  Kernel sum() {
    op_ = {.op = OpId::sum, .is_reduction = true};
    const bool folds_stick = pick(0, 1) == 0;
    dim("a", pick(1, 6), false);
    dim("b", folds_stick ? pick(2, 6) : 64 * pick(1, 4), !folds_stick);
    dim("r", folds_stick ? 64 * pick(1, 4) : pick(2, 6), folds_stick);
    op_.core_id_to_work_slice = default_core_map(op_.iteration_space, false);
    const int64_t stick = folds_stick ? 2 : 1;
    tensor({0, 1, 2}, stick);
    tensor({0, 1}, stick);
    return kernel();
  }

 private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng_); }

  void dim(std::string symbol, int64_t extent, bool sticks) {
    const int64_t steps = sticks ? ceil_div(extent, 64) : extent;
    int64_t split = 1;
    if (cores_used(op_) < 8 && pick(0, 1) == 0) split = steps % 2 == 0 ? 2 : steps % 3 == 0 ? 3 : 1;
    op_.iteration_space.push_back({std::move(symbol), extent, split, ""});
  }

  // A tensor over the kept dimensions; without the stick among them it has one stick per position.
  void tensor(const std::vector<int64_t>& kept, int64_t stick) {
    const auto index = static_cast<int64_t>(op_.args.size());
    TensorArg arg{.name = fmt::format("t{}", index), .allocation = {Place::kHbm, index}};
    std::vector<std::pair<int64_t, Expr>> outer;
    Expr lane;
    for (const int64_t i : kept) {
      const IterationDim& d = op_.iteration_space[i];
      const int64_t room = pick(0, 2);
      const Expr symbol = Expr::symbol(d.symbol);
      if (i == stick) lane = Expr::mod(symbol, 64);
      outer.emplace_back((i == stick ? ceil_div(d.extent, 64) : d.extent) + room,
                         (i == stick ? Expr::floor_div(symbol, 64) : symbol) + Expr::constant(pick(0, room)));
    }
    if (pick(0, 2) == 0) outer.emplace_back(3, Expr::constant(pick(1, 2)));  // a selected position
    std::shuffle(outer.begin(), outer.end(), rng_);
    for (auto& [size, e] : outer) {
      arg.device_size.push_back(size);
      arg.device_coordinates.push_back(std::move(e));
    }
    arg.device_size.push_back(64);
    arg.device_coordinates.push_back(lane);
    op_.args.push_back(std::move(arg));
  }

  Kernel kernel() {
    op_.args.back().is_input = false;
    Kernel kernel{.name = "random"};
    for (size_t i = 0; i < op_.args.size(); ++i) {
      kernel.arguments.push_back({.index = static_cast<int64_t>(i), .dtype = "float16"});
    }
    kernel.body.emplace_back(op_);
    return kernel;
  }

  std::mt19937 rng_;
  OpSpec op_;
  int64_t stick_ = 0;
};

void compare_random(Kernel (RandomOp::*make)()) {
  int compared = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Kernel kernel = (RandomOp(seed).*make)();
    const auto bundle = write_bundle(kernel);
    ASSERT_TRUE(bundle.ok()) << bundle.error().to_string() << to_text(kernel);
    std::mt19937 rng(seed);
    compared += compare(std::get<OpSpec>(kernel.body[0]), super_dsc(bundle.value()),
                        file_json(bundle.value(), "spyreCodeDir/launch_spec.json"), rng);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, 5000);
}

TEST(Addresses, OfRandomPointwiseOpsAreWhatTheirCoordinatesMean) {
  compare_random(&RandomOp::add);
}
TEST(Addresses, OfRandomMatmulsAreWhatTheirCoordinatesMean) {
  compare_random(&RandomOp::matmul);
}
TEST(Addresses, OfRandomSumsAreWhatTheirCoordinatesMean) {
  compare_random(&RandomOp::sum);
}

}  // namespace
}  // namespace spyre::superdsc
