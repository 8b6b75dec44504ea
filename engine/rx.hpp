// Rx: drains both lanes of every peer, checks each header once, and hands the message to its block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/state.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

class Rx {
 public:
  explicit Rx(const Blocks& blocks) : blocks_(blocks) {}

  /// Takes what has arrived, a bounded number of messages of each peer. Returns whether there was any. Peers are looked
  /// at if the network says that something has come, or if all of it is wanted: a peer may have died between sending a
  /// message and telling of it.
  enum class Look : std::uint8_t { kIfTold, kInAnyCase };
  bool drain(Look look = Look::kIfTold);
  /// Takes one message of an endpoint, for a communicator that exists.
  void accept(Communicator& communicator, const Incoming& incoming);
  /// Sends data of gets that peers have asked for. Returns whether any was sent.
  bool serve(Communicator& communicator);
  /// Nobody gets from the window any more, and nobody writes to it past this engine. Returns whether the network must
  /// settle before the window is its owner's. `tells`: peers that were at it get to know that it is another one now.
  bool close_window(Communicator& communicator, bool tells);

 private:
  /// Takes messages of one endpoint; returns how many of the lane that had most.
  int take_from(std::uint32_t endpoint);
  void dispatch(std::uint32_t endpoint, const Incoming& incoming);
  void count(const Incoming& incoming);
  void on_control(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  void on_put(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  /// What was shown of the window for a put; the end if nothing was.
  static std::vector<ShownWindow>::iterator shown_for(Communicator& communicator, std::uint32_t peer,
                                                      std::uint32_t operation);
  void end_put(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, ErrorCode code,
               std::string_view text);
  /// A peer asks for its part of the window, to write there; shows it that if the network can.
  void on_put_request(Communicator& communicator, std::uint32_t peer, const Header& header);
  /// The answer to such a request.
  static void on_put_grant(Communicator& communicator, std::uint32_t peer, const Header& header, const Reach& reach);
  /// The peer has written to the window up to the header's offset in its put.
  void on_put_written(Communicator& communicator, std::uint32_t peer, const Header& header);
  /// Writes a piece of a get where the peer lets it; false: messages are to go.
  bool write_piece(Communicator& communicator, GetJob& job);
  void on_put_done(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text);
  void on_get(Communicator& communicator, std::uint32_t peer, const Incoming& incoming);
  void refuse_get(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text);
  static std::string outside(const Communicator& communicator, const std::string& what);
  static std::string outside(const Communicator& communicator, std::uint64_t offset, std::uint64_t bytes);

  const Blocks& blocks_;
  std::vector<std::uint32_t> endpoints_;  ///< kept for its memory
  bool drained_ = false;                  ///< all was taken that had come ...
  std::uint32_t drained_at_ = 0;          ///< ... when the network's activity was this
};

}  // namespace unisono::cclo
