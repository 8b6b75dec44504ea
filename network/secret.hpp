// Proof that somebody knows the job's key, without telling it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace unisono {

/// HMAC-SHA256.
using Digest = std::array<std::byte, 32>;
/// A number that is used once.
using Nonce = std::array<std::byte, 16>;

/// The digest of `purpose` and the parts, each with its length before it, so that no two lists of parts are taken for
/// each other. `key` may have any length.
Digest digest_of(std::span<const std::byte> key, std::string_view purpose,
                 std::initializer_list<std::span<const std::byte>> parts);
/// SHA-256 of the bytes alone, as sha256sum gives it.
Digest sha256_of(std::span<const std::byte> bytes);
/// Compares in a time that does not depend on the contents.
bool equal(const Digest& one, const Digest& other);

/// Fills with random bytes of the system. Throws Error(kBootstrap) if it has none to give.
void fill_random(std::span<std::byte> bytes);

}  // namespace unisono
