// A build without the headers of OpenSSL.
#include "network/tcp/tls.hpp"

#include "core/error.hpp"

namespace unisono::tcp {

void Tls::load() {
  throw Error(ErrorCode::kBootstrap,
              "this build has no TLS: install the headers of OpenSSL 3 (Debian: libssl-dev) and build Unisono again");
}

// Nobody gets beyond the constructor.
Tls::Tls(TlsEnd /*end*/, const Digest& secret, int socket, std::uint64_t records_per_key)
    : socket_(socket), secret_(secret), records_per_key_(records_per_key) {
  load();
}
Tls::~Tls() = default;
void Tls::Free::operator()(ssl_st* /*ssl*/) const {}
Tls::Progress Tls::shake_hands() { return Progress::kFailed; }
std::size_t Tls::send(std::span<const iovec> /*pieces*/) { return 0; }
bool Tls::flush() { return true; }
ssize_t Tls::receive(std::span<std::byte> /*first*/, std::span<std::byte> /*second*/) { return -1; }
bool Tls::holds() const { return false; }

}  // namespace unisono::tcp
