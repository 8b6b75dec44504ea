// TLS 1.3 over a connection whose ends have proven to each other that they are of the job.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "network/secret.hpp"

// OpenSSL's, which only the files below openssl/ know.
struct ssl_st;
struct ssl_session_st;
struct bio_st;

namespace unisono::tcp {

/// Who speaks first: the end that connected.
enum class TlsEnd : std::uint8_t { kClient, kServer };

/// One end of an encrypted connection. Both ends know a secret that is of use for this connection alone; it takes the
/// place of certificates (a pre-shared key, with a fresh Diffie-Hellman exchange beside it). There is no other version
/// than 1.3, no resumption, no early data. Nothing blocks. Bytes are handed to the kernel from here; what it does not
/// take is kept, encrypted, and goes first. A byte that was altered, left out, put in or sent again on the way ends the
/// connection; `receive` gives nothing but what the other end has sent.
///
/// Not thread-safe. In a child of fork it may only be destroyed.
class Tls {
 public:
  /// Loads OpenSSL, once for the process. Throws Error(kBootstrap) that says what is missing: the library, or its
  /// headers when this was built.
  static void load();

  /// After so many records the keys are changed: AES-GCM is good for 2^24.5 of the longest ones (RFC 8446, 5.5).
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22U;

  /// `socket` does not block, stays the caller's, and outlives this. Throws Error(kBootstrap), as `load`, and
  /// Error(kOutOfMemory).
  Tls(TlsEnd end, const Digest& secret, int socket, std::uint64_t records_per_key = kRecordsPerKey);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  enum class Progress : std::uint8_t { kUnderWay, kDone, kFailed };
  /// Goes on with the handshake. Of the functions below none may be called before it is done.
  Progress shake_hands();

  /// Encrypts and sends. Gives the bytes of the pieces that were taken; the memory is the caller's again. None is taken
  /// while earlier ones wait for the kernel, or after a fault. Throws Error(kOutOfMemory).
  std::size_t send(std::span<const iovec> pieces);
  /// Sends what waits for the kernel; true if nothing waits any more, be it that nobody will get it.
  bool flush();
  bool has_output() const { return out_begin_ != out_end_; }
  /// The system's number of what has gone wrong in sending; 0: nothing. What has come can still be received.
  int sending_error() const { return sending_error_; }

  /// As recv(2), into one piece and then the other: as many bytes as are there. 0: the other end has closed the
  /// connection. -1 and EPROTO: see `fault`.
  ssize_t receive(std::span<std::byte> first, std::span<std::byte> second);
  /// Whether bytes were taken from the kernel that `receive` has not given yet, so that nobody else tells of them.
  bool holds() const;

  /// Why the connection can be used no more, in words that follow the other end's name; empty if it can, or if the
  /// system has said why.
  const std::string& fault() const { return fault_; }
  /// Bytes that it holds for what comes and goes, OpenSSL's not counted.
  std::size_t memory() const { return out_capacity_ + (record_ == nullptr ? 0 : kRecordBytes); }

  /// The longest piece that is encrypted as one.
  static constexpr std::size_t kRecordBytes = 16384;

 private:
  friend struct TlsCallbacks;
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  /// Where in a list of pieces it is.
  struct Place {
    std::size_t piece = 0;
    std::size_t offset = 0;
  };
  std::span<const std::byte> next_record(std::span<const iovec> pieces, Place& place);
  bool seal(std::span<const std::byte> record);
  /// For OpenSSL: bytes to the kernel, and from it; as write(2) and read(2).
  bool put(std::span<const std::byte> bytes);
  ssize_t get(std::span<std::byte> into);
  std::size_t hand_over(std::span<const iovec> pieces);
  ssize_t receive_into(std::span<std::byte> into);
  /// `here` says what was found at this end, `there` at the other one.
  void fail(const char* here, const char* there);

  std::unique_ptr<ssl_st, Free> ssl_;
  int socket_;
  Digest secret_;  ///< zeros once it is not needed any more
  std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;  ///< that were encrypted with the present key
  std::unique_ptr<std::byte[]> out_;
  std::size_t out_capacity_ = 0, out_begin_ = 0, out_end_ = 0;
  std::unique_ptr<std::byte[]> record_;  ///< short pieces become one record here
  bool corked_ = false;                  ///< more follows at once: nothing is handed to the kernel before
  bool closed_ = false;                  ///< by the other end
  int sending_error_ = 0;
  int receiving_error_ = 0;
  std::string fault_;
};

}  // namespace unisono::tcp
