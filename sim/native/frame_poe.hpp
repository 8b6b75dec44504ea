// The native engine's way onto the simulated network: one frame for each message, as unisono_poe_frame has them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "network/poe.hpp"
#include "sim/network/carrier.hpp"

namespace unisono::sim {

/// A frame is the header of 64 bytes and the payload; its port is the lane. Like the hardware's, this transport repeats
/// nothing: what the network loses is lost, and what is damaged or no message is dropped and counted.
///
/// The engine uses it in `evaluate` of its node, `exchange_words` moves frames in `commit`: so the engine sees in a
/// cycle what had arrived before, and time is the network's.
class FramePoe final : public Poe {
 public:
  /// What the longest frame of unisono_poe_frame leaves for a payload, on data and control.
  static constexpr std::uint32_t kMostData = 8192 - 64;
  static constexpr std::uint32_t kMostControl = 256 - 64;

  /// `network` must outlive this: what carries the frames. A message leaves `delay` cycles after it was sent, at the
  /// earliest.
  FramePoe(Carrier& network, std::uint32_t node, std::uint32_t nodes, std::uint64_t clock_khz, std::uint64_t delay = 0);

  std::uint32_t self() const override { return node_; }
  std::uint32_t size() const override { return nodes_; }
  std::uint32_t max_payload(Lane lane) const override;
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  std::uint32_t activity() const override { return activity_; }
  /// Throws Error(kInternal): time passes only while nobody waits here.
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override;
  std::chrono::steady_clock::time_point now() const override;
  Liveness liveness(std::uint32_t /*peer*/) override { return Liveness::kAlive; }
  std::string describe(std::uint32_t peer) const override;

  /// Ends this node's cycle: sends a word and takes one, as far as the network lets it.
  void exchange_words();

  struct Counters {
    std::uint64_t sent = 0, received = 0;
    std::uint64_t dropped = 0;  ///< frames that were damaged, or no message of this wire version for this node
  };
  const Counters& counters() const { return counters_; }

 private:
  struct alignas(kWordBytes) Word {
    std::array<std::byte, kWordBytes> bytes;
  };
  struct Frame {
    std::vector<Word> words;  ///< header, payload
    std::uint32_t destination = 0;
    std::uint32_t bytes = 0;
    std::uint64_t leaves = 0;  ///< cycle before which it does not go
  };
  struct Message {
    Header header;
    std::vector<Word> payload;
  };
  struct Session {
    std::vector<Word> reserved;
    std::uint32_t waiting = 0;  ///< frames that have not left
    std::uint32_t sequence = 0;
    bool refused = false;  ///< a `reserve` found no space
    std::deque<Message> arrived;
  };

  /// Frames of a session that may wait to leave.
  static constexpr std::uint32_t kMostWaiting = 4;

  Session& session(std::uint32_t peer, Lane lane) { return sessions_[2 * peer + (lane == Lane::kControl ? 1 : 0)]; }
  void send_word();
  void take_word();
  void arrive();

  Carrier& network_;
  const std::uint32_t node_, nodes_;
  const std::uint64_t clock_khz_, delay_;
  std::vector<Session> sessions_;
  std::array<std::deque<Frame>, 2> leaving_;  ///< by lane
  Frame sending_;
  std::uint32_t sent_words_ = 0;  ///< of `sending_`; none is being sent if it has no words
  std::uint16_t sending_port_ = 0;
  Frame receiving_;
  std::uint16_t receiving_port_ = 0;
  bool bad_ = false;
  std::uint32_t activity_ = 0;
  Counters counters_;
};

}  // namespace unisono::sim
