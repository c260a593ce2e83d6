// Backward of GATv2: every sum is owned by one row, so no two threads add to it.
//
// The first pass, by target, leaves a record per edge: for each head the gradient of
// its logit and its weight, for each channel whether v = z_src + z_dst + edge was above
// zero. The second, by source, needs no other feature rows than dout.
//
// With g an edge's gradient and s the slope at v, both passes form sums of g s over the
// edges of a row; as LeakyReLU(v) = s v, they also give the gradient of the attention
// vector: sum_i z_dst_i (sum_j g s) + sum_j z_src_j (sum_i g s), and the edges' part.
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
  const int64_t H, C, blocks, most;
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
        most(shape.together()),
        records(c.records) {}

  // An edge's two numbers per head: gradients and weights after the first pass; within
  // it, weights before dropout, negative where dropped, and the gradients that arrive.
  A* numbers(int64_t position) const { return records.at<A>(position); }
  // Which channels were above zero, a word per block.
  Word* signs(int64_t position) const {
    return reinterpret_cast<Word*>(numbers(position) + 2 * H);
  }

  struct Memory {
    A *att, *mine, *dout, *alpha, *product, *factor, *sum, *above;
    double *gradient, *datt, *step, *delta, *total, *scale;
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const Gatv2Backward& pass) {
      Pieces pieces{base};
      const int64_t padded = pass.shape.padded(), H = pass.H, some = pass.most * H;
      att = pieces.take<A>(padded);
      mine = pieces.take<A>(padded);
      dout = pieces.take<A>(padded);
      sum = pieces.take<A>(padded);
      above = pieces.take<A>(padded);
      alpha = pieces.take<A>(some);
      product = pieces.take<A>(some);
      factor = pieces.take<A>(some + pass.dropout.padded());
      seeds = pieces.take<uint32_t>(2 * pass.dropout.padded());
      gradient = pieces.take<double>(padded);
      datt = pieces.take<double>(padded);
      step = pieces.take<double>(some);
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
    shape.fresh(call.dz_src);
    shape.fresh(call.dz_dst);
    shape.fresh(call.dedge);
    records.fresh();
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
    shape.unpack(z_dst.row(i), z_dst.end, m.mine);
    shape.unpack(dout.row(i), dout.end, m.dout);
    for (int64_t c = 0; c < shape.padded(); ++c) m.gradient[c] = 0;
    for (int64_t h = 0; h < H; ++h) m.delta[h] = m.total[h] = 0;
    for (int64_t from = begin; from < end; from += most)
      weigh(i, from, smaller(most, end - from), m);
    // The rounding of lse makes all weights of a row a little too large or too small;
    // divided out here, it cannot keep the row's gradients from cancelling.
    for (int64_t h = 0; h < H; ++h) {
      m.scale[h] = end > begin ? 1 / m.total[h] : 0;
      m.delta[h] *= m.scale[h];
      m.total[h] = 0;
    }
    for (int64_t from = begin; from < end; from += most)
      spread(from, smaller(most, end - from), m);
    const double slope = pairs.slope;
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const D sum = load<W>(m.gradient + c) * (1 - slope) + slope * m.total[h];
        const D mine = __builtin_convertvector(load<W>(m.mine + c), D);
        store<W>(m.datt + c, load<W>(m.datt + c) + sum * mine);
        shape.put(__builtin_convertvector(sum, V) * load<W>(m.att + c), to + h * C, b);
      }
  }

  // The weights of a few edges, the gradients that arrive at them, and their mean by
  // weight over the row.
  void weigh(int64_t i, int64_t from, int64_t count, const Memory& m) const {
    const A* lse = static_cast<const A*>(call.lse) + i * H;
    const A* dweights = static_cast<const A*>(call.dweights);
    shape.tiles([&](auto tile, int64_t h, int64_t b) {
      compare<decltype(tile)::blocks>(from, count, h, b, m);
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
        auto product = load<L>(m.product + k * H + h);
        if (dweights) product += load<L>(dweights + at * H + h);
        const Doubles weight = __builtin_convertvector(alpha, Doubles);
        if (dropout) {
          const auto factor = load<L>(m.factor + k * H + h);
          product *= factor;
          alpha = factor == 0 ? -alpha : alpha;
        }
        store<L>(numbers(at) + h, alpha);
        store<L>(numbers(at) + H + h, product);
        delta += weight * __builtin_convertvector(product, Doubles);
        total += weight;
      }
      store<L>(m.delta + h, delta);
      store<L>(m.total + h, total);
    });
  }

  // Some blocks of one head: their part of the logits and of the products with dout,
  // and which channels are above zero.
  template <int Blocks>
  void compare(int64_t from, int64_t count, int64_t h, int64_t first,
               const Memory& m) const {
    V mine[Blocks], att[Blocks], below[Blocks], gradient[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      mine[b] = load<W>(m.mine + c);
      att[b] = load<W>(m.att + c);
      below[b] = att[b] * pairs.slope;
      gradient[b] = load<W>(m.dout + c);
    }
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_target.position[from + k];
      if (h == 0 && first == 0) shape.ahead(z_src, by_target, from + k);
      const S* head = z_src.row(by_target.other[from + k]) + h * C;
      Word* above = signs(at) + h * blocks + first;
      V logit{}, product{};
      for (int b = 0; b < Blocks; ++b) {
        const V other = shape.block(head, first + b, z_src.end);
        V v = other + mine[b];
        if (pairs.edge.data)
          v += shape.block(pairs.edge.row(at) + h * C, first + b, pairs.edge.end);
        above[b] = above_zero<W, A>(v);
        logit += (v > 0 ? att[b] : below[b]) * v;
        product += gradient[b] * other;
      }
      A *to = m.alpha + k * H + h, *other = m.product + k * H + h;
      *to = first ? *to + sum<A>(logit) : sum<A>(logit);
      *other = first ? *other + sum<A>(product) : sum<A>(product);
    }
  }

  // The gradients of a few edges' logits, and their shares in the row's.
  void spread(int64_t from, int64_t count, const Memory& m) const {
    over_heads(H, [&](auto lanes, int64_t h) {
      constexpr int L = decltype(lanes)::count;
      using Doubles = Vec<double, L>;
      const Doubles delta = load<L>(m.delta + h), scale = load<L>(m.scale + h);
      Doubles total = load<L>(m.total + h);
      for (int64_t k = 0; k < count; ++k) {
        A* to = numbers(by_target.position[from + k]) + h;
        const auto alpha = load<L>(to);
        const Doubles weight =
            __builtin_convertvector(absolute<L, A>(alpha), Doubles) * scale;
        const Doubles step =
            weight * (__builtin_convertvector(load<L>(to + H), Doubles) - delta);
        total += step;
        store<L>(m.step + k * H + h, step);
        store<L>(to, __builtin_convertvector(step, Vec<A, L>));
        auto used = __builtin_convertvector(weight, Vec<A, L>);
        if (dropout) used = alpha < 0 ? Vec<A, L>{} : used * dropout.kept;
        store<L>(to + H, used);
      }
      store<L>(m.total + h, total);
    });
    shape.tiles([&](auto tile, int64_t h, int64_t b) {
      add<decltype(tile)::blocks>(from, count, h, b, m);
    });
    if (pairs.edge.data)
      for (int64_t k = 0; k < count; ++k) edge(by_target.position[from + k], m);
  }

  template <int Blocks>
  void add(int64_t from, int64_t count, int64_t h, int64_t first,
           const Memory& m) const {
    D sum[Blocks];
    double* to = m.gradient + (h * blocks + first) * W;
    for (int b = 0; b < Blocks; ++b) sum[b] = load<W>(to + b * W);
    for (int64_t k = 0; k < count; ++k) {
      const Word* above =
          signs(by_target.position[from + k]) + h * blocks + first;
      const D step = splat<W, double>(m.step[k * H + h]);
      for (int b = 0; b < Blocks; ++b)
        sum[b] = add_where<W, double>(sum[b], above[b], step);
    }
    for (int b = 0; b < Blocks; ++b) store<W>(to + b * W, sum[b]);
  }

  // The gradient of an edge's features, and their part of the attention vector's.
  void edge(int64_t at, const Memory& m) const {
    const A* gradient = numbers(at);
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V below = splat<W, A>(gradient[h] * pairs.slope);
        const V share = add_where<W, A>(below, signs(at)[h * blocks + b],
                                        splat<W, A>(gradient[h]) - below);
        const V own = shape.block(pairs.edge.row(at) + h * C, b, pairs.edge.end);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(share * own, D));
        shape.put(load<W>(m.att + c) * share,
                  static_cast<S*>(call.dedge.data) + at * call.dedge.stride + h * C, b);
      }
  }

  void source(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c) m.sum[c] = m.above[c] = 0;
    for (int64_t h = 0; h < H; ++h) m.total[h] = 0;
    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      for (int64_t k = 0; k < count; ++k) records.ahead(by_source, from + k);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto total = load<L>(m.total + h);
        for (int64_t k = 0; k < count; ++k) {
          const A* gradient = numbers(by_source.position[from + k]) + h;
          total += __builtin_convertvector(load<L>(gradient), Vec<double, L>);
        }
        store<L>(m.total + h, total);
      });
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        gather<decltype(tile)::blocks>(from, count, h, b, m);
      });
    }
    const S* row = z_src.row(j);
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V sum = load<W>(m.above + c) * (1 - pairs.slope) +
                      pairs.slope * A(m.total[h]);
        const D mine =
            __builtin_convertvector(shape.block(row + h * C, b, z_src.end), D);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(sum, D) * mine);
        shape.put(load<W>(m.sum + c) + load<W>(m.att + c) * sum, to + h * C, b);
      }
  }

  template <int Blocks>
  void gather(int64_t from, int64_t count, int64_t h, int64_t first,
              const Memory& m) const {
    V sum[Blocks], positive[Blocks];
    for (int b = 0; b < Blocks; ++b) sum[b] = positive[b] = V{};
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_source.position[from + k];
      if (h == 0 && first == 0) shape.ahead(dout, by_source, from + k);
      const S* head = dout.row(by_source.other[from + k]) + h * C;
      const Word* above = signs(at) + h * blocks + first;
      const V gradient = splat<W, A>(numbers(at)[h]);
      const V weight = splat<W, A>(numbers(at)[H + h]);
      for (int b = 0; b < Blocks; ++b) {
        sum[b] += weight * shape.block(head, first + b, dout.end);
        positive[b] = add_where<W, A>(positive[b], above[b], gradient);
      }
    }
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      store<W>(m.sum + c, load<W>(m.sum + c) + sum[b]);
      store<W>(m.above + c, load<W>(m.above + c) + positive[b]);
    }
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
