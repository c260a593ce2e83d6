// What edges have for every head beside the logits: dropout's factor, weights and biases.
#pragma once

#include "rows.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

// Dropout exactly as in ops/random.py.
template <class A>
struct Dropout {
  static constexpr int W = 16;
  using U = Vec<uint32_t, W>;
  const int64_t* seed;
  int64_t heads;
  uint32_t threshold;
  A keep_scale;
  explicit Dropout(const Call& call)
      : seed(call.dropout > 0 ? call.dropout_seed : nullptr),
        heads(call.heads),
        threshold(uint32_t(call.drop_threshold)),
        keep_scale(call.dropout < 1 ? A(1 / (1 - call.dropout)) : A(0)) {}
  explicit operator bool() const { return seed != nullptr; }

  static U mix(U x) {
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ (x >> 16);
  }
  int64_t padded() const { return (heads + W - 1) / W * W; }
  // The lower and the upper halves of the heads' seeds, each padded.
  void split(uint32_t* halves) const {
    if (!seed) return;
    for (int64_t h = 0; h < heads; ++h) {
      halves[h] = uint32_t(seed[h]);
      halves[padded() + h] = uint32_t(uint64_t(seed[h]) >> 32);
    }
  }
  // The factor of each head's weight for an edge: 0 or 1 / (1 - rate), padded.
  void factors(const uint32_t* halves, int64_t edge_id, A* to) const {
    const uint32_t low = uint32_t(edge_id), high = uint32_t(uint64_t(edge_id) >> 32);
    for (int64_t h = 0; h < heads; h += W) {
      U x, upper;
      __builtin_memcpy(&x, halves + h, sizeof x);
      __builtin_memcpy(&upper, halves + padded() + h, sizeof upper);
      x = mix(mix(x ^ low) ^ (upper ^ high));
      // A comparison gives -1 for true.
      const Vec<int32_t, W> keeps = (x >> 8) >= threshold;
      store<W>(to + h, __builtin_convertvector(keeps, Vec<A, W>) * -keep_scale);
    }
  }
};

// One number for every edge and head, [E, H]; absent if null.
template <class A>
struct EdgeNumbers {
  const A* data;
  int64_t heads;
  EdgeNumbers(const void* data, int64_t heads)
      : data(static_cast<const A*>(data)), heads(heads) {}
  explicit operator bool() const { return data != nullptr; }
  template <int L>
  Vec<A, L> at(int64_t position, int64_t h) const {
    return load<L>(data + position * heads + h);
  }
  // dalpha of a weight that is multiplied by an edge's number, for L heads. In double:
  // where one edge has the whole weight, delta is exactly this, and they cancel.
  template <int L>
  Vec<double, L> times(Vec<A, L> dalpha, int64_t position, int64_t h) const {
    const auto x = __builtin_convertvector(dalpha, Vec<double, L>);
    if (!data) return x;
    return x * __builtin_convertvector(at<L>(position, h), Vec<double, L>);
  }
  // Calls change(place, number) with L heads of each of some edges' numbers [count, H].
  template <class Change>
  void apply(const Edges& edges, int64_t from, int64_t count, A* numbers,
             const Change& change) const {
    for (int64_t k = 0; data && k < count; ++k)
      over_heads(heads, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        A* to = numbers + k * heads + h;
        store<L>(to, change(load<L>(to), at<L>(edges.position[from + k], h)));
      });
  }
  void add_to(const Edges& edges, int64_t from, int64_t count, A* numbers) const {
    apply(edges, from, count, numbers, [](auto x, auto own) { return x + own; });
  }
  void multiply(const Edges& edges, int64_t from, int64_t count, A* numbers) const {
    apply(edges, from, count, numbers, [](auto x, auto own) { return x * own; });
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
