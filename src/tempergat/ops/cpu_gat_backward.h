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
  A* alphas = static_cast<A*>(call.edge_gradient);
  A* products = static_cast<A*>(call.edge_other);
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
        const int64_t at = by_source.position[from + k] * H;
        const A* alpha = m.alpha + k * H;
        if (dropout) dropout.factors(m.seeds, by_source.edge_id[from + k], m.factor);
        if (from + k + 2 < end) shape.prefetch(dout.row(by_source.other[from + k + 2]));
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
          products[at + h] = sum<A>(dot);
        }
        // The sign tells the next pass which weights were dropped.
        for (int64_t h = 0; h < H; ++h)
          alphas[at + h] = dropout && m.factor[h] == 0 ? -alpha[h] : alpha[h];
      }
    }
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    shape.pack(m.gradient, to, [](int64_t) { return A(1); });
  };
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
    // The gradient of a weight after dropout, times what dropout multiplied it by.
    auto incoming = [&](int64_t at) {
      if (std::signbit(alphas[at])) return A(0);
      const A p = dweights ? products[at] + dweights[at] : products[at];
      return dropout ? p * dropout.kept : p;
    };
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = by_target.position[k] * H;
      for (int64_t h = 0; h < H; ++h) {
        products[at + h] = incoming(at + h);
        delta[h] += double(alphas[at + h]) * double(products[at + h]);
        mass[h] += std::fabs(alphas[at + h]);
      }
    }
    // The rounding of lse makes all weights of a row a little too large or too small;
    // divided out here, it cannot keep the row's gradients from cancelling.
    if (end > begin)
      for (int64_t h = 0; h < H; ++h) delta[h] /= mass[h];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t position = by_target.position[k], at = position * H;
      scores.sums(by_target.other[k], i, position, u);
      for (int64_t h = 0; h < H; ++h) {
        A d = A(std::fabs(alphas[at + h]) * (products[at + h] - delta[h]));
        d = u[h] > 0 ? d : d * scores.slope;
        alphas[at + h] = d;
        total[h] += d;
      }
    }
    if (call.dscore_dst)
      for (int64_t h = 0; h < H; ++h)
        static_cast<A*>(call.dscore_dst)[i * H + h] = A(total[h]);
  };
  status = over_rows(by_target, 4 * H, call.threads, count.used, logits);
  if (status != kDone) return status;

  auto source_scores = [&](int64_t j, char*) {
    A* to = static_cast<A*>(call.dscore_src) + j * H;
    for (int64_t h = 0; h < H; ++h) to[h] = 0;
    for (int64_t k = by_source.pointer[j]; k < by_source.pointer[j + 1]; ++k) {
      const A* from = alphas + by_source.position[k] * H;
      for (int64_t h = 0; h < H; ++h) to[h] += from[h];
    }
  };
  return over_rows(by_source, H, call.threads, 0, source_scores);
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
