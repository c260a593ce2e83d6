// Backward of GATv2, in the names of ops/README.md. Every sum is owned by one row, so no
// two threads add to it.
//
// The first pass, by target, leaves a record per edge: for each head dlogit and beta,
// for each channel whether v was above zero. The second, by source, reads no other
// feature rows than dout.
//
// Both passes sum dlogit leaky'(v) over the edges of a row. As leaky(v) = leaky'(v) v,
// these sums also give datt: sum_i z_dst_i (sum_j dlogit leaky') + sum_j z_src_j (sum_i
// dlogit leaky'), and the edges' part. Of projected edge features the first pass sums
// x_ij dlogit leaky'(v) over all edges, which gives dedge_map and the rest of datt.
#pragma once

#include "gatv2_state.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct Gatv2Backward : Gatv2State<Shape> {
  using Base = Gatv2State<Shape>;
  using typename Base::A;
  using typename Base::D;
  using typename Base::Memory;
  using typename Base::S;
  using typename Base::V;
  using typename Base::Word;
  using Base::batch, Base::blocks, Base::by_source, Base::by_target, Base::C, Base::call;
  using Base::dout, Base::dropout, Base::edge_gradients, Base::H, Base::map_size;
  using Base::pairs, Base::put_totals, Base::record, Base::records;
  using Base::shape, Base::share, Base::signs, Base::softmax_row, Base::W, Base::z_dst;
  using Base::z_src;
  explicit Gatv2Backward(const Call& c) : Base(c) {}

  int64_t run() const {
    const int64_t padded = shape.padded();
    const Chunks targets(by_target, shape.width(), pairs.projected.most_chunks());
    const Chunks sources(by_source, shape.width());
    Partial of_targets(targets.count, padded), of_sources(sources.count, padded);
    Partial products(targets.count, map_size);
    if (!of_targets.data || !of_sources.data) return kOutOfMemory;
    if (map_size && !products.data) return kOutOfMemory;
    shape.prepare(call.dz_src);
    shape.prepare(call.dz_dst);
    shape.prepare(call.dedge);
    records.prepare();
    int64_t status = pass(targets, of_targets, &products, &Gatv2Backward::target);
    if (status == kDone)
      status = pass(sources, of_sources, nullptr, &Gatv2Backward::source);
    if (status == kDone) put_totals(of_targets, of_sources, products);
    return status;
  }

  template <class Row>
  int64_t pass(const Chunks& chunks, Partial& datt, Partial* products, Row row) const {
    auto work = [&](int64_t chunk, int64_t first, int64_t end, char* base) {
      const Memory m(base, *this);
      shape.pad(static_cast<const A*>(call.att), m.att);
      for (int64_t c = 0; c < shape.padded(); ++c) m.datt[c] = 0;
      if (products && map_size) {
        pairs.projected.unpack(m.map);
        for (int64_t c = 0; c < map_size; ++c) {
          m.products[c] = 0;
          m.att_map[c] = m.map[c] * m.att[c % shape.padded()];
        }
      }
      dropout.split(m.seeds);
      const Index pointer = chunks.edges.pointer;
      for (int64_t i = first; i < end;) {
        // Sums over few edges cost less than adding them up, so rows share them.
        const int64_t from = pointer[i];
        do
          (this->*row)(i++, m);
        while (i < end && pointer[i] - from < batch);
        if (products && map_size) map_gradients(from, pointer[i], m);
      }
      datt.put(chunk, m.datt);
      if (products) products->put(chunk, m.products);
    };
    const int64_t bytes = Memory(nullptr, *this).pieces.used;
    return over_chunks(chunks, call.threads, bytes, work);
  }

  void target(int64_t i, const Memory& m) const {
    shape.unpack(z_dst.row(i), z_dst.end, m.z_i);
    shape.unpack(dout.row(i), dout.end, m.dout);
    for (int64_t c = 0; c < shape.padded(); ++c) m.target_positive[c] = 0;
    auto products = [&](int64_t from, int64_t count) {
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        add_logits<decltype(tile)::blocks>(from, count, h, b, m);
      });
    };
    auto gradients = [&](int64_t from, int64_t count) {
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        add_dlogits<decltype(tile)::blocks>(from, count, h, b, m);
      });
      if (pairs.edge.data)
        for (int64_t k = 0; k < count; ++k)
          edge_gradients(by_target.position[from + k], m);
    };
    softmax_row(i, m, products, gradients);
    const double slope = pairs.slope;
    S* to = static_cast<S*>(call.dz_dst.data) + i * call.dz_dst.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const D sum = load<W>(m.target_positive + c) * (1 - slope) + slope * m.total[h];
        const D z_row = __builtin_convertvector(load<W>(m.z_i + c), D);
        store<W>(m.datt + c, load<W>(m.datt + c) + sum * z_row);
        shape.put(__builtin_convertvector(sum, V) * load<W>(m.att + c), to + h * C, b);
      }
  }

  // A few blocks of one head: their part of the logits and of <dout_i, z_j>, and which
  // channels of v are above zero.
  template <int Blocks>
  void add_logits(int64_t from, int64_t count, int64_t h, int64_t first,
               const Memory& m) const {
    V z_i[Blocks], att[Blocks], below[Blocks], dout_i[Blocks];
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      z_i[b] = load<W>(m.z_i + c);
      att[b] = load<W>(m.att + c);
      below[b] = att[b] * pairs.slope;
      dout_i[b] = load<W>(m.dout + c);
    }
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_target.position[from + k];
      if (h == 0 && first == 0) pairs.prefetch(z_src, by_target, from + k);
      const S* head = z_src.row(by_target.other[from + k]) + h * C;
      Word* positive_bits = signs(at) + h * blocks + first;
      V logit{}, dalpha{}, v[Blocks];
      for (int b = 0; b < Blocks; ++b) {
        const V z_j = shape.block(head, first + b, z_src.end);
        v[b] = z_j + z_i[b];
        dalpha += dout_i[b] * z_j;
      }
      pairs.template add_edge<Blocks>(m.map, at, h, first, v);
      for (int b = 0; b < Blocks; ++b) {
        positive_bits[b] = above_zero<W, A>(v[b]);
        logit += (v[b] > 0 ? att[b] : below[b]) * v[b];
      }
      A *logit_to = m.alpha + k * H + h, *dalpha_to = m.dalpha + k * H + h;
      *logit_to = first ? *logit_to + sum<A>(logit) : sum<A>(logit);
      *dalpha_to = first ? *dalpha_to + sum<A>(dalpha) : sum<A>(dalpha);
    }
  }

  // dedge_x of some rows' edges, and their part of the sums that give dedge_map.
  void map_gradients(int64_t begin, int64_t end, const Memory& m) const {
    const auto& edge = pairs.projected;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t h = 0; h < H; ++h)
        for (int64_t b = 0; b < blocks; ++b)
          edge.add_products(
              count, h, b,
              [&](int64_t k) { return edge.features(by_target.position[from + k]); },
              [&](int64_t k) { return share(by_target.position[from + k], h, b); },
              m.products);
    }
    for (int64_t k = begin; call.dedge_x && k < end; ++k) {
      const int64_t at = by_target.position[k];
      edge.put_sums(
          m.att_map, [&](int64_t h, int64_t b) { return share(at, h, b); },
          static_cast<A*>(call.dedge_x) + at * edge.width);
    }
  }

  template <int Blocks>
  void add_dlogits(int64_t from, int64_t count, int64_t h, int64_t first,
                   const Memory& m) const {
    D sum[Blocks];
    double* to = m.target_positive + (h * blocks + first) * W;
    for (int b = 0; b < Blocks; ++b) sum[b] = load<W>(to + b * W);
    for (int64_t k = 0; k < count; ++k) {
      const Word* positive_bits =
          signs(by_target.position[from + k]) + h * blocks + first;
      const D dlogit = splat<W, double>(m.dlogit[k * H + h]);
      for (int b = 0; b < Blocks; ++b)
        sum[b] = add_where<W, double>(sum[b], positive_bits[b], dlogit);
    }
    for (int b = 0; b < Blocks; ++b) store<W>(to + b * W, sum[b]);
  }

  void source(int64_t j, const Memory& m) const {
    const int64_t begin = by_source.pointer[j], end = by_source.pointer[j + 1];
    for (int64_t c = 0; c < shape.padded(); ++c)
      m.weighted_dout[c] = m.source_positive[c] = 0;
    for (int64_t h = 0; h < H; ++h) m.total[h] = 0;
    for (int64_t from = begin; from < end; from += batch) {
      const int64_t count = smaller(batch, end - from);
      for (int64_t k = 0; k < count; ++k) records.prefetch(by_source, from + k);
      over_heads(H, [&](auto lanes, int64_t h) {
        constexpr int L = decltype(lanes)::count;
        auto total = load<L>(m.total + h);
        for (int64_t k = 0; k < count; ++k) {
          const A* dlogit = record(by_source.position[from + k]) + h;
          total += __builtin_convertvector(load<L>(dlogit), Vec<double, L>);
        }
        store<L>(m.total + h, total);
      });
      shape.tiles([&](auto tile, int64_t h, int64_t b) {
        add_targets<decltype(tile)::blocks>(from, count, h, b, m);
      });
    }
    const S* row = z_src.row(j);
    S* to = static_cast<S*>(call.dz_src.data) + j * call.dz_src.stride;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t c = (h * blocks + b) * W;
        const V sum = load<W>(m.source_positive + c) * (1 - pairs.slope) +
                      pairs.slope * A(m.total[h]);
        const D z_j =
            __builtin_convertvector(shape.block(row + h * C, b, z_src.end), D);
        store<W>(m.datt + c,
                 load<W>(m.datt + c) + __builtin_convertvector(sum, D) * z_j);
        shape.put(load<W>(m.weighted_dout + c) + load<W>(m.att + c) * sum, to + h * C,
                  b);
      }
  }

  template <int Blocks>
  void add_targets(int64_t from, int64_t count, int64_t h, int64_t first,
                   const Memory& m) const {
    V sum[Blocks], positive[Blocks];
    for (int b = 0; b < Blocks; ++b) sum[b] = positive[b] = V{};
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = by_source.position[from + k];
      if (h == 0 && first == 0) shape.prefetch(dout, by_source, from + k);
      const S* head = dout.row(by_source.other[from + k]) + h * C;
      const Word* positive_bits = signs(at) + h * blocks + first;
      const V dlogit = splat<W, A>(record(at)[h]);
      const V beta = splat<W, A>(record(at)[H + h]);
      for (int b = 0; b < Blocks; ++b) {
        sum[b] += beta * shape.block(head, first + b, dout.end);
        positive[b] = add_where<W, A>(positive[b], positive_bits[b], dlogit);
      }
    }
    for (int b = 0; b < Blocks; ++b) {
      const int64_t c = (h * blocks + first + b) * W;
      store<W>(m.weighted_dout + c, load<W>(m.weighted_dout + c) + sum[b]);
      store<W>(m.source_positive + c, load<W>(m.source_positive + c) + positive[b]);
    }
  }
};

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
