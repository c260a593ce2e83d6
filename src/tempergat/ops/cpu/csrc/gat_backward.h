// Backward of GAT: every sum is owned by one row, so no two threads add to it.
//
// The rounding of lse makes all weights of a row a little too large or too small, and
// much so where logits are large: there their sums are formed, to divide by. With the
// edges by source, one read of the targets' gradients then gives the features' gradient,
// the weight alpha and p = <dout_i, z_j> of every edge. The gradients of the scores
// follow from two numbers per edge and head.
#pragma once

#include "logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct GatBackward {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;

  const Call& call;
  const Shape shape;
  const Edges by_target, by_source;
  const Dropout<A> dropout;
  const Scores<Shape> scores;
  const typename Shape::Table z, dout;
  const int64_t H, C, blocks, most;
  const Records records;
  // For each target, its lse and then what its weights are to be multiplied by.
  A* const normal;

  explicit GatBackward(const Call& c)
      : call(c),
        shape(c.heads, c.channels),
        by_target(c.by_target, c.wide_index),
        by_source(c.by_source, c.wide_index),
        dropout(c),
        scores(shape, c),
        z(shape.table(c.z_src)),
        dout(shape.table(c.dout)),
        H(shape.heads),
        C(shape.channels),
        blocks(shape.blocks()),
        most(shape.together()),
        records(c.records),
        normal(static_cast<A*>(malloc(size_t(by_target.rows * H + 1) * 2 * sizeof(A)))) {
  }
  ~GatBackward() { free(normal); }
  GatBackward(const GatBackward&) = delete;

  // An edge's weights before dropout, negative where dropped, and then the gradients
  // that arrive at them. The second pass puts the scores' gradients in their place.
  A* record(int64_t position) const { return records.at<A>(position); }

  struct Memory {
    A *mine, *gradient, *alpha, *beta, *product, *factor;
    double* mass;
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const GatBackward& pass) {
      Pieces pieces{base};
      const int64_t some = pass.most * pass.H;
      mine = pieces.take<A>(pass.shape.padded());
      gradient = pieces.take<A>(pass.shape.padded());
      alpha = pieces.take<A>(some);
      beta = pieces.take<A>(some);
      product = pieces.take<A>(some);
      factor = pieces.take<A>(pass.dropout.padded());
      mass = pieces.take<double>(pass.H);
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      bytes = pieces.used;
    }
  };

  int64_t run() const {
    if (!normal) return kOutOfMemory;
    shape.fresh(call.dz_src);
    records.fresh();
    int64_t status = pass(by_target, 4 * H, &GatBackward::normalise);
    if (status == kDone)
      status = pass(by_source, shape.width(), &GatBackward::features);
    if (status == kDone) status = pass(by_target, 4 * H, &GatBackward::logits);
    if (status == kDone) status = pass(by_source, H, &GatBackward::source_scores);
    return status;
  }

  template <class Row>
  int64_t pass(const Edges& edges, int64_t width, Row row) const {
    auto start = [&](char* base) { dropout.split(Memory(base, *this).seeds); };
    auto work = [&](int64_t i, char* base) { (this->*row)(i, Memory(base, *this)); };
    return over_rows(edges, width, call.threads, Memory(nullptr, *this).bytes, start,
                     work, [](int64_t, char*) {});
  }

  void normalise(int64_t i, const Memory& m) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    A* to = normal + i * 2 * H;
    bool small = true;
    for (int64_t h = 0; h < H; ++h) {
      to[h] = lse[h];
      to[H + h] = 1;
      small &= lse[h] > -4 && lse[h] < 4;
      m.mass[h] = 0;
    }
    // So small a number is rounded by no more than the weights are.
    if (small) return;
    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t j = by_target.other[from + k], at = by_target.position[from + k];
        by_target.ahead(scores.src, H, from + k);
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          store<L>(m.alpha + k * H + h,
                   scores.template logits<L>(j, i, at, h) - load<L>(lse + h));
        });
      }
      exponentials(m.alpha, count * H);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto mass = load<L>(m.mass + h);
        for (int64_t k = 0; k < count; ++k)
          mass += __builtin_convertvector(load<L>(m.alpha + k * H + h), Vec<double, L>);
        store<L>(m.mass + h, mass);
      });
    }
    for (int64_t h = 0; h < H; ++h) to[H + h] = A(1 / m.mass[h]);
  }

  void features(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.gradient[c] = 0;
    shape.unpack(z.row(j), z.end, m.mine);
    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = by_source.other[from + k];
        const int64_t at = by_source.position[from + k];
        records.ahead(by_source, from + k);
        by_source.ahead(normal, 2 * H, from + k);
        if (scores.dst) by_source.ahead(scores.dst, H, from + k);
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          store<L>(m.alpha + k * H + h, scores.template logits<L>(j, i, at, h) -
                                            load<L>(normal + i * 2 * H + h));
        });
      }
      exponentials(m.alpha, count * H);
      for (int64_t k = 0; k < count; ++k) {
        const A* scale = normal + (by_source.other[from + k] * 2 + 1) * H;
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          A* alpha = m.alpha + k * H + h;
          store<L>(alpha, load<L>(alpha) * load<L>(scale + h));
        });
      }
      const A* beta = m.alpha;
      if (dropout) {
        beta = m.beta;
        for (int64_t k = 0; k < count; ++k) {
          A *alpha = m.alpha + k * H, *dropped = m.beta + k * H;
          dropout.factors(m.seeds, by_source.edge_id[from + k], m.factor);
          for (int64_t h = 0; h < H; ++h) {
            dropped[h] = alpha[h] * m.factor[h];
            if (m.factor[h] == 0) alpha[h] = -alpha[h];
          }
        }
      }
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        gather<decltype(tile)::blocks>(from, count, h, b, beta, m);
      });
      for (int64_t k = 0; k < count; ++k) {
        A* to = record(by_source.position[from + k]);
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          store<L>(to + h, load<L>(m.alpha + k * H + h));
          store<L>(to + H + h, load<L>(m.product + k * H + h));
        });
      }
    }
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.gradient, to, [](int64_t) { return A(1); });
  }

  // A few blocks of one head: the sum of the targets' gradients, each times its weight,
  // and the products with the row's own features.
  template <int Blocks>
  void gather(int64_t from, int64_t count, int64_t h, int64_t first, const A* beta,
              const Memory& m) const {
    const int64_t c = (h * blocks + first) * W;
    V mine[Blocks], total[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      mine[b] = load<W>(m.mine + c + b * W);
      total[b] = V{};
    }
    for (int64_t k = 0; k < count; ++k) {
      if (h == 0 && first == 0) shape.ahead(dout, by_source, from + k);
      const S* head = dout.row(by_source.other[from + k]) + h * C;
      const V weight = splat<W, A>(beta[k * H + h]);
      V dot{};
      for (int b = 0; b < Blocks; ++b) {
        const V d = shape.block(head, first + b, dout.end);
        dot += d * mine[b];
        total[b] += d * weight;
      }
      A* to = m.product + k * H + h;
      *to = first ? *to + sum<A>(dot) : sum<A>(dot);
    }
    for (int b = 0; b < Blocks; ++b) {
      A* to = m.gradient + c + b * W;
      store<W>(to, load<W>(to) + total[b]);
    }
  }

  void logits(int64_t i, const Memory&) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    const A* dweights = static_cast<const A*>(call.dweights);
    A* dedge_score = static_cast<A*>(call.dedge_score);
    A* dscore_dst = static_cast<A*>(call.dscore_dst);
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      // What is left of these sums is small beside their terms: no digit to lose.
      using D = Vec<double, L>;
      D delta{}, mass{}, total{};
      for (int64_t k = begin; k < end; ++k) {
        const int64_t position = by_target.position[k];
        A* to = record(position) + h;
        const auto signed_alpha = load<L>(to);
        auto product = load<L>(to + H);
        // The gradient of a weight after dropout, times what dropout multiplied it by.
        if (dweights) product += load<L>(dweights + position * H + h);
        if (dropout)
          product *= signed_alpha < 0 ? Vec<A, L>{} : splat<L, A>(dropout.kept);
        if (dweights || dropout) store<L>(to + H, product);
        const D alpha = __builtin_convertvector(absolute<L, A>(signed_alpha), D);
        delta += alpha * __builtin_convertvector(product, D);
        mass += alpha;
      }
      // Divided out here, what is left of the weights' rounding cannot keep the row's
      // gradients from cancelling.
      const D scale = begin < end ? 1 / mass : D{};
      delta *= scale;
      for (int64_t k = begin; k < end; ++k) {
        const int64_t position = by_target.position[k];
        A* to = record(position) + h;
        by_target.ahead(scores.src, H, k);
        const auto u = scores.template sums<L>(by_target.other[k], i, position, h);
        const auto slope = u > 0 ? splat<L, A>(1) : splat<L, A>(scores.slope);
        const D alpha = __builtin_convertvector(absolute<L, A>(load<L>(to)), D);
        const D product = __builtin_convertvector(load<L>(to + H), D);
        const D d =
            alpha * scale * (product - delta) * __builtin_convertvector(slope, D);
        total += d;
        store<L>(to, __builtin_convertvector(d, Vec<A, L>));
        if (dedge_score) store<L>(dedge_score + position * H + h, load<L>(to));
      }
      if (dscore_dst)
        store<L>(dscore_dst + i * H + h, __builtin_convertvector(total, Vec<A, L>));
    });
  }

  void source_scores(int64_t j, const Memory&) const {
    A* dscore_src = static_cast<A*>(call.dscore_src) + j * H;
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using D = Vec<double, L>;
      D total{};
      for (int64_t k = by_source.pointer[j]; k < by_source.pointer[j + 1]; ++k) {
        records.ahead(by_source, k);
        const A* from = record(by_source.position[k]) + h;
        total += __builtin_convertvector(load<L>(from), D);
      }
      store<L>(dscore_src + h, __builtin_convertvector(total, Vec<A, L>));
    });
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
