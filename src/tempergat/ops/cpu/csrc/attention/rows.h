// What all kernels share: reading the edges, cutting rows into chunks for threads,
// scratch memory, and the shape of a feature row.
#pragma once

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "../call.h"
#include "simd.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class T>
inline T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T larger(T a, T b) {
  return a < b ? b : a;
}

// The first write to each page of new memory is slow; for a large result that is a good
// part of the work, unless pages are large.
inline void ask_for_huge_pages(void* from, int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t page = uintptr_t(1) << 21;
  if (bytes < int64_t(8 * page)) return;
  const uintptr_t begin = (uintptr_t(from) + page - 1) / page * page;
  const uintptr_t end = (uintptr_t(from) + uintptr_t(bytes)) / page * page;
  // Whether they are granted changes nothing but the time.
  (void)madvise(reinterpret_cast<void*>(begin), size_t(end - begin), MADV_HUGEPAGE);
#else
  (void)from, (void)bytes;
#endif
}

struct Index {
  const void* data;
  bool wide;
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i]
                : static_cast<const int32_t*>(data)[i];
  }
};

// A function that does nothing but prefetch has no effect in the compiler's eyes, and
// calls of it are removed: it has to be inlined before that.
#define TEMPERGAT_PREFETCH __attribute__((always_inline)) inline void

TEMPERGAT_PREFETCH prefetch_line(const void* at) { __builtin_prefetch(at, 0, 2); }

struct Edges {
  Index pointer, other, position, edge_id;
  int64_t rows, slots;
  Edges(const Rows& r, bool wide)
      : pointer{r.pointer, wide},
        other{r.other, wide},
        position{r.position, wide},
        edge_id{r.edge_id, wide},
        rows(r.count),
        slots(pointer[rows]) {}
  // Asks for the other end's numbers, `width` wide, of an edge that comes later.
  template <class A>
  TEMPERGAT_PREFETCH prefetch(const A* table, int64_t width, int64_t slot) const {
    if ((slot += 32) < slots) prefetch_line(table + other[slot] * width);
  }
};

// Rows are cut into chunks of about equal work. The cut depends on the graph and the
// width of a row alone, so that sums over chunks are the same for any number of threads.
struct Chunks {
  const Edges& edges;
  int64_t count;
  static constexpr int64_t most = 256;

  Chunks(const Edges& e, int64_t width, int64_t max_chunks = most) : edges(e) {
    constexpr int64_t work = int64_t(1) << 16;
    count = larger<int64_t>(1, smaller<int64_t>(max_chunks, total() * width / work));
  }
  int64_t total() const { return edges.pointer[edges.rows] + edges.rows; }
  // The first row of a chunk: the first whose edges and rows before it reach its share.
  int64_t first(int64_t chunk) const {
    if (chunk == count) return edges.rows;
    int64_t share = total() / count * chunk, low = 0, high = edges.rows;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (edges.pointer[middle] + middle < share)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// Runs work(chunk, its first row, the row after its last, memory) for all chunks; memory
// is `bytes` of a thread's own, zeroed once.
template <class Work>
inline int64_t over_chunks(const Chunks& chunks, int64_t threads, int64_t bytes,
                           const Work& work) {
  threads = larger<int64_t>(1, smaller(threads, chunks.count));
  bytes = (bytes + 127) / 64 * 64;
  // Not every system can be asked for aligned memory.
  void* room = calloc(size_t(threads * bytes + 64), 1);
  if (!room) return kOutOfMemory;
  char* memory = reinterpret_cast<char*>((uintptr_t(room) + 63) / 64 * 64);
  int64_t entered = 0;
#pragma omp parallel num_threads(int(threads))
  {
    // Not asked of OpenMP: with two of its runtimes in a process, as with LLVM's beside
    // torch's, the other one might answer, and the same to all threads.
    int64_t thread;
#pragma omp atomic capture
    thread = entered++;
    char* own_memory = memory + thread * bytes;
#pragma omp for schedule(dynamic, 1)
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk)
      work(chunk, chunks.first(chunk), chunks.first(chunk + 1), own_memory);
  }
  free(room);
  return kDone;
}

// Hands out aligned pieces of a thread's memory; with base null it only counts them.
struct Pieces {
  char* base;
  int64_t used = 0;
  template <class T>
  T* take(int64_t n) {
    T* piece = reinterpret_cast<T*>(base + used);
    used += (n * int64_t(sizeof(T)) + 127) / 64 * 64;
    return piece;
  }
};

// What one pass of backward leaves for the next: a record per edge.
struct Records {
  const Features features;
  explicit Records(const Features& f) : features(f) {}
  template <class T>
  T* at(int64_t position) const {
    return reinterpret_cast<T*>(static_cast<char*>(features.data) +
                                position * features.stride);
  }
  void prepare() const {
    ask_for_huge_pages(features.data, features.rows * features.stride);
  }
  // Asks for the record that is needed some edges later.
  TEMPERGAT_PREFETCH prefetch(const Edges& edges, int64_t slot) const {
    if ((slot += 16) >= edges.slots) return;
    const char* from = at<char>(edges.position[slot]);
    for (int64_t b = 0; b < features.stride; b += 64) prefetch_line(from + b);
  }
};

// A feature row of H heads with C channels, walked in blocks of W lanes. In scratch
// memory every head is padded to whole blocks; in storage it is not, so the last block
// of a head is masked unless the channels fill it.
template <class Stored, int Width, bool Masked, int Fixed>
struct Shape {
  using S = Stored;
  using A = typename Working<S>::type;
  using I = typename Bits<A>::type;
  static constexpr int W = Width;
  using V = Vec<A, W>;

  int64_t heads, channels;
  Vec<I, W> mask;

  Shape(int64_t h, int64_t c) : heads(h), channels(c) {
    int64_t tail = c - (blocks() - 1) * W;
    for (int lane = 0; lane < W; ++lane) mask[lane] = lane < tail ? I(-1) : I(0);
  }
  int64_t blocks() const { return Fixed ? Fixed : (channels + W - 1) / W; }
  int64_t width() const { return heads * channels; }
  int64_t padded() const { return heads * blocks() * W; }

  // Calls work(tile, head, first block) for tiles of a few blocks, a number the
  // compiler knows, so that it can keep their sums in registers.
  template <int Blocks>
  struct Tile {
    static constexpr int blocks = Blocks;
  };
  template <class Work>
  void tiles(const Work& work) const {
    for (int64_t h = 0; h < heads; ++h) {
      int64_t b = 0;
      if constexpr (Fixed == 0)
        for (; b + 4 <= blocks(); b += 4) work(Tile<4>{}, h, b);
      for (; b < blocks(); ++b) work(Tile<1>{}, h, b);
    }
  }

  struct Table {
    const S* data;
    int64_t stride;
    const S* end;
    // How many edges ahead rows are asked for: of a small table, which the cache holds
    // anyway, more than any graph has.
    int64_t ahead;
    explicit Table(const Features& f, int64_t width)
        : data(static_cast<const S*>(f.data)),
          stride(f.stride),
          end(f.rows ? data + (f.rows - 1) * f.stride + width : data) {
      const int64_t bytes = larger<int64_t>(1, width * int64_t(sizeof(S)));
      ahead = f.rows * bytes > 1 << 18
                  ? larger<int64_t>(4, smaller<int64_t>(32, 32768 / bytes))
                  : int64_t(1) << 62;
    }
    const S* row(int64_t i) const { return data + i * stride; }
  };
  // To be called before a result is written to.
  void prepare(const Features& f) const {
    ask_for_huge_pages(f.data, f.rows * f.stride * int64_t(sizeof(S)));
  }
  Table table(const Features& f) const { return Table(f, width()); }

  // Block b of a head that starts at `head`; lanes past the channels are 0.
  V block(const S* head, int64_t b, const S* end) const {
    const S* from = head + b * W;
    if constexpr (!Masked) {
      return load<W>(from);
    } else {
      if (b + 1 < blocks()) return load<W>(from);
      if (from + W <= end) return (V)((Vec<I, W>)load<W>(from) & mask);
      V v{};
      for (int64_t c = 0; c < channels - b * W; ++c) v[c] = widen(from[c]);
      return v;
    }
  }

  // Writes block b of a head that starts at `head`.
  void put(V v, S* head, int64_t b) const {
    if (!Masked || b + 1 < blocks()) {
      store<W>(head + b * W, v);
    } else {
      for (int64_t c = b * W; c < channels; ++c) narrow(v[c - b * W], head + c);
    }
  }
  // One number per head and channel in the working type, padded.
  void pad(const A* from, A* to) const {
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t c = 0; c < blocks() * W; ++c)
        to[h * blocks() * W + c] = c < channels ? from[h * channels + c] : A(0);
  }
  // A row from storage, padded.
  void unpack(const S* row, const S* end, A* to) const {
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t b = 0; b < blocks(); ++b)
        store<W>(to + (h * blocks() + b) * W, block(row + h * channels, b, end));
  }
  // Writes padded memory to a row in storage, each head times a factor if there is one.
  void pack(const A* from, S* row) const {
    pack(from, row, [](int64_t) { return A(1); });
  }
  template <class Factor>
  void pack(const A* from, S* row, const Factor& factor) const {
    for (int64_t h = 0; h < heads; ++h) {
      const V f = splat<W, A>(factor(h));
      for (int64_t b = 0; b < blocks(); ++b)
        put(load<W>(from + (h * blocks() + b) * W) * f, row + h * channels, b);
    }
  }

  // Adds to a few blocks of one head of `sums`, padded, the rows at the other end of
  // some edges, each times a weight.
  template <int Blocks, bool Prefetch, class Weight>
  void add_rows(const Table& table, const Edges& edges, int64_t from, int64_t count,
                int64_t h, int64_t first, const Weight& weight, A* sums) const {
    A* to = sums + (h * blocks() + first) * W;
    V sum[Blocks];
    for (int b = 0; b < Blocks; ++b) sum[b] = V{};
    for (int64_t k = 0; k < count; ++k) {
      if (Prefetch && h == 0 && first == 0) prefetch(table, edges, from + k);
      const S* head = table.row(edges.other[from + k]) + h * channels;
      const V w = splat<W, A>(weight(k));
      for (int b = 0; b < Blocks; ++b) sum[b] += w * block(head, first + b, table.end);
    }
    for (int b = 0; b < Blocks; ++b)
      store<W>(to + b * W, load<W>(to + b * W) + sum[b]);
  }

  // How many edges are worked on batch_size: their rows should stay in the cache.
  int64_t batch_size() const {
    int64_t bytes = width() * int64_t(sizeof(S));
    return larger<int64_t>(4, smaller<int64_t>(64, 32768 / larger<int64_t>(1, bytes)));
  }

  // Asks for the row that is needed some edges later. Edges are walked in order, from
  // row to row, so that only the first few are not asked for.
  TEMPERGAT_PREFETCH prefetch(const Table& table, const Edges& edges,
                              int64_t slot) const {
    if ((slot += table.ahead) >= edges.slots) return;
    const int64_t bytes = width() * int64_t(sizeof(S));
    const char* from = reinterpret_cast<const char*>(table.row(edges.other[slot]));
    for (int64_t b = 0; b < bytes; b += 64) prefetch_line(from + b);
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
