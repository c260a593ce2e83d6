// Dot products of a row with the rows at the other end of its edges. The features of an
// edge are never projected: <q_i, edge_map x_ij> = <edge_map^T q_i, x_ij>, and tables of
// nodes [rows, H, D] hold such products. See "Dot products" in ops/README.md.
#pragma once

#include "edge_map.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct Dots {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  const Shape& shape;
  const typename Shape::Table query, key;
  const EdgeMap<Shape> edge;
  const A *pulled_query, *temperature;
  const int64_t temperatures;
  const double scale;

  Dots(const Shape& s, const Call& call)
      : shape(s),
        query(s.table(call.z_dst)),
        key(s.table(call.key)),
        edge(s, call),
        pulled_query(static_cast<const A*>(call.pulled_query)),
        temperature(static_cast<const A*>(call.theta)),
        temperatures(call.thetas),
        scale(call.scale) {}

  // How many numbers a node has in a table of features.
  int64_t size() const { return edge ? shape.heads * edge.width : 0; }
  A factor(int64_t h) const {
    return A(temperature ? scale / temperature[temperatures > 1 ? h : 0] : scale);
  }

  // A target's query [H, C], padded, and its features [H, D], both times scale / T.
  void load_query(int64_t i, A* row, A* features) const {
    shape.unpack(query.row(i), query.end, row);
    const int64_t padded = shape.blocks() * W, width = size() / shape.heads;
    for (int64_t h = 0; h < shape.heads; ++h) {
      const A f = factor(h);
      for (int64_t c = h * padded; c < (h + 1) * padded; ++c) row[c] *= f;
      for (int64_t d = h * width; d < (h + 1) * width; ++d)
        features[d] = f * pulled_query[i * size() + d];
    }
  }

  // For some edges, [count, H]: the products of a row [H, C], padded, with the rows at
  // their other end, and of its features [H, D] with theirs.
  void products(const typename Shape::Table& table, const Edges& edges, int64_t from,
                int64_t count, const A* row, const A* features, A* to) const {
    shape.tiles([&](auto tile, int64_t h, int64_t b) {
      add_products<decltype(tile)::blocks>(table, edges, from, count, h, b, row, to);
    });
    for (int64_t k = 0; size() && k < count; ++k) {
      edge.prefetch(edges, from + k);
      const A* x = edge.features(edges.position[from + k]);
      for (int64_t h = 0; h < shape.heads; ++h)
        over_heads(edge.width, [&](auto lanes, int64_t d) {
          constexpr int L = decltype(lanes)::count;
          const Vec<A, L> part = load<L>(x + d) * load<L>(features + h * edge.width + d);
          if constexpr (L == 1)
            to[k * shape.heads + h] += part[0];
          else
            to[k * shape.heads + h] += sum<A>(part);
        });
    }
  }

  template <int Blocks>
  void add_products(const typename Shape::Table& table, const Edges& edges, int64_t from,
                    int64_t count, int64_t h, int64_t first, const A* row,
                    A* to) const {
    V own[Blocks];
    for (int b = 0; b < Blocks; ++b)
      own[b] = load<W>(row + (h * shape.blocks() + first + b) * W);
    for (int64_t k = 0; k < count; ++k) {
      if (h == 0 && first == 0) shape.prefetch(table, edges, from + k);
      const S* head = table.row(edges.other[from + k]) + h * shape.channels;
      V dot{};
      for (int b = 0; b < Blocks; ++b)
        dot += own[b] * shape.block(head, first + b, table.end);
      A* at = to + k * shape.heads + h;
      *at = first ? *at + sum<A>(dot) : sum<A>(dot);
    }
  }

  // Adds to `sums` [H, D] the features of some edges, each times weight(k, h).
  template <class Weight>
  void add_features(const Edges& edges, int64_t from, int64_t count,
                    const Weight& weight, A* sums) const {
    for (int64_t k = 0; size() && k < count; ++k) {
      const A* x = edge.features(edges.position[from + k]);
      for (int64_t h = 0; h < shape.heads; ++h)
        over_heads(edge.width, [&](auto lanes, int64_t d) {
          constexpr int L = decltype(lanes)::count;
          A* to = sums + h * edge.width + d;
          store<L>(to, load<L>(to) + A(weight(k, h)) * load<L>(x + d));
        });
    }
  }

  // Writes sums of features, each head times a factor, to a target's row of a table.
  template <class Factor>
  void put_features(const A* sums, int64_t i, void* table, const Factor& factor) const {
    A* to = static_cast<A*>(table) + i * size();
    for (int64_t h = 0; size() && h < shape.heads; ++h)
      for (int64_t d = h * edge.width; d < (h + 1) * edge.width; ++d)
        to[d] = sums[d] * factor(h);
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
