#include "platform/join/rounds.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/secret.hpp"
#include "platform/join/host.hpp"
#include "platform/join/pack.hpp"
#include "platform/join/ranks_in_words.hpp"

namespace unisono::join {
namespace {

constexpr std::uint32_t kEnvelopeMagic = 0x31564e55;  ///< "UNV1" in memory order
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMaxReason = 4096;
constexpr std::size_t kMaxHost = 255;

std::string process(const Envelope& of) {
  return of.host.empty() ? formatted("pid {}", of.pid) : formatted("pid {} on {}", of.pid, of.host);
}

}  // namespace

Blob Envelope::packed() const {
  return Packer()
      .add_value(kEnvelopeMagic)
      .add_value(kind)
      .add_value(rank)
      .add_value(size)
      .add_value(pid)
      .add(host)
      .add(secret)
      .add(content)
      .take();
}

std::optional<Envelope> Envelope::unpacked(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.take_value<std::uint32_t>() != kEnvelopeMagic) return std::nullopt;
  Envelope found;
  found.kind = unpacker.take_value<Kind>();
  found.rank = unpacker.take_value<std::uint32_t>();
  found.size = unpacker.take_value<std::uint32_t>();
  found.pid = unpacker.take_value<std::uint32_t>();
  found.host = unpacker.take_text();
  const auto secret = unpacker.take();
  found.secret.assign(secret.begin(), secret.end());
  const auto content = unpacker.take();
  found.content.assign(content.begin(), content.end());
  const bool known = found.kind == Kind::kGiven || found.kind == Kind::kGaveUp;
  if (!unpacker.whole() || !known || found.host.size() > kMaxHost) return std::nullopt;
  return found;
}

Rounds::Rounds(const JobEnvironment& environment)
    : environment_(environment),
      deadline_(Clock::now() + environment.timeout),
      own_host_(this_host(environment.host).name.substr(0, kMaxHost)),
      hosts_(environment.size) {
  if (environment.rank == 0) {
    secret_.resize(kSecretBytes);
    fill_random(secret_);
  }
}

void Rounds::fail(const std::string& text) const {
  throw Error(ErrorCode::kBootstrap, formatted("rank {} could not join {} of {} ranks: {}", environment_.rank,
                                               environment_.title(), environment_.size, text));
}

std::string Rounds::person(std::uint32_t rank) const {
  return hosts_[rank].empty() ? formatted("rank {}", rank) : formatted("rank {} ({})", rank, hosts_[rank]);
}

std::string Rounds::ranks_have(const std::vector<std::uint32_t>& ranks) const {
  return join::ranks_have(ranks, hosts_);
}

Envelope Rounds::envelope(Envelope::Kind kind, std::span<const std::byte> content) const {
  Envelope made;
  made.kind = kind;
  made.rank = environment_.rank;
  made.size = environment_.size;
  made.pid = static_cast<std::uint32_t>(getpid());
  made.host = own_host_;
  if (environment_.rank == 0 && round_ == 1) made.secret = secret_;
  made.content.assign(content.begin(), content.end());
  return made;
}

std::vector<Blob> Rounds::all_gather(std::span<const std::byte> own) {
  if (over_) fail("it is lost already");
  // Whatever goes wrong from here on, the next round would not be the same one for all.
  over_ = true;
  if (own.size() > kMaxGiven) fail(formatted("{} bytes were to be given; allowed are {}", own.size(), kMaxGiven));
  ++round_;
  const Blob packed = envelope(Envelope::Kind::kGiven, own).packed();
  auto all = open(carry(packed), packed);
  over_ = false;
  return all;
}

std::vector<Blob> Rounds::open(const std::vector<Blob>& envelopes, const Blob& own) {
  std::vector<Envelope> opened;
  for (std::uint32_t rank = 0; rank < environment_.size; ++rank) {
    auto envelope = Envelope::unpacked(envelopes[rank]);
    if (!envelope) {
      fail(formatted("rank {} has said something else than expected: use one version of Unisono on all ranks", rank));
    }
    hosts_[rank] = envelope->host;
    opened.push_back(*std::move(envelope));
  }
  // Why somebody gave up says more than what follows from it.
  for (const Envelope& one : opened) {
    if (one.kind == Envelope::Kind::kGaveUp) {
      const std::string reason(reinterpret_cast<const char*>(one.content.data()), one.content.size());
      fail(formatted("rank {} ({}) could not join: {}", one.rank, process(one), reason));
    }
  }
  if (envelopes[environment_.rank] != own) {
    const Envelope& other = opened[environment_.rank];
    if (other.rank == environment_.rank) {
      fail(formatted("rank {} came twice, as process {} and as process {}", other.rank, getpid(), other.pid));
    }
  }
  std::vector<Blob> contents;
  for (std::uint32_t rank = 0; rank < environment_.size; ++rank) {
    Envelope& one = opened[rank];
    if (one.size != opened[0].size) {
      fail(formatted("rank {} ({}) says that the job has {} ranks, rank 0 ({}) says {}", one.rank, process(one),
                     one.size, process(opened[0]), opened[0].size));
    }
    if (one.rank != rank) {
      fail(formatted("in the place of rank {} stands what process {} gave, which is rank {}", rank, one.pid, one.rank));
    }
    contents.push_back(std::move(one.content));
  }
  if (round_ == 1 && environment_.rank != 0) secret_ = opened[0].secret;
  if (secret_.size() != kSecretBytes) fail("rank 0 has told no secret: use one version of Unisono on all ranks");
  return contents;
}

void Rounds::give_up(const std::string& reason) noexcept {
  if (std::exchange(over_, true)) return;
  try {
    ++round_;
    const std::string_view cut = std::string_view(reason).substr(0, kMaxReason);
    carry(envelope(Envelope::Kind::kGaveUp, std::as_bytes(std::span(cut))).packed());
  } catch (...) {  // they hear nothing then, and their own deadlines end them
  }
}

}  // namespace unisono::join
