// What is said to a switch besides data: who wants a pool of slots, and how people look after the process.
//
// A connection of TCP, of frames as the members of a job use them to meet (platform/join/frames.hpp). It begins with a
// proof in both directions that the other end knows the switch's secret; the secret is never sent. Then the caller
// sends requests (FrameKind::kGive), each of which has one answer (FrameKind::kAll). A refusal (FrameKind::kRefused)
// ends the connection. What was asked for by a connection ends with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/secret.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/pack.hpp"
#include "switch/slots.hpp"

namespace unisono::slots {

/// Of what is said here, besides kProtocol of the frames.
inline constexpr std::uint32_t kControlVersion = 3;
/// Bytes of a request or an answer, at most.
inline constexpr std::uint32_t kMostControlBytes = 1U << 22U;
/// Characters of a switch's name.
inline constexpr std::size_t kMostSwitchName = 64;

/// Whether a switch, or what is loaded into one, may be called so.
bool is_switch_name(const std::string& name);

/// Names a pool, and with it all its datagrams: random, of whoever asks first, the same in all switches of its tree.
using PoolId = std::array<std::byte, 16>;

enum class ControlKind : std::uint32_t {
  kMake = 1,  ///< make a pool, or say that it is still wanted: PoolRequest; the answer is PoolAnswer
  kFree,      ///< the pool is not wanted any more: its id; no words come back
  kAsk,       ///< `status`, `jobs`, or `show N`: a text; the answer is a text, one object of JSON
  kDrain,     ///< make no more pools, for those that are there go on; a byte: 0 takes that back
  kStop,      ///< end, once the answer is sent
  kLoad,      ///< have a handler: see switch/handler_control.hpp, as for the next two
  kUnload,    ///< have it no longer
  kRun,       ///< run it on packets
  kOperator,  ///< have a pool fold by a user's operator
};

/// A switch of the tree that a pool belongs to.
struct PoolNode {
  std::string name;            ///< of the switch, as it says itself
  std::string above;           ///< name of the switch above; empty: it is the top
  std::uint32_t position = 0;  ///< at the switch above
  struct Below {
    std::string name;  ///< of the switch; empty: a rank
    Child child;       ///< ranks count in the order of the tree
  };
  std::vector<Below> below;  ///< in listed order
};

/// What whoever makes a communicator asks its switches for.
struct PoolRequest {
  PoolId id{};
  PoolId job{};          ///< of the job; slots are shared out by jobs
  std::string job_name;  ///< for people: program, host and process of the first rank
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  std::uint32_t ranks = 0;
  std::uint32_t slots = 0;  ///< a power of two
  std::uint16_t payload_bytes = 0;
  bool keeps_order = true;
  std::vector<PoolNode> nodes;  ///< of the whole tree

  /// The node of a switch, or null.
  const PoolNode* node(const std::string& name) const;
};

/// What becomes of a request.
struct PoolAnswer {
  bool made = false;
  std::string refusal;           ///< why not: a sentence
  std::uint32_t possible = 0;    ///< with so many slots it could be made; 0: not at all
  std::uint16_t port = 0;        ///< of UDP, for frames of this pool
  std::uint64_t generation = 0;  ///< that the pool begins with
  std::string group;  ///< ADDRESS:PORT of IPv4 to which results for all go, if its members take part; or empty
};

/// What a switch says of itself when a connection has been proven.
struct Welcome {
  std::uint32_t version = kControlVersion;
  std::string name;
  std::uint64_t capability = 0;    ///< encoded Capability: datatypes and operators that it folds
  std::vector<std::string> above;  ///< names of the switches above it, the next one first
  std::uint64_t up_to_bytes = 0;   ///< it advises not to aggregate calls of more bytes; 0: any
  std::uint32_t slots = 0;         ///< that it has in all
  std::uint64_t room_bytes = 0;    ///< of datagrams that its system keeps while it does not look
  bool draining = false;
};

join::Blob packed(const PoolRequest& request);
join::Blob packed(const PoolAnswer& answer);
join::Blob packed(const Welcome& welcome);
/// Nothing for bytes that are none of these, or that say what cannot be: no tree, a rank twice, names or counts out of
/// bounds. Whatever comes, they allocate no more than a few times its length.
std::optional<PoolRequest> pool_request_in(std::span<const std::byte> bytes);
std::optional<PoolAnswer> pool_answer_in(std::span<const std::byte> bytes);
std::optional<Welcome> welcome_in(std::span<const std::byte> bytes);

/// A request as a frame has it: kind, a number that the answer repeats, and what the kind says.
struct ControlFrame {
  ControlKind kind = ControlKind::kAsk;
  std::uint32_t number = 0;
  join::Blob body;
};
join::Blob packed(const ControlFrame& frame);
std::optional<ControlFrame> control_frame_in(std::span<const std::byte> bytes);

inline std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Proofs of both ends, over the caller's hello and the nonce of the switch.
Digest proof_of_switch(std::span<const std::byte> secret, const join::Hello& hello, const Nonce& nonce);
Digest proof_of_caller(std::span<const std::byte> secret, const join::Hello& hello, const Nonce& nonce);

/// What all members of a pool are given, and nobody else: keys of its datagrams are made of it.
Digest pool_secret(std::span<const std::byte> secret, const PoolId& id);

/// A secret as it stands in a file: one line, 16 to kMaxSecret characters. Throws Error(kBootstrap), which names the
/// file, if it cannot be read, others than its owner can, or it is too short.
std::string secret_in_file(const std::string& path);

/// The caller's end of a connection. Each function ends by its deadline. Throws Error(kBootstrap), one sentence, if
/// nobody listens there, who does is no switch, is one of another version, or does not know the secret. One thread.
class ControlConnection {
 public:
  /// Connects, and proves. `where` is HOST:PORT.
  ControlConnection(const std::string& where, std::span<const std::byte> secret, join::Deadline deadline);
  const Welcome& welcome() const { return welcome_; }
  /// Sends a request and waits for its answer. Throws Error(kBootstrap); after an answer that has not come in time
  /// others may be asked for, after a request that was not taken in time not.
  join::Blob ask(ControlKind kind, std::span<const std::byte> body, join::Deadline deadline);
  PoolAnswer make(const PoolRequest& request, join::Deadline deadline);
  /// Best effort.
  void free(const PoolId& id) noexcept;
  /// Whether it is closed, by either end; never waits.
  bool ended();
  int descriptor() const { return connection_.get(); }

 private:
  [[noreturn]] void fail(const std::string& text) const;

  std::string where_;
  join::Descriptor connection_;
  join::FrameReader reader_{kMostControlBytes};
  Welcome welcome_;
  std::uint32_t number_ = 0;
};

}  // namespace unisono::slots
