// One Verilated core with an ideal machine around it: memory of a fixed latency, a transport that keeps the order of
// each pair, plugins computed by core/arithmetic.hpp. Everything can stall at random.
#pragma once

#include <Vunisono_cclo_core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "core/call.hpp"
#include "core/header.hpp"
#include "core/program.hpp"

namespace unisono::rtl {

inline constexpr std::size_t kWord = 64;
using Word = std::array<std::uint8_t, kWord>;

/// A word of a stream.
struct Beat {
  Word data{};
  std::uint64_t keep = 0;
  bool last = false;
};

/// The other side of a stream port: what a kernel gives there, and what it has got.
struct KernelPort {
  std::deque<Beat> gives;
  std::vector<Beat> got;
  std::vector<bool> cut;  ///< of each word in `got`
  bool reads = true;      ///< takes what is offered
  bool offered = false;
};

/// What travels between nodes.
struct Packet {
  Header header;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::vector<Beat> payload;
  std::uint64_t ready = 0;  ///< cycle in which it is there
};

struct MachineSettings {
  std::uint64_t memory_latency = 20;   ///< cycles from command to first word, and from last word to its answer
  std::uint64_t network_latency = 50;  ///< cycles from a word's leaving to its coming
  std::uint32_t plugin_latency = 8;
  std::uint32_t rx_buffers = 4;  ///< eager segments per peer
  bool opens = true;             ///< long messages point to point begin on credit,
  std::uint32_t kept = 0;        ///< and leave so much to short ones
  std::uint32_t eager_limit = 4096;
  std::uint32_t segment_bytes = 4096;
  std::uint64_t skew = 0;           ///< cycles by which each rank enters its call after the one before
  std::uint32_t stall_percent = 0;  ///< of the cycles, on every interface
  std::uint64_t seed = 1;
};

/// What a node did, in cycles and words.
struct NodeCounters {
  std::uint64_t jobs = 0;
  std::uint64_t plugin_words = 0;
  std::uint64_t sent_words = 0;
  std::uint64_t buffered_segments = 0;
  std::uint64_t bypassed_words = 0;
};

class CoreNode {
 public:
  CoreNode(std::uint32_t rank, std::uint32_t size, const MachineSettings& settings);

  std::vector<std::byte>& memory() { return memory_; }
  /// Enters a call into a slot, in the next cycles: its program and where its regions stand in memory(). Calls enter in
  /// the order of begin(). A send or recv has a user tag, and a send its number among those to its peer as sequence.
  void begin(std::uint32_t slot, const Call& call, const Program& program, std::uint32_t sequence,
             const std::array<std::pair<std::uint64_t, std::uint64_t>, 5>& regions, std::uint32_t tag = 0);
  /// The next call of a slot has kernels' streams as src or dst; the address of such a region is the port.
  void bind_streams(std::uint32_t slot, bool src, bool dst) { streams_[slot] = {src, dst}; }
  static constexpr std::size_t kStreamPorts = 4;
  KernelPort& kernel(std::size_t port) { return kernels_[port]; }
  /// Ends the call of a slot in the middle of it.
  void abandon(std::uint32_t slot);
  /// Whether nothing of begin() and abandon() is left to do.
  bool settled() const { return steps_.empty(); }
  bool finished(std::uint32_t slot) const;
  std::uint32_t free_buffers() const { return free_buffers_; }
  /// Eager messages that may be sent to a peer now.
  std::uint32_t credits(std::uint32_t peer) const { return credits_[peer]; }
  /// What peers may put to: address and bytes. 0 bytes: none.
  void bind_window(std::uint64_t address, std::uint64_t bytes) { window_ = {address, bytes}; }
  /// Memory answers the next read (0 to 2) or write (3, 4) of a port with an error.
  void break_memory(std::size_t port) { broken_[port] = true; }
  /// The error code the core has ended a call with, 0 if none.
  std::uint16_t failed(std::uint32_t slot) const { return failed_[slot]; }

  /// One clock cycle. Packets that left are put into `network`.
  void tick(std::uint64_t cycle, std::deque<Packet>& network);
  /// A packet whose time has come.
  void deliver(Packet packet);
  const NodeCounters& counters() const { return counters_; }

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  ///< address, bytes
  struct Command {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t ready = 0;
    bool broken = false;
  };
  struct Reader {
    std::deque<Command> commands;
    std::uint64_t done = 0;
    bool offered = false;
  };
  struct Writer {
    std::deque<Command> commands;
    std::uint64_t done = 0;
    std::deque<std::pair<std::uint64_t, bool>> answers;  ///< cycles in which results are visible; errors
  };
  struct Emitted {
    std::array<std::uint64_t, 8> words{};
    bool end = false;  ///< instead of a move: the program has no more
  };
  struct Result {
    Beat beat;
    std::uint64_t ready = 0;
  };

  /// What is done to a slot, one after the other.
  struct Step {
    enum class Kind : std::uint8_t { kClear, kActivate, kPool, kMoves };
    Kind kind = Kind::kClear;
    std::uint32_t slot = 0;
    bool failed = false;
    bool local = false;                 ///< exchanges no messages
    std::uint32_t index = 0, word = 0;  ///< of the pool
    std::array<std::uint32_t, 4> context{};
    std::array<bool, 2> streams{};  ///< src, dst
    std::array<Place, 5> regions{};
    std::deque<Emitted> moves;
  };
  void begin_step();
  bool stalls();
  bool offers(bool& offered, bool available);
  Beat read_beat(const Command& command, std::uint64_t done) const;
  Beat compute() const;

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_cclo_core> top_;
  std::uint32_t rank_;
  std::uint32_t size_;
  MachineSettings settings_;
  std::mt19937_64 random_;
  std::vector<std::byte> memory_;
  std::array<std::deque<Emitted>, 8> moves_;
  std::deque<Step> steps_;
  std::deque<std::uint32_t> starting_;  ///< slots whose calls' first moves have not been taken
  std::uint32_t since_move_ = 0;        ///< cycles
  std::uint32_t free_buffers_ = 0;
  std::array<bool, 5> broken_{};
  std::array<std::array<Place, 5>, 8> regions_{};
  Place binding_, window_;
  std::array<bool, 8> finished_{};
  std::array<std::uint16_t, 8> failed_{};
  std::uint32_t next_slot_ = 0;

  std::array<std::array<bool, 2>, 8> streams_{};
  std::array<KernelPort, kStreamPorts> kernels_;
  std::array<Reader, 3> readers_;
  std::array<Writer, 2> writers_;
  std::deque<Result> results_;
  std::array<bool, 2> sending_{};  ///< by lane
  std::array<Packet, 2> outgoing_;
  std::deque<Packet> arrived_;
  bool header_taken_ = false, offers_header_ = false, offers_payload_ = false, offers_move_ = false;
  std::size_t payload_done_ = 0;
  std::vector<std::uint32_t> credits_;  ///< by peer: eager messages that may be sent
  std::deque<std::uint32_t> credit_events_;
  bool credit_asked_ = false, credit_granted_ = false, space_asked_ = false, space_granted_ = false;
  std::array<std::uint32_t, 2> peer_asked_{};
  NodeCounters counters_;
};

}  // namespace unisono::rtl
