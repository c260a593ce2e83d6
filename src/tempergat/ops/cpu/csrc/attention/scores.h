// The nodes' parts of GAT's logits over the temperature T = softplus(theta) + epsilon:
// for each of two attention vectors <z, att / T>, and their gradients. For small graphs,
// where the time of torch's ops is not that of their work.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "../call.h"

namespace tempergat {

template <class Real>
struct Scores {
  int64_t nodes, heads, channels;
  const Real* z;       // [nodes, heads, channels]
  const Real* att[2];  // [heads, channels] each
  const Real* theta;   // One number, or one per head; null: T = 1.
  int64_t thetas;
  double epsilon;

  int64_t width() const { return heads * channels; }
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
  // The attention vectors over T, [2, heads, channels].
  void divide(Real* to) const {
    for (int side = 0; side < 2; ++side)
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
    for (int64_t n = 0; n < nodes; ++n)
      for (int64_t h = 0; h < heads; ++h)
        for (int side = 0; side < 2; ++side)
          scores[side][n * heads + h] =
              dot(z + n * width() + h * channels,
                  divided + side * width() + h * channels, channels);
    free(divided);
    return kDone;
  }

  // Of dscores [nodes, heads], the gradients of z, of both vectors and of theta.
  int64_t backward(const Real* const dscores[2], Real* dz, Real* const datt[2],
                   Real* dtheta) const {
    const size_t room = size_t(2 * width());
    double* sums = static_cast<double*>(calloc(room, sizeof(double) + sizeof(Real)));
    if (!sums) return kOutOfMemory;
    Real* divided = reinterpret_cast<Real*>(sums + room);
    divide(divided);
    for (int64_t n = 0; n < nodes; ++n)
      for (int64_t h = 0; h < heads; ++h) {
        const Real s = dscores[0][n * heads + h], d = dscores[1][n * heads + h];
        const int64_t first = h * channels;
        const Real* row = z + n * width();
        Real* to = dz + n * width();
        for (int64_t c = first; c < first + channels; ++c) {
          to[c] = s * divided[c] + d * divided[width() + c];
          sums[c] += double(s) * row[c];
          sums[width() + c] += double(d) * row[c];
        }
      }
    for (int64_t h = 0; h < (theta ? thetas : 0); ++h) dtheta[h] = 0;
    double total = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const double t = temperature(h);
      double dt = 0;
      for (int side = 0; side < 2; ++side)
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
    return kDone;
  }
};

}  // namespace tempergat
