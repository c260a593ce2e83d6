// A number that depends on the contents of a matrix: on all of a small one, on samples
// of a large one.
#pragma once

#include <cstdint>

namespace tempergat {

// A matrix of up to kWhole elements is read whole. Of a larger one kSamples runs of
// kRun elements are read, evenly spread; a run is a cache line of int64.
constexpr int64_t kWhole = 2048, kSamples = 64, kRun = 8;

static inline uint64_t scramble(uint64_t value, uint64_t place) {
  uint64_t x = value + (place + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

template <class Word>
static uint64_t run_checksum(const Word* data, int64_t cols, int64_t row_stride,
                             int64_t col_stride, int64_t first, int64_t last) {
  uint64_t sum = 0;
  int64_t row = first / cols, col = first % cols;
  for (int64_t k = first; k < last; ++row, col = 0) {
    const Word* line = data + row * row_stride;
    const int64_t end = last - k < cols - col ? col + (last - k) : cols;
    for (; col < end; ++col, ++k)
      sum += scramble(uint64_t(line[col * col_stride]), uint64_t(k));
  }
  return sum;
}

template <class Word>
static uint64_t checksum(const Word* data, int64_t rows, int64_t cols,
                         int64_t row_stride, int64_t col_stride) {
  const int64_t count = rows * cols;
  if (count <= kWhole)
    return run_checksum(data, cols, row_stride, col_stride, 0, count);
  uint64_t sum = 0;
  for (int64_t s = 0; s < kSamples; ++s) {
    // The last run ends with the last element.
    const int64_t first = (count - kRun) * s / (kSamples - 1);
    sum += run_checksum(data, cols, row_stride, col_stride, first, first + kRun);
  }
  return sum;
}

}  // namespace tempergat
