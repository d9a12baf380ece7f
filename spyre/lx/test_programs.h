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
///
/// The rows are cut among `cores` cores.
inline std::string elementwise(std::string_view program, int64_t cores = 1) {
  struct Tensor {
    std::string name, rows;
    bool input, read;
  };
  const std::string split = cores == 1 ? "" : "/" + std::to_string(cores);
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
    nodes += "  node " + name + " (p0: " + rows + split + ", p1: 64) {\n";
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

/// max, sub, exp, sum, div over the rows (axis 0) of an m x n matrix; the card's own division is `realdiv`.
inline std::string column_softmax(int64_t m, int64_t n, const std::string& divide = "truediv") {
  const std::string M = std::to_string(m), N = std::to_string(n);
  const std::string matrix = " : float16[" + M + ", " + N + "] stride=[" + N + ", 1]\n";
  const std::string vector = " : float16[1, " + N + "] stride=[" + N + ", 1]\n";
  const std::string over_rows = " (p1: " + N + "; r0: " + M + ") {\n";
  const std::string over_all = " (p0: " + M + ", p1: " + N + ") {\n";
  const std::string row_element = "[" + N + "*r0 + p1]\n", element = "[" + N + "*p0 + p1]";
  return "graph softmax {\n  input x" + matrix + "  buffer m" + vector + "  buffer d" + matrix +
         "  buffer e" + matrix + "  buffer s" + vector + "  buffer y" + matrix +  //
         "  node m" + over_rows + "v0 = load x" + row_element + "v1 = reduce.max v0\nstore m[p1] v1\n}\n" +
         "  node d" + over_all + "v0 = load x" + element + "\nv1 = load m[p1]\nv2 = sub v0 v1\nstore d" +
         element + " v2\n}\n" +  //
         "  node e" + over_all + "v0 = load d" + element + "\nv1 = exp v0\nstore e" + element + " v1\n}\n" +
         "  node s" + over_rows + "v0 = load e" + row_element + "v1 = reduce.sum v0\nstore s[p1] v1\n}\n" +
         "  node y" + over_all + "v0 = load e" + element + "\nv1 = load s[p1]\nv2 = " + divide +
         " v0 v1\nstore y" + element + " v2\n}\n" + "  return y\n}\n";
}

}  // namespace spyre::test
