#pragma once

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "spyre/base/text.h"
#include "spyre/base/units.h"

/// Graphs as text, for tests of what stays in LX.
namespace spyre::test {

/// Elementwise operations one after the other over tensors of rows of one stick, 128 bytes each. A line says
/// `result = operation operands`; a name with an equals sign and a number is an input with so many rows, and
/// what nobody reads is returned:
///
///     x=64;  a = exp x;  b = add a x
inline std::string elementwise(std::string_view program) {
  struct Tensor {
    std::string name, rows;
    bool input, read;
  };
  std::vector<Tensor> tensors;
  std::string nodes;
  const auto find = [&](std::string_view name) -> Tensor& {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + std::string(name));
  };
  for (const std::string& line : split_trimmed(program, ';')) {
    const size_t equals = line.find('=');
    const std::string name = split_trimmed(line.substr(0, equals), ';').front();
    std::istringstream rest(line.substr(equals + 1));
    const std::vector<std::string> words(std::istream_iterator<std::string>(rest), {});
    if (words.size() == 1) {
      tensors.push_back({name, words[0], true, false});
      continue;
    }
    const std::string rows = find(words[1]).rows;
    std::string values;
    nodes += "  node " + name + " (p0: " + rows + ", p1: 64) {\n";
    for (size_t i = 1; i < words.size(); ++i) {
      find(words[i]).read = true;
      nodes += "v" + std::to_string(i - 1) + " = load " + words[i] + "[64*p0 + p1]\n";
      values += " v" + std::to_string(i - 1);
    }
    const std::string value = "v" + std::to_string(words.size() - 1);
    nodes += value + " = " + words[0] + values + "\nstore " + name + "[64*p0 + p1] " + value + "\n}\n";
    tensors.push_back({name, rows, false, false});
  }
  std::string text = "graph g {\n", results;
  for (const Tensor& tensor : tensors) {
    text += (tensor.input ? "  input " : "  buffer ") + tensor.name + " : float16[" + tensor.rows +
            ", 64] stride=[64, 1]\n";
    if (!tensor.read) results += (results.empty() ? " " : ", ") + tensor.name;
  }
  return text + nodes + "  return" + results + "\n}\n";
}

/// A tensor of 64 rows.
inline constexpr Bytes kTensor{64 * 128};

/// A fills LX for two readers, then B for three, then A again for two.
inline std::string idle_once() {
  return elementwise(
      "A=64; B=64; c1 = exp A; c2 = neg A; c3 = exp B; c4 = neg B; c5 = relu B; c6 = relu A; c7 = abs A");
}

/// The same with an A that is computed, and one more reader of B.
inline std::string made_then_idle() {
  return elementwise(
      "x=64; B=64; A = exp x; c1 = exp A; c2 = neg A; c3 = exp B; c4 = neg B; c5 = relu B; c6 = abs B; c7 = "
      "relu A; c8 = abs A");
}

/// Three tensors together, then each of them with a fourth that has room only beside one.
inline std::string takes_turns() {
  return elementwise(
      "A0=64; A1=64; A2=64; B=128; c0 = add A0 A1; c1 = add A1 A2; c2 = mul A0 A2; "
      "d0 = exp A0; d1 = exp B; d2 = neg A0; d3 = neg B; "
      "e0 = exp A1; e1 = relu B; e2 = neg A1; e3 = abs B; "
      "f0 = exp A2; f1 = silu B; f2 = neg A2; f3 = sigmoid B");
}

}  // namespace spyre::test
