// Backward of GATv2, in the names of ops/README.md. Every sum is owned by one row, so no
// two threads add to it.
//
// The first pass, by target, leaves a record per edge: for each head dlogit and beta,
// for each channel whether v = z_src + z_dst + edge was above zero. The second, by
// source, reads no other feature rows than dout.
//
// Both passes sum dlogit leaky'(v) over the edges of a row. As leaky(v) = leaky'(v) v,
// these sums also give datt: sum_i z_dst_i (sum_j dlogit leaky') + sum_j z_src_j (sum_i
// dlogit leaky'), and the edges' part.
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
struct Gatv2Backward {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  using D = Vec<double, W>;
  using Word = typename LaneBits<W>::type;

  const Call& call;
  const Shape shape;
  const Edges by_target, by_source;
  const Dropout<A> dropout;
  const Pairs<Shape> pairs;
  const typename Shape::Table z_src, z_dst, dout;
  const int64_t H, C, blocks, batch;
  const Records records;

  explicit Gatv2Backward(const Call& c)
      : call(c),
        shape(c.heads, c.channels),
        by_target(c.by_target, c.wide_index),
        by_source(c.by_source, c.wide_index),
        dropout(c),
        pairs(shape, c),
        z_src(shape.table(c.z_src)),
        z_dst(shape.table(c.z_dst)),
        dout(shape.table(c.dout)),
        H(shape.heads),
        C(shape.channels),
        blocks(shape.blocks()),
        batch(shape.batch_size()),
        records(c.records) {}

  // An edge's two numbers per head. After the first pass: dlogit and beta. Within it:
  // alpha, negative where dropout drops the weight, and dalpha.
  A* record(int64_t position) const { return records.at<A>(position); }
  // Which channels were above zero, a word per block.
  Word* signs(int64_t position) const {
    return reinterpret_cast<Word*>(record(position) + 2 * H);
  }

  struct Memory {
    A *att, *z_i, *dout;      // [H, C], padded
    A* weighted_dout;         // [H, C], sum over i of beta_ij dout_i
    A* source_positive;       // [H, C], sum over i of dlogit where v > 0
    A *alpha, *dalpha;        // [batch, H]
    A* factor;                // [batch, H], dropout's
    double* target_positive;  // [H, C], sum over j of dlogit where v > 0
    double* datt;             // [H, C], this chunk's part
    double* dlogit;           // [batch, H]
    double *delta, *total;    // [H]; total sums the weights, later the dlogits
    double* scale;            // [H], 1 / the sum of the recomputed weights
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const Gatv2Backward& pass) {
      Pieces pieces{base};
      const int64_t padded = pass.shape.padded(), H = pass.H;
      const int64_t per_batch = pass.batch * H;
      att = pieces.take<A>(padded);
      z_i = pieces.take<A>(padded);
      dout = pieces.take<A>(padded);
      weighted_dout = pieces.take<A>(padded);
      source_positive = pieces.take<A>(padded);
      alpha = pieces.take<A>(per_batch);
      dalpha = pieces.take<A>(per_batch);
      factor = pieces.take<A>(per_batch + pass.dropout.padded());
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      target_positive = pieces.take<double>(padded);
      datt = pieces.take<double>(padded);
      dlogit = pieces.take<double>(per_batch);
      delta = pieces.take<double>(H);
      total = pieces.take<double>(H);
      scale = pieces.take<double>(H);
      bytes = pieces.used;
    }
  };

  int64_t run() const {
    const int64_t padded = shape.padded();
    Partial of_targets(Chunks(by_target, shape.width()).count, padded);
    Partial of_sources(Chunks(by_source, shape.width()).count, padded);
    if (!of_targets.data || !of_sources.data) return kOutOfMemory;
    shape.prepare(call.dz_src);
    shape.prepare(call.dz_dst);
    shape.prepare(call.dedge);
    records.prepare();
    int64_t status = pass(by_target, of_targets, [&](int64_t i, const Memory& m) {
      target(i, m);
    });
    if (status == kDone)
      status = pass(by_source, of_sources, [&](int64_t j, const Memory& m) {
        source(j, m);
      });
    A* datt = static_cast<A*>(call.datt);
    for (int64_t h = 0; h < H && status == kDone; ++h)
      for (int64_t c = 0; c < C; ++c) {
        const int64_t at = h * blocks * W + c;
        datt[h * C + c] = A(of_targets.total(at) + of_sources.total(at));
      }
    return status;
  }

  template <class Row>
  int64_t pass(const Edges& edges, Partial& datt, const Row& row) const {
    auto start = [&](char* base) {
      Memory m(base, *this);
      shape.pad(static_cast<const A*>(call.att), m.att);
      for (int64_t c = 0; c < shape.padded(); ++c) m.datt[c] = 0;
      dropout.split(m.seeds);
    };
    auto work = [&](int64_t i, char* base) { row(i, Memory(base, *this)); };
    auto finish = [&](int64_t chunk, char* base) {
      datt.put(chunk, Memory(base, *this).datt);
    };
    return over_rows(edges, shape.width(), call.threads, Memory(nullptr, *this).bytes,
                     start, work, finish);
  }

  void target(int64_t i, const Memory& m) const {
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    shape.unpack(z_dst.row(i), z_dst.end, m.z_i);
    shape.unpack(dout.row(i), dout.end, m.dout);
    for (int64_t c = 0; c < shape.padded(); ++c) m.target_positive[c] = 0;
    for (int64_t h = 0; h < H; ++h) m.delta[h] = m.total[h] = 0;
    for (int64_t from = begin; from < end; from += batch)
      compute_weights(i, from, smaller(batch, end - from), m);
    // The rounding of lse makes all weights of a row slightly too large or too small.
    // Dividing by their sum removes it, so that the row's gradients cancel.
    for (int64_t h = 0; h < H; ++h) {
      m.scale[h] = end > begin ? 1 / m.total[h] : 0;
      m.delta[h] *= m.scale[h];
      m.total[h] = 0;
    }
    for (int64_t from = begin; from < end; from += batch)
      compute_gradients(from, smaller(batch, end - from), m);
    const double slope = pairs.slope;
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const D sum = load<W>(m.target_positive + c) * (1 - slope) + slope * m.total[h];
        const D z_row = __builtin_convertvector(load<W>(m.z_i + c), D);
        store<W>(m.datt + c, load<W>(m.datt + c) + sum * z_row);
        shape.put(__builtin_convertvector(sum, V) * load<W>(m.att + c), to + h * C, b);
      }
  }

  // alpha and dalpha of a batch of edges, and their shares in delta and in the sum of
  // the weights.
  void compute_weights(int64_t i, int64_t from, int64_t count, const Memory& m) const {
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    const A* dweights = static_cast<const A*>(call.dweights);
    shape.tiles([&](auto tile, int64_t h, int64_t b) {
      add_logits<decltype(tile)::blocks>(from, count, h, b, m);
    });
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
        delta += weight * __builtin_convertvector(dalpha, Doubles);
        total += weight;
      }
      store<L>(m.delta + h, delta);
      store<L>(m.total + h, total);
    });
  }

  // A few blocks of one head: their part of the logits and of <dout_i, z_j>, and which
  // channels of v are above zero.
  template <int Blocks>
  void add_logits(int64_t from, int64_t count, int64_t h, int64_t first,
               const Memory& m) const {
    V z_i[Blocks], att[Blocks], below[Blocks], dout_i[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      z_i[b] = load<W>(m.z_i + c);
      att[b] = load<W>(m.att + c);
      below[b] = att[b] * pairs.slope;
      dout_i[b] = load<W>(m.dout + c);
    }
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_target.position[from + k];
      if (h == 0 && first == 0) shape.prefetch(z_src, by_target, from + k);
      const S* head = z_src.row(by_target.other[from + k]) + h * C;
      Word* positive_bits = signs(at) + h * blocks + first;
      V logit{}, dalpha{};
      for (int b = 0; b < Blocks; ++b) {
        const V z_j = shape.block(head, first + b, z_src.end);
        V v = z_j + z_i[b];
        if (pairs.edge.data)
          v += shape.block(pairs.edge.row(at) + h * C, first + b, pairs.edge.end);
        positive_bits[b] = above_zero<W, A>(v);
        logit += (v > 0 ? att[b] : below[b]) * v;
        dalpha += dout_i[b] * z_j;
      }
      A *logit_to = m.alpha + k * H + h, *dalpha_to = m.dalpha + k * H + h;
      *logit_to = first ? *logit_to + sum<A>(logit) : sum<A>(logit);
      *dalpha_to = first ? *dalpha_to + sum<A>(dalpha) : sum<A>(dalpha);
    }
  }

  // dlogit and beta of a batch of edges, and their shares in the row's gradients.
  void compute_gradients(int64_t from, int64_t count, const Memory& m) const {
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using Doubles = Vec<double, L>;
      const Doubles delta = load<L>(m.delta + h), scale = load<L>(m.scale + h);
      Doubles total = load<L>(m.total + h);
      for (int64_t k = 0; k < count; ++k) {
        A* to = record(by_target.position[from + k]) + h;
        const auto alpha = load<L>(to);
        const Doubles weight =
            __builtin_convertvector(absolute<L, A>(alpha), Doubles) * scale;
        const Doubles dlogit =
            weight * (__builtin_convertvector(load<L>(to + H), Doubles) - delta);
        total += dlogit;
        store<L>(m.dlogit + k * H + h, dlogit);
        store<L>(to, __builtin_convertvector(dlogit, Vec<A, L>));
        auto beta = __builtin_convertvector(weight, Vec<A, L>);
        if (dropout) beta = alpha < 0 ? Vec<A, L>{} : beta * dropout.keep_scale;
        store<L>(to + H, beta);
      }
      store<L>(m.total + h, total);
    });
    shape.tiles([&](auto tile, int64_t h, int64_t b) {
      add_dlogits<decltype(tile)::blocks>(from, count, h, b, m);
    });
    if (pairs.edge.data)
      for (int64_t k = 0; k < count; ++k)
        edge_gradients(by_target.position[from + k], m);
  }

  template <int Blocks>
  void add_dlogits(int64_t from, int64_t count, int64_t h, int64_t first,
                   const Memory& m) const {
    D sum[Blocks];
    double* to = m.target_positive + (h * blocks + first) * W;
    for (int b = 0; b < Blocks; ++b) sum[b] = load<W>(to + b * W);
    for (int64_t k = 0; k < count; ++k) {
      const Word* positive_bits =
          signs(by_target.position[from + k]) + h * blocks + first;
      const D dlogit = splat<W, double>(m.dlogit[k * H + h]);
      for (int b = 0; b < Blocks; ++b)
        sum[b] = add_where<W, double>(sum[b], positive_bits[b], dlogit);
    }
    for (int b = 0; b < Blocks; ++b) store<W>(to + b * W, sum[b]);
  }

  // dedge of one edge, and its part of datt.
  void edge_gradients(int64_t at, const Memory& m) const {
    const A* dlogit = record(at);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V below = splat<W, A>(dlogit[h] * pairs.slope);
        const V share = add_where<W, A>(below, signs(at)[h * blocks + b],
                                        splat<W, A>(dlogit[h]) - below);
        const V own = shape.block(pairs.edge.row(at) + h * C, b, pairs.edge.end);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(share * own, D));
        shape.put(load<W>(m.att + c) * share,
                  static_cast<S*>(call.dedge.data) + at * call.dedge.stride + h * C, b);
      }
  }

  void source(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c)
      m.weighted_dout[c] = m.source_positive[c] = 0;
    for (int64_t h = 0; h < H; ++h) m.total[h] = 0;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t k = 0; k < count; ++k) records.prefetch(by_source, from + k);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto total = load<L>(m.total + h);
        for (int64_t k = 0; k < count; ++k) {
          const A* dlogit = record(by_source.position[from + k]) + h;
          total += __builtin_convertvector(load<L>(dlogit), Vec<double, L>);
        }
        store<L>(m.total + h, total);
      });
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        add_targets<decltype(tile)::blocks>(from, count, h, b, m);
      });
    }
    const S* row = z_src.row(j);
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V sum = load<W>(m.source_positive + c) * (1 - pairs.slope) +
                      pairs.slope * A(m.total[h]);
        const D z_j =
            __builtin_convertvector(shape.block(row + h * C, b, z_src.end), D);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(sum, D) * z_j);
        shape.put(load<W>(m.weighted_dout + c) + load<W>(m.att + c) * sum, to + h * C,
                  b);
      }
  }

  template <int Blocks>
  void add_targets(int64_t from, int64_t count, int64_t h, int64_t first,
                   const Memory& m) const {
    V sum[Blocks], positive[Blocks];
    for (int b = 0; b < Blocks; ++b) sum[b] = positive[b] = V{};
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_source.position[from + k];
      if (h == 0 && first == 0) shape.prefetch(dout, by_source, from + k);
      const S* head = dout.row(by_source.other[from + k]) + h * C;
      const Word* positive_bits = signs(at) + h * blocks + first;
      const V dlogit = splat<W, A>(record(at)[h]);
      const V beta = splat<W, A>(record(at)[H + h]);
      for (int b = 0; b < Blocks; ++b) {
        sum[b] += beta * shape.block(head, first + b, dout.end);
        positive[b] = add_where<W, A>(positive[b], positive_bits[b], dlogit);
      }
    }
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      store<W>(m.weighted_dout + c, load<W>(m.weighted_dout + c) + sum[b]);
      store<W>(m.source_positive + c, load<W>(m.source_positive + c) + positive[b]);
    }
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
