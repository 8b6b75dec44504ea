#include <cstring>
#include "core/arithmetic.hpp"
#include "engine/kernels.hpp"
namespace unisono::cclo {
template <Func F, Datatype D> void comb(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t n) { combine(F, D, a, b, out, n); }
template <Func F, Datatype D> void red(const std::byte* const* s, std::uint32_t n, std::byte* const* o, std::uint32_t m, std::uint64_t c, bool) {
  std::byte acc[8192];
  const std::uint64_t e = bytes_of(D);
  for (std::uint64_t b = 0; b < c; b += 1024) {
    const std::uint64_t k = c - b < 1024 ? c - b : 1024;
    fold_begin(D, s[0] + b * e, acc, k);
    for (std::uint32_t i = 1; i < n; ++i) fold_step(F, D, false, acc, s[i] + b * e, k);
    for (std::uint32_t i = 0; i < m; ++i) fold_end(D, acc, o[i] + b * e, k);
  }
}
template <Func F> CombineKernel c1(Datatype d) {
  switch (d) { case Datatype::kInt32: return comb<F, Datatype::kInt32>; case Datatype::kInt64: return comb<F, Datatype::kInt64>; case Datatype::kFp16: return comb<F, Datatype::kFp16>; case Datatype::kBf16: return comb<F, Datatype::kBf16>; case Datatype::kFp32: return comb<F, Datatype::kFp32>; case Datatype::kFp64: return comb<F, Datatype::kFp64>; default: return nullptr; } }
template <Func F> ReduceKernel r1(Datatype d) {
  switch (d) { case Datatype::kInt32: return red<F, Datatype::kInt32>; case Datatype::kInt64: return red<F, Datatype::kInt64>; case Datatype::kFp16: return red<F, Datatype::kFp16>; case Datatype::kBf16: return red<F, Datatype::kBf16>; case Datatype::kFp32: return red<F, Datatype::kFp32>; case Datatype::kFp64: return red<F, Datatype::kFp64>; default: return nullptr; } }
CombineKernel combine_kernel(Func f, Datatype d) { switch (f) { case Func::kSum: return c1<Func::kSum>(d); case Func::kProd: return c1<Func::kProd>(d); case Func::kMin: return c1<Func::kMin>(d); case Func::kMax: return c1<Func::kMax>(d); default: return nullptr; } }
ReduceKernel reduce_kernel(Func f, Datatype d) { switch (f) { case Func::kSum: return r1<Func::kSum>(d); case Func::kProd: return r1<Func::kProd>(d); case Func::kMin: return r1<Func::kMin>(d); case Func::kMax: return r1<Func::kMax>(d); default: return nullptr; } }
void copy_bytes(std::byte* o, const std::byte* i, std::uint64_t n, bool) { std::memcpy(o, i, n); }
void copy_to_many(const std::byte* in, std::byte* const* o, std::uint32_t m, std::uint64_t n, bool) { for (std::uint32_t k = 0; k < m; ++k) std::memcpy(o[k], in, n); }
const char* kernel_target() { return "scalar"; }
}
