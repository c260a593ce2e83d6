// The functions Python calls; each picks the machine's best instruction set.
#include "cpu_call.h"

#if defined(_WIN32)
#define TEMPERGAT_EXPORT extern "C" __declspec(dllexport)
#else
#define TEMPERGAT_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace tempergat {

#define TEMPERGAT_DECLARE(isa)               \
  namespace isa {                            \
  int64_t gat_forward(const Call& call);     \
  int64_t gat_backward(const Call& call);    \
  int64_t gatv2_forward(const Call& call);   \
  int64_t gatv2_backward(const Call& call);  \
  int64_t aggregate(const Call& call);       \
  }

TEMPERGAT_DECLARE(generic)
#ifdef TEMPERGAT_X86
TEMPERGAT_DECLARE(avx2)
TEMPERGAT_DECLARE(avx512)
#endif

static int64_t best_isa() {
#ifdef TEMPERGAT_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2;
#endif
  return kGeneric;
}

}  // namespace tempergat

#ifdef TEMPERGAT_X86
#define TEMPERGAT_KERNEL(name)                                                   \
  TEMPERGAT_EXPORT int64_t tempergat_##name(const tempergat::Call* call) {       \
    if (call->isa == tempergat::kAvx512) return tempergat::avx512::name(*call);  \
    if (call->isa == tempergat::kAvx2) return tempergat::avx2::name(*call);      \
    return tempergat::generic::name(*call);                                      \
  }
#else
#define TEMPERGAT_KERNEL(name)                                              \
  TEMPERGAT_EXPORT int64_t tempergat_##name(const tempergat::Call* call) {  \
    return tempergat::generic::name(*call);                                 \
  }
#endif

TEMPERGAT_KERNEL(gat_forward)
TEMPERGAT_KERNEL(gat_backward)
TEMPERGAT_KERNEL(gatv2_forward)
TEMPERGAT_KERNEL(gatv2_backward)
TEMPERGAT_KERNEL(aggregate)

TEMPERGAT_EXPORT int64_t tempergat_interface_version() {
  return tempergat::kInterfaceVersion;
}

// The best instruction set of this machine, as Call::isa; a call may name a lesser one.
TEMPERGAT_EXPORT int64_t tempergat_best_isa() { return tempergat::best_isa(); }

// Dropout masks of every seed, as in ops/random.py: out[r, s, c] is 1 if the seed keeps
// the element with the number r * cols + c, else 0.
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

TEMPERGAT_CLONES
void keep_row(uint64_t seed, uint64_t first, int64_t count, uint32_t threshold,
              float* out) {
  // Element numbers of a row share their upper half, or the row is cut where they do
  // not; so everything here is 32 bits wide.
  while (count > 0) {
    const uint64_t room = (uint64_t(1) << 32) - (first & 0xFFFFFFFFu);
    const int64_t here = uint64_t(count) < room ? count : int64_t(room);
    const uint32_t low = uint32_t(first), key = uint32_t(seed);
    const uint32_t high = uint32_t(seed >> 32) ^ uint32_t(first >> 32);
    for (int64_t c = 0; c < here; ++c) {
      const uint32_t bits = mix(mix((low + uint32_t(c)) ^ key) ^ high);
      out[c] = (bits >> 8) >= threshold ? 1.0f : 0.0f;
    }
    out += here, first += uint64_t(here), count -= here;
  }
}

}  // namespace tempergat

TEMPERGAT_EXPORT int64_t tempergat_keep_matrix(const int64_t* seeds, int64_t count,
                                                int64_t rows, int64_t cols,
                                                int64_t threshold, int64_t threads,
                                                float* out) {
#ifdef _OPENMP
  const bool many = threads > 1 && rows * count * cols > 65536;
#pragma omp parallel for collapse(2) num_threads(int(threads)) if (many)
#else
  (void)threads;
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t s = 0; s < count; ++s)
      tempergat::keep_row(uint64_t(seeds[s]), uint64_t(r) * uint64_t(cols), cols,
                          uint32_t(threshold), out + (r * count + s) * cols);
  return 0;
}
