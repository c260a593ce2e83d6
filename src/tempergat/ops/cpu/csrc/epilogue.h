// What follows attention, and what precedes its backward pass: the output times the
// sigmoid of a gate's logit, plus a skip of its own for each row, plus a bias for all.
#pragma once

#include "attention/rows.h"

namespace tempergat {
namespace TEMPERGAT_ISA {
namespace {

template <class S>
struct Epilogue {
  using A = typename Working<S>::type;
  static constexpr int W = 64 / int(sizeof(A));
  const Call& call;
  const int64_t width, rows, chunk_rows, chunks;

  // Chunks depend on the shape alone, so that sums are the same for any number of
  // threads.
  explicit Epilogue(const Call& c)
      : call(c),
        width(c.heads * c.channels),
        rows(c.by_target.count),
        chunk_rows(larger<int64_t>((int64_t(1) << 16) / width, rows / 512 + 1)),
        chunks((rows + chunk_rows - 1) / chunk_rows) {}

  static bool asked(const Call& c) {
    return c.gate_logit.data || c.skip.data || c.bias || c.dbias;
  }
  static S* row(const Features& f, int64_t i) {
    return f.data ? static_cast<S*>(f.data) + i * f.stride : nullptr;
  }
  template <int L>
  static Vec<A, L> sigmoid(Vec<A, L> x) {
    // Where exp overflows the gate is exactly 0: rows of padding have the logit -inf.
    const Vec<A, L> g = A(1) / (A(1) + exponential<L, A>(-x));
    return x < Exponential<A>::lowest ? Vec<A, L>{} : g;
  }
  // Calls work(lanes, column) for all columns, several at a time.
  template <class Work>
  void over_columns(const Work& work) const {
    int64_t c = 0;
    for (; c + W <= width; c += W) work(HeadLanes<W>{}, c);
    for (; c + 4 <= width; c += 4) work(HeadLanes<4>{}, c);
    for (; c < width; ++c) work(HeadLanes<1>{}, c);
  }

  // Calls work(row, sums) for all rows, then put(column, sum over all rows); sums have
  // a number for each column.
  template <class Work, class Put>
  int64_t over_rows_with_sums(const Work& work, const Put& put) const {
    A* sums = static_cast<A*>(calloc(size_t(chunks * width) + 1, sizeof(A)));
    if (!sums) return kOutOfMemory;
    const int64_t threads = larger<int64_t>(1, smaller(call.threads, chunks));
#pragma omp parallel for num_threads(int(threads)) schedule(static)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t end = smaller(rows, (chunk + 1) * chunk_rows);
      for (int64_t i = chunk * chunk_rows; i < end; ++i) work(i, sums + chunk * width);
    }
    for (int64_t c = 0; c < width; ++c) {
      double total = 0;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) total += sums[chunk * width + c];
      put(c, total);
    }
    free(sums);
    return kDone;
  }

  // From `out` to `finished`, which may be the same memory.
  int64_t forward() const {
    const S* bias = static_cast<const S*>(call.bias);
    A* gate_sum = static_cast<A*>(call.gate_sum);
    for (int64_t h = 0; gate_sum && h < call.heads; ++h) gate_sum[h] = 0;
    auto work = [&](int64_t i, A* sums) {
      const S *from = row(call.out, i), *logit = row(call.gate_logit, i);
      const S* skip = row(call.skip, i);
      S* to = row(call.finished, i);
      over_columns([&](auto lanes, int64_t c) {
        constexpr int L = decltype(lanes)::count;
        Vec<A, L> x = load<L>(from + c);
        if (logit) {
          const Vec<A, L> gate = sigmoid<L>(load<L>(logit + c));
          x *= gate;
          store<L>(sums + c, load<L>(sums + c) + gate);
        }
        if (skip) x += load<L>(skip + c);
        if (bias) x += load<L>(bias + c);
        store<L>(to + c, x);
      });
    };
    return over_rows_with_sums(work, [&](int64_t c, double total) {
      if (gate_sum) gate_sum[c / call.channels] += A(total);
    });
  }

  // From `dout` the gradients of attention's output, of the logit and of the bias.
  int64_t backward() const {
    const A* dgate_sum = static_cast<const A*>(call.dgate_sum);
    S* dbias = static_cast<S*>(call.dbias);
    auto work = [&](int64_t i, A* sums) {
      const S *dout = row(call.dout, i), *logit = row(call.gate_logit, i);
      const S* attended = row(call.out, i);
      S *dlogit = row(call.dlogit, i), *dattended = row(call.dattended, i);
      over_columns([&](auto lanes, int64_t c) {
        constexpr int L = decltype(lanes)::count;
        const Vec<A, L> d = load<L>(dout + c);
        if (dbias) store<L>(sums + c, load<L>(sums + c) + d);
        if (!logit) return;
        const Vec<A, L> gate = sigmoid<L>(load<L>(logit + c));
        Vec<A, L> dgate = d * load<L>(attended + c);
        if (dgate_sum)
          for (int k = 0; k < L; ++k) dgate[k] += dgate_sum[(c + k) / call.channels];
        store<L>(dlogit + c, dgate * gate * (A(1) - gate));
        store<L>(dattended + c, d * gate);
      });
    };
    return over_rows_with_sums(work, [&](int64_t c, double total) {
      if (dbias) narrow(A(total), dbias + c);
    });
  }
};

// Attention, then its epilogue, where there is one.
template <class S, class Kernel>
int64_t then_finish(const Call& call, const Kernel& kernel) {
  const int64_t status = kernel(call);
  if (status != kDone || !Epilogue<S>::asked(call)) return status;
  return Epilogue<S>(call).forward();
}

// The gradient of the epilogue, where there is one, then that of attention.
template <class S, class Kernel>
int64_t unfinish_then(const Call& given, const Kernel& kernel) {
  Call call = given;
  if (Epilogue<S>::asked(call)) {
    const int64_t status = Epilogue<S>(call).backward();
    if (status != kDone) return status;
    if (call.gate_logit.data) call.dout = call.dattended;
  }
  return kernel(call);
}

}  // namespace
}  // namespace TEMPERGAT_ISA
}  // namespace tempergat
