// Backward of a softmax over the edges of each target, for attentions whose pass by
// target has both the logit and <dout_i, z_j> of an edge: GATv2 and dot products.
#pragma once

#include "logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// Sums over chunks of rows, added up in the chunks' order.
struct Partial {
  double* data;
  int64_t chunks, width;
  Partial(int64_t chunks, int64_t width)
      : data(static_cast<double*>(malloc(size_t(chunks * width) * 8))),
        chunks(chunks),
        width(width) {}
  ~Partial() { free(data); }
  void put(int64_t chunk, const double* from) {
    __builtin_memcpy(data + chunk * width, from, size_t(width) * 8);
  }
  double total(int64_t at) const {
    double sum = 0;
    for (int64_t k = 0; k < chunks; ++k) sum += data[k * width + at];
    return sum;
  }
};

template <class Shape>
struct SoftmaxBackward {
  using A = typename Shape::A;

  const Call& call;
  const Shape shape;
  const Edges by_target, by_source;
  const Dropout<A> dropout;
  const EdgeNumbers<A> edge_weight, edge_bias;
  const typename Shape::Table z_src, z_dst, dout;
  const int64_t H, C, blocks, batch;
  const Records records;

  explicit SoftmaxBackward(const Call& c)
      : call(c),
        shape(c.heads, c.channels),
        by_target(c.by_target, c.wide_index),
        by_source(c.by_source, c.wide_index),
        dropout(c),
        edge_weight(c.edge_weight, c.heads),
        edge_bias(c.edge_bias, c.heads),
        z_src(shape.table(c.z_src)),
        z_dst(shape.table(c.z_dst)),
        dout(shape.table(c.dout)),
        H(shape.heads),
        C(shape.channels),
        blocks(shape.blocks()),
        batch(shape.batch_size()),
        records(c.records) {}

  // An edge's two numbers per head. After the pass by target: dlogit and beta. Within
  // it: alpha, negative where dropout drops the weight, and dalpha without the edge's
  // own weight.
  A* record(int64_t position) const { return records.at<A>(position); }

  struct Memory {
    Pieces pieces;           // What an attention needs beside these is taken after them.
    A *alpha, *dalpha;       // [batch, H]
    A* factor;               // [batch, H], dropout's
    double* dlogit;          // [batch, H]
    double *delta, *total;   // [H]; total sums the weights, later the dlogits
    double* scale;           // [H], 1 / the sum of the recomputed weights
    uint32_t* seeds;
    Memory(char* base, const SoftmaxBackward& pass) : pieces{base} {
      const int64_t H = pass.H, per_batch = pass.batch * H;
      alpha = pieces.take<A>(per_batch);
      dalpha = pieces.take<A>(per_batch);
      factor = pieces.take<A>(per_batch + pass.dropout.padded());
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      dlogit = pieces.take<double>(per_batch);
      delta = pieces.take<double>(H);
      total = pieces.take<double>(H);
      scale = pieces.take<double>(H);
    }
  };

  // A target's edges in batches, twice. products(from, count) puts their logits into
  // m.alpha and <dout_i, z_j> into m.dalpha. Then gradients(from, count) has m.dlogit
  // and the records.
  template <class Products, class Gradients>
  void softmax_row(int64_t i, const Memory& m, const Products& products,
                   const Gradients& gradients) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    for (int64_t h = 0; h < H; ++h) m.delta[h] = m.total[h] = 0;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      products(from, count);
      put_weights(i, from, count, m);
    }
    // The rounding of lse makes all weights of a row slightly too large or too small.
    // Dividing by their sum removes it, so that the row's gradients cancel.
    for (int64_t h = 0; h < H; ++h) {
      m.scale[h] = m.total[h] != 0 ? 1 / m.total[h] : 0;
      m.delta[h] *= m.scale[h];
      m.total[h] = 0;
    }
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      put_dlogits(from, count, m);
      gradients(from, count);
    }
  }

  // alpha and dalpha of a batch of edges, and their shares in delta and in the sum of
  // the weights.
  void put_weights(int64_t i, int64_t from, int64_t count, const Memory& m) const {
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    const A* dweights = static_cast<const A*>(call.dweights);
    edge_bias.add_to(by_target, from, count, m.alpha);
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      for (int64_t k = 0; k < count; ++k) {
        A* to = m.alpha + k * H + h;
        store<L>(to, load<L>(to) - load<L>(lse + h));
      }
    });
    exponentials(m.alpha, count * H);
    if (dropout)
      for (int64_t k = 0; k < count; ++k)
        dropout.factors(m.seeds, by_target.edge_id[from + k], m.factor + k * H);
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using Doubles = Vec<double, L>;
      Doubles delta = load<L>(m.delta + h), total = load<L>(m.total + h);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = by_target.position[from + k];
        auto alpha = load<L>(m.alpha + k * H + h);
        auto dalpha = load<L>(m.dalpha + k * H + h);
        if (dweights) dalpha += load<L>(dweights + at * H + h);
        const Doubles weight = __builtin_convertvector(alpha, Doubles);
        if (dropout) {
          const auto factor = load<L>(m.factor + k * H + h);
          dalpha *= factor;
          alpha = factor == 0 ? -alpha : alpha;
        }
        store<L>(record(at) + h, alpha);
        store<L>(record(at) + H + h, dalpha);
        delta += weight * edge_weight.template times<L>(dalpha, at, h);
        total += weight;
      }
      store<L>(m.delta + h, delta);
      store<L>(m.total + h, total);
    });
  }

  // dlogit and beta of a batch of edges.
  void put_dlogits(int64_t from, int64_t count, const Memory& m) const {
    A* dedge_weight = static_cast<A*>(call.dedge_weight);
    A* dedge_bias = static_cast<A*>(call.dedge_bias);
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using Doubles = Vec<double, L>;
      const Doubles delta = load<L>(m.delta + h), scale = load<L>(m.scale + h);
      Doubles total = load<L>(m.total + h);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = by_target.position[from + k];
        A* to = record(at) + h;
        const auto alpha = load<L>(to);
        const Doubles weight =
            __builtin_convertvector(absolute<L, A>(alpha), Doubles) * scale;
        const auto kept = load<L>(to + H);
        const Doubles dlogit =
            weight * (edge_weight.template times<L>(kept, at, h) - delta);
        total += dlogit;
        if (dedge_weight)
          store<L>(dedge_weight + at * H + h,
                   __builtin_convertvector(weight, Vec<A, L>) * kept);
        if (dedge_bias)
          store<L>(dedge_bias + at * H + h,
                   __builtin_convertvector(dlogit, Vec<A, L>));
        store<L>(m.dlogit + k * H + h, dlogit);
        store<L>(to, __builtin_convertvector(dlogit, Vec<A, L>));
        auto beta = __builtin_convertvector(weight, Vec<A, L>);
        if (dropout) beta = alpha < 0 ? Vec<A, L>{} : beta * dropout.keep_scale;
        if (edge_weight) beta *= edge_weight.template at<L>(at, h);
        store<L>(to + H, beta);
      }
      store<L>(m.total + h, total);
    });
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
