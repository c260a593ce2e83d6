// The nodes' parts of GAT's logits over the temperature T = softplus(theta) + epsilon:
// for one or two attention vectors <z, att / T>, and their gradients.
//
// Sums over nodes are taken over blocks of nodes, and then over the blocks in their
// order, so that they do not depend on the number of threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "../call.h"

namespace tempergat {

template <class Real>
struct Scores {
  static constexpr int64_t kBlock = 512;    // Nodes.
  static constexpr int64_t kFew = 1 << 16;  // Numbers that one thread takes alone.

  int64_t nodes, heads, channels;
  const Real* z;       // [nodes, heads, channels], rows `stride` apart
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

  static Real dot(const Real* a, const Real* b, int64_t count) {
    Real sums[8] = {};
    int64_t c = 0;
    for (; c + 8 <= count; c += 8)
      for (int k = 0; k < 8; ++k) sums[k] += a[c + k] * b[c + k];
    for (int k = 0; c < count; ++c, ++k) sums[k] += a[c] * b[c];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }

  int64_t forward(Real* const scores[2]) const {
    Real* divided = static_cast<Real*>(malloc(size_t(2 * width()) * sizeof(Real)));
    if (!divided) return kOutOfMemory;
    divide(divided);
#ifdef _OPENMP
#pragma omp parallel for num_threads(int(threads)) if (many())
#endif
    for (int64_t n = 0; n < nodes; ++n)
      for (int64_t h = 0; h < heads; ++h)
        for (int side = 0; side < sides(); ++side)
          scores[side][n * heads + h] =
              dot(z + n * stride + h * channels,
                  divided + side * width() + h * channels, channels);
    free(divided);
    return kDone;
  }

  // Adds to dz [nodes, heads, channels] what follows from dscores [nodes, heads], and
  // writes the gradients of the vectors and of theta. The second dscores may be of the
  // first `rows` nodes only.
  int64_t backward(const Real* const dscores[2], int64_t rows, Real* dz,
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
          const Real* row = z + n * stride;
          Real* to = dz + n * width();
          for (int64_t c = first; c < first + channels; ++c) {
            to[c] += s * divided[c] + d * divided[width() + c];
            own[c] += double(s) * row[c];
            own[width() + c] += double(d) * row[c];
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

}  // namespace tempergat
