// Every kernel of the corpus through the runtime, compared byte for byte with the interpreter running the
// same compile directory in a memory of its own: loading, correction, addresses, pool and mapping add nothing
// and lose nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/save_bundle.h"
#include "spyre/device/exec/interpreter.h"
#include "spyre/device/exec/test_memory.h"
#include "spyre/opspec/text.h"
#include "spyre/program/read_program.h"
#include "spyre/runtime/launch.h"
#include "spyre/runtime/runtime.h"

namespace spyre {
namespace {

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPYRE_OPSPEC_CORPUS)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Runtime& runtime() {
  static Runtime* const it = new Runtime(spyre_card());
  return *it;
}

class CorpusLaunch : public testing::TestWithParam<std::string> {
 protected:
  ~CorpusLaunch() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path directory_ = std::filesystem::temp_directory_path() /
                                           ("spyre_launch_" + std::to_string(getpid()) + "_" + GetParam());
};

int64_t bytes_of(const LaunchArgument& argument) {
  int64_t elements = 1;
  for (const int64_t size : argument.device_size) {
    elements *= size;
  }
  return elements * bits_of(argument.format) / 8;
}

std::vector<int64_t> shape_of(const LaunchArgument& argument, const std::map<std::string, int64_t>& extents) {
  std::vector<int64_t> shape;
  for (const SizeOrSymbol& size : argument.shape) {
    const auto* name = std::get_if<std::string>(&size);
    shape.push_back(name != nullptr ? extents.at(*name) : std::get<int64_t>(size));
  }
  return shape;
}

/// Numbers any format can hold: small floats, and small indices where the format is an integer's.
std::vector<std::byte> sample_bytes(const LaunchArgument& argument, std::mt19937& random) {
  std::vector<std::byte> out(static_cast<size_t>(bytes_of(argument)));
  const auto width = static_cast<size_t>(bits_of(argument.format) / 8);
  const bool integer = argument.format == DataFormat::IEEE_INT32 ||
                       argument.format == DataFormat::SENUINT32 || argument.format == DataFormat::IEEE_INT64;
  for (size_t at = 0; at < out.size(); at += width) {
    const uint32_t bits =
        integer ? random() % 2
                : program::encode_element(argument.format, static_cast<float>(random() % 64) / 16 - 2);
    std::memcpy(out.data() + at, &bits, std::min(width, sizeof bits));
  }
  return out;
}

TEST_P(CorpusLaunch, GivesTheInterpretersBytes) {
  const std::string text =
      read_text(std::filesystem::path(SPYRE_OPSPEC_CORPUS) / (GetParam() + ".opspec")).value();
  const Kernel kernel = parse_kernel(text, GetParam()).value();
  const auto bundle = write_bundle(kernel);
  ASSERT_TRUE(bundle.ok()) << bundle.error().to_string();
  ASSERT_TRUE(save_bundle(bundle.value(), directory_).ok());

  Card& card = *runtime().card(0).value();
  const auto plan = prepare_kernel(card, directory_ / "spyreCodeDir");
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto program = program::read_program_at(directory_);
  ASSERT_TRUE(program.ok()) << program.error().to_string();

  std::map<std::string, int64_t> extents;
  for (const JobStep& step : plan.value()->steps()) {
    if (const auto* compute = std::get_if<HostCompute>(&step.what)) {
      for (const ParameterSource& source : *compute->parameters) {
        if (!source.symbol.empty()) {
          extents[source.symbol] =
              std::max(source.granularity, source.max_value / 2 / source.granularity * source.granularity);
        }
      }
    }
  }

  // The same bytes twice: on the card wherever its allocator puts them, and one after the other from 0.
  std::vector<const LaunchArgument*> arguments;
  for (const LaunchArgument& argument : kernel.arguments) {
    arguments.push_back(&argument);
  }
  std::sort(arguments.begin(), arguments.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  int64_t total = 0;
  for (const LaunchArgument* argument : arguments) {
    total += bytes_of(*argument);
  }
  exec::TestMemory judge(static_cast<size_t>(total + kernel.pool_bytes));
  std::fill(judge.hbm().begin(), judge.hbm().end(), std::byte{0});
  std::mt19937 random(11);
  std::vector<LaunchTensor> tensors;
  std::map<int64_t, int64_t> at;
  int64_t next = 0;
  const StreamRef stream = card.streams().default_stream();
  for (const LaunchArgument* argument : arguments) {
    const std::vector<std::byte> bytes = sample_bytes(*argument, random);
    std::copy(bytes.begin(), bytes.end(), judge.hbm().begin() + next);
    at[argument->index] = next;
    next += bytes_of(*argument);
    tensors.push_back({card.allocate(Bytes(bytes_of(*argument))).value(), shape_of(*argument, extents)});
    ASSERT_TRUE(copy_in(stream, MemoryView::whole(tensors.back().memory), bytes, Blocking::kYes).ok());
  }
  exec::LaunchValues values{.parameters = {}, .pool_base = total};
  size_t extent = 0;
  const auto sources = *std::get<HostCompute>(plan.value()->steps()[0].what).parameters;
  for (const program::Parameter& parameter : program.value().parameters) {
    const ParameterSource& source = sources.at(extent++);
    values.parameters.push_back(parameter.kind == program::ParameterKind::kAddress
                                    ? at.at(source.arg_index)
                                    : extents.at(source.symbol));
  }
  const auto counts = exec::interpret(program.value(), values, judge);
  ASSERT_TRUE(counts.ok()) << counts.error().to_string();

  const Status done = launch(plan.value(), tensors, stream, Blocking::kYes);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_EQ(plan.value()->last_run_counts(), counts.value());
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(*arguments[i])));
    ASSERT_TRUE(copy_out(stream, MemoryView::whole(tensors[i].memory), bytes, Blocking::kYes).ok());
    const auto expected = judge.hbm().begin() + at.at(arguments[i]->index);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected)) << "argument " << arguments[i]->index;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, CorpusLaunch, testing::ValuesIn(corpus_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace spyre
