// The C interface of the CPU kernels: plain data, no torch, no Python.
//
// ops/cpu/library.py mirrors these structures field by field. Whoever changes one of them,
// or what a field means, raises kInterfaceVersion here and INTERFACE_VERSION there: a
// library of another version, or with a Call of another size, is refused when it is loaded.
#pragma once

#include <cstdint>

namespace tempergat {

constexpr int64_t kInterfaceVersion = 13;

enum Storage : int64_t { kFloat32 = 0, kFloat64 = 1, kBfloat16 = 2 };
enum Isa : int64_t { kGeneric = 0, kAvx2 = 1, kAvx512 = 2 };
enum Status : int64_t { kDone = 0, kOutOfMemory = 1, kUnknownStorage = 2 };

// Edges grouped by one end, see ops/graphs/graph.py; int32, or int64 if Call::wide_index.
struct Rows {
  const void* pointer;
  const void* other;
  const void* position;
  const void* edge_id;
  int64_t count;
};

// A matrix of feature rows in the storage type; rows may be apart by more than their
// width, counted in elements.
struct Features {
  void* data;
  int64_t rows;
  int64_t stride;
};

// Everything that is not Features is in the working type: double for float64
// storage, float for the others. Absent arguments are null.
struct Call {
  int64_t storage;
  int64_t isa;
  int64_t threads;
  int64_t wide_index;
  int64_t heads;
  int64_t channels;
  double negative_slope;
  double dropout;
  int64_t drop_threshold;
  const int64_t* dropout_seed;
  Rows by_target;
  Rows by_source;
  Features z_src;
  Features z_dst;
  Features edge;
  Features out;
  Features dout;
  Features dz_src;
  Features dz_dst;
  Features dedge;
  // GAT's scores, which forward writes; the attention vectors, of which GATv2 has one;
  // and GAT's temperature: one number or one per head.
  void* score_src;
  void* score_dst;
  const void* edge_score;
  const void* att;
  const void* att_dst;
  const void* theta;
  int64_t thetas;
  double epsilon;
  const void* dweights;
  void* lse;
  void* weights;
  void* dscore_src;
  void* dscore_dst;
  void* datt;
  void* datt_dst;
  void* dtheta;
  void* dedge_score;
  // What follows attention, see epilogue.h: its inputs, its result and the sum of the
  // gate by head, and their gradients; bias and its gradient are in the storage type.
  Features gate_logit;
  Features skip;
  Features finished;
  Features dlogit;
  Features dattended;
  const void* bias;
  void* dbias;
  void* gate_sum;
  const void* dgate_sum;
  // Edge features with their linear map: [E, D], [H, C, D] and their gradients.
  int64_t edge_width;
  const void* edge_x;
  const void* edge_map;
  void* dedge_x;
  void* dedge_map;
  // A factor of the weights and what is added to the logits, [E, H], and their gradients.
  const void* edge_weight;
  const void* edge_bias;
  void* dedge_weight;
  void* dedge_bias;
  // Dot products: the factor of the logits, with T itself as theta; values are z_src, and
  // queries z_dst. The sum of edge features times the weights, [T, H, D].
  double scale;
  Features key;
  Features dkey;
  void* edge_sum;
  // What a later pass of backward needs to know of an edge; the stride is in bytes.
  Features records;
};

}  // namespace tempergat
