// Edge features that the kernels project themselves: edge_map x for the features x of an
// edge, computed where it is needed. See "Edge features" in ops/README.md.
#pragma once

#include "factors.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct EdgeMap {
  using A = typename Shape::A;
  using V = typename Shape::V;
  static constexpr int W = Shape::W;
  const Shape& shape;
  const A *x, *map;  // [E, D] and [H, C, D]
  const int64_t width;

  EdgeMap(const Shape& s, const Call& call)
      : shape(s),
        x(static_cast<const A*>(call.edge_x)),
        map(static_cast<const A*>(call.edge_map)),
        width(call.edge_width) {}
  // A graph without edges has no features, but a map.
  explicit operator bool() const { return map != nullptr; }
  const A* features(int64_t position) const { return x + position * width; }

  // The room of a map with its heads padded.
  int64_t size() const { return width * shape.padded(); }
  // The map as [D, H, C], padded: a block of channels lies side by side.
  void unpack(A* to) const {
    for (int64_t d = 0; d < width; ++d)
      for (int64_t h = 0; h < shape.heads; ++h)
        for (int64_t c = 0; c < shape.blocks() * W; ++c)
          *to++ = c < shape.channels ? map[(h * shape.channels + c) * width + d] : A(0);
  }

  // Adds the projected features of an edge to a few blocks of one head.
  template <int Blocks>
  void add(const A* unpacked, int64_t position, int64_t h, int64_t first,
           V (&v)[Blocks]) const {
    const A* from = unpacked + (h * shape.blocks() + first) * W;
    const A* own = features(position);
    for (int64_t d = 0; d < width; ++d, from += shape.padded()) {
      const V factor = splat<W, A>(own[d]);
      for (int b = 0; b < Blocks; ++b) v[b] += factor * load<W>(from + b * W);
    }
  }

  // So many chunks that their sums of products take little memory.
  int64_t most_chunks() const {
    constexpr int64_t room = int64_t(1) << 22;
    return map && width ? larger<int64_t>(16, smaller(Chunks::most, room / size()))
                        : Chunks::most;
  }

  // Asks for the features that are needed some edges later.
  TEMPERGAT_PREFETCH prefetch(const Edges& edges, int64_t slot) const {
    if ((slot += 16) < edges.slots) prefetch_line(features(edges.position[slot]));
  }

  // Adds to `sums` [D, H, C], padded, the products of features(k) [D], for some edges or
  // nodes, with share(k), a block of one head. In the block's own type for these, then in
  // double.
  template <class Own, class Share>
  void add_products(int64_t count, int64_t h, int64_t b, const Own& features,
                    const Share& share, double* sums) const {
    using D = Vec<double, W>;
    double* to = sums + (h * shape.blocks() + b) * W;
    over_heads(width, [&](auto lanes, int64_t first) {
      constexpr int L = decltype(lanes)::count;
      V sum[L];
      for (int d = 0; d < L; ++d) sum[d] = V{};
      for (int64_t k = 0; k < count; ++k) {
        const A* own = features(k) + first;
        const V factor = share(k);
        for (int d = 0; d < L; ++d) sum[d] += factor * own[d];
      }
      for (int d = 0; d < L; ++d) {
        double* at = to + (first + d) * shape.padded();
        store<W>(at, load<W>(at) + __builtin_convertvector(sum[d], D));
      }
    });
  }

  // Writes for each feature of an edge the sum over heads and channels of share(h, b)
  // times `factors`, [D, H, C], padded.
  template <class Share>
  void put_sums(const A* factors, const Share& share, A* to) const {
    over_heads(width, [&](auto lanes, int64_t first) {
      constexpr int L = decltype(lanes)::count;
      V total[L];
      for (int d = 0; d < L; ++d) total[d] = V{};
      for (int64_t h = 0; h < shape.heads; ++h)
        for (int64_t b = 0; b < shape.blocks(); ++b) {
          const V factor = share(h, b);
          const A* from = factors + first * shape.padded() + (h * shape.blocks() + b) * W;
          for (int d = 0; d < L; ++d)
            total[d] += factor * load<W>(from + d * shape.padded());
        }
      for (int d = 0; d < L; ++d) to[first + d] = sum<A>(total[d]);
    });
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
