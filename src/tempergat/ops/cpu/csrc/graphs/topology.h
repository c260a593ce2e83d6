// The edges of a large graph grouped by target, with little more memory than the result.
#pragma once

#include <cstdint>

namespace tempergat {

enum TopologyStatus : int64_t { kUnsorted = 0, kSorted = 1, kNoSuchNode = -1 };

// Counts the edges of each target, as the beginnings and the end of their rows.
// Returns whether the edges are sorted by target already, or that a node is missing.
template <class Index>
static int64_t count_targets(const Index* source, const Index* target, int64_t step,
                             int64_t count, int64_t num_src, int64_t num_dst,
                             int64_t* pointer) {
  for (int64_t row = 0; row <= num_dst; ++row) pointer[row] = 0;
  bool sorted = true;
  int64_t before = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t s = source[e * step], d = target[e * step];
    if (s < 0 || s >= num_src || d < 0 || d >= num_dst) return kNoSuchNode;
    sorted = sorted && d >= before;
    before = d;
    ++pointer[d + 1];
  }
  for (int64_t row = 0; row < num_dst; ++row) pointer[row + 1] += pointer[row];
  return sorted ? kSorted : kUnsorted;
}

// Puts every edge into a slot of its target; edges of a target keep their order.
template <class Index>
static void place_edges(const Index* source, const Index* target, int64_t step,
                        int64_t count, int64_t num_dst, int64_t* pointer,
                        int32_t* source_out, int32_t* edge_id) {
  constexpr int64_t kAheadOfEdge = 16;
  for (int64_t e = 0; e < count; ++e) {
    if (e + kAheadOfEdge < count) {
      const int64_t slot = pointer[target[(e + kAheadOfEdge) * step]];
      __builtin_prefetch(source_out + slot, 1);
      __builtin_prefetch(edge_id + slot, 1);
    }
    // The beginning of a row moves to its end.
    const int64_t slot = pointer[target[e * step]]++;
    source_out[slot] = int32_t(source[e * step]);
    edge_id[slot] = int32_t(e);
  }
  for (int64_t row = num_dst; row > 0; --row) pointer[row] = pointer[row - 1];
  pointer[0] = 0;
}

}  // namespace tempergat
