// The functions Python calls; each picks the machine's best instruction set.
#include "call.h"
#include "dropout.h"
#include "graphs/checksum.h"
#include "graphs/gather.h"
#include "graphs/grouping.h"
#include "graphs/topology.h"
#include "sampling/hops.h"
#include "sampling/layer_graphs.h"

#if defined(_WIN32)
#define TEMPERGAT_EXPORT extern "C" __declspec(dllexport)
#else
#define TEMPERGAT_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace tempergat {

#define TEMPERGAT_DECLARE(isa)                     \
  namespace isa {                                  \
  int64_t gat_forward(const Call& call);           \
  int64_t gat_backward(const Call& call);          \
  int64_t gatv2_forward(const Call& call);         \
  int64_t gatv2_backward(const Call& call);        \
  int64_t dot_product_forward(const Call& call);   \
  int64_t dot_product_backward(const Call& call);  \
  int64_t aggregate(const Call& call);             \
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
#define TEMPERGAT_KERNEL(name)                                               \
  TEMPERGAT_EXPORT int64_t tempergat_##name(const tempergat::Call* call) {   \
    if (call->isa == tempergat::kAvx512) return tempergat::avx512::name(*call); \
    if (call->isa == tempergat::kAvx2) return tempergat::avx2::name(*call);  \
    return tempergat::generic::name(*call);                                  \
  }
#else
#define TEMPERGAT_KERNEL(name)                                               \
  TEMPERGAT_EXPORT int64_t tempergat_##name(const tempergat::Call* call) {   \
    return tempergat::generic::name(*call);                                  \
  }
#endif

TEMPERGAT_KERNEL(gat_forward)
TEMPERGAT_KERNEL(gat_backward)
TEMPERGAT_KERNEL(gatv2_forward)
TEMPERGAT_KERNEL(gatv2_backward)
TEMPERGAT_KERNEL(dot_product_forward)
TEMPERGAT_KERNEL(dot_product_backward)
TEMPERGAT_KERNEL(aggregate)

TEMPERGAT_EXPORT int64_t tempergat_interface_version() {
  return tempergat::kInterfaceVersion;
}

// The size of Call, which the caller compares with its own.
TEMPERGAT_EXPORT int64_t tempergat_call_size() { return sizeof(tempergat::Call); }

// The best instruction set of this machine, as Call::isa; a call may name a lesser one.
TEMPERGAT_EXPORT int64_t tempergat_best_isa() { return tempergat::best_isa(); }

// Runs a kernel on copies of a graph. From copy to copy each field of the call, all of
// which have 8 bytes, grows by its step.
TEMPERGAT_EXPORT int64_t tempergat_run_copies(int64_t (*kernel)(const tempergat::Call*),
                                              const tempergat::Call* call,
                                              int64_t copies, const int64_t* steps) {
  constexpr int64_t fields = sizeof(tempergat::Call) / 8;
  // Threads take copies, unless these are so few that some would wait.
  const int64_t threads = copies >= 2 * call->threads ? call->threads : 1;
  int64_t status = tempergat::kDone;
#ifdef _OPENMP
#pragma omp parallel for num_threads(int(threads)) schedule(dynamic, 1) \
    reduction(max : status)
#endif
  for (int64_t copy = 0; copy < copies; ++copy) {
    int64_t values[fields];
    tempergat::Call own;
    __builtin_memcpy(values, call, sizeof own);
    for (int64_t k = 0; k < fields; ++k) values[k] += copy * steps[k];
    __builtin_memcpy(&own, values, sizeof own);
    if (threads > 1) own.threads = 1;
    const int64_t done = kernel(&own);
    status = done > status ? done : status;
  }
  return status;
}

// See dropout.h; x has one set of elements for all seeds or one for each.
#define TEMPERGAT_DROPOUT(name, Real)                                                \
  TEMPERGAT_EXPORT int64_t tempergat_##name(                                         \
      const Real* x, int64_t x_sets, const int64_t* seeds, int64_t count,            \
      int64_t rows, int64_t cols, int64_t threshold, double scale, int64_t threads,  \
      Real* out) {                                                                   \
    return tempergat::dropout(x, x_sets, seeds, count, rows, cols, threshold, scale, \
                              threads, out);                                         \
  }

TEMPERGAT_DROPOUT(dropout_float, float)
TEMPERGAT_DROPOUT(dropout_double, double)

// See checksum.h; strides are counted in elements of 4 or 8 bytes.
TEMPERGAT_EXPORT int64_t tempergat_checksum(const void* data, int64_t bytes,
                                            int64_t rows, int64_t cols,
                                            int64_t row_stride, int64_t col_stride) {
  using tempergat::checksum;
  const uint64_t sum =
      bytes == 8
          ? checksum(static_cast<const uint64_t*>(data), rows, cols, row_stride,
                     col_stride)
          : checksum(static_cast<const uint32_t*>(data), rows, cols, row_stride,
                     col_stride);
  return int64_t(sum);
}

// See grouping.h; indices of edges have 4 or 8 bytes.
TEMPERGAT_EXPORT int64_t tempergat_group_edges(const void* edges, int64_t bytes,
                                               int64_t row_stride, int64_t col_stride,
                                               int64_t count, int64_t num_src,
                                               int64_t num_dst, int64_t self_loops,
                                               int64_t by_source, int32_t* out) {
  if (bytes == 8)
    return tempergat::group_edges(static_cast<const int64_t*>(edges), row_stride,
                                  col_stride, count, num_src, num_dst, self_loops,
                                  by_source, out);
  return tempergat::group_edges(static_cast<const int32_t*>(edges), row_stride,
                                col_stride, count, num_src, num_dst, self_loops,
                                by_source, out);
}

TEMPERGAT_EXPORT int64_t tempergat_group(const int32_t* key, const int32_t* other,
                                         const int32_t* edge_id, int64_t count,
                                         int64_t rows, int32_t* out) {
  return tempergat::group(key, other, edge_id, count, rows,
                          tempergat::Grouped::in(out, rows, count));
}

// See gather.h.
TEMPERGAT_EXPORT void tempergat_gather_graphs(const tempergat::GraphColumn* columns,
                                              int64_t count, const int64_t* starts,
                                              int64_t set, const int64_t* sums,
                                              const int64_t* graphs, int64_t batch) {
  tempergat::gather_graphs(columns, count, starts, set, sums, graphs, batch);
}

// A sampler with memory for graphs of some sizes, or null; see sampling/hops.h. It
// serves one call at a time.
TEMPERGAT_EXPORT tempergat::Sampler* tempergat_sampler_new(int64_t types,
                                                           const int64_t* num_nodes) {
  try {
    return new tempergat::Sampler(types, num_nodes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TEMPERGAT_EXPORT void tempergat_sampler_free(tempergat::Sampler* sampler) {
  delete sampler;
}

TEMPERGAT_EXPORT int64_t tempergat_sampler_sample(
    tempergat::Sampler* sampler, const tempergat::Relation* relations, int64_t count,
    int64_t seed_type, const int64_t* seeds, int64_t num_seeds, const int64_t* fanout,
    int64_t hops, int64_t key, int64_t replace, int64_t* num_nodes,
    int64_t* num_edges) try {
  return sampler->sample(relations, count, seed_type, seeds, num_seeds, fanout, hops,
                         uint64_t(key), replace != 0, num_nodes, num_edges);
} catch (const std::bad_alloc&) {
  return tempergat::kOutOfMemory;
}

TEMPERGAT_EXPORT void tempergat_sampler_write(tempergat::Sampler* sampler,
                                              int64_t* const* n_id,
                                              int32_t* const* source,
                                              int32_t* const* target,
                                              int64_t* const* slot, int32_t* pointer) {
  sampler->write(n_id, source, target, slot, pointer);
}

// See topology.h; indices of edges have 4 or 8 bytes, and lie `step` elements apart.
TEMPERGAT_EXPORT int64_t tempergat_count_targets(const void* source, const void* target,
                                                 int64_t bytes, int64_t step,
                                                 int64_t count, int64_t num_src,
                                                 int64_t num_dst, int64_t* pointer) {
  using tempergat::count_targets;
  if (bytes == 8)
    return count_targets(static_cast<const int64_t*>(source),
                         static_cast<const int64_t*>(target), step, count, num_src,
                         num_dst, pointer);
  return count_targets(static_cast<const int32_t*>(source),
                       static_cast<const int32_t*>(target), step, count, num_src,
                       num_dst, pointer);
}

TEMPERGAT_EXPORT void tempergat_place_edges(const void* source, const void* target,
                                            int64_t bytes, int64_t step, int64_t count,
                                            int64_t num_dst, int64_t* pointer,
                                            int32_t* source_out, int32_t* edge_id) {
  using tempergat::place_edges;
  if (bytes == 8)
    place_edges(static_cast<const int64_t*>(source),
                static_cast<const int64_t*>(target), step, count, num_dst, pointer,
                source_out, edge_id);
  else
    place_edges(static_cast<const int32_t*>(source),
                static_cast<const int32_t*>(target), step, count, num_dst, pointer,
                source_out, edge_id);
}

// See layer_graphs.h.
TEMPERGAT_EXPORT int64_t tempergat_add_loops(const int32_t* source,
                                             const int32_t* target, int64_t count,
                                             int64_t num_dst, int32_t* src, int32_t* dst,
                                             int32_t* edge_id, int32_t* pointer,
                                             int32_t* other, int32_t* position) {
  return tempergat::add_loops(source, target, count, num_dst, src, dst, edge_id, pointer,
                              other, position);
}
