// Backward: every sum is owned by one row, so nothing is added to from two threads.
#pragma once

#include "cpu_logits.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// GAT. With the edges by source, one read of the targets' gradients gives the features'
// gradient, the weight alpha and p = <dout_i, z_j> of every edge. The gradients of the
// scores then follow from two numbers per edge and head.
template <class Shape>
int64_t gat_backward(const Call& call) {
  using A = typename Shape::A;
  using S = typename Shape::S;
  using V = typename Shape::V;
  constexpr int W = Shape::W;
  const Shape shape(call.heads, call.channels);
  const Edges by_source(call.by_source, call.wide_index);
  const Edges by_target(call.by_target, call.wide_index);
  const Dropout<A> dropout(call);
  const Scores<Shape> scores(shape, call);
  const auto z = shape.table(call.z_src), dout = shape.table(call.dout);
  const A* lse = static_cast<const A*>(call.lse);
  const A* dweights = static_cast<const A*>(call.dweights);
  A* dedge_score = static_cast<A*>(call.dedge_score);
  // Of each edge: its weights, negative where dropped, then the gradients that arrive
  // at them. The second pass replaces the weights by the gradients of the scores.
  const Features& records = call.records;
  auto record = [&](int64_t position) {
    return reinterpret_cast<A*>(static_cast<char*>(records.data) +
                                position * records.stride);
  };
  auto ahead = [&](int64_t slot) {
    if ((slot += 8) < by_source.slots)
      __builtin_prefetch(record(by_source.position[slot]), 1);
  };
  const int64_t H = shape.heads, C = shape.channels, blocks = shape.blocks();
  const int64_t most = shape.together();

  struct Memory {
    A *mine, *gradient, *alpha, *factor;
    uint32_t* seeds;
    int64_t bytes;
    Memory(char* base, const Shape& shape, int64_t most, int64_t padded_heads) {
      Pieces pieces{base};
      mine = pieces.take<A>(shape.padded());
      gradient = pieces.take<A>(shape.padded());
      alpha = pieces.take<A>(most * shape.heads);
      factor = pieces.take<A>(padded_heads);
      seeds = pieces.take<uint32_t>(2 * padded_heads);
      bytes = pieces.used;
    }
  };
  const int64_t bytes = Memory(nullptr, shape, most, dropout.padded()).bytes;

  auto start = [&](char* base) {
    dropout.split(Memory(base, shape, most, dropout.padded()).seeds);
  };
  auto features = [&](int64_t j, char* base) {
    Memory m(base, shape, most, dropout.padded());
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t k = 0; k < shape.padded(); ++k) m.gradient[k] = 0;
    shape.unpack(z.row(j), z.end, m.mine);
    for (int64_t from = begin; from < end; from += most) {
      const int64_t count = smaller(most, end - from);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = by_source.other[from + k];
        A* alpha = m.alpha + k * H;
        scores.logits(j, i, by_source.position[from + k], alpha);
        for (int64_t h = 0; h < H; ++h) alpha[h] -= lse[i * H + h];
      }
      exponentials(m.alpha, count * H);
      for (int64_t k = 0; k < count; ++k) {
        A* to = record(by_source.position[from + k]);
        const A* alpha = m.alpha + k * H;
        ahead(from + k);
        if (dropout) dropout.factors(m.seeds, by_source.edge_id[from + k], m.factor);
        for (int64_t h = 0; h < H; ++h) shape.ahead(dout, by_source, from + k, h);
        const S* row = dout.row(by_source.other[from + k]);
        for (int64_t h = 0; h < H; ++h) {
          const V beta = splat<W, A>(dropout ? alpha[h] * m.factor[h] : alpha[h]);
          V dot{};
          for (int64_t b = 0; b < blocks; ++b) {
            const int64_t c = (h * blocks + b) * W;
            const V d = shape.block(row + h * C, b, dout.end);
            dot += d * load<W>(m.mine + c);
            store<W>(m.gradient + c, load<W>(m.gradient + c) + beta * d);
          }
          to[H + h] = sum<A>(dot);
        }
        for (int64_t h = 0; h < H; ++h)
          to[h] = dropout && m.factor[h] == 0 ? -alpha[h] : alpha[h];
      }
    }
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.gradient, to, [](int64_t) { return A(1); });
  };
  shape.fresh(call.dz_src);
  ask_for_huge_pages(records.data, records.rows * records.stride);
  int64_t status = over_rows(by_source, shape.width(), call.threads, bytes, start,
                             features, [](int64_t, char*) {});
  if (status != kDone) return status;

  Pieces count{nullptr};
  count.take<double>(4 * (H + 16));
  auto logits = [&](int64_t i, char* base) {
    Pieces pieces{base};
    // What is left of these sums is small beside their terms: no digit to lose.
    double* delta = pieces.take<double>(H);
    double* total = pieces.take<double>(H);
    double* mass = pieces.take<double>(H);
    A* u = pieces.take<A>(H);
    const int64_t begin = by_target.pointer[i], end = by_target.pointer[i + 1];
    for (int64_t h = 0; h < H; ++h) delta[h] = total[h] = mass[h] = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t position = by_target.position[k];
      A *alpha = record(position), *product = alpha + H;
      for (int64_t h = 0; h < H; ++h) {
        // The gradient of a weight after dropout, times what dropout multiplied it by.
        if (dweights) product[h] += dweights[position * H + h];
        if (dropout) product[h] *= std::signbit(alpha[h]) ? A(0) : dropout.kept;
        delta[h] += double(std::fabs(alpha[h])) * double(product[h]);
        mass[h] += std::fabs(alpha[h]);
      }
    }
    // The rounding of lse makes all weights of a row a little too large or too small;
    // divided out here, it cannot keep the row's gradients from cancelling.
    for (int64_t h = 0; h < H; ++h) {
      mass[h] = end > begin ? 1 / mass[h] : 0;
      delta[h] *= mass[h];
    }
    for (int64_t k = begin; k < end; ++k) {
      const int64_t position = by_target.position[k];
      A *alpha = record(position), *product = alpha + H;
      scores.sums(by_target.other[k], i, position, u);
      for (int64_t h = 0; h < H; ++h) {
        double d = std::fabs(alpha[h]) * mass[h] * (product[h] - delta[h]);
        d = u[h] > 0 ? d : d * scores.slope;
        alpha[h] = A(d);
        total[h] += d;
      }
      if (dedge_score)
        for (int64_t h = 0; h < H; ++h) dedge_score[position * H + h] = alpha[h];
    }
    if (call.dscore_dst)
      for (int64_t h = 0; h < H; ++h)
        static_cast<A*>(call.dscore_dst)[i * H + h] = A(total[h]);
  };
  status = over_rows(by_target, 4 * H, call.threads, count.used, logits);
  if (status != kDone) return status;

  auto source_scores = [&](int64_t j, char* base) {
    double* total = reinterpret_cast<double*>(base);
    for (int64_t h = 0; h < H; ++h) total[h] = 0;
    for (int64_t k = by_source.pointer[j]; k < by_source.pointer[j + 1]; ++k) {
      ahead(k);
      const A* from = record(by_source.position[k]);
      for (int64_t h = 0; h < H; ++h) total[h] += from[h];
    }
    for (int64_t h = 0; h < H; ++h)
      static_cast<A*>(call.dscore_src)[j * H + h] = A(total[h]);
  };
  return over_rows(by_source, H, call.threads, H * 8, source_scores);
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
