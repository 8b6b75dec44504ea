// The network of libfabric's reliable datagrams: RDMA cards, and whatever else has a provider.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/network.hpp"
#include "network/ofi/alarm.hpp"
#include "network/ofi/block_pool.hpp"
#include "network/ofi/endpoint.hpp"
#include "network/ofi/registrations.hpp"
#include "network/ofi/session.hpp"
#include "network/ofi/shown_memory.hpp"
#include "network/refusal_count.hpp"

namespace unisono::ofi {

/// Sessions over one endpoint. A peer is dead when an operation to it has failed, and alive otherwise: a caller
/// that must know more asks another network. Any method throws Error(kWrongProcess) in a child of fork, but those that
/// only read; destruction there leaves all as it is.
///
/// What comes is taken out of the provider's hands in every poll, of all sessions and whether or not it is read, and
/// each session's part of that is bounded by the window that its sender keeps: so nobody blocks another one.
class OfiNetwork final : public Network {
 public:
  /// `patience_to_settle`: how long `settle` waits for peers' words, at most. `patience_for_ways`: how long a peer that
  /// was never reached is called again, if there is no way to it. `register_from`: see OfiSettings.
  explicit OfiNetwork(std::unique_ptr<Endpoint> endpoint,
                      std::chrono::milliseconds patience_at_end = std::chrono::seconds(1),
                      std::chrono::milliseconds patience_to_settle = std::chrono::seconds(1),
                      std::chrono::milliseconds patience_for_ways = std::chrono::seconds(3),
                      std::uint64_t register_from = 0);
  /// Sends what waits, and a farewell, until peers have it or patience ends: those that read it see kLeft.
  ~OfiNetwork() override;

  const char* name() const override { return "ofi"; }
  std::vector<std::byte> card() const override { return encode_card(card_); }
  void meet(NetworkMembers members) override;

  std::uint32_t max_payload(Lane lane) const override { return most_payload(index_of(lane)); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  void add_talkers(std::vector<std::uint32_t>& peers) override;

  std::optional<std::uint32_t> settle() override;
  bool takes_writes(std::uint32_t peer) const override;
  std::optional<Reach> show(std::uint32_t peer, std::span<std::byte> memory) override;
  void hide(std::uint32_t peer, const Reach& reach, bool written) override;
  bool write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
             std::span<const std::byte> payload, Ticket& ticket) override;
  bool done(std::uint32_t peer, Ticket ticket) const override;
  void withdraw(std::uint32_t peer, Ticket ticket) override;

  bool poll() override;
  int descriptor() const override { return alarm_.descriptor(); }
  bool in_use() const override { return !in_use_.empty(); }
  bool has_output() const override;

  Poe::Liveness liveness(std::uint32_t peer) override;
  std::string condition(std::uint32_t peer) const override;
  std::uint64_t refused() const override { return refusals_.count(); }
  void show_refused(std::atomic<std::uint64_t>& word) override { refusals_.show(word); }

  Trial trial(std::uint32_t peer) override;
  void end(std::uint32_t peer, const std::string& cause) override;
  bool delivered(std::uint32_t peer) const override;
  std::string places(std::uint32_t peer) const override;

  /// The provider that carries it.
  const std::string& provider() const { return card_.provider; }
  /// What of the user's memory is registered with it.
  const Registrations& registrations() const { return registrations_; }

 private:
  using Clock = std::chrono::steady_clock;

  void check_process() const;
  /// Throws Error(kInternal) for an endpoint that this network does not reach.
  void check_peer(std::uint32_t peer) const;
  /// The session, which is asked for if there is none.
  Session& session(std::uint32_t peer);
  Session& make_session(std::uint32_t peer);
  const std::string& host_of(std::uint32_t endpoint) const { return members_.hosts[endpoint]; }

  // What comes (ofi_arrivals.cpp).
  bool take_completions();
  void take(const Completion& completion);
  void take_frame(Block& block, std::uint32_t bytes);
  void take_greeting(std::span<const std::byte> bytes);
  /// True if the block stays with the session.
  bool take_message(Session& session, const Frame& frame, Block& block, std::uint32_t bytes);
  void take_bye(Session& session, const Frame& frame);
  void see_whether_left(Session& session);
  void post_receives();
  void give_back(Block* block);
  void refuse(const std::string& fault);

  // What goes (ofi_departures.cpp).
  void make_busy(Session& session);
  void push_all(Clock::time_point now);
  /// Sends what it can of what the session has to; false if it has more.
  bool push(Session& session, Clock::time_point now);
  bool push_greetings(Session& session, Clock::time_point now);
  bool push_messages(Session& session, std::size_t lane);
  bool push_words(Session& session);
  /// False if it could not be posted now; then the block is still the caller's, but not if the session has died of it.
  bool post(Session& session, Block* block);
  bool post_word(Session& session, FrameKind kind, std::uint64_t key = 0);
  /// An operation has failed.
  void fail(Session& session, int fault);
  /// Whether a greeting that has failed is only to be said again: the way to the peer may come back, and what this host
  /// lacks may be there later. Of other frames nobody knows whether they came, so these are never sent again.
  bool awaits_way(Session& session, int fault);
  void die(Session& session, std::string cause);
  /// Nobody will get those that wait.
  void drop_messages(Session& session);
  void corrupt(Session& session, const std::string& fault);

  // Writes (ofi_writes.cpp).
  void take_stop(Session& session, const Frame& frame);
  void take_written(Session& session, const Block& block);
  /// Posts what it can of the session's writes; false if there is more.
  bool push_writes(Session& session);
  bool post_piece(Session& session, Write& write);
  /// Has the word that all is written go; false if it waits for room.
  bool commit_done(Session& session, const Write& write);
  void drop(Write& write);
  void end_if_over(Write& write);
  bool push_stops(Session& session);

  void rest();
  void leave();

  /// Questions of one peer that wait for their answer: more than it asks while writes to it are under way.
  static constexpr std::size_t kMostStops = 16'384;

  std::chrono::milliseconds patience_at_end_;
  std::chrono::milliseconds patience_to_settle_;
  std::chrono::milliseconds patience_for_ways_;
  std::uint32_t pid_;
  std::uint32_t fork_generation_;
  BlockPool small_out_;  ///< all memory of operations outlives the endpoint
  BlockPool large_out_;
  BlockPool receives_;
  BlockPool small_in_;
  BlockPool large_in_;
  std::unique_ptr<Endpoint> endpoint_;
  Card card_;
  Alarm alarm_;
  NetworkMembers members_;
  bool met_ = false;
  std::vector<std::unique_ptr<Session>> sessions_;  ///< by peer
  std::vector<std::uint32_t> in_use_;               ///< peers with a session
  std::vector<Session*> busy_;                      ///< that have something to send
  std::size_t messages_posted_ = 0;  ///< that the provider has not done with: it goes on only while it is polled
  std::size_t receives_posted_ = 0;
  std::size_t receives_held_ = 0;  ///< by messages that were not released
  Registrations registrations_;
  ShownMemory shown_{registrations_};
  std::uint64_t longest_piece_ = 0;  ///< of a write; 0: this end writes nothing
  std::size_t withdrawn_ = 0;        ///< writes whose owners wait for their memory
  bool news_ = false;
  RefusalCount refusals_;
};

}  // namespace unisono::ofi
