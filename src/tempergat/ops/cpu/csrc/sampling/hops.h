// Neighbour sampling; sampling/reference.py is the specification.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "../call.h"
#include "draws.h"
#include "nodes.h"

namespace tempergat {

// How many accesses ahead memory is asked for; the graph does not fit any cache.
constexpr int64_t kAhead = 24;

enum SamplingStatus : int64_t { kBadSeed = 3, kBadTopology = 4, kTooManyEdges = 5 };

// Whole numbers of 4 or 8 bytes.
struct Numbers {
  const void* data;
  int64_t bytes;
  int64_t operator[](int64_t k) const {
    return bytes == 8 ? static_cast<const int64_t*>(data)[k]
                      : int64_t(static_cast<const int32_t*>(data)[k]);
  }
  void prefetch(int64_t k) const {
    __builtin_prefetch(static_cast<const char*>(data) + k * bytes);
  }
};

// The edges of one type, grouped by target. Seven words, as Python writes them.
struct Relation {
  Numbers pointer, source;
  int64_t num_edges, src_type, dst_type;
};

// What was drawn of one edge type: the slots in the topology, the sources' ids, and how
// many edges each expanded target has, hop by hop.
struct Drawn {
  std::vector<int64_t> slot, source, taken;
};

class Sampler {
 public:
  Sampler(int64_t types, const int64_t* num_nodes) {
    nodes_.reserve(size_t(types));
    for (int64_t t = 0; t < types; ++t) nodes_.emplace_back(num_nodes[t]);
  }

  // Draws all hops, and writes how many nodes and edges each has: [types, hops + 1] and
  // [relations, hops].
  int64_t sample(const Relation* relations, int64_t count, int64_t seed_type,
                 const int64_t* seeds, int64_t num_seeds, const int64_t* fanout,
                 int64_t hops, uint64_t key, bool replace, int64_t* num_nodes,
                 int64_t* num_edges) {
    clear();
    drawn_.resize(size_t(count));
    relations_.assign(relations, relations + count);
    for (size_t t = 0; t < nodes_.size(); ++t)
      if (!nodes_[t].begin(seeds, int64_t(t) == seed_type ? num_seeds : 0))
        return kBadSeed;
    for (int64_t hop = 0; hop < hops; ++hop) {
      const uint64_t hop_key = fold_in(key, uint64_t(hop));
      for (int64_t r = 0; r < count; ++r) {
        const uint64_t relation_key = fold_in(hop_key, uint64_t(r));
        Drawn& drawn = drawn_[size_t(r)];
        const size_t before = drawn.slot.size();
        if (!draw(relations[r], relation_key, fanout[r * hops + hop], replace, drawn))
          return kBadTopology;
        // The results number edges by 32 bits.
        if (drawn.slot.size() > size_t(INT32_MAX)) return kTooManyEdges;
        num_edges[r * hops + hop] = int64_t(drawn.slot.size() - before);
      }
      for (Nodes& nodes : nodes_) nodes.end_hop();
    }
    for (size_t t = 0; t < nodes_.size(); ++t)
      for (int64_t hop = 0; hop <= hops; ++hop)
        num_nodes[int64_t(t) * (hops + 1) + hop] =
            nodes_[t].begins()[size_t(hop) + 1] - nodes_[t].begins()[size_t(hop)];
    return kDone;
  }

  // Writes the nodes of each type, and of each relation the ends and the slots of its
  // edges; the addresses of the arrays are given. The pointer is that of relation 0.
  void write(int64_t* const* n_id, int32_t* const* source, int32_t* const* target,
             int64_t* const* slot, int32_t* pointer) {
    for (size_t t = 0; t < nodes_.size(); ++t)
      copy(nodes_[t].ids(), n_id[t]);
    for (size_t r = 0; r < drawn_.size(); ++r) {
      const Drawn& drawn = drawn_[r];
      copy(drawn.slot, slot[r]);
      const Nodes& from = nodes_[size_t(relations_[r].src_type)];
      const int64_t count = int64_t(drawn.source.size());
      for (int64_t e = 0; e < count; ++e) {
        const int64_t later = e + kAhead < count ? e + kAhead : e;
        __builtin_prefetch(from.place_address(drawn.source[size_t(later)]));
        source[r][e] = from.place(drawn.source[size_t(e)]);
      }
      // The targets of a relation are the expanded nodes, in the order of their places.
      int64_t edge = 0;
      for (size_t i = 0; i < drawn.taken.size(); ++i) {
        if (pointer) pointer[i] = int32_t(edge);
        for (int64_t k = 0; k < drawn.taken[i]; ++k) target[r][edge++] = int32_t(i);
      }
      if (pointer) pointer[drawn.taken.size()] = int32_t(edge);
    }
    clear();
  }

  void clear() {
    for (Nodes& nodes : nodes_) nodes.clear();
    for (Drawn& d : drawn_) {
      d.slot.clear();
      d.source.clear();
      d.taken.clear();
    }
  }

 private:
  static void copy(const std::vector<int64_t>& from, int64_t* to) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(int64_t));
  }

  // Draws the neighbours of all nodes of the last hop. Returns false if the topology
  // refers to what does not exist.
  bool draw(const Relation& relation, uint64_t key, int64_t fanout, bool replace,
            Drawn& drawn) {
    const Nodes& targets = nodes_[size_t(relation.dst_type)];
    const std::vector<int64_t>& begins = targets.begins();
    const int64_t end = begins.back(), first = begins[begins.size() - 2];
    for (int64_t i = first; i < end; ++i) {
      const int64_t later = i + kAhead < end ? i + kAhead : i;
      relation.pointer.prefetch(targets.ids()[size_t(later)]);
      const int64_t id = targets.ids()[size_t(i)];
      const int64_t row = relation.pointer[id];
      const int64_t degree = relation.pointer[id + 1] - row;
      if (row < 0 || degree < 0 || degree > relation.num_edges - row) return false;
      const bool all = fanout < 0 || degree == 0 || (!replace && degree <= fanout);
      const int64_t taken = all ? degree : fanout;
      drawn.taken.push_back(taken);
      const size_t before = drawn.slot.size();
      drawn.slot.resize(before + size_t(taken));
      int64_t* slots = drawn.slot.data() + before;
      if (all)
        for (int64_t k = 0; k < taken; ++k) slots[k] = k;
      else
        choose(fold_in(key, uint64_t(id)), degree, taken, replace, slots);
      for (int64_t k = 0; k < taken; ++k) {
        slots[k] += row;
        relation.source.prefetch(slots[k]);
      }
    }
    return see_sources(relation, drawn);
  }

  // Reads the sources of the hop's edges and marks the nodes that are new.
  bool see_sources(const Relation& relation, Drawn& drawn) {
    Nodes& nodes = nodes_[size_t(relation.src_type)];
    const size_t first = drawn.source.size(), count = drawn.slot.size();
    drawn.source.resize(count);
    for (size_t e = first; e < count; ++e) {
      const size_t later = e + kAhead < count ? e + kAhead : e;
      relation.source.prefetch(drawn.slot[later]);
      const int64_t id = relation.source[drawn.slot[e]];
      if (id < 0 || id >= nodes.count()) return false;
      nodes.see(id);
      drawn.source[e] = id;
    }
    return true;
  }

  std::vector<Nodes> nodes_;
  std::vector<Drawn> drawn_;
  std::vector<Relation> relations_;
};

}  // namespace tempergat
