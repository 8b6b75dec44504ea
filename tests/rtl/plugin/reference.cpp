// The operators as core/arithmetic.hpp defines them, as C functions for the tests of the plugins.
#include "core/arithmetic.hpp"

namespace {

using unisono::Datatype;
using unisono::Func;
namespace arithmetic = unisono::arithmetic;

}  // namespace

extern "C" {

// As unisono::combine, which also knows operators of the user and needs the library for them.
int unisono_reference_combine(std::uint8_t func, std::uint8_t dtype, const std::byte* a, const std::byte* b,
                              std::byte* out, std::uint64_t count) {
  int known = 0;
  arithmetic::with_element(static_cast<Datatype>(dtype), [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    arithmetic::with_func(static_cast<Func>(func), [&](auto f) {
      constexpr Func kFunc = decltype(f)::value;
      if constexpr (arithmetic::defined<kFunc, typename Carrier::type>()) {
        known = 1;
        arithmetic::for_each_element<Element, Element, Element>(a, b, out, count, [](Element x, Element y) {
          return Carrier::out(arithmetic::apply<kFunc>(Carrier::in(x), Carrier::in(y)));
        });
      }
    });
  });
  return known;
}

void unisono_reference_widen(int brain, const std::uint16_t* in, std::uint32_t* out, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const float value =
        brain != 0 ? arithmetic::widen(arithmetic::Bf16{in[i]}) : arithmetic::widen(arithmetic::Fp16{in[i]});
    out[i] = std::bit_cast<std::uint32_t>(value);
  }
}

void unisono_reference_narrow(int brain, const std::uint32_t* in, std::uint16_t* out, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const float value = std::bit_cast<float>(in[i]);
    out[i] = brain != 0 ? arithmetic::narrow_bf16(value).bits : arithmetic::narrow_fp16(value).bits;
  }
}
}
