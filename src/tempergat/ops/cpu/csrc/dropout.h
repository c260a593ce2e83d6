// Dropout of a matrix for every seed, with the bits of ops/random.py: an element with
// the number r * cols + c is multiplied by scale if the seed keeps it, else by 0.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

#include "call.h"

// One loop compiled for several instruction sets, chosen when it is first called.
#if defined(TEMPERGAT_X86) && defined(__GNUC__) && defined(__linux__)
#define TEMPERGAT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TEMPERGAT_CLONES
#endif

namespace tempergat {

static inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ (x >> 16);
}

// A run of elements of one seed. Their numbers share the upper half, or the run is cut
// where they do not; so everything here is 32 bits wide.
#define TEMPERGAT_DROP_RUN(Real)                                                     \
  TEMPERGAT_CLONES void drop_run(uint64_t seed, uint64_t first, int64_t count,       \
                                 uint32_t threshold, Real scale, const Real* x,      \
                                 Real* out) {                                        \
    while (count > 0) {                                                              \
      const uint64_t room = (uint64_t(1) << 32) - (first & 0xFFFFFFFFu);             \
      const int64_t here = uint64_t(count) < room ? count : int64_t(room);           \
      const uint32_t low = uint32_t(first), key = uint32_t(seed);                    \
      const uint32_t high = uint32_t(seed >> 32) ^ uint32_t(first >> 32);            \
      for (int64_t c = 0; c < here; ++c) {                                           \
        const uint32_t bits = mix(mix((low + uint32_t(c)) ^ key) ^ high);            \
        out[c] = x[c] * ((bits >> 8) >= threshold ? scale : Real(0));                \
      }                                                                              \
      x += here, out += here, first += uint64_t(here), count -= here;                \
    }                                                                                \
  }

// One element for every seed, from one value or from as many; the seeds' halves apart.
#define TEMPERGAT_DROP_SEEDS(Real)                                                   \
  TEMPERGAT_CLONES void drop_seeds(const uint32_t* low, const uint32_t* high,        \
                                   int64_t count, uint64_t element,                  \
                                   uint32_t threshold, Real scale, const Real* x,    \
                                   int64_t step, Real* out) {                        \
    const uint32_t first = uint32_t(element), second = uint32_t(element >> 32);      \
    for (int64_t s = 0; s < count; ++s) {                                            \
      const uint32_t bits = mix(mix(first ^ low[s]) ^ second ^ high[s]);             \
      const Real value = step ? x[s] : x[0];                                         \
      out[s] = value * ((bits >> 8) >= threshold ? scale : Real(0));                 \
    }                                                                                \
  }

TEMPERGAT_DROP_RUN(float)
TEMPERGAT_DROP_RUN(double)
TEMPERGAT_DROP_SEEDS(float)
TEMPERGAT_DROP_SEEDS(double)

template <class Real>
int64_t dropout(const Real* x, int64_t x_sets, const int64_t* seeds, int64_t count,
                int64_t rows, int64_t cols, int64_t threshold, double scale,
                int64_t threads, Real* out) try {
  const auto limit = uint32_t(threshold);
  const auto factor = Real(scale);
  std::vector<uint32_t> low, high;
  for (int64_t s = 0; s < count; ++s) {
    low.push_back(uint32_t(uint64_t(seeds[s])));
    high.push_back(uint32_t(uint64_t(seeds[s]) >> 32));
  }
#ifdef _OPENMP
  const bool many = threads > 1 && rows * count * cols > 65536;
#pragma omp parallel for num_threads(int(threads)) if (many)
#else
  (void)threads;
#endif
  for (int64_t r = 0; r < rows; ++r) {
    const Real* x_row = x + r * x_sets * cols;
    Real* out_row = out + r * count * cols;
    const uint64_t first = uint64_t(r) * uint64_t(cols);
    if (cols == 1) {
      drop_seeds(low.data(), high.data(), count, first, limit, factor, x_row,
                 x_sets - 1, out_row);
      continue;
    }
    for (int64_t s = 0; s < count; ++s)
      drop_run(uint64_t(seeds[s]), first, cols, limit, factor,
               x_row + (x_sets > 1 ? s * cols : 0), out_row + s * cols);
  }
  return kDone;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

}  // namespace tempergat
