// Kernels of the corpus, written as bundles, read back and run; judged by an oracle that knows nothing of
// bundles.
//
// The oracle evaluates an OpSpec by its own words: for each point of the unpadded iteration space it
// evaluates `device_coordinates`, takes the row-major element of `device_size`, and computes with plain
// loops. It has no dim labels, scales, gaps, folds, start addresses, cores, padding or masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle.h"
#include "spyre/device/exec/executor.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/opspec/text.h"
#include "spyre/program/read_program.h"

namespace spyre {
namespace {

using program::decode_element;
using program::encode_element;
using Point = std::map<std::string, int64_t, std::less<>>;

/// A tensor's place: launch argument, pool offset or LX address.
using Place3 = std::pair<Place, int64_t>;

class Oracle {
 public:
  explicit Oracle(const Kernel& kernel, const Point& runtime) : kernel_(kernel), runtime_(runtime) {}

  /// Elements by place, as bits in the tensor's format.
  std::map<Place3, std::map<int64_t, uint32_t>> memory;
  std::map<Place3, std::set<int64_t>> touched;  ///< read before anything wrote there
  int64_t every = 1;                            ///< of a reduction, one result in so many is computed

  void run() {
    for (const KernelItem& item : kernel_.body) {
      run(item, {});
    }
  }

  /// Fills `touched` and computes nothing.
  void touch() {
    only_touch_ = true;
    run();
  }

 private:
  void run(const KernelItem& item, const std::vector<int64_t>& trips) {
    if (const auto* op = std::get_if<OpSpec>(&item)) {
      trips_ = trips;
      run(*op);
      return;
    }
    const LoopSpec& loop = std::get<LoopSpec>(item);
    const int64_t count =
        loop.count_symbol.empty() ? loop.count : runtime_.at(loop.count_symbol) / loop.bound.granularity;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> inner = trips;
      inner.insert(inner.begin(), i);  // innermost loop first
      for (const KernelItem& step : loop.body) {
        run(step, inner);
      }
    }
  }

  int64_t extent(const IterationDim& dim) const {
    return dim.dynamic.empty() ? dim.extent : runtime_.at(dim.dynamic);
  }

  void points(const OpSpec& op, const std::set<std::string>& symbols, Point g,
              const std::function<void(const Point&)>& visit, size_t depth = 0) const {
    if (depth == op.iteration_space.size()) {
      visit(g);
      return;
    }
    const IterationDim& dim = op.iteration_space[depth];
    if (!symbols.contains(dim.symbol)) {
      return points(op, symbols, g, visit, depth + 1);
    }
    for (int64_t i = 0; i < extent(dim); ++i) {
      g[dim.symbol] = i;
      points(op, symbols, g, visit, depth + 1);
    }
  }

  const TensorArg& named(const OpSpec& op, const std::string& name) const {
    return *std::find_if(op.args.begin(), op.args.end(), [&](const TensorArg& t) { return t.name == name; });
  }

  /// The element at a point; nothing outside the tensor (a window's padding).
  std::optional<int64_t> element(const OpSpec& op, const TensorArg& t, const Point& g) {
    int64_t at = 0;
    for (size_t i = 0; i < t.device_size.size(); ++i) {
      const Expr& e = t.device_coordinates[i];
      int64_t c = 0;
      if (!e.index_tensors().empty()) {
        const TensorArg& index = named(op, *e.index_tensors().begin());
        c = static_cast<int64_t>(bits(op, index, g)) + e.constant_term();
      } else {
        c = e.evaluate(g).value();
      }
      if (c < 0 || c >= t.device_size[i]) {
        return std::nullopt;
      }
      at = at * t.device_size[i] + c;
    }
    for (size_t level = 0; level < trips_.size(); ++level) {
      for (const std::string& symbol : op.tiled_symbols.at(level)) {
        at += t.tile_advance ? trips_[level] * t.tile_advance->coefficient(symbol) : 0;
      }
    }
    return at;
  }

  Place3 place(const TensorArg& t) const { return {t.allocation.place, t.allocation.value}; }

  uint32_t bits(const OpSpec& op, const TensorArg& t, const Point& g, int lane = 0) {
    const std::optional<int64_t> at = element(op, t, g);
    if (!at) {
      return 0;
    }
    auto& cells = memory[place(t)];
    if (!cells.contains(*at + lane)) {
      touched[place(t)].insert(*at + lane);
    }
    return cells[*at + lane];
  }
  float value(const OpSpec& op, int i, const Point& g, int lane = 0) {
    const TensorArg& t = data_[i];
    return decode_element(t.format, bits(op, t, g, lane));
  }
  void store(const OpSpec& op, const Point& g, uint32_t stored, int lane = 0) {
    memory[place(op.output())][*element(op, op.output(), g) + lane] = stored;
  }
  void store_value(const OpSpec& op, const Point& g, float result, int lane = 0) {
    store(op, g, encode_element(op.output().format, result), lane);
  }

  float constant(const OpSpec& op, std::string_view name) const {
    for (const auto& [key, v] : op.constants) {
      if (key == name) {
        return decode_element(data_[0].format, encode_element(data_[0].format, static_cast<float>(v)));
      }
    }
    ADD_FAILURE() << to_string(op.op) << " has no " << name;
    return 0;
  }

  std::set<std::string> symbols_of(const TensorArg& t) const {
    std::set<std::string> out;
    for (const Expr& e : t.device_coordinates) {
      out.merge(e.symbols());
    }
    return out;
  }

  /// Symbols that decide where an element of `t` is, through index tensors too.
  std::set<std::string> all_of(const OpSpec& op, const TensorArg& t) const {
    std::set<std::string> out = symbols_of(t);
    for (const Expr& e : t.device_coordinates) {
      for (const std::string& index : e.index_tensors()) {
        out.merge(symbols_of(named(op, index)));
      }
    }
    return out;
  }

  float pointwise(const OpSpec& op, const Point& g) {
    const auto x = [&](int i) { return value(op, i, g); };
    if (op.op == OpId::abs) return std::fabs(x(0));
    if (op.op == OpId::neg) return -x(0);
    if (op.op == OpId::add) return x(0) + x(1);
    if (op.op == OpId::sub) return x(0) - x(1);
    if (op.op == OpId::realdiv) return x(0) / x(1);
    if (op.op == OpId::exp) return std::exp(x(0));
    if (op.op == OpId::where3) return x(0) != 0 ? x(1) : x(2);
    if (op.op == OpId::clip)
      return std::fmin(std::fmax(x(0), constant(op, "clipMin")), constant(op, "clipMax"));
    if (op.op == OpId::layernormnorm) return (x(0) - x(1)) * x(2) * x(3) + x(4);
    if (op.op == OpId::layernormscale) {
      const float mean = value(op, 0, g, 0), square = value(op, 0, g, 1);
      return 1.0f / std::sqrt(square - mean * mean + constant(op, "eps"));
    }
    return x(0);  // conversions
  }

  void run(const OpSpec& op) {
    data_.clear();
    std::set<std::string> indices, all, kept = symbols_of(op.output());
    for (const TensorArg& t : op.args) {
      for (const Expr& e : t.device_coordinates) {
        indices.merge(e.index_tensors());
      }
    }
    for (const TensorArg& t : op.args) {
      if (t.is_input && !indices.contains(t.name)) {
        data_.push_back(t);
      }
    }
    for (const IterationDim& dim : op.iteration_space) {
      all.insert(dim.symbol);
    }
    if (only_touch_) {
      for (const TensorArg& t : op.args) {
        points(op, t.is_input ? all_of(op, t) : std::set<std::string>(), {}, [&](const Point& g) {
          if (t.is_input) bits(op, t, g);
        });
      }
      return;
    }
    std::set<std::string> reduced;
    std::set_difference(all.begin(), all.end(), kept.begin(), kept.end(),
                        std::inserter(reduced, reduced.end()));
    if (op.op == OpId::identity || op.op == OpId::ReStickifyOpHBM || op.op == OpId::shuffle) {
      points(op, all, {}, [&](const Point& g) { store(op, g, bits(op, data_[0], g)); });
    } else if (op.op == OpId::addi32toi32) {
      points(op, all, {},
             [&](const Point& g) { store(op, g, bits(op, data_[0], g) + bits(op, data_[1], g)); });
    } else if (op.op == OpId::topkvalue || op.op == OpId::topkindex) {
      run_topk(op);
    } else if (op.op == OpId::keepbyindex) {
      points(op, {"c", "r"}, {}, [&](const Point& g) {
        bool listed = false;
        points(op, {"k"}, g, [&](const Point& p) {
          const float index = value(op, 1, p);
          listed |= index >= 0 && std::trunc(index) == static_cast<float>(g.at("r"));
        });
        store_value(op, g, listed ? value(op, 0, g) : 0);
      });
    } else if (op.is_reduction) {
      int64_t results = 0;
      points(op, kept, {}, [&](const Point& g) {
        if (results++ % every == 0) reduce(op, reduced, g);
      });
    } else {
      points(op, all, {}, [&](const Point& g) { store_value(op, g, pointwise(op, g)); });
    }
  }

  void reduce(const OpSpec& op, const std::set<std::string>& reduced, const Point& g) {
    double sum = 0, square = 0, high = -INFINITY, magnitude = 0;
    const bool product = data_.size() == 2;
    points(op, reduced, g, [&](const Point& p) {
      const double x = value(op, 0, p);
      sum += product ? x * value(op, 1, p) : x;
      square += x * x;
      high = std::max(high, x);
      magnitude = std::max(magnitude, std::fabs(x));
    });
    if (op.op == OpId::exx2) {
      store_value(op, g, static_cast<float>(sum * constant(op, "exx2scale")), 0);
      store_value(op, g, static_cast<float>(square * constant(op, "exx2scale")), 1);
      return;
    }
    double result = sum;
    if (op.op == OpId::max) result = high;
    if (op.op == OpId::mean) result = sum * constant(op, "scaling_factor");
    if (op.op == OpId::avgpoolfwd) result = sum * constant(op, "nmap");
    if (op.op == OpId::quantscalepertokenfp8) {
      result = std::clamp<double>(magnitude * constant(op, "mulConst"), constant(op, "clipMin"),
                                  constant(op, "clipMax"));
    }
    store_value(op, g, static_cast<float>(result));
  }

  void run_topk(const OpSpec& op) {
    points(op, {"c"}, {}, [&](const Point& column) {
      std::vector<std::pair<float, int64_t>> values;
      points(op, {"r"}, column, [&](const Point& p) { values.emplace_back(-value(op, 0, p), p.at("r")); });
      std::stable_sort(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      points(op, {"k"}, column, [&](const Point& p) {
        const auto& [negated, position] = values[p.at("k")];
        store_value(op, p, op.op == OpId::topkvalue ? -negated : static_cast<float>(position));
      });
    });
  }

  const Kernel& kernel_;
  Point runtime_;
  bool only_touch_ = false;
  std::vector<int64_t> trips_;
  std::vector<TensorArg> data_;
};

int64_t elements_of(const std::vector<int64_t>& device_size) {
  int64_t product = 1;
  for (const int64_t size : device_size) {
    product *= size;
  }
  return product;
}

/// An exact number for element i of argument a; indices count 0, 3, 6, 9, wrapped to the five rows of the
/// smallest table.
uint32_t sample(const LaunchArgument& a, int64_t i) {
  if (a.format == DataFormat::SENUINT32) {
    return static_cast<uint32_t>(i * 3 % (a.shape.size() == 1 ? 10 : 5));
  }
  if (a.format == DataFormat::IEEE_INT32) {
    return static_cast<uint32_t>(i * 1000003);
  }
  return encode_element(a.format, static_cast<float>((i * 29 + a.index * 7) % 17 - 8) / 4.0f);
}

constexpr int64_t kMostPoints = 8 << 20;

/// Points of the largest op outside loops.
int64_t points_of(const Kernel& kernel) {
  int64_t most = 0;
  for (const KernelItem& item : kernel.body) {
    int64_t points = 1;
    if (const auto* op = std::get_if<OpSpec>(&item)) {
      for (const IterationDim& dim : op->iteration_space) {
        points *= dim.extent;
      }
    }
    most = std::max(most, points);
  }
  return most;
}

class WrittenBundle : public ::testing::TestWithParam<std::string> {};

TEST_P(WrittenBundle, ComputesWhatItsKernelSays) {
  const std::string path = SPYRE_OPSPEC_CORPUS "/" + GetParam() + ".opspec";
  const Kernel kernel = parse_kernel(read_text(path).value(), path).value();
  const Bundle bundle = write_bundle(kernel).value();
  const auto program = program::read_program(bundle.files);
  ASSERT_TRUE(program.ok()) << program.error().to_string();

  // Minutes of work for the interpreter and for the oracle: the fast executor runs it, a sample is judged.
  // Such a kernel has no padding, so all of its inputs are filled.
  const bool large = points_of(kernel) > kMostPoints;
  // Elements that carry data are filled; all others stay zero, as staging leaves them.
  const Point runtime = {{"s0", GetParam() == "dynamic" ? 12 : 6}};
  Oracle scout(kernel, runtime);
  if (!large) {
    scout.touch();
  }
  Oracle oracle(kernel, runtime);
  oracle.every = large ? 1021 : 1;
  std::map<int64_t, int64_t> base;
  int64_t end = 128;
  for (const LaunchArgument& a : kernel.arguments) {
    base[a.index] = end;
    end += (elements_of(a.device_size) * bits_of(a.format) / 8 + 255) / 128 * 128;
  }
  const int64_t pool = end;
  exec::TestMemory memory(static_cast<size_t>(end + kernel.pool_bytes));
  std::fill(memory.hbm().begin(), memory.hbm().end(), std::byte{0});
  for (const LaunchArgument& a : kernel.arguments) {
    const bool table = elements_of(a.device_size) > 0 && GetParam().starts_with("gather") && a.index == 1;
    for (int64_t i = 0; i < elements_of(a.device_size); ++i) {
      if ((large && a.role == ArgumentRole::kInput) || table ||
          scout.touched[{Place::kHbm, a.index}].contains(i)) {
        memory.put_bits(base[a.index], i, a.format, sample(a, i));
        oracle.memory[{Place::kHbm, a.index}][i] = sample(a, i);
      }
    }
  }
  oracle.run();

  exec::LaunchValues launch;
  launch.pool_base = pool;
  for (const program::Parameter& p : program.value().parameters) {
    launch.parameters.push_back(p.arg_index ? base.at(*p.arg_index) : runtime.at("s0"));
  }
  const auto counts = large ? exec::execute(program.value(), launch, memory)
                            : exec::interpret(program.value(), launch, memory);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();
  for (const LaunchArgument& a : kernel.arguments) {
    if (a.role == ArgumentRole::kInput) {
      continue;
    }
    const auto& wanted = oracle.memory[{Place::kHbm, a.index}];
    EXPECT_GT(wanted.size(), 0u);
    for (const auto& [i, bits] : wanted) {
      const auto there = static_cast<int64_t>(memory.get_bits(base[a.index], i, a.format));
      // Sums in double rather than fp32 may round to the neighbouring code.
      ASSERT_LE(std::abs(there - static_cast<int64_t>(bits)), a.format == DataFormat::SEN169_FP16 ? 1 : 0)
          << "argument " << a.index << " element " << i << ": " << memory.get(base[a.index], i, a.format)
          << ", expected " << decode_element(a.format, bits);
    }
  }
}

std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPYRE_OPSPEC_CORPUS)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// One small change to a text: a byte, a cut, a copied piece, another number.
std::string mutated(std::string text, std::mt19937& random) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  const size_t at = pick(text.size());
  const size_t digit = text.find_first_of("0123456789", at);
  switch (pick(5)) {
    case 0:
      text.erase(at, 1 + pick(30));
      break;
    case 1:
      text.insert(at, text.substr(pick(text.size()), pick(60)));
      break;
    default:
      if (digit != std::string::npos) {
        const size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        static constexpr int64_t kNumbers[] = {
            0, 1, 2, 3, 4, 7, 8, 31, 32, 33, 64, 128, 4096, 1 << 20, int64_t{1} << 40};
        text.replace(digit, end - digit, std::to_string(kNumbers[pick(std::size(kNumbers))]));
      }
  }
  return text;
}

TEST(MutatedBundles, AreRefusedOrRunOrFaultButNeverCrash) {
  constexpr uint32_t kSeed = 20261116;
  std::mt19937 random(kSeed);
  int refused = 0, ran = 0, faulted = 0;
  for (const std::string& name : corpus()) {
    const std::string path = SPYRE_OPSPEC_CORPUS "/" + name + ".opspec";
    const Bundle bundle = write_bundle(parse_kernel(read_text(path).value(), path).value()).value();
    for (int round = 0; round < 40; ++round) {
      SCOPED_TRACE(name + " seed " + std::to_string(kSeed) + " round " + std::to_string(round));
      auto files = bundle.files;
      auto file = files.begin();
      std::advance(file, random() % files.size());
      file->second = mutated(file->second, random);
      const auto program = program::read_program(files);
      if (!program.ok()) {
        ++refused;
        continue;
      }
      exec::TestMemory memory(64 << 10);
      exec::LaunchValues launch;
      for (size_t i = 0; i < program.value().parameters.size(); ++i) {
        launch.parameters.push_back(program.value().parameters[i].arg_index ? static_cast<int64_t>(i) * 8192
                                                                            : 4);
      }
      exec::RunOptions options;
      options.max_points = 20000;
      const auto counts = exec::interpret(program.value(), launch, memory, options);
      ++(counts.ok() ? ran : faulted);
      if (!counts.ok()) {
        EXPECT_EQ(counts.error().kind, ErrorKind::kDeviceFault) << counts.error().to_string();
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(ran, 100);
  EXPECT_GT(faulted, 50);
}

INSTANTIATE_TEST_SUITE_P(Corpus, WrittenBundle, ::testing::ValuesIn(corpus()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace spyre
