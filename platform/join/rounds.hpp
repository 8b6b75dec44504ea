// Members that meet through what somebody else carries: a launcher's key-value store, or functions of the caller.
#pragma once

#include <optional>
#include <string>

#include "platform/join/exchange.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// What a member says in one round, with who it is.
struct Envelope {
  enum class Kind : std::uint32_t { kGiven = 1, kGaveUp = 2 };
  Kind kind = Kind::kGiven;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t pid = 0;
  std::string host;  ///< for messages
  Blob secret;       ///< of rank 0's first
  Blob content;      ///< what it gives, or why it gave up

  Blob packed() const;
  /// Nothing if it is none of this version.
  static std::optional<Envelope> unpacked(std::span<const std::byte> bytes);
};

/// Bytes of a packed envelope, at most.
inline constexpr std::uint32_t kMaxEnvelope = kMaxGiven + 1024;

/// The rounds of all of them: who said what, the secret, and giving up. How bytes travel is for those that derive.
/// Nobody is at the centre: a member that gives up says so in place of what it would give next, and takes part in that
/// round, so that the others hear of it where they wait.
class Rounds : public Exchange {
 public:
  explicit Rounds(const JobEnvironment& environment);
  std::vector<Blob> all_gather(std::span<const std::byte> own) final;
  void give_up(const std::string& reason) noexcept final;
  std::span<const std::byte> secret() const final { return secret_; }

 protected:
  /// Every member calls it equally often; what all members put in, by rank. Throws Error(kBootstrap).
  virtual std::vector<Blob> carry(const Blob& own) = 0;

  [[noreturn]] void fail(const std::string& text) const;
  /// "rank 3", or "rank 3 (node7)" where the host is known.
  std::string person(std::uint32_t rank) const;
  /// "rank 3 has", "ranks 1 and 5, rank 2 on node4 have": shortened if there are many.
  std::string ranks_have(const std::vector<std::uint32_t>& ranks) const;
  void set_host(std::uint32_t rank, std::string host) { hosts_[rank] = std::move(host); }

  const JobEnvironment& environment() const { return environment_; }
  Deadline deadline() const { return deadline_; }
  std::uint32_t round() const { return round_; }  ///< counts from 1

 private:
  std::vector<Blob> open(const std::vector<Blob>& envelopes, const Blob& own);
  Envelope envelope(Envelope::Kind kind, std::span<const std::byte> content) const;

  const JobEnvironment environment_;
  const Deadline deadline_;
  const std::string own_host_;
  std::vector<std::string> hosts_;  ///< by rank; empty: not known
  Blob secret_;
  std::uint32_t round_ = 0;
  bool over_ = false;  ///< the job is lost, and all have been told, or cannot be
};

}  // namespace unisono::join
