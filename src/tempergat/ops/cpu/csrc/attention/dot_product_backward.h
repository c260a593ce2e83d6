// Backward of dot products, in the names of ops/README.md: a pass by target, which leaves
// dlogit and beta of every edge, and one by source. Every sum is owned by one row, so no
// two threads add to it.
#pragma once

#include "dot_product.h"
#include "softmax_backward.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct DotProductBackward : SoftmaxBackward<Shape> {
  using Base = SoftmaxBackward<Shape>;
  using typename Base::A;
  using S = typename Shape::S;
  static constexpr int W = Shape::W;
  using Base::batch, Base::by_source, Base::by_target, Base::call, Base::dout;
  using Base::dropout, Base::H, Base::record, Base::records, Base::shape;
  using Base::softmax_row, Base::z_src;

  const Dots<Shape> dots;

  explicit DotProductBackward(const Call& c) : Base(c), dots(shape, c) {}

  struct Memory : Base::Memory {
    // Of some targets, [H, C], padded; queries are times scale / T.
    A *query, *dout, *dquery;
    A *features, *dfeatures, *pulled_dout;  // [H, D]: edge_map^T query, its gradient, ...
    A *dkey, *dvalue;                       // [H, C], padded
    A* map;                                 // [D, H, C], padded
    double* sums;  // This chunk's: [D, H, C], padded, for dedge_map; [H], dlogit * logit
    Memory(char* base, const DotProductBackward& pass) : Base::Memory(base, pass) {
      Pieces& pieces = this->pieces;
      const int64_t padded = pass.shape.padded(), rows = pass.dots.rows();
      query = pieces.take<A>(rows * padded);
      dout = pieces.take<A>(rows * padded);
      dquery = pieces.take<A>(rows * padded);
      features = pieces.take<A>(rows * pass.dots.size());
      dfeatures = pieces.take<A>(rows * pass.dots.size());
      pulled_dout = pieces.take<A>(rows * pass.dots.size());
      dkey = pieces.take<A>(padded);
      dvalue = pieces.take<A>(padded);
      map = pieces.take<A>(pass.dots.map_size());
      sums = pieces.take<double>(pass.sums_size());
    }
  };
  int64_t sums_size() const { return dots.map_size() + H; }

  int64_t run() const {
    const Chunks targets(by_target, shape.width(), dots.edge.most_chunks());
    const Chunks sources(by_source, shape.width());
    Partial sums(targets.count, sums_size());
    if (!sums.data) return kOutOfMemory;
    shape.prepare(call.dz_src);
    shape.prepare(call.dkey);
    shape.prepare(call.dz_dst);
    records.prepare();
    const int64_t bytes = Memory(nullptr, *this).pieces.used;
    auto by_targets = [&](int64_t chunk, int64_t first, int64_t end, char* base) {
      const Memory m(base, *this);
      for (int64_t k = 0; k < sums_size(); ++k) m.sums[k] = 0;
      dropout.split(m.seeds);
      if (dots.size()) dots.edge.unpack(m.map);
      for (int64_t i = first; i < end; i += dots.rows())
        some_targets(i, smaller(dots.rows(), end - i), m);
      sums.put(chunk, m.sums);
    };
    auto by_sources = [&](int64_t, int64_t first, int64_t end, char* base) {
      const Memory m(base, *this);
      for (int64_t j = first; j < end; ++j) source(j, m);
    };
    int64_t status = over_chunks(targets, call.threads, bytes, by_targets);
    if (status == kDone) status = over_chunks(sources, call.threads, bytes, by_sources);
    if (status == kDone && call.dedge_map) put_dedge_map(sums);
    if (status == kDone && call.dtheta) put_dtemperature(sums);
    return status;
  }

  void put_dedge_map(const Partial& sums) const {
    A* to = static_cast<A*>(call.dedge_map);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t c = 0; c < shape.channels; ++c)
        for (int64_t d = 0; d < dots.edge.width; ++d)
          *to++ = A(sums.total(d * shape.padded() + h * shape.blocks() * W + c));
  }

  // The logits are scale / T times what T has no part in.
  void put_dtemperature(const Partial& sums) const {
    A* to = static_cast<A*>(call.dtheta);
    double total = 0;
    for (int64_t h = 0; h < H; ++h) {
      const bool each = dots.temperatures > 1;
      const double dscale = sums.total(dots.map_size() + h);
      const double share = -dscale / dots.temperature[each ? h : 0];
      if (each) to[h] = A(share);
      total += share;
    }
    if (dots.temperatures == 1) to[0] = A(total);
  }

  void some_targets(int64_t first, int64_t count, const Memory& m) const {
    const int64_t padded = shape.padded(), size = dots.size();
    dots.load_queries(first, count, m.query);
    for (int64_t r = 0; r < count; ++r)
      shape.unpack(dout.row(first + r), dout.end, m.dout + r * padded);
    dots.pull_back(count, m.query, m.features);
    dots.pull_back(count, m.dout, m.pulled_dout);
    for (int64_t r = 0; r < count; ++r) {
      Memory own = m;
      own.query += r * padded;
      own.dout += r * padded;
      own.dquery += r * padded;
      own.features += r * size;
      own.dfeatures += r * size;
      own.pulled_dout += r * size;
      target(first + r, own);
    }
    dots.add_push(count, m.map, m.dfeatures, m.dquery);
    if (call.dedge_map) {
      const A* edge_sum = static_cast<const A*>(call.edge_sum) + first * size;
      dots.add_outer(count, m.query, m.dfeatures, m.sums);
      dots.add_outer(count, m.dout, edge_sum, m.sums);
    }
    for (int64_t r = 0; r < count; ++r) put_dquery(first + r, r * padded, m);
  }

  void put_dquery(int64_t i, int64_t at, const Memory& m) const {
    double* dscale = m.sums + dots.map_size();
    const int64_t width = shape.blocks() * W;
    for (int64_t h = 0; call.dtheta && h < H; ++h) {
      double total = 0;
      for (int64_t c = at + h * width; c < at + (h + 1) * width; ++c)
        total += double(m.query[c]) * m.dquery[c];
      dscale[h] += total;
    }
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    shape.pack(m.dquery + at, to, [&](int64_t h) { return dots.factor(h); });
  }

  // One target, with m of its own: dquery and dfeatures without scale / T.
  void target(int64_t i, const Memory& m) const {
    for (int64_t c = 0; c < shape.padded(); ++c) m.dquery[c] = 0;
    for (int64_t d = 0; d < dots.size(); ++d) m.dfeatures[d] = 0;
    auto products = [&](int64_t from, int64_t count) {
      dots.products(dots.key, by_target, from, count, m.query, m.features, m.alpha);
      dots.products(z_src, by_target, from, count, m.dout, m.pulled_dout, m.dalpha);
    };
    auto gradients = [&](int64_t from, int64_t count) {
      auto dlogit = [&](int64_t k, int64_t h) { return A(m.dlogit[k * H + h]); };
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        shape.template add_rows<decltype(tile)::blocks, false>(
            dots.key, by_target, from, count, h, b,
            [&](int64_t k) { return dlogit(k, h); }, m.dquery);
      });
      dots.add_features(by_target, from, count, dlogit, m.dfeatures);
      for (int64_t k = 0; call.dedge_x && k < count; ++k)
        put_dedge_x(by_target.position[from + k], m.features, m.pulled_dout);
    };
    softmax_row(i, m, products, gradients);
  }

  // sum over heads of dlogit edge_map^T query scale / T + beta edge_map^T dout.
  void put_dedge_x(int64_t at, const A* features, const A* pulled_dout) const {
    const int64_t width = dots.edge.width;
    A* to = static_cast<A*>(call.dedge_x) + at * width;
    over_heads(width, [&](auto lanes, int64_t d) {
      constexpr int L = decltype(lanes)::count;
      Vec<A, L> sum{};
      for (int64_t h = 0; h < H; ++h)
        sum += record(at)[h] * load<L>(features + h * width + d) +
               record(at)[H + h] * load<L>(pulled_dout + h * width + d);
      store<L>(to + d, sum);
    });
  }

  void source(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.dkey[c] = m.dvalue[c] = 0;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t k = 0; k < count; ++k) records.prefetch(by_source, from + k);
      auto add = [&](const auto& table, int64_t first, A* sums) {
        shape.tiles([&](auto tile, int64_t h, int64_t b) {
          shape.template add_rows<decltype(tile)::blocks, true>(
              table, by_source, from, count, h, b,
              [&](int64_t k) {
                return record(by_source.position[from + k])[first + h];
              },
              sums);
        });
      };
      add(dots.query, 0, m.dkey);
      add(dout, H, m.dvalue);
    }
    S* dkey = static_cast<S*>(call.dkey.data) + j * call.dkey.stride;
    S* dvalue = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.dkey, dkey, [&](int64_t h) { return dots.factor(h); });
    shape.pack(m.dvalue, dvalue);
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
