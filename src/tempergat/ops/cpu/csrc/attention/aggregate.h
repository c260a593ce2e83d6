// out[i, h] = sum over the row's slots of weights[position, h] * z[other, h]: the
// product of a sparse matrix, or of one per head, with feature rows.
#pragma once

#include "rows.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
int64_t aggregate(const Call& call) {
  using A = typename Shape::A;
  using S = typename Shape::S;
  const Shape shape(call.heads, call.channels);
  const Edges edges(call.by_target, call.wide_index);
  const auto z = shape.table(call.z_src);
  const A* weights = static_cast<const A*>(call.weights);
  const int64_t H = shape.heads, batch = shape.batch_size();

  auto row = [&](int64_t i, A* sum) {
    const int64_t end = edges.pointer[i + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) sum[c] = 0;
    for (int64_t from = edges.pointer[i]; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        shape.template add_rows<decltype(tile)::blocks, true>(
            z, edges, from, count, h, b,
            [&](int64_t k) { return weights[edges.position[from + k] * H + h]; }, sum);
      });
    }
    S* to = static_cast<S*>(call.out.data) + i * call.out.stride;
    shape.pack(sum, to);
  };
  shape.prepare(call.out);
  return over_chunks(Chunks(edges, shape.width()), call.threads,
                     shape.padded() * int64_t(sizeof(A)),
                     [&](int64_t, int64_t first, int64_t end, char* base) {
                       for (int64_t i = first; i < end; ++i)
                         row(i, reinterpret_cast<A*>(base));
                     });
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
