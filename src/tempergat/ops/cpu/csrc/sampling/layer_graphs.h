// The graph of a layer from a batch's edges, which are sorted by target; what
// ops/graphs/graph.py makes of any edges.
#pragma once

#include <cstdint>

namespace tempergat {

// Replaces the self-loops of the edges into the first num_dst nodes by one for each of
// them, behind all other edges, and groups them by target. Returns the number of edges
// without the added self-loops.
static int64_t add_loops(const int32_t* source, const int32_t* target, int64_t count,
                         int64_t num_dst, int32_t* src, int32_t* dst, int32_t* edge_id,
                         int32_t* pointer, int32_t* other, int32_t* position) {
  int64_t kept = 0;
  for (int64_t e = 0; e < count; ++e) kept += source[e] != target[e];
  int64_t edge = 0, place = 0, slot = 0;
  for (int64_t i = 0; i < num_dst; ++i) {
    pointer[i] = int32_t(slot);
    for (; edge < count && target[edge] == i; ++edge) {
      const int32_t s = source[edge];
      if (s == i) continue;
      src[place] = s;
      dst[place] = int32_t(i);
      edge_id[place] = int32_t(edge);
      other[slot] = s;
      position[slot++] = int32_t(place++);
    }
    src[kept + i] = dst[kept + i] = int32_t(i);
    edge_id[kept + i] = int32_t(count + i);
    other[slot] = int32_t(i);
    position[slot++] = int32_t(kept + i);
  }
  pointer[num_dst] = int32_t(slot);
  return kept;
}

}  // namespace tempergat
