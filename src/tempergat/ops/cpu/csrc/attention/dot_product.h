// Dot products of a row with the rows at the other end of its edges. The features of an
// edge are never projected: <q_i, edge_map x_ij> = <edge_map^T q_i, x_ij>. Targets are
// taken a few at a time, so that their products with the map are those of small matrices.
// See "Dot products" in ops/README.md.
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
  const A* temperature;
  const int64_t temperatures;
  const double scale;

  Dots(const Shape& s, const Call& call)
      : shape(s),
        query(s.table(call.z_dst)),
        key(s.table(call.key)),
        edge(s, call),
        temperature(static_cast<const A*>(call.theta)),
        temperatures(call.thetas),
        scale(call.scale) {}

  // How many targets are taken at a time. Products with the map are of kRows at once.
  static constexpr int64_t kRows = 8;
  int64_t rows() const { return edge ? 2 * kRows : 1; }
  // How many numbers a node has for its features, and a map that is unpacked.
  int64_t size() const { return edge ? shape.heads * edge.width : 0; }
  int64_t map_size() const { return edge ? edge.size() : 0; }
  A factor(int64_t h) const {
    return A(temperature ? scale / temperature[temperatures > 1 ? h : 0] : scale);
  }

  // The queries of some targets, [H, C] each, padded, times scale / T.
  void load_queries(int64_t first, int64_t count, A* to) const {
    const int64_t padded = shape.blocks() * W;
    for (int64_t i = first; i < first + count; ++i) {
      shape.unpack(query.row(i), query.end, to);
      for (int64_t h = 0; h < shape.heads; ++h, to += padded) {
        const A f = factor(h);
        for (int64_t c = 0; c < padded; ++c) to[c] *= f;
      }
    }
  }

  // Writes `edge_map^T x` [H, D] for the rows x [H, C], padded, of some targets.
  void pull_back(int64_t count, const A* x, A* to) const {
    if (!size()) return;
    for (int64_t d = 0; d < rows() * size(); ++d) to[d] = 0;
    const int64_t C = shape.channels, D = edge.width;
    add_multiplied(count, edge.map, C * D, D, C, x, shape.blocks() * W, to, D);
  }
  // Adds `edge_map x` to rows [H, C], padded, for the sums x [H, D] of some targets.
  void add_push(int64_t count, const A* unpacked, const A* x, A* to) const {
    const int64_t head = shape.blocks() * W;
    if (size())
      add_multiplied(count, unpacked, head, shape.padded(), edge.width, x, edge.width, to,
                     head);
  }
  // Adds to every row and head of `to`, [width], the sum over k < depth of x[k] times row
  // k of the head's matrix. x has `x_width` numbers per head; `step` is between the rows
  // of a matrix, `head` between matrices.
  void add_multiplied(int64_t count, const A* matrix, int64_t head, int64_t step,
                      int64_t depth, const A* x, int64_t x_width, A* to,
                      int64_t width) const {
    const int64_t H = shape.heads;
    for (int64_t r = 0; r < count; r += kRows)
      for (int64_t h = 0; h < H; ++h)
        over_heads<16>(width, [&](auto lanes, int64_t first) {
          constexpr int L = decltype(lanes)::count;
          const A *from = x + (r * H + h) * x_width, *at = matrix + h * head + first;
          A* sums = to + (r * H + h) * width + first;
          Vec<A, L> sum[kRows];
          for (int q = 0; q < kRows; ++q) sum[q] = load<L>(sums + q * H * width);
          for (int64_t k = 0; k < depth; ++k) {
            const Vec<A, L> v = load<L>(at + k * step);
            for (int q = 0; q < kRows; ++q) sum[q] += v * from[q * H * x_width + k];
          }
          for (int q = 0; q < kRows; ++q) store<L>(sums + q * H * width, sum[q]);
        });
  }

  // Adds to `products` [D, H, C], padded, those of rows [H, C], padded, with sums [H, D].
  void add_outer(int64_t count, const A* rows, const A* sums, double* products) const {
    for (int64_t h = 0; size() && h < shape.heads; ++h)
      for (int64_t b = 0; b < shape.blocks(); ++b)
        edge.add_products(
            count, h, b,
            [&](int64_t k) { return sums + k * size() + h * edge.width; },
            [&](int64_t k) {
              return load<W>(rows + k * shape.padded() + (h * shape.blocks() + b) * W);
            },
            products);
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
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
