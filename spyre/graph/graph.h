#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/base/result.h"
#include "spyre/graph/body_op.h"
#include "spyre/graph/call.h"
#include "spyre/graph/expr.h"
#include "spyre/layout/device_layout.h"
#include "spyre/layout/fill.h"
#include "spyre/layout/host_type.h"

/// A program as captured: buffers, and loops that fill them.
///
///     graph scaled_sum {
///       input x : float16[4, 100] stride=[100, 1]
///       buffer s : float16[4] stride=[1]
///       node s (p0: 4; r0: 100) {
///         v0 = load x[100*p0 + r0]
///         v1 = constant 0.125 : float16
///         v2 = mul v0 v1
///         v3 = reduce.sum v2
///         store s[p0] v3
///       }
///       return s
///     }
///
/// A *buffer* is a stretch of host memory counted in elements; its size and stride say how the caller sees
/// it, the index expressions of loads and stores count its elements directly. A *node* runs its body once for
/// every point of its output loops; a `reduce.` instruction folds the loops behind the semicolon. Nodes run
/// in the order written. A buffer may be filled by several nodes (a `cat`), and a node may store into an
/// input (a mutation).
///
/// A graph as captured also has nodes that are calls, PyTorch operators kept whole (call.h):
///
///     call s aten.mean.dim(x, [1], false, none) -> (s) at='model.py:3'
///     call t aten.add.Tensor(x : [4] stride=[100], s, 1) -> (t)
///
/// The pass `expand-calls`, first of all, leaves none. Bodies are as Inductor or a form writes them, many instructions
/// each with its own names. The pass `select-ops` makes a device graph of it (device_graph.h), whose nodes are one
/// operation of the card each; no later pass sees this one.
///
/// Both graphs have buffers, loops and origins in common, which are here. Passes decide, and write what they decided into
/// them: `Buffer::layout` and `place`, `Loop::split`, `NodeHead::bundle`.
namespace spyre {

/// Where a buffer that is neither input nor result lives.
struct BufferPlace {
  enum class Kind : uint8_t { kPool, kLx };
  Kind kind = Kind::kPool;
  int64_t offset = 0;  ///< bytes: in the bundle's pool, or in every core's scratchpad

  friend bool operator==(const BufferPlace&, const BufferPlace&) = default;
};

/// A number of positions that is known only at launch: that of tokens, say.
///
///     extent e0 <= 128 room=1024 of='s53 + 1'
///     input n0 : float32[] stride=[] value_of=e0
///     input x : float16[1, e0, 512] stride=[524288, 512, 1]
///     node y (p0: e0, p1: 512) ...
///
/// Whatever is made for the extent is made for its *capacity*, a whole number of sticks: sizes, strides and loops are those
/// of the capacity, and every pass reads them as plain numbers. What lies behind the extent is memory without meaning;
/// the pass `mask-extents` keeps it out of everything that folds. A program may be one for shorter calls alone: then the
/// pass `cut-extents` makes its loops end earlier. A graph without extents is one for a single shape.
struct Extent {
  std::string name;
  int64_t most = 1;      ///< in any call of this program
  int64_t capacity = 1;  ///< what memory has room for
  std::string source;    ///< what whoever wrote the graph computes it from

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// Position in `GraphBuffers::extents`; `kFixed` where a dimension or loop has one extent for all launches.
using ExtentId = int;
inline constexpr ExtentId kFixed = -1;

/// Elements of a buffer, points of a node: far above any card's memory, far below what overflows.
inline constexpr int64_t kMostElements = int64_t{1} << 40;

struct Buffer {
  std::string name;
  HostType dtype = HostType::kFloat16;
  std::vector<int64_t> size, stride;
  std::vector<ExtentId> bounds;  ///< of the dimensions; empty: all of them are fixed
  ExtentId value_of = kFixed;    ///< an input without dimensions that holds this extent, as a float
  int64_t offset = 0;            ///< an input that is a view: where it starts; index expressions include it
  /// An input that is a view, a local buffer with room behind its rows: elements of its whole storage; 0: as many as it
  /// reaches.
  int64_t storage = 0;
  bool is_input = false;
  std::optional<Fill> fill;            ///< a constant, made before the first launch
  std::optional<DeviceLayout> layout;  ///< of the whole buffer; none until a pass has chosen
  std::optional<BufferPlace> place;
  /// The buffer, earlier in the graph, whose memory this one names a second time: the same sticks, seen as other elements,
  /// as the two half-words of a 32-bit value are 16-bit ones. -1: it has memory of its own.
  BufferId memory_of = -1;

  bool in_lx() const { return place && place->kind == BufferPlace::Kind::kLx; }

  /// How far a dimension reaches at launch.
  ExtentId bound(size_t dim) const { return dim < bounds.size() ? bounds[dim] : kFixed; }

  int64_t elements() const;
  /// From the first element to one past the last, of the whole storage.
  int64_t reach() const;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Loop {
  std::string name;
  int64_t extent = 1;
  bool reduced = false;
  ExtentId bound = kFixed;  ///< how far it runs at launch, where that is not `extent`
  int64_t split = 1;        ///< into how many slices the cores cut it
  int64_t step = 0;         ///< cores from one slice to the next; 0: the default (core_map.h)
  /// Of a `shuffle`, which moves a tensor from one division of the cores to another: the slices after it, as
  /// `split` and `step` are those before it.
  int64_t to_split = 1, to_step = 0;

  friend bool operator==(const Loop&, const Loop&) = default;
};

/// The element of a contiguous buffer with one dimension a loop, the last one innermost.
Expr row_major(const std::vector<Loop>& loops);

/// One step of a body. Its value is `v<position>`; `operands` are positions of earlier ones.
struct Instruction {
  BodyOp op = BodyOp::load;
  std::vector<int> operands;
  BufferId buffer = -1;                 ///< load
  Expr index;                           ///< load: element of the buffer; index: the value
  double value = 0;                     ///< constant
  HostType dtype = HostType::kFloat16;  ///< of the value; inferred when text is read
  std::vector<std::pair<std::string, double>> attributes;

  bool is_load() const { return op == BodyOp::load; }
  bool is_reduction() const { return is_fold(op); }

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// What stands in front of the body of a node, in either graph.
struct NodeHead {
  std::string name;
  std::vector<Loop> loops;   ///< output loops first, then the reduced ones
  std::string aten, source;  ///< where it comes from: operator, file and line
  std::string origin;        ///< of a step that a pass made: the node it is a step of
  std::vector<std::pair<std::string, int64_t>> hints;  ///< wished splits, by loop
  int64_t bundle = 0;                                  ///< which of the graph's bundles runs it, in order

  friend bool operator==(const NodeHead&, const NodeHead&) = default;
};

/// The node as whoever wrote the graph knows it, for errors: of a step the node it is a step of.
ErrorNode origin_of(const NodeHead& node);
/// Makes `step` one of the steps of a node: it comes from where the node comes from.
void make_step_of(const NodeHead& node, NodeHead& step);

struct Node : NodeHead {
  /// An operator kept whole: then it has no loops, body, target and result, and the call says what it reads and writes.
  std::optional<Call> call;
  std::vector<Instruction> body;
  BufferId target = -1;
  Expr target_index;
  int result = 0;  ///< position of the stored value

  friend bool operator==(const Node&, const Node&) = default;
};

/// What surrounds the nodes of either graph.
struct GraphBuffers {
  std::string name;
  std::vector<Extent> extents;
  std::vector<Buffer> buffers;
  std::vector<BufferId> results;

  std::optional<BufferId> find(std::string_view buffer_name) const;
  /// The input that holds the extent at each launch. Text that declares an extent declares it, too.
  BufferId value_of(ExtentId extent) const;
  /// Adds a buffer under this name, or under the name with a number when it is taken.
  BufferId add_buffer(Buffer buffer);
  bool is_result(BufferId id) const;
  /// The buffer that has the memory of this one: itself, unless it is a second name.
  BufferId owner(BufferId id) const;
  /// Neither input nor result nor constant, nor a second name of one: it lives only inside this graph.
  bool is_local(BufferId id) const;
  /// Whether its memory is there before the first node runs: an input, or a second name of one.
  bool is_given(BufferId id) const;

  friend bool operator==(const GraphBuffers&, const GraphBuffers&) = default;
};

struct Graph : GraphBuffers {
  std::vector<Node> nodes;

  friend bool operator==(const Graph&, const Graph&) = default;
};

/// `graph { ... }`, every decision included; parse_graph reads it back to an equal value.
std::string to_text(const Graph& graph);
/// `origin` (a file name, say) starts every message.
Result<Graph> parse_graph(std::string_view text, std::string_view origin = "graph");

/// What every pass may rely on and must leave behind: names unique, operands before their use, every load, store and
/// view of a call inside its buffer, no value read before it is written, layouts that fit the size of their buffer,
/// bundles that count up from 0.
Status verify(const Graph& graph);

/// What a graph from outside must satisfy before anybody computes with its numbers: sizes, strides, extents and the
/// values of its indices stay within `kMostElements`, and layouts are well formed. Passes may double and pad; nothing
/// they compute from such numbers overflows.
Status check_sizes(const Graph& graph);

/// A sum of products. Its result may be wider than its operands; text then says so (`reduce.dot v0 v1 : float32`).
bool is_product(const Instruction& instruction);

/// Which host type an operation gives: PyTorch's promotion of its operands, bool for comparisons.
HostType result_type(BodyOp op, const std::vector<HostType>& operands);

/// The smallest and largest value of an index over the loops of a node. Index tensors count as zero.
struct IndexRange {
  int64_t low = 0, high = 0;
};
IndexRange range_of(const Expr& index, const std::vector<Loop>& loops);

}  // namespace spyre
