// Collects the items of some graphs from tables that hold those of all graphs of a set.
#pragma once

#include <cstdint>
#include <cstring>

namespace tempergat {

// One attribute: a table [outer, items, inner], where each graph has a run of items.
// Mirrored by ops/cpu/gather.py, field by field.
struct GraphColumn {
  const char* data;    // null: a batch vector, the place of each item's graph
  int64_t outer;       // how often a graph's run occurs,
  int64_t outer_step;  // and how many bytes these are apart
  int64_t item_bytes;
  int64_t segments;      // the row of `starts` and `sums` with the graphs' runs
  int64_t number_bytes;  // 4 or 8: the numbers of graphs before are added; 0: copied
  int64_t rise;          // the first row of `sums` that is added,
  int64_t rises;         // one row for all, or one for each number of [outer, inner]
  char* out;
  int64_t out_step;
};

template <class Number>
static void copy_risen(const GraphColumn& column, const char* from, int64_t items,
                       int64_t outer, const int64_t* sums, int64_t stride, char* to) {
  const Number* in = reinterpret_cast<const Number*>(from);
  Number* out = reinterpret_cast<Number*>(to);
  const int64_t inner = column.item_bytes / int64_t(sizeof(Number));
  const int64_t* rise = sums + column.rise * stride;
  if (column.rises == 1) {
    const Number by = Number(*rise);
    for (int64_t k = 0; k < items * inner; ++k) out[k] = Number(in[k] + by);
  } else {
    rise += outer * inner * stride;
    for (int64_t k = 0; k < items; ++k)
      for (int64_t c = 0; c < inner; ++c)
        out[k * inner + c] = Number(in[k * inner + c] + Number(rise[c * stride]));
  }
}

// Args:
//   starts: where the runs of each graph of the set begin, [segments, set + 1].
//   sums: what comes before each graph of the batch, and the total, [rows, batch + 1];
//     its first rows are the numbers of items.
static void gather_graphs(const GraphColumn* columns, int64_t count,
                          const int64_t* starts, int64_t set, const int64_t* sums,
                          const int64_t* graphs, int64_t batch) {
  const int64_t stride = batch + 1;
  for (int64_t c = 0; c < count; ++c) {
    const GraphColumn& column = columns[c];
    // Empty tables have no address either.
    if (column.item_bytes == 0) continue;
    const int64_t* first = starts + column.segments * (set + 1);
    const int64_t* place = sums + column.segments * stride;
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t items = place[b + 1] - place[b];
      if (column.data == nullptr) {
        int64_t* out = reinterpret_cast<int64_t*>(column.out) + place[b];
        for (int64_t k = 0; k < items; ++k) out[k] = b;
        continue;
      }
      const char* in = column.data + first[graphs[b]] * column.item_bytes;
      char* out = column.out + place[b] * column.item_bytes;
      for (int64_t o = 0; o < column.outer; ++o) {
        if (column.number_bytes == 4)
          copy_risen<int32_t>(column, in, items, o, sums + b, stride, out);
        else if (column.number_bytes == 8)
          copy_risen<int64_t>(column, in, items, o, sums + b, stride, out);
        else
          std::memcpy(out, in, items * column.item_bytes);
        in += column.outer_step;
        out += column.out_step;
      }
    }
  }
}

}  // namespace tempergat
