#pragma once

#include <cstdint>

#include "spyre/graph/graph.h"

/// Rows of whole sticks on the 16-bit side of conversions, here or in the graph that made an input, so that
/// the layout search can put woven sticks in order, or weave sticks that are in order (ADR 0018): what lies
/// behind the end of a row is then woven with it, and harms nobody.
namespace spyre {

/// Whether some value is narrowed to 16 bits in rows that end inside a stick.
bool narrows_ragged_rows(const Graph& graph);

/// Whether a column, [m, 1], counts as a row of m elements. What a norm folds does not: its elements have a stick each.
enum class Columns : uint8_t { kToo, kNot };

/// Gives every such value a buffer of its own whose rows start whole sticks apart.
///
///     m = fp32todl16 t     m [2, 100]    ->    m_whole = fp32todl16 t     m_whole [2, 100], rows of 128
///                                              m = identity m_whole
void make_narrowed_rows_whole(Graph& graph, Columns columns);

/// The same for values that are left (0) or right (1) operands of products alone: those must be in order.
void make_multiplied_rows_whole(Graph& graph, size_t operand);

/// Whose rows end inside a stick: those of what is converted, or those of the result, which differ where it
/// is read transposed.
enum class RowsOf : uint8_t { kSource, kResult };

/// Whether some value is widened from 16 bits in rows that end inside a stick.
bool widens_ragged_rows(const Graph& graph, RowsOf rows);

/// The same for what is widened.
///
///     t = dl16tofp32 m     m [2, 100]    ->    m_whole = identity m       m_whole [2, 100], rows of 128
///                                              t = dl16tofp32 m_whole
void make_widened_rows_whole(Graph& graph, RowsOf rows);

/// Whether some input was left woven by another graph, in rows that end inside a stick.
bool reads_woven_ragged_rows(const Graph& graph);

/// Gives every node that reads such an input a copy of it whose rows start whole sticks apart.
///
///     y = maximum m n      m [2, 100], woven   ->    m_whole = identity m      m_whole [2, 100], rows of 128
///                                                    y = maximum m_whole n
void make_woven_inputs_whole(Graph& graph);

}  // namespace spyre
