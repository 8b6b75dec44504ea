// Rx-buffer manager: brings every incoming message to the arrival that waits for it.
//
// Eager messages that come before their arrival stand in receive buffers; the sender held a credit for
// each, so there is always one. Rendezvous data comes into landing areas that were granted before, so
// there is always space as well. Hence whatever heads the data lane can be taken at once, and the lane
// never waits for anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/state.hpp"
#include "network/lasting_memory.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

class Rbm final : public Landings {
 public:
  explicit Rbm(const Blocks& blocks) : blocks_(blocks) {}

  /// The arrival's turn has come: takes its message if it is there, or grants a landing area, or waits.
  /// `place` is where the data may land for good, or null. Returns false if it must be tried again.
  bool issue(CallState& call, MoveState& move, Port& port, std::byte* place);
  /// Bytes of the arrival that can be used now, from `consumed` on.
  static std::span<const std::byte> readable(const Port& port);
  /// The move has used `bytes` more. Raises the sender's limit; ends the arrival with its last byte.
  void consume(CallState& call, Port& port, std::uint64_t bytes);
  /// Ends an arrival: gives back its buffer, token and credit, and lets the pair's next one have its turn.
  void finish(CallState& call, Port& port);

  /// Messages from the network. The header has been checked to be of `communicator` and `peer`.
  void on_eager(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  void on_write(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  /// The peer has written to a landing area past this engine, up to the header's offset.
  void on_done(Communicator& communicator, std::uint32_t peer, const Header& header);
  /// For data that were granted a place.
  std::byte* landing(std::uint32_t endpoint, const Header& header) override;
  void on_request(Communicator& communicator, std::uint32_t peer, const Header& header);
  void on_grant(Communicator& communicator, std::uint32_t peer, const Header& header, const Reach& reach);
  void on_get_failed(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text);

  /// Gives a new collective call what came for it before.
  void adopt(CallState& call);
  /// After this no peer can write memory of the call by a message: its tokens are void. Who may write past the engine
  /// may be at it until the network has settled.
  void release(CallState& call);
  /// The network has settled: landing buffers that peers could write may be used again, unless one may still do so.
  void settled(bool by_all);
  /// Drops everything that waits on a communicator.
  void drop(Communicator& communicator);

 private:
  struct Slot {
    std::uint16_t generation = 0;
    CallState* call = nullptr;  ///< null: free
    MoveState* move = nullptr;
    Port* port = nullptr;
  };
  struct Pool {
    std::uint64_t bytes = 0;
    std::vector<std::byte*> free;
  };

  bool open(CallState& call, MoveState& move, Port& port, std::byte* place);
  void show(const CallState& call, Port& port);
  void close(const CallState& call, Port& port);
  void feed(CallState& call, MoveState& move, Port& port, std::span<const std::byte> payload);
  void store(CallState& call, Port& port, std::uint64_t offset, std::span<const std::byte> payload);
  void keep(const Communicator& communicator, Message& message, std::uint64_t offset,
            std::span<const std::byte> payload);
  void take(CallState& call, MoveState& move, Port& port, Message* message);
  void check(const CallState& call, const MoveState& move, const Port& port, const Header& header) const;
  void check_signature(CallState& call, std::uint32_t peer, const Header& header);
  static void check_order(const Message* message, std::uint32_t peer, const Header& header);
  void eager_collective(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  void eager_point_to_point(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  void announce(Communicator& communicator, std::uint32_t peer, Message* message);
  bool take_at_once(Communicator& communicator, std::uint32_t peer, Message& message,
                    std::span<const std::byte> payload);
  static bool is_requested(const Communicator& communicator, const Pair& pair, const Port& port);
  void deliver(Communicator& communicator, std::uint32_t peer, Message* message);
  void bind(CallState& call, MoveState& move, Port& port, Message* message, std::uint64_t more = 0);
  void apply_grant(CallState& call, std::uint32_t peer, const Header& header, const Reach& reach);
  void apply_request(CallState& call, std::uint32_t peer, const Header& header);
  Message* new_message(const Header& header);
  void free_message(Message* message);
  /// Those of a message of so many bytes.
  void return_credits(Communicator& communicator, std::uint32_t peer, std::uint64_t bytes);
  std::byte* allocate(std::uint64_t bytes);
  void recycle(std::byte* buffer, std::uint64_t bytes);

  const Blocks& blocks_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  ///< used first in, first out, so that generations last
  std::size_t free_begin_ = 0;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<Message*> free_messages_;
  std::vector<Pool> pools_;  ///< by buffer size
  struct Withheld {
    std::byte* buffer;
    std::uint64_t bytes;
  };
  std::vector<Withheld> withheld_;  ///< landing buffers that peers may still write
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::optional<LastingPiece> lasts;  ///< of buffers that peers may be shown, which are used again and again
  };
  std::deque<Memory> memory_;
};

}  // namespace unisono::cclo
