// Edges grouped by one end, by counting: what ops/graph.py does with torch's sort.
#pragma once

#include <cstdint>

namespace tempergat {

// The results of a grouping; see Rows in ops/graph.py.
struct Grouped {
  int32_t* pointer;
  int32_t* other;
  int32_t* position;
  int32_t* edge_id;
};

// On entry pointer[row + 1] is the number of edges of each row.
static void place(const int32_t* key, const int32_t* other, const int32_t* edge_id,
                  int64_t count, int64_t rows, const Grouped& out) {
  for (int64_t row = 0; row < rows; ++row) out.pointer[row + 1] += out.pointer[row];
  for (int64_t k = 0; k < count; ++k) {
    // The beginning of a row moves to its end.
    const int32_t slot = out.pointer[key[k]]++;
    out.other[slot] = other[k];
    out.position[slot] = int32_t(k);
    out.edge_id[slot] = edge_id[k];
  }
  for (int64_t row = rows; row > 0; --row) out.pointer[row] = out.pointer[row - 1];
  out.pointer[0] = 0;
}

// Groups edges by key. Returns 0, or -1 if a key is not the number of a row.
static int64_t group(const int32_t* key, const int32_t* other, const int32_t* edge_id,
                     int64_t count, int64_t rows, const Grouped& out) {
  for (int64_t row = 0; row <= rows; ++row) out.pointer[row] = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (key[k] < 0 || key[k] >= rows) return -1;
    ++out.pointer[key[k] + 1];
  }
  place(key, other, edge_id, count, rows, out);
  return 0;
}

// Checks the edges, replaces self-loops if asked to, and groups them by target. Returns
// the number of edges without the added self-loops, or -1 if a node does not exist.
template <class Index>
static int64_t group_edges(const Index* edges, int64_t row_stride, int64_t col_stride,
                           int64_t count, int64_t num_src, int64_t num_dst,
                           int64_t self_loops, int32_t* src, int32_t* dst,
                           int32_t* edge_id, const Grouped& out) {
  for (int64_t row = 0; row <= num_dst; ++row) out.pointer[row] = 0;
  int64_t kept = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t s = edges[e * col_stride], d = edges[row_stride + e * col_stride];
    if (s < 0 || s >= num_src || d < 0 || d >= num_dst) return -1;
    if (self_loops && s == d) continue;
    src[kept] = int32_t(s);
    dst[kept] = int32_t(d);
    edge_id[kept++] = int32_t(e);
    ++out.pointer[d + 1];
  }
  const int64_t loops = !self_loops ? 0 : num_src < num_dst ? num_src : num_dst;
  for (int64_t i = 0; i < loops; ++i) {
    src[kept + i] = dst[kept + i] = int32_t(i);
    edge_id[kept + i] = int32_t(count + i);
    ++out.pointer[i + 1];
  }
  place(dst, src, edge_id, kept + loops, num_dst, out);
  return kept;
}

}  // namespace tempergat
