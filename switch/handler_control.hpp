// What is said to a switch about handlers (docs/handlers.md): load one, take one away, and run one on packets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/secret.hpp"
#include "switch/control.hpp"

namespace unisono::slots {

/// Whose a handler is. All zeros: of everybody who knows the switch's secret; else of who knows this number, which is
/// random, and which the switch tells nobody. It is not the id of a job, which a switch tells everybody who asks.
using HandlerOwner = PoolId;

/// How a handler is called in a switch; each owner has names of its own.
struct HandlerName {
  HandlerOwner owner{};
  std::string name;  ///< like that of a switch: 1 to kMostSwitchName printable characters
  friend auto operator<=>(const HandlerName&, const HandlerName&) = default;  // NOLINT(modernize-use-nullptr)
};

/// ControlKind::kLoad; the answer is a LoadAnswer.
struct LoadRequest {
  HandlerName which;
  bool stays = true;  ///< when the connection ends; else it goes with it
  bool anew = false;  ///< also where the name is in use: in place of what is there, with memory as at the beginning
  Digest hash{};      ///< SHA-256 of the binary, as the caller has it
  join::Blob binary;
};

struct LoadAnswer {
  std::string refusal;  ///< a sentence; empty: it is loaded
  bool fresh = false;   ///< its memory is as at the beginning; else the same handler was there, and goes on
};

/// ControlKind::kUnload; the answer is a sentence, empty if the handler is gone.
struct UnloadRequest {
  HandlerName which;
};

/// Of requests that are answered in pieces: packets of one message that one request has at most.
inline constexpr std::uint32_t kMostPacketsAtOnce = 4096;

/// ControlKind::kRun: packets of a message, in their order, or some of them; the answer is a RunAnswer. A connection
/// has one message at a time: packet 0 begins another.
struct RunRequest {
  HandlerName which;
  std::uint32_t source = 0;
  std::uint32_t ranks = 1;
  std::uint32_t tag = 0;
  std::uint32_t first = 0;    ///< number of the first packet here
  std::uint32_t packets = 0;  ///< of the message
  std::uint64_t budget = 0;   ///< instructions of a function, if that is less than the switch allows; 0: what it allows
  std::vector<join::Blob> payloads;
};

struct RunAnswer {
  enum class State : std::uint8_t {
    kGoesOn,   ///< all `taken` packets are done, and the message's end if they were its last ones
    kDropped,  ///< the handler wants to see no more of the message
    kStopped,  ///< a function was stopped, or has failed; the message is over
    kRefused,  ///< nothing was run
  };
  State state = State::kGoesOn;
  std::string sentence;        ///< why it is stopped or refused
  std::uint32_t taken = 0;     ///< packets; what is not taken is to be sent again
  std::uint64_t executed = 0;  ///< instructions
  std::vector<join::Blob> outputs;
};

/// ControlKind::kOperator, by a connection that wants the pool; the answer is a sentence, empty if the pool has it, and
/// with it all pools above.
struct OperatorRequest {
  PoolId pool{};
  Func func = Func::kNone;  ///< user0 to ordered7: as frames of the pool name it
  Digest hash{};            ///< SHA-256 of the binary, as the caller has it; all zeros: take it away, here and above
  join::Blob binary;        ///< empty: that of an operator with this hash which is loaded for everybody
  bool takes_away() const { return hash == Digest{}; }
};

join::Blob packed(const LoadRequest& request);
join::Blob packed(const LoadAnswer& answer);
join::Blob packed(const UnloadRequest& request);
join::Blob packed(const RunRequest& request);
join::Blob packed(const RunAnswer& answer);
join::Blob packed(const OperatorRequest& request);
/// Nothing for bytes that are none of these, or that say what cannot be: names, packets and lengths out of bounds.
/// Whatever comes, they allocate no more than a few times its length.
std::optional<LoadRequest> load_request_in(std::span<const std::byte> bytes);
std::optional<LoadAnswer> load_answer_in(std::span<const std::byte> bytes);
std::optional<UnloadRequest> unload_request_in(std::span<const std::byte> bytes);
std::optional<RunRequest> run_request_in(std::span<const std::byte> bytes);
std::optional<RunAnswer> run_answer_in(std::span<const std::byte> bytes);
std::optional<OperatorRequest> operator_request_in(std::span<const std::byte> bytes);

}  // namespace unisono::slots
