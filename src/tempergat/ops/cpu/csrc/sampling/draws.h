// Which neighbours a node draws; sampling/draws.py is the specification.
#pragma once

#include <cstdint>

namespace tempergat {

// The function of the same name in ops/random.py.
static inline uint64_t fold_in(uint64_t seed, uint64_t data) {
  uint64_t x = seed + (data + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A random number from 0 to limit - 1; the limit is less than 2^31.
static inline int64_t draw_below(uint64_t key, int64_t draw, int64_t limit) {
  const uint64_t word = fold_in(key, uint64_t(draw)), n = uint64_t(limit);
  return int64_t(((word >> 32) * n + (((word & 0xFFFFFFFFu) * n) >> 32)) >> 32);
}

// Puts a number into an ascending list of `count` numbers. Returns false, and leaves
// the list as it is, if the number is there and must not be there twice.
static inline bool insert(int64_t* list, int64_t count, int64_t number, bool twice) {
  int64_t place = count;
  while (place > 0 && list[place - 1] > number) --place;
  if (!twice && place > 0 && list[place - 1] == number) return false;
  for (int64_t k = count; k > place; --k) list[k] = list[k - 1];
  list[place] = number;
  return true;
}

// Writes `count` of the positions 0..degree-1, ascending.
static inline void choose(uint64_t key, int64_t degree, int64_t count, bool replace,
                          int64_t* chosen) {
  for (int64_t draw = 0; draw < count; ++draw) {
    if (replace) {
      insert(chosen, draw, draw_below(key, draw, degree), true);
      continue;
    }
    const int64_t last = degree - count + draw;
    // All positions so far are less than the last one, so that it goes to the end.
    if (!insert(chosen, draw, draw_below(key, draw, last + 1), false))
      chosen[draw] = last;
  }
}

}  // namespace tempergat
