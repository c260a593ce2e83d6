// The logits of a few edges of one row, for GAT and for GATv2.
#pragma once

#include "edge_map.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// GAT: leaky(score_src[j] + score_dst[i] + edge_score) + edge_bias.
template <class Shape>
struct Scores {
  using A = typename Shape::A;
  const A *src, *dst, *edge;
  EdgeNumbers<A> bias;
  int64_t heads;
  A slope;

  Scores(const Shape& shape, const Call& call)
      : src(static_cast<const A*>(call.score_src)),
        dst(static_cast<const A*>(call.score_dst)),
        edge(static_cast<const A*>(call.edge_score)),
        bias(call.edge_bias, shape.heads),
        heads(shape.heads),
        slope(A(call.negative_slope)) {}

  // u_ij, the sum before the LeakyReLU, for L heads of one edge.
  template <int L>
  Vec<A, L> sums(int64_t j, int64_t i, int64_t position, int64_t h) const {
    Vec<A, L> u = load<L>(src + j * heads + h);
    if (dst) u += load<L>(dst + i * heads + h);
    if (edge) u += load<L>(edge + position * heads + h);
    return u;
  }
  template <int L>
  Vec<A, L> logits(int64_t j, int64_t i, int64_t position, int64_t h) const {
    const auto e = leaky<L>(sums<L>(j, i, position, h), slope);
    return bias ? e + bias.template at<L>(position, h) : e;
  }
};

// GATv2: v = z_src[j] + z_dst[i] + edge + edge_map edge_x, logit <att, leaky(v)>.
template <class Shape>
struct Pairs {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  const Shape& shape;
  typename Shape::Table edge;
  EdgeMap<Shape> projected;
  A slope;

  Pairs(const Shape& s, const Call& call)
      : shape(s),
        edge(s.table(call.edge)),
        projected(s, call),
        slope(A(call.negative_slope)) {}

  // Adds an edge's part to a few blocks of one head of v.
  template <int Blocks>
  void add_edge(const A* edge_map, int64_t position, int64_t h, int64_t first,
                V (&v)[Blocks]) const {
    if (edge.data)
      for (int b = 0; b < Blocks; ++b)
        v[b] += shape.block(edge.row(position) + h * shape.channels, first + b, edge.end);
    if (projected) projected.template add<Blocks>(edge_map, position, h, first, v);
  }
  // Asks for what is needed some edges later.
  TEMPERGAT_PREFETCH prefetch(const typename Shape::Table& others, const Edges& edges,
                              int64_t slot) const {
    shape.prefetch(others, edges, slot);
    if (projected) projected.prefetch(edges, slot);
  }

  // Adds a few blocks of one head to the logits [count, H] of a batch of edges. `row`
  // is the row's own features [H, C], padded; `others` the rows at the other ends;
  // `edge_map` is unpacked.
  template <int Blocks>
  void logits(const typename Shape::Table& others, const Edges& edges, int64_t from,
              int64_t count, int64_t h, int64_t first, const A* row, const A* att,
              const A* edge_map, A* logit) const {
    const int64_t at = (h * shape.blocks() + first) * W;
    V z_row[Blocks], att_above[Blocks], att_below[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      z_row[b] = load<W>(row + at + b * W);
      att_above[b] = load<W>(att + at + b * W);
      att_below[b] = att_above[b] * slope;
    }
    for (int64_t k = 0; k < count; ++k) {
      if (h == 0 && first == 0) prefetch(others, edges, from + k);
      const S* head = others.row(edges.other[from + k]) + h * shape.channels;
      V dot{}, v[Blocks];
      for (int b = 0; b < Blocks; ++b)
        v[b] = shape.block(head, first + b, others.end) + z_row[b];
      add_edge<Blocks>(edge_map, edges.position[from + k], h, first, v);
      for (int b = 0; b < Blocks; ++b)
        dot += (v[b] > 0 ? att_above[b] : att_below[b]) * v[b];
      A* to = logit + k * shape.heads + h;
      *to = first ? *to + sum<A>(dot) : sum<A>(dot);
    }
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
