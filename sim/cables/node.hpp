// A Verilated node of rtl/smi with kernels at its ports: unisono_smi_node with 4 links, 4 ports, packets and words of
// 32 bytes, 2 virtual channels, 32 ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "sim/cables/cable.hpp"
#include "sim/cables/collective.hpp"
#include "sim/cables/message.hpp"

class Vunisono_smi_node;
class VerilatedContext;

namespace unisono::sim {

/// A packet that no table knew.
struct Stray {
  int dst = 0, port = 0, src = 0, op = 0;
};

class CableNode {
 public:
  static constexpr int kLinks = 4;
  static constexpr int kPorts = 4;
  static constexpr int kVirtualChannels = 2;
  static constexpr int kChannels = 2 * kVirtualChannels;
  static constexpr int kWordBytes = 32;
  static constexpr int kLinkDepth = 64;

  explicit CableNode(std::uint32_t seed);
  ~CableNode();

  /// Gives the node a new image, from the next cycle on. Ends of channels are forgotten.
  void load(std::span<const std::uint8_t> image);
  bool running() const;
  /// Why the image was refused: a value of unisono_smi_pkg::image_e, 0 if it was not.
  int image_error() const;
  std::uint32_t strays() const;
  Stray first_stray() const;

  /// Queues a message at its port; the channel is opened when those before it have been closed. The outcome is the
  /// node's, and lives until the next load().
  const Outcome& send(Message message);
  const Outcome& receive(Message message);
  /// Queues a collective at its port; it is opened when the port's channels and collectives before it are closed.
  const CollectiveOutcome& collective(Collective call);
  /// Writes ranks into the tables of members, from entry `first` on, one a cycle; collectives wait for it.
  void members(int first, const std::vector<int>& ranks);
  /// Kernels that hold go on.
  void release();

  /// One cycle, between `out` and `in`: a cable for each link and direction, null where there is none.
  void cycle(std::uint64_t now, std::span<Cable* const> out, std::span<Cable* const> in);

  /// Whether cycles in which nothing moves may be left out (they may at first).
  void skip_quiet(bool skip) { skips_ = skip; }
  /// Cycles that were left out.
  std::uint64_t skipped() const { return skipped_; }

  /// A packet left for the cable in the last cycle, by link; and bits of channels that were freed.
  const CablePacket* sent(int link) const { return sent_[link] ? &packets_[link] : nullptr; }
  std::uint32_t freed(int link) const { return freed_[link]; }

 private:
  struct End {
    /// The next message that waits, if there is none under way; whether there was one.
    bool take_next();
    std::deque<std::pair<Message, Outcome*>> waiting;
    Message message;
    Outcome* outcome = nullptr;
    std::uint32_t done = 0;  ///< elements offered and taken, or given
    bool offered = false;    ///< a word is on offer, and stays
    std::uint32_t offer = 0;
    bool flush = false;
    bool free_running = false;  ///< does not hold any more
    bool joint = false;         ///< opened and closed by a collective
    std::uint32_t part = 0;     ///< words do not reach over multiples of it, if it is not 0
  };

  struct Joint {
    std::deque<std::pair<Collective, CollectiveOutcome*>> waiting;
    Collective call;
    CollectiveOutcome* outcome = nullptr;
  };

  bool pause(const End& end);
  void drive_collective(int port);
  void sample_collective(int port, std::uint64_t now);
  void drive_push(int port);
  void drive_pop(int port);
  void sample(std::uint64_t now);

  /// What is given to the model in a cycle; nothing moves unless it differs from the last one's, or the model's state
  /// does.
  struct Inputs {
    std::uint32_t link_valid = 0, link_up = 0, link_ready = 0, link_freed = 0;
    std::uint32_t push_open = 0, pop_open = 0, push = 0, pop = 0, joint = 0;
    bool image = false, member = false;
    bool operator==(const Inputs&) const = default;
  };
  Inputs inputs() const;
  /// Whether the state is what it was one cycle before.
  bool state_stays();

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_smi_node> model_;
  std::mt19937 random_;
  std::deque<std::uint32_t> image_;
  End push_[kPorts], pop_[kPorts];
  Joint joint_[kPorts];
  std::deque<std::pair<int, int>> members_;  ///< entries to be written, and ranks
  struct {
    std::uint32_t push_open = 0, pop_open = 0, push = 0, joint = 0;
  } taken_;  ///< by port: handshakes of this cycle
  std::deque<Outcome> outcomes_;
  std::deque<CollectiveOutcome> joint_outcomes_;
  bool ran_ = false;  ///< in the cycle before
  bool skips_ = true;
  bool asleep_ = false;  ///< the state does not change as long as the inputs do not
  Inputs before_;
  int still_ = 0;    ///< cycles without anything that moves at the ports
  int look_at_ = 0;  ///< the value of still_ at which the state is kept, to be compared one cycle later
  std::vector<std::byte> kept_;
  std::uint64_t skipped_ = 0;
  bool up_[kLinks] = {};
  CablePacket packets_[kLinks];
  bool sent_[kLinks] = {};
  std::uint32_t freed_[kLinks] = {};
};

}  // namespace unisono::sim
