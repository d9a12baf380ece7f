// The program image and the job that loads and runs it. docs/spec/superdsc.md describes the image byte by
// byte.

#include "spyre/base/json.h"
#include "spyre/codegen/superdsc/bundle_program.h"

namespace spyre::superdsc {
namespace {

constexpr std::string_view kMagic = "SPYREIMG";
constexpr uint32_t kImageVersion = 1;

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void pad_to_stick(std::string& out) {
  out.resize(round_up(static_cast<int64_t>(out.size()), kStickBytes.count()), '\0');
}

Json command(std::string_view name, Json properties) {
  return {{"command", name}, {"properties", std::move(properties)}};
}

}  // namespace

int64_t correction_bytes(const BundleProgram& program) {
  return round_up(static_cast<int64_t>(program.parameters.size()) * 8, kStickBytes.count());
}

std::string program_image(const BundleProgram& program, const std::map<std::string, std::string>& texts) {
  // The directory holds offsets from the start of the program, so its own size must be known first.
  int64_t at = 32;
  for (const auto& [name, text] : texts) at += 20 + static_cast<int64_t>(name.size());
  std::string directory;
  std::string content;
  const int64_t content_start = round_up(at, kStickBytes.count());
  for (const auto& [name, text] : texts) {
    put(directory, content_start + content.size(), 8);
    put(directory, text.size(), 8);
    put(directory, name.size(), 4);
    directory += name;
    content += text;
    pad_to_stick(content);
  }
  std::string image;
  image += kMagic;
  put(image, kImageVersion, 4);
  put(image, texts.size(), 4);
  put(image, program.parameters.size(), 4);
  put(image, 0, 4);
  put(image, content_start + content.size(), 8);
  image += directory;
  pad_to_stick(image);
  return std::string(correction_bytes(program), '\0') + image + content;
}

Json spyre_code_json(const std::vector<LoadedPart>& parts, const Machine& machine, int64_t region_bytes,
                     size_t launch_tensors) {
  const int64_t base = machine.program_base().count();
  Json preparation = Json::array();
  preparation.push_back(command("Allocate", {{"size", std::to_string(region_bytes)}}));
  preparation.push_back(command("InitTransfer", {{"init_bin_file", "init_binary.bin"},
                                                 {"dev_ptr", std::to_string(base)},
                                                 {"size", std::to_string(region_bytes)}}));
  Json execution = Json::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const LoadedPart& part = parts[i];
    const int64_t correction = correction_bytes(part.program);
    if (correction > 0) {
      // Parameter values are known at launch: computed on the host, put in front of the program.
      const std::string handle = "correction" + std::to_string(static_cast<int64_t>(i));
      execution.push_back(command(
          "ComputeOnHost", {{"ihandle", ""},
                            {"ishape", Json::array({std::to_string(static_cast<int64_t>(launch_tensors))})},
                            {"ohandle", handle},
                            {"size", std::to_string(correction)},
                            {"hcm",
                             {{"vdci", {{"parameters", symbol_kinds_json(part.program)}}},
                              {"senConstants", Json::array()}}}}));
      execution.push_back(command("DataTransfer", {{"dirn", "false"},
                                                   {"host_handle", handle},
                                                   {"dev_ptr", std::to_string(base + part.offset)},
                                                   {"size", std::to_string(correction)}}));
    }
    Json compute = {{"job_bin_ptr", std::to_string(base + part.offset + correction)}};
    if (part.non_terminal) compute["non_terminal"] = "true";
    execution.push_back(command("ComputeOnDevice", std::move(compute)));
  }
  return {{"JobPreparationPlan", preparation}, {"JobExecPlan", execution}};
}

}  // namespace spyre::superdsc
