#include "network/tcp/tls.hpp"

#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/openssl/library.hpp"

namespace unisono::tcp {

namespace {

/// What a record has beside its bytes, at most.
constexpr std::size_t kBesideRecord = 256;
/// Records that go to the kernel together.
constexpr std::size_t kRecordsTogether = 4;
/// Room for these and for what TLS says of its own, which is never much.
constexpr std::size_t kMostOut = kRecordsTogether * (Tls::kRecordBytes + kBesideRecord) + 4096;
/// So much is taken from the kernel at once.
constexpr std::size_t kReadAtOnce = std::size_t{64} * 1024;

/// The name of the one secret that both ends have.
constexpr std::string_view kIdentity = "unisono";

/// Whether the processor has instructions for AES; ChaCha20 is faster where it has not.
bool has_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0;
#else
  return true;
#endif
}

const OpenSsl& lib() {
  static const OpenSsl& library = OpenSsl::instance();
  return library;
}

}  // namespace

/// What OpenSSL calls.
struct TlsCallbacks {
  static Tls& owner(BIO* bio) { return *static_cast<Tls*>(lib().bio_get_data(bio)); }

  static int write(BIO* bio, const char* data, std::size_t bytes, std::size_t* written) {
    *written = bytes;
    return owner(bio).put(std::as_bytes(std::span(data, bytes))) ? 1 : 0;
  }

  static int read(BIO* bio, char* data, std::size_t bytes, std::size_t* got) {
    constexpr int kRetry = BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY;
    lib().bio_clear_flags(bio, kRetry);
    const ssize_t result = owner(bio).get(std::as_writable_bytes(std::span(data, bytes)));
    *got = result > 0 ? static_cast<std::size_t>(result) : 0;
    if (result < 0 && owner(bio).receiving_error_ == 0) lib().bio_set_flags(bio, kRetry);
    return result > 0 ? 1 : 0;
  }

  static long control(BIO* bio, int what, long /*number*/, void* /*pointer*/) {
    if (what == BIO_CTRL_EOF) return owner(bio).closed_ ? 1 : 0;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static SSL_SESSION* session_of(SSL* ssl) {
    const Tls& tls = *static_cast<Tls*>(lib().ssl_get_data(ssl, 0));
    // Its hash is SHA-256, as that of the other cipher.
    constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
    const SSL_CIPHER* const cipher = lib().cipher_find(ssl, kAes128GcmSha256);
    SSL_SESSION* const session = cipher == nullptr ? nullptr : lib().session_new();
    if (session == nullptr) return nullptr;
    const auto* const key = reinterpret_cast<const unsigned char*>(tls.secret_.data());
    if (lib().session_set_key(session, key, tls.secret_.size()) == 1 &&
        lib().session_set_cipher(session, cipher) == 1 && lib().session_set_version(session, TLS1_3_VERSION) == 1) {
      return session;
    }
    lib().session_free(session);
    return nullptr;
  }

  static int offer(SSL* ssl, const EVP_MD* /*hash*/, const unsigned char** identity, std::size_t* bytes,
                   SSL_SESSION** session) {
    *session = session_of(ssl);
    *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
    *bytes = kIdentity.size();
    return *session == nullptr ? 0 : 1;
  }

  static int find(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
    const std::string_view name(reinterpret_cast<const char*>(identity), bytes);
    *session = name == kIdentity ? session_of(ssl) : nullptr;
    return name == kIdentity && *session == nullptr ? 0 : 1;
  }
};

namespace {

/// What all connections of the process have in common.
struct Common {
  SSL_CTX* context = nullptr;
  BIO_METHOD* method = nullptr;
  bool whole = false;

  Common() {
    context = lib().ctx_new(lib().tls_method());
    method = lib().bio_meth_new(lib().bio_get_new_index() | BIO_TYPE_SOURCE_SINK, "unisono");
    if (context == nullptr || method == nullptr) return;
    const auto set = [&](int what, long number) { return lib().ctx_ctrl(context, what, number, nullptr) == 1; };
    // What the system's configuration says of all programs is overruled: both ends are this library.
    whole = set(SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION) && set(SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION);
    whole = whole &&
            lib().ctx_set_ciphersuites(context, has_aes() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                                          : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") == 1;
    whole = whole && lib().ctx_set_num_tickets(context, 0) == 1;
    lib().ctx_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    // Without ephemeral keys, someone who learns the job's secret later could read data recorded before.
    lib().ctx_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    lib().ctx_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
    lib().ctx_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 1, nullptr);
    lib().ctx_set_read_buffer(context, kReadAtOnce);
    lib().ctx_set_psk_use(context, &TlsCallbacks::offer);
    lib().ctx_set_psk_find(context, &TlsCallbacks::find);
    whole = whole && lib().bio_meth_set_write_ex(method, &TlsCallbacks::write) == 1 &&
            lib().bio_meth_set_read_ex(method, &TlsCallbacks::read) == 1 &&
            lib().bio_meth_set_ctrl(method, &TlsCallbacks::control) == 1;
  }
};

const Common& common() {
  static const Common made;
  if (made.whole) return made;
  throw Error(ErrorCode::kBootstrap,
              "OpenSSL refuses what TLS 1.3 between ranks needs: the ciphers of 1.3, and keys that both ends share");
}

}  // namespace

void Tls::load() {
  OpenSsl::instance();
  common();
}

void Tls::Free::operator()(ssl_st* ssl) const { lib().ssl_free(ssl); }

Tls::Tls(TlsEnd end, const Digest& secret, int socket, std::uint64_t records_per_key)
    : socket_(socket), secret_(secret), records_per_key_(records_per_key) {
  load();
  ssl_.reset(lib().ssl_new(common().context));
  BIO* const bio = ssl_ == nullptr ? nullptr : lib().bio_new(common().method);
  if (bio == nullptr) throw Error(ErrorCode::kOutOfMemory, "there is no memory for an encrypted connection");
  lib().bio_set_data(bio, this);
  lib().bio_set_init(bio, 1);
  lib().ssl_set_bio(ssl_.get(), bio, bio);
  lib().ssl_set_data(ssl_.get(), 0, this);
  if (end == TlsEnd::kClient) {
    // There are no certificates, so none is ever good.
    lib().ssl_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    lib().ssl_set_connect_state(ssl_.get());
  } else {
    lib().ssl_set_accept_state(ssl_.get());
  }
}

Tls::~Tls() { explicit_bzero(secret_.data(), secret_.size()); }

Tls::Progress Tls::shake_hands() {
  if (!fault_.empty()) return Progress::kFailed;
  lib().clear_error();
  const int result = lib().ssl_do_handshake(ssl_.get());
  flush();
  if (sending_error_ != 0) receiving_error_ = sending_error_;
  if (result == 1 && receiving_error_ == 0) {
    // No certificate would have been good, but that is not left to one rule alone.
    if (lib().ssl_session_reused(ssl_.get()) != 1) {
      fault_ = "does not know the secret of this connection";
      return Progress::kFailed;
    }
    explicit_bzero(secret_.data(), secret_.size());
    return Progress::kDone;
  }
  if (receiving_error_ != 0) {
    fault_ = formatted("broke the connection before TLS was agreed on: {}", std::strerror(receiving_error_));
  } else if (closed_) {
    fault_ = "closed the connection before TLS was agreed on";
  } else if (lib().ssl_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) {
    return Progress::kUnderWay;
  } else {
    fail("TLS could not be agreed on with it", "TLS could not be agreed on with it, as it says");
  }
  return Progress::kFailed;
}

void Tls::fail(const char* here, const char* there) {
  const unsigned long error = lib().peek_error();
  const char* const reason = error == 0 ? nullptr : lib().reason_of_error(error);
  // What the other end has found is told by numbers from here on.
  constexpr int kAlerts = SSL_AD_REASON_OFFSET;
  const bool told = error != 0 && ERR_GET_REASON(error) >= kAlerts;
  fault_ = formatted("{}: {}", told ? there : here, reason == nullptr ? "no reason is known" : reason);
  flush();
}

// -- What OpenSSL asks of the kernel ------------------------------------------------------------------------------

std::size_t Tls::hand_over(std::span<const iovec> pieces) {
  if (sending_error_ != 0) return 0;
  msghdr message{};
  // The system's structure has no constant form; the kernel only reads.
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
    sending_error_ = errno;
    out_begin_ = out_end_ = 0;  // nobody will get it
  }
  return 0;
}

bool Tls::flush() {
  while (out_begin_ != out_end_) {
    const iovec waiting{out_.get() + out_begin_, out_end_ - out_begin_};
    const std::size_t sent = hand_over({&waiting, 1});
    if (sent == 0) return false;
    out_begin_ += sent;
  }
  out_begin_ = out_end_ = 0;
  return true;
}

bool Tls::put(std::span<const std::byte> bytes) {
  if (!corked_) {
    const std::size_t waiting = out_end_ - out_begin_;
    const std::array<iovec, 2> pieces{
        {{out_.get() + out_begin_, waiting}, {const_cast<std::byte*>(bytes.data()), bytes.size()}}};
    const std::size_t sent = hand_over(std::span(pieces).subspan(waiting == 0 ? 1 : 0));
    if (sending_error_ != 0) return true;  // what comes may still be of use, so this is no fault of TLS
    if (sent >= waiting) {
      out_begin_ = out_end_ = 0;
      bytes = bytes.subspan(sent - waiting);
    } else {
      out_begin_ += sent;
    }
  }
  if (bytes.empty()) return true;
  if (out_ == nullptr) {
    out_.reset(new (std::nothrow) std::byte[kMostOut]);
    if (out_ == nullptr) return false;
    out_capacity_ = kMostOut;
  }
  if (out_capacity_ - out_end_ < bytes.size()) {
    std::memmove(out_.get(), out_.get() + out_begin_, out_end_ - out_begin_);
    out_end_ -= out_begin_;
    out_begin_ = 0;
  }
  // Before each record there is room. So this is a peer that has TLS answer it without end, and takes no answer.
  if (out_capacity_ - out_end_ < bytes.size()) return false;
  std::memcpy(out_.get() + out_end_, bytes.data(), bytes.size());
  out_end_ += bytes.size();
  return true;
}

ssize_t Tls::get(std::span<std::byte> into) {
  if (receiving_error_ != 0) return -1;
  ssize_t got = 0;
  do {
    got = recv(socket_, into.data(), into.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got == 0) closed_ = true;
  if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) receiving_error_ = errno;
  return got;
}

// -- Bytes of the connection --------------------------------------------------------------------------------------

std::span<const std::byte> Tls::next_record(std::span<const iovec> pieces, Place& place) {
  const auto rest = [&] {
    const iovec& piece = pieces[place.piece];
    return std::span(static_cast<const std::byte*>(piece.iov_base), piece.iov_len).subspan(place.offset);
  };
  const auto pass = [&](std::size_t bytes) {
    place.offset += bytes;
    while (place.piece < pieces.size() && place.offset == pieces[place.piece].iov_len) {
      ++place.piece;
      place.offset = 0;
    }
  };
  pass(0);
  if (place.piece == pieces.size()) return {};
  const auto first = rest();
  if (first.size() >= kRecordBytes || place.piece + 1 == pieces.size()) {
    const auto whole = first.first(std::min(first.size(), kRecordBytes));
    pass(whole.size());
    return whole;
  }
  if (record_ == nullptr) record_.reset(new (std::nothrow) std::byte[kRecordBytes]);
  if (record_ == nullptr) throw Error(ErrorCode::kOutOfMemory, "there is no memory to encrypt a message in");
  std::size_t bytes = 0;
  while (place.piece < pieces.size() && bytes < kRecordBytes) {
    const auto more = rest();
    const std::size_t part = std::min(more.size(), kRecordBytes - bytes);
    std::memcpy(record_.get() + bytes, more.data(), part);
    bytes += part;
    pass(part);
  }
  return {record_.get(), bytes};
}

bool Tls::seal(std::span<const std::byte> record) {
  lib().clear_error();
  if (records_ == records_per_key_) {
    // It is told to the other end by a record of its own, before the next one.
    lib().ssl_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    records_ = 0;
  }
  ++records_;
  std::size_t written = 0;
  // Nothing is ever left half written: what the kernel does not take is kept here.
  if (lib().ssl_write(ssl_.get(), record.data(), record.size(), &written) == 1 && written == record.size()) return true;
  fail("nothing more can be encrypted for it", "it has ended the encrypted connection");
  return false;
}

std::size_t Tls::send(std::span<const iovec> pieces) {
  std::size_t taken = 0;
  Place place;
  // A part of a record is never taken, for what is sealed cannot be sealed again.
  while (fault_.empty() && sending_error_ == 0 && (corked_ || flush())) {
    const auto record = next_record(pieces, place);
    if (record.empty()) break;
    corked_ = place.piece < pieces.size() && kMostOut - out_end_ >= 2 * (kRecordBytes + kBesideRecord) + kBesideRecord;
    if (seal(record)) taken += record.size();
  }
  corked_ = false;
  return taken;
}

ssize_t Tls::receive_into(std::span<std::byte> into) {
  if (!fault_.empty()) {
    errno = EPROTO;
    return -1;
  }
  lib().clear_error();
  std::size_t got = 0;
  if (lib().ssl_read(ssl_.get(), into.data(), into.size(), &got) == 1) return static_cast<ssize_t>(got);
  const int why = lib().ssl_get_error(ssl_.get(), 0);
  if (why == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
    return -1;
  }
  if (receiving_error_ != 0) {
    errno = receiving_error_;
    return -1;
  }
  if (closed_ || why == SSL_ERROR_ZERO_RETURN) return 0;
  fail("what came from it is not as it was sent, so the connection was ended", "it has ended the encrypted connection");
  errno = EPROTO;
  return -1;
}

ssize_t Tls::receive(std::span<std::byte> first, std::span<std::byte> second) {
  ssize_t all = 0;
  for (auto into : {first, second}) {
    while (!into.empty()) {
      const ssize_t got = receive_into(into);
      if (got <= 0) return all != 0 ? all : got;
      all += got;
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }
  return all;
}

bool Tls::holds() const { return lib().ssl_has_pending(ssl_.get()) == 1; }

}  // namespace unisono::tcp
