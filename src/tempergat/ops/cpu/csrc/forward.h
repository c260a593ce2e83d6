// Forward: for each target, a softmax over its edges that is computed while the
// sources' rows are read, once.
#pragma once

#include "logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape, bool V2>
int64_t forward(const Call& call) {
  using A = typename Shape::A;
  using S = typename Shape::S;
  constexpr int W = Shape::W;
  const Shape shape(call.heads, call.channels);
  const Edges edges(call.by_target, call.wide_index);
  const Dropout<A> dropout(call);
  const Scores<Shape> scores(shape, call);
  const Pairs<Shape> pairs(shape, call);
  const auto z = shape.table(call.z_src), z_dst = shape.table(call.z_dst);
  const A* att = static_cast<const A*>(call.att);
  A* lse = static_cast<A*>(call.lse);
  A* weights = static_cast<A*>(call.weights);
  const int64_t H = shape.heads, blocks = shape.blocks();
  const int64_t most = shape.together();

  struct Memory {
    A *sum, *mine, *att, *logit, *top, *total, *rescale, *factor;
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const Shape& shape, int64_t most, int64_t padded_heads) {
      Pieces pieces{base};
      const int64_t H = shape.heads;
      sum = pieces.take<A>(shape.padded());
      mine = pieces.take<A>(V2 ? shape.padded() : 0);
      att = pieces.take<A>(V2 ? shape.padded() : 0);
      logit = pieces.take<A>(most * H);
      top = pieces.take<A>(H);
      total = pieces.take<A>(H);
      rescale = pieces.take<A>(H);
      factor = pieces.take<A>(padded_heads);
      seeds = pieces.take<uint32_t>(2 * padded_heads);
      bytes = pieces.used;
    }
  };

  auto start = [&](char* base) {
    Memory m(base, shape, most, dropout.padded());
    dropout.split(m.seeds);
    if constexpr (V2) shape.pad(att, m.att);
  };

  auto work = [&](int64_t i, char* base) {
    Memory m(base, shape, most, dropout.padded());
    const int64_t begin = edges.pointer[i], end = edges.pointer[i + 1];
    for (int64_t k = 0; k < shape.padded(); ++k) m.sum[k] = 0;
    for (int64_t h = 0; h < H; ++h) m.total[h] = 0, m.top[h] = -INFINITY;
    if constexpr (V2) shape.unpack(z_dst.row(i), z_dst.end, m.mine);

    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      if constexpr (V2) {
        shape.tiles([&](auto tile, int64_t h, int64_t b) {
          pairs.template logits<decltype(tile)::blocks>(
              z, edges, from, count, h, b, m.mine, m.att, m.logit);
        });
      } else {
        for (int64_t k = 0; k < count; ++k) {
          edges.ahead(scores.src, H, from + k);
          const int64_t j = edges.other[from + k], at = edges.position[from + k];
          over_heads(H, [&](auto lanes, int64_t h) {
            constexpr int L = decltype(lanes)::count;
            store<L>(m.logit + k * H + h, scores.template logits<L>(j, i, at, h));
          });
        }
      }
      if (weights)
        for (int64_t k = 0; k < count; ++k)
          __builtin_memcpy(weights + edges.position[from + k] * H, m.logit + k * H,
                           size_t(H) * sizeof(A));

      // The sums so far were taken relative to the largest logit so far.
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto top = load<L>(m.top + h);
        store<L>(m.rescale + h, top);
        for (int64_t k = 0; k < count; ++k) {
          const auto e = load<L>(m.logit + k * H + h);
          top = top >= e ? top : e;
        }
        store<L>(m.top + h, top);
        // While all logits are minus infinity, there is nothing to be relative to.
        const auto from_top = top == -INFINITY ? Vec<A, L>{} : top;
        for (int64_t k = 0; k < count; ++k) {
          A* e = m.logit + k * H + h;
          store<L>(e, load<L>(e) - from_top);
        }
      });
      if (from > begin) {
        bool moved = false;
        for (int64_t h = 0; h < H; ++h) {
          moved |= m.top[h] != m.rescale[h];
          m.rescale[h] -= m.top[h] == -INFINITY ? A(0) : m.top[h];
        }
        if (moved) {
          exponentials(m.rescale, H);
          for (int64_t h = 0; h < H; ++h) {
            m.total[h] *= m.rescale[h];
            for (int64_t c = 0; c < blocks * W; ++c)
              m.sum[h * blocks * W + c] *= m.rescale[h];
          }
        }
      }
      exponentials(m.logit, count * H);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto total = load<L>(m.total + h);
        for (int64_t k = 0; k < count; ++k) total += load<L>(m.logit + k * H + h);
        store<L>(m.total + h, total);
      });
      if (dropout)
        for (int64_t k = 0; k < count; ++k) {
          dropout.factors(m.seeds, edges.edge_id[from + k], m.factor);
          for (int64_t h = 0; h < H; ++h) m.logit[k * H + h] *= m.factor[h];
        }
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        shape.template add_rows<decltype(tile)::blocks, !V2>(
            z, edges, from, count, h, b,
            [&](int64_t k) { return m.logit[k * H + h]; }, m.sum);
      });
    }

    S* out = static_cast<S*>(call.out.data) + i * call.out.stride;
    shape.pack(m.sum, out, [&](int64_t h) {
      return end > begin ? A(1) / m.total[h] : A(0);
    });
    for (int64_t h = 0; h < H; ++h)
      lse[i * H + h] = end > begin ? m.top[h] + std::log(m.total[h]) : A(0);
    if (weights)
      for (int64_t k = begin; k < end; ++k) {
        A* weight = weights + edges.position[k] * H;
        for (int64_t h = 0; h < H; ++h) m.rescale[h] = weight[h] - m.top[h];
        exponentials(m.rescale, H);
        if (dropout) dropout.factors(m.seeds, edges.edge_id[k], m.factor);
        for (int64_t h = 0; h < H; ++h)
          weight[h] = m.rescale[h] / m.total[h] * (dropout ? m.factor[h] : A(1));
      }
  };
  shape.fresh(call.out);
  const int64_t bytes = Memory(nullptr, shape, most, dropout.padded()).bytes;
  return over_rows(edges, shape.width(), call.threads, bytes, start, work,
                   [](int64_t, char*) {});
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
