// Edges grouped by one end, by counting: what ops/graphs/graph.py does with torch's sort.
#pragma once

#include <cstdint>

namespace tempergat {

// The results of a grouping; see Rows in ops/graphs/graph.py.
struct Grouped {
  int32_t* pointer;
  int32_t* other;
  int32_t* position;
  int32_t* edge_id;

  // In memory of rows + 1 + 3 * count numbers; moves `memory` behind them.
  static Grouped in(int32_t*& memory, int64_t rows, int64_t count) {
    int32_t* const first = memory + rows + 1;
    const Grouped out{memory, first, first + count, first + 2 * count};
    memory = first + 3 * count;
    return out;
  }
};

// Groups edges by key. An edge whose key is `rows` belongs to no row: such edges come
// after all others. Returns 0, or -1 if a key is another number.
static int64_t group(const int32_t* key, const int32_t* other, const int32_t* edge_id,
                     int64_t count, int64_t rows, const Grouped& out) {
  for (int64_t row = 0; row <= rows; ++row) out.pointer[row] = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (key[k] < 0 || key[k] > rows) return -1;
    if (key[k] < rows) ++out.pointer[key[k] + 1];
  }
  for (int64_t row = 0; row < rows; ++row) out.pointer[row + 1] += out.pointer[row];
  int32_t rest = out.pointer[rows];
  for (int64_t k = 0; k < count; ++k) {
    // The beginning of a row moves to its end.
    const int32_t slot = key[k] < rows ? out.pointer[key[k]]++ : rest++;
    out.other[slot] = other[k];
    out.position[slot] = int32_t(k);
    out.edge_id[slot] = edge_id[k];
  }
  for (int64_t row = rows; row > 0; --row) out.pointer[row] = out.pointer[row - 1];
  out.pointer[0] = 0;
  return 0;
}

// Checks the edges, replaces self-loops if asked to, and groups them by target and, if
// asked to, by source. Writes source, target and identity of every edge, then the groups.
// Returns the number of edges without the added self-loops, or -1 if a node does not
// exist.
template <class Index>
static int64_t group_edges(const Index* edges, int64_t row_stride, int64_t col_stride,
                           int64_t count, int64_t num_src, int64_t num_dst,
                           int64_t self_loops, int64_t by_source, int32_t* out) {
  int64_t kept = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t s = edges[e * col_stride], d = edges[row_stride + e * col_stride];
    if (s < 0 || s >= num_src || d < 0 || d >= num_dst) return -1;
    kept += !self_loops || s != d;
  }
  const int64_t loops = !self_loops ? 0 : num_src < num_dst ? num_src : num_dst;
  const int64_t total = kept + loops;
  int32_t *src = out, *dst = src + total, *edge_id = dst + total;
  out = edge_id + total;
  int64_t k = 0;
  for (int64_t e = 0; e < count; ++e) {
    const Index s = edges[e * col_stride], d = edges[row_stride + e * col_stride];
    if (self_loops && s == d) continue;
    src[k] = int32_t(s);
    dst[k] = int32_t(d);
    edge_id[k++] = int32_t(e);
  }
  for (int64_t i = 0; i < loops; ++i) {
    src[kept + i] = dst[kept + i] = int32_t(i);
    edge_id[kept + i] = int32_t(count + i);
  }
  group(dst, src, edge_id, total, num_dst, Grouped::in(out, num_dst, total));
  if (by_source)
    group(src, dst, edge_id, total, num_src, Grouped::in(out, num_src, total));
  return kept;
}

}  // namespace tempergat
