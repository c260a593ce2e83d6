// The logits of a few edges of one row, for GAT and for GATv2.
#pragma once

#include "cpu_rows.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// GAT: leaky(score_src[j] + score_dst[i] + edge_score).
template <class Shape>
struct Scores {
  using A = typename Shape::A;
  const A *src, *dst, *edge;
  int64_t heads;
  A slope;

  Scores(const Shape& shape, const Call& call)
      : src(static_cast<const A*>(call.score_src)),
        dst(static_cast<const A*>(call.score_dst)),
        edge(static_cast<const A*>(call.edge_score)),
        heads(shape.heads),
        slope(A(call.negative_slope)) {}

  // The sums before the LeakyReLU, for every head of one edge.
  void sums(int64_t j, int64_t i, int64_t position, A* to) const {
    const A* s = src + j * heads;
    const A* d = dst ? dst + i * heads : nullptr;
    const A* e = edge ? edge + position * heads : nullptr;
    if (d && !e) {
      for (int64_t h = 0; h < heads; ++h) to[h] = s[h] + d[h];
      return;
    }
    for (int64_t h = 0; h < heads; ++h) {
      A u = d ? s[h] + d[h] : s[h];
      to[h] = e ? u + e[h] : u;
    }
  }
  void logits(int64_t j, int64_t i, int64_t position, A* to) const {
    sums(j, i, position, to);
    for (int64_t h = 0; h < heads; ++h) to[h] = leaky(to[h], slope);
  }
};

// GATv2: v = z_src[j] + z_dst[i] + edge, logit <att, leaky(v)>.
template <class Shape>
struct Pairs {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  const Shape& shape;
  typename Shape::Table edge;
  A slope;

  Pairs(const Shape& s, const Call& call)
      : shape(s), edge(s.table(call.edge)), slope(A(call.negative_slope)) {}

  // Block b of head h of v, where `mine` holds this row's own features, padded, and
  // `other` is the other end's block.
  V sum(V other, const A* mine, int64_t h, int64_t b, int64_t position) const {
    V v = other + load<W>(mine + (h * shape.blocks() + b) * W);
    if (edge.data)
      v += shape.block(edge.row(position) + h * shape.channels, b, edge.end);
    return v;
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
