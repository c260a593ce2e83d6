// All kernels for one instruction set; compiled once for each, with TEMPERGAT_ISA its
// name. Nothing here is shared with the other sets: everything but the five functions
// at the end is local to this file.
#include "attention/aggregate.h"
#include "attention/forward.h"
#include "attention/gat_backward.h"
#include "attention/gatv2_backward.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct GatForward {
  static int64_t run(const Call& call) { return forward<Shape, false>(call); }
};
template <class Shape>
struct Gatv2Forward {
  static int64_t run(const Call& call) { return forward<Shape, true>(call); }
};
template <class Shape>
struct GatBackwardOf {
  static int64_t run(const Call& call) { return GatBackward<Shape>(call).run(); }
};
template <class Shape>
struct Gatv2BackwardOf {
  static int64_t run(const Call& call) { return Gatv2Backward<Shape>(call).run(); }
};
template <class Shape>
struct Aggregate {
  static int64_t run(const Call& call) { return aggregate<Shape>(call); }
};

// Wide heads are walked 16 lanes at a time; heads of up to 8 channels are one block,
// whose number the compiler knows, which is what many narrow heads need.
template <template <class> class Kernel, class S>
int64_t by_shape(const Call& call) {
  if (call.channels % 16 == 0) return Kernel<Shape<S, 16, false, 0>>::run(call);
  if (call.channels == 8) return Kernel<Shape<S, 8, false, 1>>::run(call);
  if (call.channels < 8) return Kernel<Shape<S, 8, true, 1>>::run(call);
  return Kernel<Shape<S, 8, true, 0>>::run(call);
}

template <template <class> class Kernel>
int64_t by_storage(const Call& call) {
  switch (call.storage) {
    case kFloat32:
      return by_shape<Kernel, float>(call);
    case kFloat64:
      return by_shape<Kernel, double>(call);
    case kBfloat16:
      return by_shape<Kernel, bfloat16>(call);
  }
  return kUnknownStorage;
}

}  // namespace

int64_t gat_forward(const Call& call) { return by_storage<GatForward>(call); }
int64_t gat_backward(const Call& call) { return by_storage<GatBackwardOf>(call); }
int64_t gatv2_forward(const Call& call) { return by_storage<Gatv2Forward>(call); }
int64_t gatv2_backward(const Call& call) { return by_storage<Gatv2BackwardOf>(call); }
int64_t aggregate(const Call& call) { return by_storage<Aggregate>(call); }

}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
