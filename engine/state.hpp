// What the blocks of the engine share: communicators, calls, moves in flight, messages in flight.
//
// Ownership: the engine owns communicators; the call queue owns calls; a call owns its moves, and a
// move its ports (messages it expects) and parts (messages it sends). Everything is reached under the
// engine's lock only.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "core/message_segment.hpp"
#include "core/program.hpp"
#include "engine/call_order.hpp"
#include "engine/engine.hpp"
#include "engine/matcher.hpp"
#include "engine/move_stream.hpp"
#include "engine/pairs.hpp"
#include "engine/plan.hpp"
#include "engine/recorder.hpp"
#include "engine/stream_ports.hpp"
#include "engine/validate.hpp"
#include "network/reach.hpp"

namespace unisono::cclo {

using Clock = std::chrono::steady_clock;

class Consensus;
class FastPath;
struct Communicator;
struct CallState;
struct LaneCall;
struct Transfer;
struct MoveState;
struct Port;

/// What a network writes to a peer's memory: shorter messages, and pieces of them, go in a frame or two, which takes
/// less than a write and a word behind it.
inline constexpr std::uint64_t kWorthWriting = std::uint64_t{64} * 1024;
/// Of longer messages a receiver that passes them on can use what has come.
inline constexpr std::uint64_t kLongestWrite = std::uint64_t{1024} * 1024;

/// The error that a peer's message names; for numbers that name none, that the message is corrupt.
inline ErrorCode error_code(std::uint64_t number) {
  const bool known = number != 0 && number <= static_cast<std::uint64_t>(ErrorCode::kInternal);
  return known ? static_cast<ErrorCode>(number) : ErrorCode::kCorruptMessage;
}

/// Kinds of control messages; they travel in the header's tag. What each says is in ControlKind.
enum class Control : std::uint32_t {
  kRevoke = static_cast<std::uint32_t>(ControlKind::kRevoke),
  kReject = static_cast<std::uint32_t>(ControlKind::kReject),
  kGet = static_cast<std::uint32_t>(ControlKind::kGet),
  kGetMore = static_cast<std::uint32_t>(ControlKind::kGetMore),
  kGetFailed = static_cast<std::uint32_t>(ControlKind::kGetFailed),
  kPutDone = static_cast<std::uint32_t>(ControlKind::kPutDone),
  kProbe = static_cast<std::uint32_t>(ControlKind::kProbe),
  kEntered = static_cast<std::uint32_t>(ControlKind::kEntered),
  kMismatch = static_cast<std::uint32_t>(ControlKind::kMismatch),
  kAgree = static_cast<std::uint32_t>(ControlKind::kAgree),
};

/// An eager message, or the announcement of a rendezvous, that has come before its arrival took it.
struct Message : UnexpectedMessage {
  Header header;                ///< of the first segment, or of the request
  std::uint64_t received = 0;   ///< bytes in `buffer`
  std::byte* buffer = nullptr;  ///< receive buffer; null until the first byte has to be kept
  std::uint64_t buffer_bytes = 0;
  bool request = false;       ///< announcement: data follows when a grant has been sent
  bool discarded = false;     ///< its receive failed: what still comes is dropped
  CallState* call = nullptr;  ///< where it goes, once an arrival has taken it
  MoveState* move = nullptr;
  Port* port = nullptr;
};

/// One message that a move in flight expects: the receiving end of a pair's n-th message.
struct Port {
  enum class State : std::uint8_t {
    kTurn,     ///< earlier arrivals of the peer are not consumed, or the move has not started
    kOpen,     ///< issued; the message has not come
    kEager,    ///< data stands in `message`, or passes as `view`
    kLanding,  ///< granted; data passes through a landing buffer
    kDirect,   ///< granted; data goes straight to its place in memory
    kDone,     ///< consumed
  };
  State state = State::kTurn;
  bool arrived = false;        ///< the first segment (or the whole empty message) has come
  bool remote_memory = false;  ///< the data of a get
  std::uint32_t peer = 0;      ///< rank
  std::uint32_t ordinal = 0;   ///< n, among the messages of the pair in this call
  std::uint64_t total = 0;     ///< bytes of the message
  std::uint64_t received = 0;  ///< bytes that have come, in order
  std::uint64_t consumed = 0;  ///< bytes the move has used
  std::uint64_t limit = 0;     ///< bytes granted
  Reach reach;                 ///< of the landing area, if the peer may write there past this engine
  std::uint32_t sequence = 0;  ///< of the message, for grants
  Message* message = nullptr;
  std::uint32_t slot = 0;           ///< token slot, if landing or direct
  std::byte* landing = nullptr;     ///< landing ring, or final place
  std::uint64_t landing_bytes = 0;  ///< size of the ring
  const std::byte* view = nullptr;  ///< bytes consumed .. consumed + view_bytes, in the network's memory
  std::uint64_t view_bytes = 0;
};

/// One message that a move in flight sends.
struct Part {
  std::uint32_t peer = 0;     ///< rank
  std::uint32_t ordinal = 0;  ///< n, among the messages of the pair in this call
  bool eager = false;         ///< holds a credit for the whole message
  bool requested = false;     ///< waits for the grant it asked for
  std::byte* reserved = nullptr;
  std::uint64_t lent = 0;  ///< bytes that the network still takes from the operand
  Ticket write = 0;        ///< by which it writes them to the peer's memory; 0: it sends them
};

/// An operand or result of a move that is a stream port.
struct StreamAccess {
  StreamQueue* queue = nullptr;  ///< null: it is none
  StreamSide side = StreamSide::kToEngine;
  std::uint8_t port = 0;
  std::uint32_t ordinal = 0;  ///< n, among the accesses of the call to this queue
};

/// A move in flight.
struct MoveState {
  enum class State : std::uint8_t { kEntered, kStarted, kComplete };
  State state = State::kEntered;
  bool put_pending = false;     ///< waits for the peer's word on a put
  std::uint32_t index = 0;      ///< in the program
  std::uint32_t operation = 0;  ///< number of a put
  /// How a put goes on.
  enum class Way : std::uint8_t {
    kMessages,
    kAsked,  ///< the peer was asked to show its window, and has not answered
    kWrites
  };
  Way way = Way::kMessages;
  Reach window;            ///< what the peer shows of its window for a put that is written
  std::uint64_t lent = 0;  ///< bytes of the put that the network still takes from the operand, ...
  Ticket write = 0;        ///< ... by this write
  const Move* move = nullptr;
  std::uint64_t count = 0;  ///< resolved
  std::uint64_t bytes = 0;  ///< count in bytes
  std::uint64_t done = 0;   ///< bytes whose results are delivered
  const std::byte* op0 = nullptr;
  const std::byte* op1 = nullptr;  ///< memory operand
  std::byte* local = nullptr;
  StreamAccess in, out;    ///< an operand, and the local result
  bool in_second = false;  ///< `in` is op1
  std::vector<Port> ports;
  std::vector<Part> parts;  ///< messages

  bool streams() const { return in.queue != nullptr || out.queue != nullptr; }
};

/// How far a peer lets this rank write into one of its landing areas.
struct Grant {
  bool given = false;
  std::uint16_t slot = 0, generation = 0;
  std::uint32_t ordinal = 0;
  std::uint64_t limit = 0;
  Reach reach;  ///< of the landing area, if it may be written past the peer's engine
};

/// A request or grant.
struct EarlyControl {
  Header header;
  Reach reach;
};

/// What a call knows of its messages to and from one rank.
struct Pair {
  std::uint32_t sends_entered = 0, sends_done = 0;
  std::uint32_t arrivals_entered = 0, arrivals_done = 0;
  std::uint32_t sends_skipped = 0;     ///< bit i: message sends_done + i turned out not to exist
  std::uint32_t arrivals_skipped = 0;  ///< likewise
  bool heard = false;                  ///< something of this call has come from the rank
  Grant grant;                 ///< for message `grant.ordinal`; among engines in hardware, for the next granted one
  Grant next_grant;            ///< among engines in hardware: for the one after it
  std::uint32_t ended = 0;     ///< messages of which the last segment has come
  std::uint32_t finished = 0;  ///< of these, how many their arrivals have used up
  bool requested = false;      ///< the peer has asked for a grant of its message `request_ordinal`
  std::uint32_t request_ordinal = 0;
  std::uint64_t request_bytes = 0;
  std::vector<Message*> eager;     ///< messages that no arrival has taken, oldest first
  Message* incoming = nullptr;     ///< the message of which segments are still to come
  MoveState* head_move = nullptr;  ///< move of the arrival whose turn it is, once issued
  Port* head_port = nullptr;

  /// As new, but for memory that is kept.
  void reset() {
    std::vector<Message*> kept = std::move(eager);
    kept.clear();
    *this = Pair{};
    eager = std::move(kept);
  }
};

/// A receive that waits for its message.
struct Posted : PostedReceive {
  CallState* call = nullptr;
  MoveState* move = nullptr;
  Port* port = nullptr;
};

/// A call from submission to completion.
struct CallState {
  enum class Space : std::uint8_t { kLocal, kPointToPoint, kCollective };
  CallId id = 0;
  Communicator* communicator = nullptr;
  Call call;
  const Algorithm* algorithm = nullptr;  ///< null for programs
  const char* operation = nullptr;       ///< see CallRequest
  double post_scale = 1;                 ///< see CallRequest
  std::shared_ptr<const Plan> plan;      ///< null for a blocking call on the lanes, which has it itself
  std::shared_ptr<const CheckedProgram> program;
  std::array<Binding, 5> regions{};  ///< by Region
  std::vector<std::uint64_t> params;
  std::vector<std::byte> scratch;
  Space space = Space::kLocal;
  std::uint32_t sequence = 0;   ///< collective sequence, or pair sequence
  std::uint32_t signature = 0;  ///< what its messages carry; among native engines the digest of all calls up to it
  std::uint32_t tag = 0;
  Wanted wanted;         ///< of a receive or a probe
  bool probe = false;    ///< of a receive: a message is looked for, not taken
  bool matched = false;  ///< of a receive: `status` says which message it has
  MessageStatus status;
  Posted posted;  ///< of a receive that does not go over the lanes
  std::vector<CallId> wait_for;
  std::unique_ptr<CallStreams> streams;  ///< null: it uses none
  std::shared_ptr<CallHooks> hooks;
  std::shared_ptr<KernelRun> kernel;  ///< of a nop: it ends when this does
  Clock::time_point submitted;
  Clock::time_point deadline;
  std::chrono::microseconds timeout{0};
  bool warns = false;  ///< past the deadline it goes on, and says so
  bool started = false;
  bool announced = false;  ///< of a send: the peer has been told of its message, or that has been sent
  bool probed = false;
  std::unique_ptr<LaneCall> lane;           ///< a collective that goes over the lanes
  std::unique_ptr<LaneCall> spare_lane;     ///< that of an earlier call, to be used again
  std::unique_ptr<Transfer> transfer;       ///< a send or receive that does
  bool watched = false;                     ///< a blocking call on the lanes: its own thread advances it
  const char* lane_phase = "";              ///< what it waits for, as its thread last said
  std::vector<std::uint32_t> lane_awaited;  ///< ranks, likewise
  bool lane_anybody = false;                ///< any of these may end the wait
  RecordMark mark;                          ///< in the flight record
  bool finished = false;                    ///< has its result; waits only to be swept
  std::uint64_t window_offset = 0;          ///< added to offsets in a peer's window
  std::uint64_t window_done = 0;            ///< bytes of a put or get that were copied to or from there directly
  bool reaches_window = false;              ///< it is such a copy; else, or if that fails, it goes by messages
  bool mismatch_waits = false;              ///< a mismatch was seen; waits a little for the peer's own description
  std::uint32_t mismatch_peer = 0;
  Clock::time_point compare_next;  ///< when the flight records of those that it waits for are to be read again
  Clock::time_point mismatch_until;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  std::uint32_t ended_elsewhere = kNobody;  ///< a rank that it waited for and whose record said that the call had ended
  std::uint32_t entered = 0;                ///< moves that have entered the window
  std::uint32_t retired = 0;
  std::array<MoveState, kWindow> window;
  std::unique_ptr<MoveStream> stream;  ///< of a program whose moves are made again; kept for later calls
  Pairs<Pair> pairs;                   ///< of the ranks with which it has messages
  std::uint64_t received_bytes = 0;

  /// Whether something of this call has come from a rank.
  bool heard(std::uint32_t rank) const {
    const Pair* const pair = pairs.find(rank);
    return pair != nullptr && pair->heard;
  }
  CallState();
  ~CallState();
  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;
  MoveState& move(std::uint32_t index) { return window[index % kWindow]; }
};

/// Messages of one member that wait for something.
struct PeerQueues {
  std::vector<Message*> announced;          ///< point-to-point messages before whose turn others are, by sequence
  std::vector<Message*> incoming;           ///< point-to-point eager messages of which segments are still to come
  std::vector<Message*> early;              ///< eager messages of collective calls not yet made here
  std::vector<EarlyControl> early_control;  ///< requests and grants of such calls
  bool listed = false;                      ///< it is in Communicator::early_peers
};

/// What a communicator knows of one member of which it has seen, or to which it has said, anything.
struct Peer {
  std::uint32_t gone = 0;              ///< look at which it was first found dead or left; 0: never
  std::uint32_t credits = 0;           ///< receive buffers of the peer that this rank may still fill
  std::uint32_t owed = 0;              ///< credits to return to the peer
  std::uint32_t held = 0;              ///< eager messages of the peer that have not been consumed
  std::uint32_t next_send = 0;         ///< sequence of the next point-to-point message to the peer
  std::uint32_t next_announced = 0;    ///< sequence of the next point-to-point message of the peer to be matched
  std::unique_ptr<PeerQueues> queued;  ///< made when it is first needed

  PeerQueues& queues() {
    if (queued == nullptr) queued = std::make_unique<PeerQueues>();
    return *queued;
  }
};

/// The members of a communicator, by rank. There may be thousands on every rank, and messages to few of them: what is
/// known of a member is made, with that of its neighbours, when it is first asked for, and stays where it is.
class Peers {
 public:
  Peers() = default;
  /// `credits`: of each member, at the beginning.
  Peers(std::span<const std::uint32_t> endpoints, std::uint32_t credits)
      : endpoints_(endpoints.begin(), endpoints.end()),
        credits_(credits),
        blocks_((endpoints.size() + kBlock - 1) / kBlock) {}

  std::uint32_t endpoint(std::uint32_t rank) const { return endpoints_[rank]; }
  const std::vector<std::uint32_t>& endpoints() const { return endpoints_; }

  Peer& operator[](std::uint32_t rank) {
    std::unique_ptr<Block>& block = blocks_[rank / kBlock];
    if (block == nullptr) [[unlikely]]
      make(block);
    return (*block)[rank % kBlock];
  }
  /// Calls `use(peer)` for each that was made.
  template <class Use>
  void for_each(Use&& use) {
    for (const std::unique_ptr<Block>& block : blocks_) {
      if (block == nullptr) continue;
      for (Peer& peer : *block) use(peer);
    }
  }

 private:
  static constexpr std::size_t kBlock = 8;
  using Block = std::array<Peer, kBlock>;

  void make(std::unique_ptr<Block>& block) const {
    block = std::make_unique<Block>();
    for (Peer& peer : *block) peer.credits = credits_;
  }

  std::vector<std::uint32_t> endpoints_;  ///< by rank
  std::uint32_t credits_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;  ///< null: nobody has asked for one of them
};

/// A put that waits for the word of its target.
struct PutOperation {
  std::uint32_t operation = 0;
  CallState* call = nullptr;
  MoveState* move = nullptr;
};

/// A put of a peer that it writes to the window here, past this engine.
struct ShownWindow {
  std::uint32_t peer = 0;
  std::uint32_t operation = 0;
  std::uint64_t total = 0;
  std::uint64_t written = 0;  ///< of these, as the peer has said
  Reach reach;
};

/// A get of a peer that this rank serves.
struct GetJob {
  std::uint32_t peer = 0;
  std::uint16_t token_slot = 0, token_generation = 0;
  Datatype dtype = Datatype::kByte;
  std::uint64_t offset = 0;  ///< in the window
  std::uint64_t total = 0;
  std::uint64_t sent = 0;
  std::uint64_t limit = 0;
  Reach reach;             ///< of the peer's landing area, if it may be written past the peer's engine
  std::uint64_t lent = 0;  ///< bytes that the network still takes from the window, ...
  Ticket write = 0;        ///< ... by this write
};

/// A collective call of the recent past, so that a mismatch can be explained after it has ended here.
struct PastCall {
  bool valid = false;
  std::uint32_t sequence = 0;
  Call call;
  const Algorithm* algorithm = nullptr;
  std::uint32_t signature = 0;  ///< as its messages carry it
  const char* operation = nullptr;
  double post_scale = 1;
};

/// A communicator: its members in order of rank, and what they agreed.
struct Communicator {
  std::uint32_t number = 0;
  std::uint16_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  Grouping grouping{};
  const CallTree* tree = nullptr;  ///< of switches, which are ranks behind the members; null: none takes part
  Agreement agreed;
  Capability capability;
  std::chrono::microseconds timeout{0};
  std::uint32_t segment_bytes = 0;  ///< agreed, and what the network carries
  bool hardware_peers = false;      ///< see EngineSettings
  /// Of collective calls; also advanced by blocking calls on the lanes, which take no lock.
  std::shared_ptr<CallOrder> order = std::make_shared<CallOrder>();
  std::uint32_t next_operation = 0;  ///< of puts
  bool revoked = false;
  bool freed = false;
  ErrorCode revoked_with = ErrorCode::kOk;  ///< what calls in flight ended with
  std::string reason;                       ///< of the revocation
  Binding window;
  Peers peers;
  std::vector<std::uint32_t> early_peers{};  ///< of which something has come for collective calls not yet made here
  Matcher matcher;                           ///< of messages that do not go over the lanes
  std::vector<CallState*> calls;             ///< in flight
  std::vector<PutOperation> puts;
  std::vector<GetJob> gets;
  std::vector<ShownWindow> shown;  ///< parts of the window that peers write to
  std::shared_ptr<PlanCache> plans = std::make_shared<PlanCache>();
  std::shared_ptr<FastPath> fast_path;             ///< null: the members share no memory, or were told not to use it
  std::array<PastCall, 16> history{};              ///< by sequence
  std::shared_ptr<const std::vector<Rule>> rules;  ///< what `tuning` looks at; may be null
  Tuning tuning;
  std::shared_ptr<LastNumber> last = std::make_shared<LastNumber>();
  std::shared_ptr<CallRecorder> recorder;
  std::unique_ptr<Consensus> consensus;  ///< made when it is first needed
  std::string own_name;                  ///< what people call it, where there is no recorder to keep that

  /// Bytes up to which a message goes without a grant. The receiver of a long one of a collective knows that it comes,
  /// and grants it unasked. Point to point it would have to be asked for: a round trip, which costs more than a copy of
  /// such messages. They take several receive buffers, at most a quarter of them.
  std::uint64_t longest_eager(bool point_to_point) const {
    constexpr std::uint64_t kLongest = std::uint64_t{64} * 1024;
    const std::uint64_t limit = agreed.eager_limit;
    if (!point_to_point || hardware_peers) return limit;
    return std::max(limit, std::min(kLongest, limit * std::bit_floor(agreed.rx_buffer_count / 4)));
  }
  /// Longest segment of a message of so many bytes to this peer, or from it. Ranks behind the members are switches.
  std::uint64_t longest_segment(std::uint32_t peer, std::uint64_t bytes) const {
    if (!hardware_peers || peer >= size) return segment_bytes;
    return message_segment(bytes, agreed.eager_limit, segment_bytes);
  }
  /// Receive buffers, and so credits, that an eager message takes: a power of two, so that few lengths of memory are in
  /// use.
  std::uint32_t buffers_for(std::uint64_t bytes) const {
    if (bytes <= agreed.eager_limit) return 1;
    return static_cast<std::uint32_t>(std::bit_ceil((bytes + agreed.eager_limit - 1) / agreed.eager_limit));
  }

  /// What of a peer waits for calls that are not made yet; `adopt` will look there.
  PeerQueues& early_of(std::uint32_t peer) {
    PeerQueues& queues = peers[peer].queues();
    if (!queues.listed) {
      early_peers.push_back(peer);
      queues.listed = true;
    }
    return queues;
  }
  /// Gives it a name, or takes it away if that is empty.
  void name(const std::string& name);
  /// The communicator in errors, with its name where it has one.
  std::string title() const;

  Communicator();
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
};

}  // namespace unisono::cclo
