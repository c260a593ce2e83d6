// Forward: for each target, a softmax over its edges that is computed while the
// sources' rows are read, once. The names are those of ops/README.md.
#pragma once

#include "dot_product.h"
#include "logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

enum class Kind { kGat, kGatv2, kDotProduct };

template <class Shape, Kind kind>
int64_t forward(const Call& call) {
  constexpr bool V2 = kind == Kind::kGatv2, Dot = kind == Kind::kDotProduct;
  using A = typename Shape::A;
  using S = typename Shape::S;
  constexpr int W = Shape::W;
  const Shape shape(call.heads, call.channels);
  const Edges edges(call.by_target, call.wide_index);
  const Dropout<A> dropout(call);
  const EdgeNumbers<A> edge_weight(call.edge_weight, shape.heads);
  const Scores<Shape> scores(shape, call);
  const Pairs<Shape> pairs(shape, call);
  const Dots<Shape> dots(shape, call);
  const auto z = shape.table(call.z_src), z_dst = shape.table(call.z_dst);
  const A* att = static_cast<const A*>(call.att);
  A* lse = static_cast<A*>(call.lse);
  A* weights = static_cast<A*>(call.weights);
  const int64_t H = shape.heads, blocks = shape.blocks();
  const int64_t batch = shape.batch_size();

  struct Memory {
    A *weighted_sum, *z_i, *att;                // [H, C], padded; of each target
    A* edge_map;                                // [D, H, C], padded
    A *features, *edge_sum;                     // [H, D], of dot products
    A* logit;                                   // [batch, H]; then the weights
    A *max_logit, *denominator, *rescale;       // [H]
    A* factor;                                  // [H], dropout's
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const Shape& shape, int64_t batch, int64_t padded_heads,
           int64_t rows, int64_t map_size, int64_t features_size) {
      Pieces pieces{base};
      const int64_t H = shape.heads;
      weighted_sum = pieces.take<A>(rows * shape.padded());
      z_i = pieces.take<A>(V2 || Dot ? rows * shape.padded() : 0);
      att = pieces.take<A>(V2 ? shape.padded() : 0);
      edge_map = pieces.take<A>(map_size);
      features = pieces.take<A>(rows * features_size);
      edge_sum = pieces.take<A>(rows * features_size);
      logit = pieces.take<A>(batch * H);
      max_logit = pieces.take<A>(H);
      denominator = pieces.take<A>(H);
      rescale = pieces.take<A>(H);
      factor = pieces.take<A>(padded_heads);
      seeds = pieces.take<uint32_t>(2 * padded_heads);
      bytes = pieces.used;
    }
  };

  const int64_t map_size = V2 || Dot ? dots.map_size() : 0;
  const int64_t features_size = Dot ? dots.size() : 0;
  const int64_t most_rows = Dot ? dots.rows() : 1;
  auto memory = [&](char* base) {
    return Memory(base, shape, batch, dropout.padded(), most_rows, map_size,
                  features_size);
  };

  // One target, with m of its own: weighted_sum and edge_sum, lse and weights.
  auto row = [&](int64_t i, const Memory& m) {
    const int64_t begin = edges.pointer[i], end = edges.pointer[i + 1];
    for (int64_t k = 0; k < shape.padded(); ++k) m.weighted_sum[k] = 0;
    for (int64_t h = 0; h < H; ++h) m.denominator[h] = 0, m.max_logit[h] = -INFINITY;
    if constexpr (V2) shape.unpack(z_dst.row(i), z_dst.end, m.z_i);
    for (int64_t d = 0; d < features_size; ++d) m.edge_sum[d] = 0;

    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      if constexpr (V2) {
        shape.tiles([&](auto tile, int64_t h, int64_t b) {
          pairs.template logits<decltype(tile)::blocks>(
              z, edges, from, count, h, b, m.z_i, m.att, m.edge_map, m.logit);
        });
        scores.bias.add_to(edges, from, count, m.logit);
      } else if constexpr (Dot) {
        dots.products(dots.key, edges, from, count, m.z_i, m.features, m.logit);
        scores.bias.add_to(edges, from, count, m.logit);
      } else {
        for (int64_t k = 0; k < count; ++k) {
          edges.prefetch(scores.src, H, from + k);
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

      // The sums so far are relative to the largest logit so far.
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto max_logit = load<L>(m.max_logit + h);
        store<L>(m.rescale + h, max_logit);
        for (int64_t k = 0; k < count; ++k) {
          const auto e = load<L>(m.logit + k * H + h);
          max_logit = max_logit >= e ? max_logit : e;
        }
        store<L>(m.max_logit + h, max_logit);
        // While all logits are minus infinity, 0 stands in for the maximum.
        const auto finite_max = max_logit == -INFINITY ? Vec<A, L>{} : max_logit;
        for (int64_t k = 0; k < count; ++k) {
          A* e = m.logit + k * H + h;
          store<L>(e, load<L>(e) - finite_max);
        }
      });
      if (from > begin) {
        bool max_changed = false;
        for (int64_t h = 0; h < H; ++h) {
          max_changed |= m.max_logit[h] != m.rescale[h];
          m.rescale[h] -= m.max_logit[h] == -INFINITY ? A(0) : m.max_logit[h];
        }
        if (max_changed) {
          exponentials(m.rescale, H);
          for (int64_t h = 0; h < H; ++h) {
            m.denominator[h] *= m.rescale[h];
            for (int64_t c = 0; c < blocks * W; ++c)
              m.weighted_sum[h * blocks * W + c] *= m.rescale[h];
            for (int64_t d = 0; d < features_size / H; ++d)
              m.edge_sum[h * (features_size / H) + d] *= m.rescale[h];
          }
        }
      }
      exponentials(m.logit, count * H);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto denominator = load<L>(m.denominator + h);
        for (int64_t k = 0; k < count; ++k) denominator += load<L>(m.logit + k * H + h);
        store<L>(m.denominator + h, denominator);
      });
      if (dropout)
        for (int64_t k = 0; k < count; ++k) {
          dropout.factors(m.seeds, edges.edge_id[from + k], m.factor);
          for (int64_t h = 0; h < H; ++h) m.logit[k * H + h] *= m.factor[h];
        }
      edge_weight.multiply(edges, from, count, m.logit);
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        shape.template add_rows<decltype(tile)::blocks, !V2>(
            z, edges, from, count, h, b,
            [&](int64_t k) { return m.logit[k * H + h]; }, m.weighted_sum);
      });
      if constexpr (Dot)
        dots.add_features(
            edges, from, count,
            [&](int64_t k, int64_t h) { return m.logit[k * H + h]; }, m.edge_sum);
    }

    for (int64_t h = 0; h < H; ++h) {
      const A inverse = m.denominator[h] != 0 ? A(1) / m.denominator[h] : A(0);
      for (int64_t c = 0; c < blocks * W; ++c)
        m.weighted_sum[h * blocks * W + c] *= inverse;
      for (int64_t d = 0; d < features_size / H; ++d)
        m.edge_sum[h * (features_size / H) + d] *= inverse;
      lse[i * H + h] = end > begin ? m.max_logit[h] + std::log(m.denominator[h]) : A(0);
      // Where all logits are minus infinity, all weights are 0, in backward too.
      if (m.denominator[h] != 0 || end == begin) continue;
      lse[i * H + h] = INFINITY;
      m.max_logit[h] = 0;
      m.denominator[h] = 1;
    }
    if (weights)
      for (int64_t k = begin; k < end; ++k) {
        A* weight = weights + edges.position[k] * H;
        for (int64_t h = 0; h < H; ++h) m.rescale[h] = weight[h] - m.max_logit[h];
        exponentials(m.rescale, H);
        if (dropout) dropout.factors(m.seeds, edges.edge_id[k], m.factor);
        for (int64_t h = 0; h < H; ++h)
          weight[h] = m.rescale[h] / m.denominator[h] * (dropout ? m.factor[h] : A(1));
        edge_weight.multiply(edges, k, 1, weight);
      }
  };

  auto work = [&](int64_t, int64_t begin, int64_t end, char* base) {
    const Memory m = memory(base);
    dropout.split(m.seeds);
    if constexpr (V2) shape.pad(att, m.att);
    if (map_size) dots.edge.unpack(m.edge_map);
    for (int64_t first = begin; first < end; first += most_rows) {
      const int64_t count = smaller(most_rows, end - first);
      if constexpr (Dot) {
        dots.load_queries(first, count, m.z_i);
        dots.pull_back(count, m.z_i, m.features);
      }
      for (int64_t r = 0; r < count; ++r) {
        Memory own = m;
        own.weighted_sum += r * shape.padded();
        if constexpr (Dot) own.z_i += r * shape.padded();
        own.features += r * features_size;
        own.edge_sum += r * features_size;
        row(first + r, own);
      }
      if constexpr (Dot) {
        if (features_size)
          __builtin_memcpy(static_cast<A*>(call.edge_sum) + first * features_size,
                           m.edge_sum, size_t(count * features_size) * sizeof(A));
        dots.add_push(count, m.edge_map, m.edge_sum, m.weighted_sum);
      }
      for (int64_t r = 0; r < count; ++r)
        shape.pack(m.weighted_sum + r * shape.padded(),
                   static_cast<S*>(call.out.data) + (first + r) * call.out.stride);
    }
  };
  shape.prepare(call.out);
  return over_chunks(Chunks(edges, shape.width()), call.threads, memory(nullptr).bytes,
                     work);
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
