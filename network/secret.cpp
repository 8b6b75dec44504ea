#include "network/secret.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/crypto_verify_32.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.hpp"

namespace unisono {

namespace {

const unsigned char* bytes_of(const void* data) { return static_cast<const unsigned char*>(data); }

}  // namespace

Digest digest_of(std::span<const std::byte> key, std::string_view purpose,
                 std::initializer_list<std::span<const std::byte>> parts) {
  crypto_auth_hmacsha256_state state;
  constexpr unsigned char kNothing = 0;  // the library copies by memcpy, which takes no null
  crypto_auth_hmacsha256_init(&state, key.empty() ? &kNothing : bytes_of(key.data()), key.size());
  const auto add = [&](std::span<const std::byte> part) {
    const std::uint64_t length = part.size();
    crypto_auth_hmacsha256_update(&state, bytes_of(&length), sizeof length);
    if (!part.empty()) crypto_auth_hmacsha256_update(&state, bytes_of(part.data()), part.size());
  };
  add(std::as_bytes(std::span(purpose)));
  for (const auto part : parts) add(part);
  static_assert(sizeof(Digest) == crypto_auth_hmacsha256_BYTES);
  Digest digest;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

Digest sha256_of(std::span<const std::byte> bytes) {
  static_assert(sizeof(Digest) == crypto_hash_sha256_BYTES);
  Digest digest;
  constexpr unsigned char kNothing = 0;
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     bytes.empty() ? &kNothing : bytes_of(bytes.data()), bytes.size());
  return digest;
}

bool equal(const Digest& one, const Digest& other) {
  return crypto_verify_32(bytes_of(one.data()), bytes_of(other.data())) == 0;
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw Error(ErrorCode::kBootstrap, std::string("the system gives no random numbers: ") + std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace unisono
