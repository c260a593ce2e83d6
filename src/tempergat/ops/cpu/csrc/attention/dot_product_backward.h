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
    A *query, *dout, *dquery;  // [H, C], padded; the query times scale / T
    A *dkey, *dvalue;          // [H, C], padded
    A *features, *dfeatures;   // [H, D], edge_map^T query and its gradient
    double* dscale;            // [H], this chunk's sum of dlogit times logit
    Memory(char* base, const DotProductBackward& pass) : Base::Memory(base, pass) {
      Pieces& pieces = this->pieces;
      const int64_t padded = pass.shape.padded();
      query = pieces.take<A>(padded);
      dout = pieces.take<A>(padded);
      dquery = pieces.take<A>(padded);
      dkey = pieces.take<A>(padded);
      dvalue = pieces.take<A>(padded);
      features = pieces.take<A>(pass.dots.size());
      dfeatures = pieces.take<A>(pass.dots.size());
      dscale = pieces.take<double>(pass.H);
    }
  };

  int64_t run() const {
    const Chunks targets(by_target, shape.width()), sources(by_source, shape.width());
    Partial dscale(targets.count, H);
    if (!dscale.data) return kOutOfMemory;
    shape.prepare(call.dz_src);
    shape.prepare(call.dkey);
    shape.prepare(call.dz_dst);
    records.prepare();
    int64_t status = pass(targets, &DotProductBackward::target,
                          [&](int64_t chunk, const Memory& m) {
                            dscale.put(chunk, m.dscale);
                          });
    if (status == kDone)
      status = pass(sources, &DotProductBackward::source, [](int64_t, const Memory&) {});
    if (status == kDone && call.dtheta) put_dtemperature(dscale);
    return status;
  }

  template <class Row, class Finish>
  int64_t pass(const Chunks& chunks, Row row, const Finish& finish_chunk) const {
    auto start = [&](char* base) {
      const Memory m(base, *this);
      for (int64_t h = 0; h < H; ++h) m.dscale[h] = 0;
      dropout.split(m.seeds);
    };
    auto work = [&](int64_t i, char* base) { (this->*row)(i, Memory(base, *this)); };
    auto finish = [&](int64_t chunk, char* base) {
      finish_chunk(chunk, Memory(base, *this));
    };
    const int64_t bytes = Memory(nullptr, *this).pieces.used;
    return over_rows(chunks, call.threads, bytes, start, work, finish);
  }

  // The logits are scale / T times what T has no part in.
  void put_dtemperature(const Partial& dscale) const {
    A* to = static_cast<A*>(call.dtheta);
    double total = 0;
    for (int64_t h = 0; h < H; ++h) {
      const bool each = dots.temperatures > 1;
      const double share = -dscale.total(h) / dots.temperature[each ? h : 0];
      if (each) to[h] = A(share);
      total += share;
    }
    if (dots.temperatures == 1) to[0] = A(total);
  }

  void target(int64_t i, const Memory& m) const {
    const A* pulled_dout = static_cast<const A*>(call.pulled_dout) + i * dots.size();
    dots.load_query(i, m.query, m.features);
    shape.unpack(dout.row(i), dout.end, m.dout);
    for (int64_t c = 0; c < shape.padded(); ++c) m.dquery[c] = 0;
    for (int64_t d = 0; d < dots.size(); ++d) m.dfeatures[d] = 0;
    auto products = [&](int64_t from, int64_t count) {
      dots.products(dots.key, by_target, from, count, m.query, m.features, m.alpha);
      dots.products(z_src, by_target, from, count, m.dout, pulled_dout, m.dalpha);
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
        put_dedge_x(by_target.position[from + k], m.features, pulled_dout);
    };
    softmax_row(i, m, products, gradients);
    const int64_t width = shape.blocks() * W, features = dots.size() / H;
    for (int64_t h = 0; call.dtheta && h < H; ++h) {
      double total = 0;
      for (int64_t c = h * width; c < (h + 1) * width; ++c)
        total += double(m.query[c]) * m.dquery[c];
      for (int64_t d = h * features; d < (h + 1) * features; ++d)
        total += double(m.features[d]) * m.dfeatures[d];
      m.dscale[h] += total;
    }
    auto factor = [&](int64_t h) { return dots.factor(h); };
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    shape.pack(m.dquery, to, factor);
    dots.put_features(m.dfeatures, i, call.dpulled_query, factor);
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
    shape.pack(m.dvalue, dvalue, [](int64_t) { return A(1); });
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
