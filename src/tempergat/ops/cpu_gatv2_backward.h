// Backward of GATv2: every sum is owned by one row, so no two threads add to it.
#pragma once

#include "cpu_logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// With the edges by target: the gradients of the logits, of z_dst, of the edges'
// features and of the attention vector.
template <class Shape>
struct TargetPass {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;

  const Call& call;
  const Shape shape;
  const Edges edges;
  const Dropout<A> dropout;
  const Pairs<Shape> pairs;
  const typename Shape::Table z, z_dst, out, dout;
  const int64_t H, C, blocks, most;
  // What <dout, out> says about a row's weights is as exact as out is stored, and
  // leaves out the gradients of the weights themselves.
  const bool summed;

  explicit TargetPass(const Call& c)
      : call(c),
        shape(c.heads, c.channels),
        edges(c.by_target, c.wide_index),
        dropout(c),
        pairs(shape, c),
        z(shape.table(c.z_src)),
        z_dst(shape.table(c.z_dst)),
        out(shape.table(c.out)),
        dout(shape.table(c.dout)),
        H(shape.heads),
        C(shape.channels),
        blocks(shape.blocks()),
        most(shape.together()),
        summed(c.dweights || sizeof(S) != sizeof(A)) {}

  struct Memory {
    A *att, *mine, *dout, *gradient, *datt, *alpha, *product, *factor, *delta, *total;
    double* datt_sum;
    int64_t* pending;
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const TargetPass& pass) {
      Pieces pieces{base};
      const int64_t padded = pass.shape.padded(), H = pass.H;
      att = pieces.take<A>(padded);
      mine = pieces.take<A>(padded);
      dout = pieces.take<A>(padded);
      gradient = pieces.take<A>(padded);
      datt = pieces.take<A>(padded);
      alpha = pieces.take<A>(pass.most * H);
      product = pieces.take<A>(pass.most * H);
      factor = pieces.take<A>(pass.most * H + pass.dropout.padded());
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      delta = pieces.take<A>(H);
      total = pieces.take<A>(H);
      datt_sum = pieces.take<double>(padded);
      pending = pieces.take<int64_t>(1);
      bytes = pieces.used;
    }
  };

  int64_t run() const {
    const int64_t padded = shape.padded();
    const int64_t chunks = Chunks(edges, shape.width()).count;
    double* partial =
        static_cast<double*>(malloc(size_t(larger<int64_t>(1, chunks * padded)) * 8));
    if (!partial) return kOutOfMemory;
    auto start = [&](char* base) {
      Memory m(base, *this);
      shape.pad(static_cast<const A*>(call.att), m.att);
      for (int64_t c = 0; c < padded; ++c) m.datt[c] = 0, m.datt_sum[c] = 0;
      *m.pending = 0;
      dropout.split(m.seeds);
    };
    auto work = [&](int64_t i, char* base) { row(i, Memory(base, *this)); };
    auto finish = [&](int64_t chunk, char* base) {
      Memory m(base, *this);
      flush(m);
      __builtin_memcpy(partial + chunk * padded, m.datt_sum, size_t(padded) * 8);
    };
    const int64_t status = over_rows(edges, shape.width(), call.threads,
                                     Memory(nullptr, *this).bytes, start, work, finish);
    A* datt = static_cast<A*>(call.datt);
    for (int64_t h = 0; h < H && status == kDone; ++h)
      for (int64_t c = 0; c < C; ++c) {
        double total = 0;
        for (int64_t k = 0; k < chunks; ++k)
          total += partial[k * padded + h * blocks * W + c];
        datt[h * C + c] = A(total);
      }
    free(partial);
    return status;
  }

  // A long sum in the working type loses digits: it is carried over into doubles
  // every few edges.
  void flush(const Memory& m) const {
    for (int64_t c = 0; c < shape.padded(); ++c) {
      m.datt_sum[c] += double(m.datt[c]);
      m.datt[c] = 0;
    }
    *m.pending = 0;
  }

  void row(int64_t i, const Memory& m) const {
    const int64_t begin = edges.pointer[i], end = edges.pointer[i + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.gradient[c] = 0;
    shape.unpack(z_dst.row(i), z_dst.end, m.mine);
    shape.unpack(dout.row(i), dout.end, m.dout);
    for (int64_t h = 0; h < H; ++h) m.delta[h] = m.total[h] = 0;
    if (summed) {
      for (int64_t from = begin; from < end; from += most) {
        const int64_t count = smaller(most, end - from);
        weigh(i, from, count, end, m);
        for (int64_t k = 0; k < count; ++k)
          for (int64_t h = 0; h < H; ++h) {
            m.delta[h] += m.alpha[k * H + h] * m.product[k * H + h];
            m.total[h] += m.alpha[k * H + h];
          }
      }
      // The rounding of lse is common to all weights of a row; so it cancels out.
      for (int64_t h = 0; h < H; ++h) m.delta[h] /= m.total[h];
    } else if (end > begin) {
      const S* row = out.row(i);
      for (int64_t h = 0; h < H; ++h) {
        V dot{};
        for (int64_t b = 0; b < blocks; ++b)
          dot += load<W>(m.dout + (h * blocks + b) * W) *
                 shape.block(row + h * C, b, out.end);
        m.delta[h] = sum<A>(dot);
      }
    }
    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      weigh(i, from, count, end, m);
      for (int64_t k = 0; k < count; ++k) spread(from + k, k, m);
      *m.pending += count;
      if (*m.pending >= 64) flush(m);
    }
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    for (int64_t c = 0; c < shape.padded(); ++c) m.gradient[c] *= m.att[c];
    shape.pack(m.gradient, to, [](int64_t) { return A(1); });
  }

  // The weights alpha of a few edges, what dropout makes of them as a factor, and the
  // gradient that arrives at alpha.
  void weigh(int64_t i, int64_t from, int64_t count, int64_t end,
             const Memory& m) const {
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    const A* dweights = static_cast<const A*>(call.dweights);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = edges.position[from + k];
      if (from + k + 2 < end) shape.prefetch(z.row(edges.other[from + k + 2]));
      const S* row = z.row(edges.other[from + k]);
      for (int64_t h = 0; h < H; ++h) {
        V logit{}, product{};
        for (int64_t b = 0; b < blocks; ++b) {
          const int64_t c = (h * blocks + b) * W;
          const V other = shape.block(row + h * C, b, z.end);
          const V v = pairs.sum(other, m.mine, h, b, at);
          logit += load<W>(m.att + c) * leaky<W>(v, pairs.slope);
          product += load<W>(m.dout + c) * other;
        }
        m.alpha[k * H + h] = sum<A>(logit) - lse[h];
        m.product[k * H + h] = sum<A>(product);
      }
      if (dweights)
        for (int64_t h = 0; h < H; ++h)
          m.product[k * H + h] += dweights[at * H + h];
      if (dropout) {
        A* factor = m.factor + k * H;
        dropout.factors(m.seeds, edges.edge_id[from + k], factor);
        for (int64_t h = 0; h < H; ++h) m.product[k * H + h] *= factor[h];
      }
    }
    exponentials(m.alpha, count * H);
  }

  // Adds one edge's share to the gradients of the row and of the attention vector.
  void spread(int64_t slot, int64_t k, const Memory& m) const {
    const int64_t at = edges.position[slot];
    A* gradient = static_cast<A*>(call.edge_gradient) + at * H;
    A* weight = static_cast<A*>(call.edge_other) + at * H;
    const A *alpha = m.alpha + k * H, *product = m.product + k * H;
    for (int64_t h = 0; h < H; ++h) {
      gradient[h] = alpha[h] * (product[h] - m.delta[h]);
      weight[h] = dropout ? alpha[h] * m.factor[k * H + h] : alpha[h];
    }
    const S* row = z.row(edges.other[slot]);
    for (int64_t h = 0; h < H; ++h) {
      const V one = splat<W, A>(gradient[h]), below = one * pairs.slope;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V v =
            pairs.sum(shape.block(row + h * C, b, z.end), m.mine, h, b, at);
        const V d = v > 0 ? one : below;
        store<W>(m.gradient + c, load<W>(m.gradient + c) + d);
        store<W>(m.datt + c, load<W>(m.datt + c) + d * v);
      }
    }
    if (!call.dedge.data) return;
    S* to = static_cast<S*>(call.dedge.data) + at * call.dedge.stride;
    const V zero{};
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const V v =
            pairs.sum(shape.block(row + h * C, b, z.end), m.mine, h, b, at);
        const V t = load<W>(m.att + (h * blocks + b) * W) * gradient[h] *
                    (v > 0 ? zero + A(1) : zero + pairs.slope);
        shape.put(t, to + h * C, b);
      }
  }
};

// With the edges by source: the gradient of z_src.
template <class Shape>
int64_t source_pass(const Call& call) {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  constexpr int W = Shape::W;
  const Shape shape(call.heads, call.channels);
  const Edges edges(call.by_source, call.wide_index);
  const Pairs<Shape> pairs(shape, call);
  const auto z = shape.table(call.z_src), z_dst = shape.table(call.z_dst),
             dout = shape.table(call.dout);
  const A* gradients = static_cast<const A*>(call.edge_gradient);
  const A* weights = static_cast<const A*>(call.edge_other);
  const int64_t H = shape.heads, C = shape.channels, blocks = shape.blocks();

  struct Memory {
    A *att, *mine, *sum;
    int64_t bytes;
    Memory(char* base, const Shape& shape) {
      Pieces pieces{base};
      att = pieces.take<A>(shape.padded());
      mine = pieces.take<A>(shape.padded());
      sum = pieces.take<A>(shape.padded());
      bytes = pieces.used;
    }
  };
  auto start = [&](char* base) {
    shape.pad(static_cast<const A*>(call.att), Memory(base, shape).att);
  };
  auto work = [&](int64_t j, char* base) {
    Memory m(base, shape);
    const int64_t begin = edges.pointer[j], end = edges.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.sum[c] = 0;
    shape.unpack(z.row(j), z.end, m.mine);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = edges.other[k], at = edges.position[k];
      if (k + 2 < end) {
        shape.prefetch(dout.row(edges.other[k + 2]));
        shape.prefetch(z_dst.row(edges.other[k + 2]));
      }
      for (int64_t h = 0; h < H; ++h) {
        const V one = splat<W, A>(gradients[at * H + h]), below = one * pairs.slope;
        const V weight = splat<W, A>(weights[at * H + h]);
        for (int64_t b = 0; b < blocks; ++b) {
          const int64_t c = (h * blocks + b) * W;
          const V v = pairs.sum(shape.block(z_dst.row(i) + h * C, b, z_dst.end),
                                m.mine, h, b, at);
          const V d = shape.block(dout.row(i) + h * C, b, dout.end);
          store<W>(m.sum + c, load<W>(m.sum + c) + weight * d +
                                     load<W>(m.att + c) * (v > 0 ? one : below));
        }
      }
    }
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.sum, to, [](int64_t) { return A(1); });
  };
  return over_rows(edges, shape.width(), call.threads, Memory(nullptr, shape).bytes,
                   start, work, [](int64_t, char*) {});
}

template <class Shape>
int64_t gatv2_backward(const Call& call) {
  const int64_t status = TargetPass<Shape>(call).run();
  return status == kDone ? source_pass<Shape>(call) : status;
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
