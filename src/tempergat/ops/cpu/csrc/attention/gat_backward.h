// Backward of GAT, in the names of ops/README.md. Every sum is owned by one row, so no
// two threads add to it.
//
// The rounding of lse makes all weights of a row slightly too large or too small, more
// where logits are large: there the weights are summed and divided by their sum. With
// the edges by source, one read of the targets' dout then gives dz, and for every edge
// alpha and <dout_i, z_j>. The gradients of the scores follow from these two numbers per
// edge and head.
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
  const EdgeNumbers<A> edge_weight;
  const typename Shape::Table z, dout;
  const int64_t H, C, blocks, batch;
  const Records records;
  // For each target, its lse [H] and the factor of its recomputed weights [H].
  A* const normaliser;

  explicit GatBackward(const Call& c)
      : call(c),
        shape(c.heads, c.channels),
        by_target(c.by_target, c.wide_index),
        by_source(c.by_source, c.wide_index),
        dropout(c),
        scores(shape, c),
        edge_weight(c.edge_weight, c.heads),
        z(shape.table(c.z_src)),
        dout(shape.table(c.dout)),
        H(shape.heads),
        C(shape.channels),
        blocks(shape.blocks()),
        batch(shape.batch_size()),
        records(c.records),
        normaliser(static_cast<A*>(
            malloc(size_t(by_target.rows * H + 1) * 2 * sizeof(A)))) {}
  ~GatBackward() { free(normaliser); }
  GatBackward(const GatBackward&) = delete;

  // An edge's two numbers per head: alpha, negative where dropout drops the weight, and
  // dalpha without the edge's own weight. The pass by target replaces alpha by du.
  A* record(int64_t position) const { return records.at<A>(position); }

  struct Memory {
    A *z_j, *dz;              // [H, C], padded
    A *alpha, *beta, *dalpha;  // [batch, H]
    A* factor;                // [H], dropout's
    double* mass;             // [H], the sum of a row's recomputed weights
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const GatBackward& pass) {
      Pieces pieces{base};
      const int64_t per_batch = pass.batch * pass.H;
      z_j = pieces.take<A>(pass.shape.padded());
      dz = pieces.take<A>(pass.shape.padded());
      alpha = pieces.take<A>(per_batch);
      beta = pieces.take<A>(per_batch);
      dalpha = pieces.take<A>(per_batch);
      factor = pieces.take<A>(pass.dropout.padded());
      mass = pieces.take<double>(pass.H);
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      bytes = pieces.used;
    }
  };

  int64_t run() const {
    if (!normaliser) return kOutOfMemory;
    shape.prepare(call.dz_src);
    records.prepare();
    int64_t status = pass(by_target, 4 * H, &GatBackward::normalise);
    if (status == kDone)
      status = pass(by_source, shape.width(), &GatBackward::feature_gradients);
    if (status == kDone) status = pass(by_target, 4 * H, &GatBackward::logit_gradients);
    if (status == kDone) status = pass(by_source, H, &GatBackward::source_scores);
    return status;
  }

  template <class Row>
  int64_t pass(const Edges& edges, int64_t width, Row row) const {
    auto work = [&](int64_t, int64_t first, int64_t end, char* base) {
      const Memory m(base, *this);
      dropout.split(m.seeds);
      for (int64_t i = first; i < end; ++i) (this->*row)(i, m);
    };
    return over_chunks(Chunks(edges, width), call.threads,
                       Memory(nullptr, *this).bytes, work);
  }

  // By target: lse, and 1 / the sum of the recomputed weights where lse is large.
  void normalise(int64_t i, const Memory& m) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    A* to = normaliser + i * 2 * H;
    bool small = true;
    for (int64_t h = 0; h < H; ++h) {
      to[h] = lse[h];
      to[H + h] = 1;
      small &= lse[h] > -4 && lse[h] < 4;
      m.mass[h] = 0;
    }
    // The rounding of a small lse is no larger than that of the weights.
    if (small) return;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t j = by_target.other[from + k], at = by_target.position[from + k];
        by_target.prefetch(scores.src, H, from + k);
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
    for (int64_t h = 0; h < H; ++h) to[H + h] = m.mass[h] != 0 ? A(1 / m.mass[h]) : A(0);
  }

  // By source: dz_j, and for every edge alpha and <dout_i, z_j>.
  void feature_gradients(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.dz[c] = 0;
    shape.unpack(z.row(j), z.end, m.z_j);
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = by_source.other[from + k];
        const int64_t at = by_source.position[from + k];
        records.prefetch(by_source, from + k);
        by_source.prefetch(normaliser, 2 * H, from + k);
        if (scores.dst) by_source.prefetch(scores.dst, H, from + k);
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          store<L>(m.alpha + k * H + h, scores.template logits<L>(j, i, at, h) -
                                            load<L>(normaliser + i * 2 * H + h));
        });
      }
      exponentials(m.alpha, count * H);
      for (int64_t k = 0; k < count; ++k) {
        const A* scale = normaliser + (by_source.other[from + k] * 2 + 1) * H;
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          A* alpha = m.alpha + k * H + h;
          store<L>(alpha, load<L>(alpha) * load<L>(scale + h));
        });
      }
      const A* beta = dropout || edge_weight ? m.beta : m.alpha;
      if (dropout) {
        for (int64_t k = 0; k < count; ++k) {
          A *alpha = m.alpha + k * H, *dropped = m.beta + k * H;
          dropout.factors(m.seeds, by_source.edge_id[from + k], m.factor);
          for (int64_t h = 0; h < H; ++h) {
            dropped[h] = alpha[h] * m.factor[h];
            if (m.factor[h] == 0) alpha[h] = -alpha[h];
          }
        }
      } else if (edge_weight) {
        __builtin_memcpy(m.beta, m.alpha, size_t(count * H) * sizeof(A));
      }
      edge_weight.multiply(by_source, from, count, m.beta);
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        add_targets<decltype(tile)::blocks>(from, count, h, b, beta, m);
      });
      for (int64_t k = 0; k < count; ++k) {
        A* to = record(by_source.position[from + k]);
        over_heads(H, [&](auto lanes, int64_t h) {
          constexpr int L = decltype(lanes)::count;
          store<L>(to + h, load<L>(m.alpha + k * H + h));
          store<L>(to + H + h, load<L>(m.dalpha + k * H + h));
        });
      }
    }
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.dz, to);
  }

  // A few blocks of one head: their part of sum_i beta_ij dout_i and of <dout_i, z_j>.
  template <int Blocks>
  void add_targets(int64_t from, int64_t count, int64_t h, int64_t first, const A* beta,
              const Memory& m) const {
    const int64_t c = (h * blocks + first) * W;
    V z_j[Blocks], total[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      z_j[b] = load<W>(m.z_j + c + b * W);
      total[b] = V{};
    }
    for (int64_t k = 0; k < count; ++k) {
      if (h == 0 && first == 0) shape.prefetch(dout, by_source, from + k);
      const S* head = dout.row(by_source.other[from + k]) + h * C;
      const V weight = splat<W, A>(beta[k * H + h]);
      V dot{};
      for (int b = 0; b < Blocks; ++b) {
        const V d = shape.block(head, first + b, dout.end);
        dot += d * z_j[b];
        total[b] += d * weight;
      }
      A* to = m.dalpha + k * H + h;
      *to = first ? *to + sum<A>(dot) : sum<A>(dot);
    }
    for (int b = 0; b < Blocks; ++b) {
      A* to = m.dz + c + b * W;
      store<W>(to, load<W>(to) + total[b]);
    }
  }

  // By target: dlogit and du of every edge, and dscore_dst.
  void logit_gradients(int64_t i, const Memory&) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    const A* dweights = static_cast<const A*>(call.dweights);
    A* dedge_score = static_cast<A*>(call.dedge_score);
    A* dscore_dst = static_cast<A*>(call.dscore_dst);
    A* dedge_weight = static_cast<A*>(call.dedge_weight);
    A* dedge_bias = static_cast<A*>(call.dedge_bias);
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      // These sums nearly cancel, so they are taken in double.
      using D = Vec<double, L>;
      D delta{}, mass{}, total{};
      for (int64_t k = begin; k < end; ++k) {
        const int64_t position = by_target.position[k];
        A* to = record(position) + h;
        const auto signed_alpha = load<L>(to);
        auto dalpha = load<L>(to + H);
        // The dz of a weight after dropout, times what dropout multiplied it by.
        if (dweights) dalpha += load<L>(dweights + position * H + h);
        if (dropout)
          dalpha *= signed_alpha < 0 ? Vec<A, L>{} : splat<L, A>(dropout.keep_scale);
        if (dweights || dropout) store<L>(to + H, dalpha);
        const D alpha = __builtin_convertvector(absolute<L, A>(signed_alpha), D);
        delta += alpha * edge_weight.template times<L>(dalpha, position, h);
        mass += alpha;
      }
      // Dividing by the sum of the weights removes their common rounding error, so that
      // the row's gradients cancel as they should.
      const D scale = mass != 0 ? 1 / mass : D{};
      delta *= scale;
      for (int64_t k = begin; k < end; ++k) {
        const int64_t position = by_target.position[k];
        A* to = record(position) + h;
        by_target.prefetch(scores.src, H, k);
        const auto u = scores.template sums<L>(by_target.other[k], i, position, h);
        const auto slope = u > 0 ? splat<L, A>(1) : splat<L, A>(scores.slope);
        const D alpha = __builtin_convertvector(absolute<L, A>(load<L>(to)), D);
        const auto kept = load<L>(to + H);
        const D dlogit =
            alpha * scale * (edge_weight.template times<L>(kept, position, h) - delta);
        const D d = dlogit * __builtin_convertvector(slope, D);
        total += d;
        if (dedge_weight)
          store<L>(dedge_weight + position * H + h,
                   __builtin_convertvector(alpha * scale, Vec<A, L>) * kept);
        if (dedge_bias)
          store<L>(dedge_bias + position * H + h,
                   __builtin_convertvector(dlogit, Vec<A, L>));
        store<L>(to, __builtin_convertvector(d, Vec<A, L>));
        if (dedge_score) store<L>(dedge_score + position * H + h, load<L>(to));
      }
      if (dscore_dst)
        store<L>(dscore_dst + i * H + h, __builtin_convertvector(total, Vec<A, L>));
    });
  }

  // By source: dscore_src.
  void source_scores(int64_t j, const Memory&) const {
    A* dscore_src = static_cast<A*>(call.dscore_src) + j * H;
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using D = Vec<double, L>;
      D total{};
      for (int64_t k = by_source.pointer[j]; k < by_source.pointer[j + 1]; ++k) {
        records.prefetch(by_source, k);
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
