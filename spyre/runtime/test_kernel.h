#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "spyre/base/json.h"
#include "spyre/program/test_artifact.h"
#include "spyre/program/test_image.h"
#include "spyre/runtime/launch.h"
#include "spyre/runtime/test_support.h"

/// Kernels for tests: loadable directories, written here and removed with the object.
namespace spyre {

namespace artifacts = testing_artifacts;

/// X (rows x 64, fp16) -> Y, both with symbolic addresses -1 and -2, on one core.
inline artifacts::OpSpec unary_op(const std::string& function, int64_t rows) {
  return {.function = function,
          .dims = {{"mb", rows}, {"out", 64}},
          .tensors = {{.order = {"mb", "out"}}, {.order = {"mb", "out"}, .base = 1 << 16}},
          .symbolic = true};
}

/// bundle.mlir for two tensor arguments around the given statements, which see %x and %y.
inline std::string bundle_of(const std::string& statements, const std::string& more_parameters = "") {
  return fmt::format(R"(module {{
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>{}) {{
    %x = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %y = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
{}
    return
  }}
}}
)",
                     more_parameters, statements);
}

inline std::string execute_text(const std::string& operands, const std::string& file = "sdsc_0.json",
                                const std::string& ids = "-1, -2") {
  return fmt::format("    sdscbundle.sdsc_execute ({}) {{sdsc_filename=\"{}\", \"symbol_ids\"=[{}]}}\n",
                     operands, file, ids);
}

inline Json command_of(const std::string& name, Json properties) {
  return {{"command", name}, {"properties", std::move(properties)}};
}

inline Json kernel_parameter(int arg_index) {
  return {{"kind", "kernel"}, {"arg_index", arg_index}};
}

/// What a kernel directory holds, every part open to damage before `KernelDirectory` writes it.
struct TestKernel {
  program::ProgramFiles files;
  Json parameters = Json::array();
  int64_t correction = 128;

  std::string image() const {
    return std::string(static_cast<size_t>(correction), '\0') +
           artifacts::write_image(files, static_cast<uint32_t>(parameters.size()));
  }

  Json plan(const Machine& machine = toy_card()) const {
    const int64_t base = machine.program_base().count();
    const std::string size = std::to_string(image().size());
    const std::string blob = std::to_string(correction);
    Json execution = Json::array();
    if (correction > 0) {
      execution.push_back(
          command_of("ComputeOnHost",
                     {{"ihandle", ""},
                      {"ishape", {"0"}},
                      {"ohandle", "correction0"},
                      {"size", blob},
                      {"hcm", {{"vdci", {{"parameters", parameters}}}, {"senConstants", Json::array()}}}}));
      execution.push_back(command_of("DataTransfer", {{"dirn", "false"},
                                                      {"host_handle", "correction0"},
                                                      {"dev_ptr", std::to_string(base)},
                                                      {"size", blob}}));
    }
    execution.push_back(command_of("ComputeOnDevice", {{"job_bin_ptr", std::to_string(base + correction)}}));
    return {{"JobPreparationPlan",
             {command_of("Allocate", {{"size", size}}),
              command_of("InitTransfer", {{"init_bin_file", "init_binary.bin"},
                                          {"dev_ptr", std::to_string(base)},
                                          {"size", size}})}},
            {"JobExecPlan", execution}};
  }
};

/// Y = function(X), rows x 64.
inline TestKernel unary_kernel(const std::string& function, int64_t rows = 2) {
  return {.files = {{"bundle.mlir", bundle_of(execute_text("%x, %y"))},
                    {"sdsc_0.json", artifacts::write_sdsc(unary_op(function, rows)).dump()}},
          .parameters = {kernel_parameter(0), kernel_parameter(1)}};
}

/// Reads `bytes` behind the start of X, wherever that leads.
inline TestKernel stray_kernel(int64_t bytes) {
  TestKernel kernel = unary_kernel("neg");
  kernel.files["bundle.mlir"] = bundle_of(
      fmt::format("    %o = arith.constant {} : index\n    %z = arith.addi %x, %o : index\n", bytes) +
      execute_text("%z, %y"));
  return kernel;
}

class KernelDirectory {
 public:
  explicit KernelDirectory(const TestKernel& kernel, const Machine& machine = toy_card())
      : KernelDirectory(kernel.plan(machine), kernel.image()) {}
  KernelDirectory(const Json& plan, const std::string& image) {
    static std::atomic<int> next = 0;
    root_ = std::filesystem::temp_directory_path() / fmt::format("spyre_kernel_{}_{}", getpid(), next++);
    std::filesystem::create_directories(path());
    EXPECT_OK(write_text(path() / "spyrecode.json", plan.dump()));
    EXPECT_OK(write_text(path() / "init_binary.bin", image));
  }
  ~KernelDirectory() { std::filesystem::remove_all(root_); }
  KernelDirectory(const KernelDirectory&) = delete;
  KernelDirectory& operator=(const KernelDirectory&) = delete;

  std::filesystem::path path() const { return root_ / "kernel" / "spyreCodeDir"; }

 private:
  std::filesystem::path root_;
};

/// A tensor of fp16 elements in device memory.
inline LaunchTensor tensor_of(Card& card, const std::vector<float>& values, std::vector<int64_t> shape = {}) {
  const Bytes size(static_cast<int64_t>(values.size()) * 2);
  const MemoryRef memory = card.allocate(size).value();
  EXPECT_OK(transfer(
      card.streams().default_stream(), MemoryView::whole(memory), TransferDirection::kToDevice,
      [&](std::span<std::byte> device) -> Status {
        for (size_t i = 0; i < values.size(); ++i) {
          const auto bits =
              static_cast<uint16_t>(program::encode_element(DataFormat::SEN169_FP16, values[i]));
          std::memcpy(device.data() + 2 * i, &bits, 2);
        }
        return {};
      },
      Blocking::kYes));
  return {memory, std::move(shape)};
}

inline std::vector<float> values_of(Card& card, const LaunchTensor& tensor) {
  std::vector<float> values;
  EXPECT_OK(transfer(
      card.streams().next(0), MemoryView::whole(tensor.memory), TransferDirection::kToHost,
      [&](std::span<std::byte> device) -> Status {
        for (size_t i = 0; i < device.size() / 2; ++i) {
          uint16_t bits = 0;
          std::memcpy(&bits, device.data() + 2 * i, 2);
          values.push_back(program::decode_element(DataFormat::SEN169_FP16, bits));
        }
        return {};
      },
      Blocking::kYes));
  return values;
}

/// 0, 1/8, 2/8, ...: exact in the card's format.
inline std::vector<float> eighths(size_t n, float sign = 1) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = sign * static_cast<float>(i % 128) / 8;
  }
  return out;
}

}  // namespace spyre
