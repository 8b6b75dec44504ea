// Tx: builds headers, cuts segments, and hands messages to the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/state.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

class Tx {
 public:
  explicit Tx(const Blocks& blocks) : blocks_(blocks) {}

  /// Header for a message of a communicator to a rank, all but type and matching filled in. Takes along
  /// the credits owed to that rank.
  Header header(Communicator& communicator, std::uint32_t peer, MessageType type) const;
  /// Header for a message of a call's pair.
  Header header(CallState& call, std::uint32_t peer, MessageType type) const;

  /// Memory for a data segment, or null if the session has no space now.
  std::byte* reserve(const Communicator& communicator, std::uint32_t peer, std::uint64_t bytes);
  /// Sends a data segment from where it stands; false if the session has no space now.
  bool send(Communicator& communicator, std::uint32_t peer, Header& header, std::span<const std::byte> payload);
  /// Sends data segments that lie one behind the other: see Poe::lend.
  Sent lend(Communicator& communicator, std::uint32_t peer, std::span<Header> headers, const std::byte* payload);
  /// Writes where the peer's grant lets it, and tells the peer when all is there: see Poe::write. `done` says so, and
  /// how far the message has come with it.
  bool write(Communicator& communicator, std::uint32_t peer, Header& done, const Reach& reach, std::uint64_t offset,
             std::span<const std::byte> payload, Ticket& ticket);
  /// Sends the segment reserved last for `peer`.
  void commit(Communicator& communicator, std::uint32_t peer, Header& header);

  /// Sends on the control lane, in order; waits in a queue here while the lane is full.
  void control(Communicator& communicator, std::uint32_t peer, Header header, std::string_view payload = {});
  /// A control message of one kind.
  void control(Communicator& communicator, std::uint32_t peer, Control kind, std::string_view payload = {});

  /// A landing area's token and how far the sender may write.
  void grant(CallState& call, const Port& port, std::uint16_t generation);
  /// Asks for a grant of the n-th message of a pair. False if there is no space for it now.
  bool request(CallState& call, std::uint32_t peer, std::uint32_t ordinal, std::uint64_t bytes, const Move& move);
  /// Asks the peer to show a part of its window, and the answer: a reach of nothing if it does not. `operation`: of a
  /// put.
  void ask_for_window(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, std::uint64_t offset,
                      std::uint64_t bytes);
  void show_window(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, const Reach& reach);
  /// Returns owed credits in a message of their own when it is worth one.
  void return_credits(Communicator& communicator, std::uint32_t peer);

  /// Moves waiting control messages on. Returns whether any left.
  bool flush();

 private:
  struct Waiting {
    Header header;
    std::vector<char> payload;
  };
  /// Null also if the memory shared with the endpoint is corrupt: its communicators will end soon.
  std::byte* reserve(std::uint32_t endpoint, Lane lane, std::uint64_t bytes);
  template <class Hand>
  Sent handed_over(Communicator& communicator, std::uint32_t peer, std::span<Header> headers, Hand&& hand);
  void count_segment(const Header& header);
  bool send_control(std::uint32_t endpoint, const Header& header, std::string_view payload);
  static void take_credits(Communicator& communicator, std::uint32_t peer, Header& header);

  const Blocks& blocks_;
  std::map<std::uint32_t, std::deque<Waiting>> waiting_;  ///< by endpoint, of those for whom any waits
};

}  // namespace unisono::cclo
