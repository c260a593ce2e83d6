// The nodes' parts of GAT's logits over the temperature T = softplus(theta) + epsilon:
// for one or two attention vectors <z, att / T>, and their gradients. Features are
// stored as S, everything else is Real.
//
// Sums over nodes are taken over blocks of nodes, and then over the blocks in their
// order, so that they do not depend on the number of threads.
#pragma once

#include "forward.h"
#include "gat_backward.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class S, class Real>
struct NodeScores {
  static constexpr int64_t kBlock = 512;    // Nodes.
  static constexpr int64_t kFew = 1 << 16;  // Numbers that one thread takes alone.

  int64_t nodes, heads, channels;
  const S* z;          // [nodes, heads, channels], rows `stride` apart
  int64_t stride;
  const Real* att[2];  // [heads, channels] each; the second may be null.
  const Real* theta;   // One number, or one per head; null: T = 1.
  int64_t thetas;
  double epsilon;
  int64_t threads;

  int sides() const { return att[1] ? 2 : 1; }
  int64_t width() const { return heads * channels; }
  bool many() const { return threads > 1 && nodes * width() > kFew; }
  const Real* theta_of(int64_t h) const { return theta + (thetas > 1 ? h : 0); }
  Real temperature(int64_t h) const {
    if (!theta) return 1;
    const Real x = *theta_of(h);
    // As torch's softplus.
    return (x > 20 ? x : std::log1p(std::exp(x))) + Real(epsilon);
  }
  // dT / dtheta
  double slope(int64_t h) const {
    const Real x = *theta_of(h);
    return x > 20 ? 1.0 : 1 / (1 + std::exp(-double(x)));
  }
  // The attention vectors over T, [sides, heads, channels].
  void divide(Real* to) const {
    for (int side = 0; side < sides(); ++side)
      for (int64_t h = 0; h < heads; ++h) {
        const Real t = temperature(h);
        for (int64_t c = h * channels; c < (h + 1) * channels; ++c)
          to[side * width() + c] = att[side][c] / t;
      }
  }

  static Real dot(const S* a, const Real* b, int64_t count) {
    Real sums[8] = {};
    int64_t c = 0;
    for (; c + 8 <= count; c += 8)
      for (int k = 0; k < 8; ++k) sums[k] += widen(a[c + k]) * b[c + k];
    for (int k = 0; c < count; ++c, ++k) sums[k] += widen(a[c]) * b[c];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }

  // Writes the scores, [nodes, heads]; the second of the first `rows` nodes only.
  int64_t forward(Real* const scores[2], int64_t rows) const {
    Real* divided = static_cast<Real*>(malloc(size_t(2 * width()) * sizeof(Real)));
    if (!divided) return kOutOfMemory;
    divide(divided);
#ifdef _OPENMP
#pragma omp parallel for num_threads(int(threads)) if (many())
#endif
    for (int64_t n = 0; n < nodes; ++n)
      for (int64_t h = 0; h < heads; ++h)
        for (int side = 0; side < (n < rows ? sides() : 1); ++side)
          scores[side][n * heads + h] =
              dot(z + n * stride + h * channels,
                  divided + side * width() + h * channels, channels);
    free(divided);
    return kDone;
  }

  // Adds to dz [nodes, heads, channels] what follows from dscores [nodes, heads], and
  // writes the gradients of the vectors and of theta. The second dscores may be of the
  // first `rows` nodes only.
  int64_t backward(const Real* const dscores[2], int64_t rows, S* dz,
                   Real* const datt[2], Real* dtheta) const {
    const int64_t blocks = nodes > kBlock ? (nodes + kBlock - 1) / kBlock : 1;
    const size_t room = size_t(2 * width());
    double* sums = static_cast<double*>(
        calloc(room * size_t(blocks), sizeof(double)));
    Real* divided = static_cast<Real*>(calloc(room, sizeof(Real)));
    if (!sums || !divided) {
      free(sums);
      free(divided);
      return kOutOfMemory;
    }
    divide(divided);
#ifdef _OPENMP
#pragma omp parallel for num_threads(int(threads)) if (many())
#endif
    for (int64_t block = 0; block < blocks; ++block) {
      double* own = sums + block * int64_t(room);
      const int64_t end = (block + 1) * kBlock < nodes ? (block + 1) * kBlock : nodes;
      for (int64_t n = block * kBlock; n < end; ++n)
        for (int64_t h = 0; h < heads; ++h) {
          const bool both = att[1] && n < rows;
          const Real s = dscores[0][n * heads + h];
          const Real d = both ? dscores[1][n * heads + h] : 0;
          const int64_t first = h * channels;
          const S* row = z + n * stride;
          S* to = dz + n * width();
          for (int64_t c = first; c < first + channels; ++c) {
            narrow(widen(to[c]) + s * divided[c] + d * divided[width() + c], to + c);
            own[c] += double(s) * widen(row[c]);
            own[width() + c] += double(d) * widen(row[c]);
          }
        }
    }
    for (int64_t block = 1; block < blocks; ++block)
      for (size_t k = 0; k < room; ++k) sums[k] += sums[size_t(block) * room + k];
    double total = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const double t = temperature(h);
      double dt = 0;
      for (int side = 0; side < sides(); ++side)
        for (int64_t c = h * channels; c < (h + 1) * channels; ++c) {
          const double sum = sums[side * width() + c];
          datt[side][c] = Real(sum / t);
          dt -= sum * divided[side * width() + c] / t;
        }
      if (!theta) continue;
      if (thetas > 1)
        dtheta[h] = Real(dt * slope(h));
      else
        total += dt;
    }
    if (theta && thetas == 1) dtheta[0] = Real(total * slope(0));
    free(sums);
    free(divided);
    return kDone;
  }
};

// What GAT's kernels need beside the edges: the scores before them, and after them the
// gradients of what the scores were computed from.
template <class S, class Real>
struct GatScores {
  const Call& call;
  // Targets that are no sources have features and scores of their own.
  bool separate() const { return call.att_dst && call.z_dst.data; }
  NodeScores<S, Real> of(const Features& z, const void* first, const void* second) const {
    return {z.rows,
            call.heads,
            call.channels,
            static_cast<const S*>(z.data),
            z.stride,
            {static_cast<const Real*>(first), static_cast<const Real*>(second)},
            static_cast<const Real*>(call.theta),
            call.thetas,
            call.epsilon,
            call.threads};
  }

  int64_t forward() const {
    Real* src = static_cast<Real*>(call.score_src);
    Real* dst = static_cast<Real*>(call.score_dst);
    Real* const both[2] = {src, dst};
    const void* second = separate() ? nullptr : call.att_dst;
    const int64_t rows = call.by_target.count;
    const int64_t status = of(call.z_src, call.att, second).forward(both, rows);
    if (status != kDone || !separate()) return status;
    Real* const only[2] = {dst, nullptr};
    return of(call.z_dst, call.att_dst, nullptr).forward(only, rows);
  }

  int64_t backward() const {
    const Real* src = static_cast<const Real*>(call.dscore_src);
    const Real* dst = static_cast<const Real*>(call.dscore_dst);
    const Real* const both[2] = {src, dst};
    Real* const datt[2] = {static_cast<Real*>(call.datt),
                           static_cast<Real*>(call.datt_dst)};
    Real* dtheta = static_cast<Real*>(call.dtheta);
    const void* second = separate() ? nullptr : call.att_dst;
    const int64_t rows = call.by_target.count;
    const int64_t status =
        of(call.z_src, call.att, second)
            .backward(both, rows, static_cast<S*>(call.dz_src.data), datt, dtheta);
    if (status != kDone || !separate()) return status;
    const Real* const only[2] = {dst, nullptr};
    Real* const datt_dst[2] = {datt[1], nullptr};
    Real* more = static_cast<Real*>(calloc(size_t(call.heads), sizeof(Real)));
    if (!more) return kOutOfMemory;
    S* dz_dst = static_cast<S*>(call.dz_dst.data);
    const int64_t done = of(call.z_dst, call.att_dst, nullptr)
                             .backward(only, rows, dz_dst, datt_dst, more);
    for (int64_t h = 0; dtheta && h < call.thetas; ++h) dtheta[h] += more[h];
    free(more);
    return done;
  }
};

// GAT's kernels with the scores before or after them.
template <class Shape>
int64_t gat_forward_with_scores(const Call& call) {
  const int64_t status = GatScores<typename Shape::S, typename Shape::A>{call}.forward();
  return status == kDone ? forward<Shape, Kind::kGat>(call) : status;
}

template <class Shape>
int64_t gat_backward_with_scores(const Call& given) {
  using A = typename Shape::A;
  Call call = given;
  const size_t nodes = size_t(call.z_src.rows + call.by_target.count);
  A* dscores = static_cast<A*>(malloc((nodes * size_t(call.heads) + 1) * sizeof(A)));
  if (!dscores) return kOutOfMemory;
  call.dscore_src = dscores;
  if (call.att_dst) call.dscore_dst = dscores + call.z_src.rows * call.heads;
  int64_t status = GatBackward<Shape>(call).run();
  if (status == kDone) status = GatScores<typename Shape::S, A>{call}.backward();
  free(dscores);
  return status;
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
