// Short vectors of the compiler's own kind: the same source serves every instruction
// set, and a vector wider than the machine's is split by the compiler.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstdint>

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

struct bfloat16 {
  uint16_t bits;
};

template <class T, int W>
struct Lanes {
  typedef T type __attribute__((vector_size(sizeof(T) * W)));
};
template <class T, int W>
using Vec = typename Lanes<T, W>::type;

// The type sums are held in, and the integer of its size.
template <class S>
struct Working {
  using type = S;
};
template <>
struct Working<bfloat16> {
  using type = float;
};
template <class A>
struct Bits;
template <>
struct Bits<float> {
  using type = int32_t;
};
template <>
struct Bits<double> {
  using type = int64_t;
};

// An integer with a bit for every lane.
template <int W>
struct LaneBits;
template <>
struct LaneBits<8> {
  using type = uint8_t;
};
template <>
struct LaneBits<16> {
  using type = uint16_t;
};

inline float widen(bfloat16 x) {
  uint32_t bits = uint32_t(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline float widen(float x) { return x; }
inline double widen(double x) { return x; }

inline void narrow(float value, float* to) { *to = value; }
inline void narrow(double value, double* to) { *to = value; }
inline void narrow(float value, bfloat16* to) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  // A NaN stays one; all else is rounded to nearest, ties to even.
  bits = value != value ? bits | 0x400000 : bits + 0x7FFF + ((bits >> 16) & 1);
  to->bits = uint16_t(bits >> 16);
}

template <int W>
inline Vec<float, W> load(const float* from) {
  Vec<float, W> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <int W>
inline Vec<double, W> load(const double* from) {
  Vec<double, W> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <int W>
inline Vec<float, W> load(const bfloat16* from) {
  Vec<uint16_t, W> half;
  __builtin_memcpy(&half, from, sizeof half);
  return (Vec<float, W>)(__builtin_convertvector(half, Vec<uint32_t, W>) << 16);
}
template <int W>
inline void store(float* to, Vec<float, W> v) {
  __builtin_memcpy(to, &v, sizeof v);
}
template <int W>
inline void store(double* to, Vec<double, W> v) {
  __builtin_memcpy(to, &v, sizeof v);
}
template <int W>
inline void store(bfloat16* to, Vec<float, W> v) {
  Vec<uint32_t, W> bits = (Vec<uint32_t, W>)v;
  const Vec<uint32_t, W> rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  bits = v != v ? bits | 0x400000 : rounded;
  const auto half = __builtin_convertvector(bits >> 16, Vec<uint16_t, W>);
  __builtin_memcpy(to, &half, sizeof half);
}

template <int W, class A>
inline Vec<A, W> splat(A x) {
  return x - Vec<A, W>{};
}

// Calls work(lanes, h) for all heads, several at a time; the number of lanes is one the
// compiler knows.
template <int N>
struct HeadLanes {
  static constexpr int count = N;
};
template <int Most = 8, class Work>
inline void over_heads(int64_t heads, const Work& work) {
  int64_t h = 0;
  if constexpr (Most > 8)
    for (; h + Most <= heads; h += Most) work(HeadLanes<Most>{}, h);
  for (; h + 8 <= heads; h += 8) work(HeadLanes<8>{}, h);
  for (; h + 4 <= heads; h += 4) work(HeadLanes<4>{}, h);
  for (; h < heads; ++h) work(HeadLanes<1>{}, h);
}

// A vector's halves, added. GCC knows shuffles that shorten a vector from version 12 on.
template <class A>
inline Vec<A, 4> halved(Vec<A, 8> v) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) +
         __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
  Vec<A, 4> half[2];
  __builtin_memcpy(half, &v, sizeof v);
  return half[0] + half[1];
#endif
}
template <class A>
inline Vec<A, 8> halved(Vec<A, 16> v) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  Vec<A, 8> half[2];
  __builtin_memcpy(half, &v, sizeof v);
  return half[0] + half[1];
#endif
}
template <class A>
inline A sum(Vec<A, 4> v) {
#if defined(__clang__) || __GNUC__ >= 12
  const Vec<A, 4> pairs = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return pairs[0] + pairs[1];
#else
  return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}
template <class A>
inline A sum(Vec<A, 8> v) {
  return sum<A>(halved<A>(v));
}
template <class A>
inline A sum(Vec<A, 16> v) {
  return sum<A>(halved<A>(v));
}

template <int W, class A>
inline Vec<A, W> leaky(Vec<A, W> v, A slope) {
  return v > 0 ? v : v * slope;
}
template <int W, class A>
inline Vec<A, W> absolute(Vec<A, W> v) {
  return v < 0 ? -v : v;
}

// Which lanes are above zero, the first in the lowest bit.
template <int W, class A>
inline uint32_t above_zero(Vec<A, W> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof v == 64 && sizeof(A) == 4)
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_GT_OQ);
  else if constexpr (sizeof v == 64)
    return _mm512_cmp_pd_mask((__m512d)v, _mm512_setzero_pd(), _CMP_GT_OQ);
  else
#endif
#if defined(__AVX2__)
  if constexpr (sizeof v == 32 && sizeof(A) == 4)
    return uint32_t(_mm256_movemask_ps((__m256)(v > 0)));
  else if constexpr (sizeof v == 32)
    return uint32_t(_mm256_movemask_pd((__m256d)(v > 0)));
  else
#endif
  if constexpr (sizeof v > 32 || (sizeof v > 16 && W > 4)) {
    Vec<A, W / 2> half[2];
    __builtin_memcpy(half, &v, sizeof half);
    return above_zero<W / 2, A>(half[0]) | above_zero<W / 2, A>(half[1]) << (W / 2);
  } else {
    const auto above = v > 0;
    uint32_t bits = 0;
    for (int lane = 0; lane < W; ++lane) bits |= uint32_t(above[lane] & 1) << lane;
    return bits;
  }
}

// sum, and in the lanes whose bit is set x added to it.
template <int W, class A>
inline Vec<A, W> add_where(Vec<A, W> sum, uint32_t bits, Vec<A, W> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof x == 64 && sizeof(A) == 4)
    return (Vec<A, W>)_mm512_mask_add_ps((__m512)sum, __mmask16(bits), (__m512)sum,
                                         (__m512)x);
  else if constexpr (sizeof x == 64)
    return (Vec<A, W>)_mm512_mask_add_pd((__m512d)sum, __mmask8(bits), (__m512d)sum,
                                         (__m512d)x);
  else if constexpr (sizeof x > 64) {
    Vec<A, W / 2> half[2], more[2];
    __builtin_memcpy(half, &sum, sizeof half);
    __builtin_memcpy(more, &x, sizeof more);
    half[0] = add_where<W / 2, A>(half[0], bits, more[0]);
    half[1] = add_where<W / 2, A>(half[1], bits >> (W / 2), more[1]);
    __builtin_memcpy(&sum, half, sizeof half);
    return sum;
  } else
#endif
  {
    using I = typename Bits<A>::type;
    Vec<I, W> lane{};
    for (int n = 0; n < W; ++n) lane[n] = I(1) << n;
    const Vec<I, W> set = (splat<W, I>(I(bits)) & lane) == lane;
    return sum + (Vec<A, W>)((Vec<I, W>)x & set);
  }
}

template <class A>
struct Exponential;
template <>
struct Exponential<float> {
  static constexpr int degree = 7;
  static constexpr float lowest = -87.0f, highest = 88.0f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float round = 12582912.0f;  // 1.5 * 2^23
  static constexpr int bias = 127, mantissa = 23;
};
template <>
struct Exponential<double> {
  static constexpr int degree = 13;
  static constexpr double lowest = -708.0, highest = 709.0;
  static constexpr double ln2_high = 6.93147180369123816490e-01;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int bias = 1023, mantissa = 52;
};

// exp within two units in the last place; 0 below `lowest`, NaN for NaN.
template <int W, class A>
inline Vec<A, W> exponential(Vec<A, W> x) {
  using E = Exponential<A>;
  using I = typename Bits<A>::type;
  using IV = Vec<I, W>;
  IV vanishes = x < E::lowest;
  Vec<A, W> y = vanishes ? splat<W, A>(E::lowest) : x;
  y = y > E::highest ? splat<W, A>(E::highest) : y;
  // Adding and taking away a large number rounds to an integer, which then stands in
  // the low bits of the sum.
  Vec<A, W> shifted = y * A(1.44269504088896340736) + E::round;
  Vec<A, W> whole = shifted - E::round;
  Vec<A, W> r = y - whole * E::ln2_high - whole * E::ln2_low;
  Vec<A, W> p = splat<W, A>(1);
  for (int n = E::degree; n > 0; --n) p = p * (r * A(1.0 / n)) + A(1);
  IV power = (IV)shifted - (IV)splat<W, A>(E::round) + I(E::bias);
  Vec<A, W> scale = (Vec<A, W>)(power << E::mantissa);
  return vanishes ? Vec<A, W>{} : p * scale;
}

// exp of n numbers in place; x has room for a whole number of vectors.
template <class A>
inline void exponentials(A* x, int64_t n) {
  constexpr int W = 64 / sizeof(A);
  for (int64_t i = 0; i < n; i += W)
    store<W>(x + i, exponential<W, A>(load<W>(x + i)));
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
