// One kernel for one instruction set; compiled once for each, with TEMPERGAT_ISA the
// name of the set and TEMPERGAT_KERNEL that of the kernel, so that a build can use many
// cores. Nothing here is shared: everything but the function at the end is local.
#include <type_traits>

#include "attention/aggregate.h"
#include "attention/dot_product_backward.h"
#include "attention/forward.h"
#include "attention/gatv2_backward.h"
#include "attention/scores.h"
#include "epilogue.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class Shape>
struct Kernels {
  using S = typename Shape::S;
  template <class Backward>
  static int64_t backward(const Call& call) {
    return unfinish_then<S>(call, [](const Call& c) { return Backward(c).run(); });
  }
  static int64_t gat_forward(const Call& call) {
    return then_finish<S>(call, gat_forward_with_scores<Shape>);
  }
  static int64_t gatv2_forward(const Call& call) {
    return then_finish<S>(call, forward<Shape, Kind::kGatv2>);
  }
  static int64_t dot_product_forward(const Call& call) {
    return then_finish<S>(call, forward<Shape, Kind::kDotProduct>);
  }
  static int64_t gat_backward(const Call& call) {
    return unfinish_then<S>(call, gat_backward_with_scores<Shape>);
  }
  static int64_t gatv2_backward(const Call& call) {
    return backward<Gatv2Backward<Shape>>(call);
  }
  static int64_t dot_product_backward(const Call& call) {
    return backward<DotProductBackward<Shape>>(call);
  }
  static int64_t aggregate(const Call& call) {
    return tempergat::TEMPERGAT_ISA::aggregate<Shape>(call);
  }
};

// Wide heads are walked 16 lanes at a time; heads of up to 8 channels are one block,
// whose number the compiler knows, which is what many narrow heads need. So are heads of
// 16, in the type that most small graphs have.
template <class S>
int64_t by_shape(const Call& call) {
  if constexpr (std::is_same<S, float>::value)
    if (call.channels == 16)
      return Kernels<Shape<S, 16, false, 1>>::TEMPERGAT_KERNEL(call);
  if (call.channels % 16 == 0)
    return Kernels<Shape<S, 16, false, 0>>::TEMPERGAT_KERNEL(call);
  if (call.channels == 8)
    return Kernels<Shape<S, 8, false, 1>>::TEMPERGAT_KERNEL(call);
  if (call.channels < 8) return Kernels<Shape<S, 8, true, 1>>::TEMPERGAT_KERNEL(call);
  return Kernels<Shape<S, 8, true, 0>>::TEMPERGAT_KERNEL(call);
}

}  // namespace

int64_t TEMPERGAT_KERNEL(const Call& call) {
  switch (call.storage) {
    case kFloat32:
      return by_shape<float>(call);
    case kFloat64:
      return by_shape<double>(call);
    case kBfloat16:
      return by_shape<bfloat16>(call);
  }
  return kUnknownStorage;
}

}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
