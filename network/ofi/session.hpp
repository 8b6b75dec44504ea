// One session to a peer: what both ends have proven, what waits to be sent, what has come.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "network/ofi/frame.hpp"
#include "network/ofi/handshake.hpp"
#include "network/ofi/hidden_keys.hpp"
#include "network/ofi/inbox.hpp"
#include "network/ofi/outbox.hpp"
#include "network/ofi/write_queue.hpp"

namespace unisono::ofi {

struct Session {
  enum class State : std::uint8_t {
    kOpen,  ///< messages go and come, or will
    kLeft,  ///< the peer has said farewell, and all that it sent has come
    kDead,  ///< an operation has failed; see `cause`
  };

  Session(const JobKey& key, const Ends& ends, const Nonce& nonce, std::uint64_t its_address)
      : peer(ends.peer), address(its_address), handshake(key, ends, nonce) {}

  std::uint32_t peer;
  std::uint64_t address;  ///< as the endpoint names it
  State state = State::kOpen;
  Handshake handshake;
  std::array<Outbox, kLanes> out{};
  std::array<Inbox, kLanes> in{};
  std::array<Block*, kLanes> reserved{};
  std::array<std::uint32_t, kLanes> wanted{};  ///< payload for which `reserve` had no room, plus one; 0: none

  std::chrono::steady_clock::time_point hello_at{};  ///< when to ask for a proof (again), until this end is confirmed
  std::chrono::steady_clock::time_point no_way_since{};  ///< when greetings began to find no way; 0: they find one
  std::uint32_t posted = 0;                              ///< operations that are not over
  bool greeting_posted = false;                          ///< one of the handshake's among them
  bool word_posted = false;                              ///< one without a message among them
  bool owes_bye = false;
  bool bye_posted = false;
  bool bye_seen = false;  ///< the peer has all that was sent
  bool owes_bye_seen = false;
  bool bye_came = false;
  bool busy = false;     ///< is in the list of those that have something to send
  Totals totals{};       ///< what the peer said in its farewell
  std::string obstacle;  ///< what this host lacks, if that is why greetings fail
  std::string cause;     ///< why it is dead, in words that follow the peer's name
  std::string fault;     ///< what is wrong with what came after the last message that can be peeked

  bool writes_both = false;                 ///< both ends write to each other's memory
  WriteQueue writes;                        ///< to the peer's memory
  std::uint32_t pieces = 0;                 ///< of these, with the provider
  HiddenKeys hidden;                        ///< of the peer's memory
  std::vector<std::uint64_t> owes_stop;     ///< keys of memory here that the peer is to be asked about
  std::vector<std::uint64_t> owes_stopped;  ///< keys of the peer's, about which it has asked
  bool silent = false;                      ///< it did not answer such a question in time
  bool broken = false;                      ///< an operation has failed: nothing comes any more

  /// Messages may go: the peer has proven itself, and knows that this end has.
  bool may_send() const { return state == State::kOpen && handshake.proven() && handshake.confirmed(); }
  bool has_messages() const { return out[0].first() != nullptr || out[1].first() != nullptr; }
  bool owes_credit() const { return in[0].owes() || in[1].owes(); }
  std::array<std::uint32_t, kLanes> released() const { return {in[0].released(), in[1].released()}; }
};

}  // namespace unisono::ofi
