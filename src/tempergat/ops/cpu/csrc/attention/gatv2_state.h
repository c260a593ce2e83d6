// What both passes of GATv2's backward share: the inputs, a record per edge, and the
// memory of a thread.
#pragma once

#include "softmax_backward.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct Gatv2State : SoftmaxBackward<Shape> {
  using Base = SoftmaxBackward<Shape>;
  using typename Base::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  using D = Vec<double, W>;
  using Word = typename LaneBits<W>::type;
  using Base::blocks, Base::C, Base::call, Base::H, Base::record, Base::shape;

  const Pairs<Shape> pairs;
  const int64_t map_size;

  explicit Gatv2State(const Call& c)
      : Base(c),
        pairs(shape, c),
        map_size(pairs.projected ? pairs.projected.size() : 0) {}

  // Which channels were above zero, a word per block.
  Word* signs(int64_t position) const {
    return reinterpret_cast<Word*>(record(position) + 2 * H);
  }

  struct Memory : Base::Memory {
    A *att, *z_i, *dout;      // [H, C], padded
    A *map, *att_map;         // [D, H, C], padded: edge_map, and att times it
    A* weighted_dout;         // [H, C], sum over i of beta_ij dout_i
    A* source_positive;       // [H, C], sum over i of dlogit where v > 0
    double* target_positive;  // [H, C], sum over j of dlogit where v > 0
    double* datt;             // [H, C], this chunk's part
    double* products;         // [D, H, C], this chunk's sum of x_ij dlogit leaky'
    Memory(char* base, const Gatv2State& pass) : Base::Memory(base, pass) {
      Pieces& pieces = this->pieces;
      const int64_t padded = pass.shape.padded();
      att = pieces.take<A>(padded);
      z_i = pieces.take<A>(padded);
      dout = pieces.take<A>(padded);
      weighted_dout = pieces.take<A>(padded);
      source_positive = pieces.take<A>(padded);
      target_positive = pieces.take<double>(padded);
      datt = pieces.take<double>(padded);
      map = pieces.take<A>(pass.map_size);
      att_map = pieces.take<A>(pass.map_size);
      products = pieces.take<double>(pass.map_size);
    }
  };

  // Writes datt and dedge_map from the sums of all chunks.
  void put_totals(const Partial& of_targets, const Partial& of_sources,
                  const Partial& products) const {
    const A *att = static_cast<const A*>(call.att), *map = pairs.projected.map;
    A *datt = static_cast<A*>(call.datt), *dmap = static_cast<A*>(call.dedge_map);
    const int64_t width = map_size ? pairs.projected.width : 0;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t c = 0; c < C; ++c) {
        const int64_t at = h * blocks * W + c, to = h * C + c;
        double total = of_targets.total(at) + of_sources.total(at);
        for (int64_t d = 0; d < width; ++d) {
          const double product = products.total(d * shape.padded() + at);
          total += product * map[to * width + d];
          dmap[to * width + d] = A(product * att[to]);
        }
        datt[to] = A(total);
      }
  }

  // dlogit leaky'(v) of one edge, a block of one head.
  V share(int64_t at, int64_t h, int64_t b) const {
    const A dlogit = record(at)[h];
    const V below = splat<W, A>(dlogit * pairs.slope);
    return add_where<W, A>(below, signs(at)[h * blocks + b],
                           splat<W, A>(dlogit) - below);
  }

  // dedge of one edge, and its part of datt.
  void edge_gradients(int64_t at, const Memory& m) const {
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V part = share(at, h, b);
        const V own = shape.block(pairs.edge.row(at) + h * C, b, pairs.edge.end);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(part * own, D));
        shape.put(load<W>(m.att + c) * part,
                  static_cast<S*>(call.dedge.data) + at * call.dedge.stride + h * C, b);
      }
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
