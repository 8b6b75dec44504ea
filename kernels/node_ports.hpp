// The ports of a rank whose kernels stand at a node of SMI's transport, and the time of that node's clock.
//
// In a cycle every kernel that can go on does, until it waits; then the node is clocked, and wakes those whose wait is
// over. A kernel's code takes no time. What does: a port moves one word in a cycle in each direction, a queue one
// element in and one out, and `tick` says so itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/smi_node.hpp"
#include "kernels/task.hpp"
#include "unisono/smi.h"

namespace unisono::kernels {

class Rank;
class ReceiveLink;
class SendLink;

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// How elements of a type go over cables: as they are, or in parts of 8 bytes where they are longer.
struct Carried {
  explicit Carried(std::uint64_t element_bytes)
      : bytes(static_cast<std::uint32_t>(element_bytes > kPortElementBytes ? kPortElementBytes : element_bytes)),
        parts(static_cast<std::uint32_t>(element_bytes / bytes)) {}
  std::uint32_t bytes;  ///< of an element of the node's
  std::uint32_t parts;  ///< such elements in one of the kernels'
};

/// The sending end of a port: what kernels have pushed waits in a queue until the node takes it.
struct SendPort {
  SendLink* link = nullptr;  ///< who has it; null: nobody
  std::deque<std::byte> queue;
  std::uint64_t room = 1;           ///< elements that the queue holds
  std::uint64_t left = 0;           ///< elements that kernels have not pushed yet
  std::uint64_t accepted = 0;       ///< of the node's elements, those that it has taken
  bool exact = false;               ///< strict: once the node has taken one, the queue holds one
  bool flush = false;               ///< what is in the queue leaves without waiting for more
  std::uint64_t flush_at = kNever;  ///< cycle in which that begins
  bool open = false;                ///< the channel was offered to the node, and is not closed
  bool pending = false;             ///< it is about to be offered to the port's unit
  std::uint32_t element = 1;        ///< bytes, of the node's elements (Carried)
  std::uint64_t last = kNever;      ///< cycle of the last push
};

/// The receiving end.
struct ReceivePort {
  ReceiveLink* link = nullptr;
  bool open = false;
  bool pending = false;
  std::vector<std::byte> held;  ///< of a word, what kernels have not taken yet
  std::uint64_t last = kNever;  ///< cycle of the last pop
};

/// Everything but `of_environment`: within a turn of the rank.
class NodePorts {
 public:
  /// Those of the job that the environment describes by UNISONO_CABLES; null if it has none. Throws Error.
  static std::unique_ptr<NodePorts> of_environment(Rank& rank, std::uint32_t number, std::uint32_t ranks);
  NodePorts(Rank& rank, std::unique_ptr<SmiNode> node);
  ~NodePorts();

  SmiNode& node() { return *node_; }
  /// Whether collectives are to go over channels also where ports have units (UNISONO_SMI_COLLECTIVES=channels).
  static bool by_channels();
  /// The protocol of channels between two ranks, but in strict mode (UNISONO_SMI_PROTOCOL).
  enum class Protocol : std::uint8_t { kByDegree, kEager, kCredits };
  static Protocol protocol();
  std::uint64_t now() const { return node_->now(); }
  std::uint64_t clock_khz() const { return node_->clock_khz(); }
  /// One cycle; see SmiNode::cycle.
  bool cycle(std::chrono::microseconds at_most);

  /// In a task: waits until that cycle.
  void wait_until(std::uint64_t cycle);
  /// Whether the queue can be written, or read, in this cycle. `waits`: else it waits until it can.
  bool turn(unisono_kernel_queue& queue, bool writes, bool waits);
  /// The other side of a queue may go on with the next cycle.
  void wake_next(Task& task);

  std::size_t count() const { return send_.size(); }
  SendPort& send(std::uint32_t port) { return send_[port]; }
  ReceivePort& receive(std::uint32_t port) { return receive_[port]; }
  /// A task waits, for something else than time: what it has pushed leaves, if that lasts.
  void waits(const Task& task);
  /// Nothing of any channel of this rank is on its way to the node.
  bool all_gone() const;

  /// A kernel has begun, or ended.
  void kernel_begins();
  void kernel_ends();

 private:
  /// When the last elements of a queue came and went.
  struct QueueClock {
    std::deque<std::uint64_t> written;  ///< cycles of the elements that it holds
    std::uint64_t last_write = kNever;
    std::uint64_t last_read = kNever;
  };
  void load(std::uint32_t port);
  void settle(std::uint32_t port);

  Rank& rank_;
  const std::unique_ptr<SmiNode> node_;
  std::vector<SendPort> send_;
  std::vector<ReceivePort> receive_;
  std::map<std::uint64_t, std::vector<Task*>> due_;  ///< by cycle
  std::unordered_map<const unisono_kernel_queue*, QueueClock> queues_;
  std::uint64_t begin_ = kNever;  ///< cycle in which the first kernel began
};

}  // namespace unisono::kernels
