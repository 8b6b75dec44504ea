// The signature of a call: what detects that ranks called different operations. Freestanding.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/call.hpp"
#include "core/crc32c.hpp"

namespace unisono {

/// What ranks must agree on beside the fields of `Call`.
struct AgreedTerms {
  std::uint32_t algorithm = 0;            ///< number in the algorithm table (position plus one)
  std::uint32_t eager_limit = 0;          ///< largest eager message of the communicator, bytes
  Datatype wire_dtype = Datatype::kNone;  ///< element type on the wire; none = the call's
  std::uint32_t op = 0;                   ///< identity of an operator of the user, whose number is this rank's own
  double post_scale = 1;                  ///< factor of a reduction's result
};

/// The bits of a factor, so that 0 stands for 1, which is none. 0.0 and -0.0 are different factors, as their results
/// are.
constexpr std::uint64_t factor_bits(double factor) {
  return std::bit_cast<std::uint64_t>(factor) ^ std::bit_cast<std::uint64_t>(1.0);
}
/// The same of the nearest fp32, which records have room for.
constexpr std::uint32_t short_factor_bits(double factor) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(factor)) ^ std::bit_cast<std::uint32_t>(1.0F);
}
/// 16 bits of it all; 0 stands for 1.
constexpr std::uint16_t factor_digest(double factor) {
  const std::uint64_t bits = factor_bits(factor);
  if (bits == 0) return 0;
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(bits >> (8 * i));
  const auto digest = static_cast<std::uint16_t>(crc32c(bytes));
  return digest != 0 ? digest : std::uint16_t{1};
}

/// CRC-32C over everything that all ranks of a call must give equally: every field of `call` but `rank`,
/// and `terms`. Travels in the header; a receiver that finds another value than its own call's reports
/// `mismatched_call`. Never 0, so that 0 can stand for "not known".
///
/// A send and its recv agree on the datatype only: the receive names the other rank, may be longer, and
/// leaves the protocol to the sender. Their signature covers that alone, and is the same on both sides.
constexpr std::uint32_t signature_of(const Call& call, const AgreedTerms& terms) {
  const bool pair = call.collective == Collective::kSend || call.collective == Collective::kRecv;
  // A fixed little-endian form, independent of the layout the compiler gives the structures.
  std::array<std::uint8_t, 38> bytes{};
  std::size_t position = 0;
  const auto put = [&](std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[position++] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  put(static_cast<std::uint64_t>(pair ? Collective::kSend : call.collective), 1);
  put(static_cast<std::uint64_t>(call.dtype), 1);
  if (!pair) {
    put(static_cast<std::uint64_t>(terms.op != 0 ? Func::kUser0 : call.func), 1);
    put((call.in_place ? 1U : 0U) | (call.direct ? 2U : 0U), 1);
    put(call.size, 4);
    put(call.root, 4);
    put(call.group_size, 4);
    put(call.count, 8);
    put(terms.algorithm, 4);
    put(terms.eager_limit, 4);
    put(static_cast<std::uint64_t>(terms.wire_dtype), 1);
    put(terms.op, 4);
    put(call.radix, 1);
  }
  std::uint32_t crc = crc32c(bytes);
  // Engines that know no factors compute the signature of calls without one.
  if (const std::uint64_t factor = factor_bits(terms.post_scale); factor != 0) {
    std::array<std::uint8_t, 8> more{};
    for (std::size_t i = 0; i < more.size(); ++i) more[i] = static_cast<std::uint8_t>(factor >> (8 * i));
    crc = crc32c(more, crc);
  }
  return crc != 0 ? crc : 1;
}

/// The digest of a communicator's collective calls up to one with `signature`, from that of the calls before it. Once
/// two ranks have called differently, their digests differ for good: each step is a bijection of the one before.
constexpr std::uint32_t chained(std::uint32_t before, std::uint32_t signature) {
  return (before ^ signature) * 0x9e3779b1U;
}

/// Whether a signature that arrived with its low `bits` bits only can be that of `expected`. An expected
/// signature of 0 is not known and agrees with any.
constexpr bool signatures_agree(std::uint32_t arrived, std::uint32_t expected, unsigned bits = 32) {
  const std::uint32_t mask = bits >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << bits) - 1;
  return expected == 0 || ((arrived ^ expected) & mask) == 0;
}

}  // namespace unisono
