#include <cstring>

#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_copy.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {

const char* target_here() { return hwy::TargetName(HWY_TARGET); }

/// As memcpy. Long copies are made by vectors: the string instructions that the C library uses for them are several
/// times slower where the lines are in another core's cache.
void copy_one(const std::byte* in, std::byte* out, std::uint64_t bytes) {
  std::uint64_t at = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::uint64_t kBytes = vector_bytes(hn::ScalableTag<std::uint8_t>());
  for (; bytes - at >= 4 * kBytes; at += 4 * kBytes) {
    const auto v0 = load(d, in + at);
    const auto v1 = load(d, in + at + kBytes);
    const auto v2 = load(d, in + at + 2 * kBytes);
    const auto v3 = load(d, in + at + 3 * kBytes);
    store(d, v0, out + at);
    store(d, v1, out + at + kBytes);
    store(d, v2, out + at + 2 * kBytes);
    store(d, v3, out + at + 3 * kBytes);
  }
#endif
  if (at != bytes) std::memcpy(out + at, in + at, bytes - at);
}

/// Bytes [begin, end) to all outputs.
void copy_range(const std::byte* in, std::byte* const* outputs, std::uint32_t m, std::uint64_t begin,
                std::uint64_t end) {
  // By blocks, so that all but the first of the outputs read the first-level cache.
  constexpr std::uint64_t kBlock = 8192;
  for (std::uint64_t at = begin; at < end; at += kBlock) {
    const std::uint64_t bytes = std::min(kBlock, end - at);
    for (std::uint32_t k = 0; k < m; ++k) {
      if (outputs[k] != in) copy_one(in + at, outputs[k] + at, bytes);
    }
  }
}

void copy_streaming(const std::byte* in, std::byte* const* outputs, std::uint32_t m, std::uint64_t bytes) {
#if HWY_TARGET == HWY_SCALAR
  copy_range(in, outputs, m, 0, bytes);
#else
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::uint64_t kBytes = vector_bytes(hn::ScalableTag<std::uint8_t>());
  const std::uint64_t to_go = (kBytes - reinterpret_cast<std::uintptr_t>(outputs[0]) % kBytes) % kBytes;
  std::uint64_t at = std::min(to_go, bytes);
  copy_range(in, outputs, m, 0, at);
  for (; bytes - at >= 4 * kBytes; at += 4 * kBytes) {
    const auto v0 = load(d, in + at);
    const auto v1 = load(d, in + at + kBytes);
    const auto v2 = load(d, in + at + 2 * kBytes);
    const auto v3 = load(d, in + at + 3 * kBytes);
    for (std::uint32_t k = 0; k < m; ++k) {
      std::byte* out = outputs[k] + at;
      stream(d, v0, out);
      stream(d, v1, out + kBytes);
      stream(d, v2, out + 2 * kBytes);
      stream(d, v3, out + 3 * kBytes);
    }
  }
  copy_range(in, outputs, m, at, bytes);
  hwy::FlushStream();
#endif
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(target_here);
HWY_EXPORT(copy_range);
HWY_EXPORT(copy_streaming);

namespace {
/// Below this the C library copies by vectors too.
constexpr std::uint64_t kLong = 2048;
}  // namespace

const char* kernel_target() { return HWY_DYNAMIC_DISPATCH(target_here)(); }

void copy_bytes(std::byte* out, const std::byte* in, std::uint64_t bytes, bool streaming) {
  if (streaming) {
    HWY_DYNAMIC_DISPATCH(copy_streaming)(in, &out, 1, bytes);
  } else if (bytes >= kLong) {
    HWY_DYNAMIC_DISPATCH(copy_range)(in, &out, 1, 0, bytes);
  } else if (bytes != 0 && out != in) {
    std::memcpy(out, in, bytes);
  }
}

void copy_to_many(const std::byte* in, std::byte* const* outputs, std::uint32_t m, std::uint64_t bytes,
                  bool streaming) {
  if (streaming) {
    HWY_DYNAMIC_DISPATCH(copy_streaming)(in, outputs, m, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(copy_range)(in, outputs, m, 0, bytes);
  }
}

}  // namespace unisono::cclo
#endif
