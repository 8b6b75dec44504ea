// Several networks of one endpoint: one by which it knows who lives, others for its data.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "network/network.hpp"
#include "network/tcp/watch.hpp"

namespace unisono {

/// The lifeline carries the control lane of every pair, and says who lives. Data go by the first network in order of
/// preference that both ends of a pair have, and by which the peer answers when it is called. Each end chooses for what
/// it sends itself, before its first data message to that peer, and never anew; so the two directions may differ, and
/// nobody must agree on anything.
///
/// Until an end has chosen, `reserve` gives null for data. A peer that has stopped, or computes, answers nobody: a
/// network that is not answered is given up a while after the lifeline is, and not before.
class Ways final : public Network {
 public:
  /// `others` are the networks besides the lifeline; `order` are names of both, the preferred one first. Without the
  /// lifeline's name in it, data never go by it.
  Ways(std::unique_ptr<Network> lifeline, std::vector<std::unique_ptr<Network>> others,
       const std::vector<std::string>& order, std::chrono::milliseconds last_patience = kLastPatience);
  /// Waits for up to a second until peers have what was committed; then the lifeline bids farewell.
  ~Ways() override;

  /// A peer that the lifeline has reached, but not the network at hand, is given up by that after so long: it is short
  /// where there is another network to go to.
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::chrono::milliseconds kLastPatience{10'000};

  const char* name() const override { return order_.front()->name(); }
  std::vector<std::byte> card() const override;
  void meet(NetworkMembers members) override;

  std::uint32_t max_payload(Lane lane) const override;
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool takes_loans(std::uint32_t peer) const override;
  Sent lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) override;
  bool lends(std::uint32_t peer) const override;
  std::optional<std::uint32_t> settle() override;
  bool takes_writes(std::uint32_t peer) const override { return writer_to(peer) != nullptr; }
  std::optional<Reach> show(std::uint32_t peer, std::span<std::byte> memory) override;
  void hide(std::uint32_t peer, const Reach& reach, bool written) override;
  bool write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
             std::span<const std::byte> payload, Ticket& ticket) override;
  bool done(std::uint32_t peer, Ticket ticket) const override;
  void withdraw(std::uint32_t peer, Ticket ticket) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  void add_talkers(std::vector<std::uint32_t>& peers) override;
  void land_in(Landings* landings) override;
  void hold(bool holds) override;

  bool poll() override;
  int descriptor() const override { return watch_.descriptor(); }
  bool in_use() const override;
  bool has_output() const override;
  std::chrono::steady_clock::time_point output_due() const override;

  Poe::Liveness liveness(std::uint32_t peer) override;
  Poe::Fate fate(std::uint32_t peer) override;
  std::string condition(std::uint32_t peer) const override;
  std::uint64_t refused() const override;
  void show_refused(std::atomic<std::uint64_t>& word) override;

  Trial trial(std::uint32_t peer) override { return lifeline_->trial(peer); }
  void end(std::uint32_t peer, const std::string& cause) override;
  bool delivered(std::uint32_t peer) const override;
  const char* way_to(std::uint32_t peer) const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Network* out = nullptr;  ///< by which data go to it, once that is chosen
    Network* in = nullptr;   ///< by which data have come from it
    std::size_t at = 0;      ///< of `order_`: what is tried
    Clock::time_point give_up_at = Clock::time_point::max();
    bool choosing = false;
    bool over = false;
    std::string tried{};
  };

  Peer& peer_of(std::uint32_t peer);
  /// The network for data to a peer; null as long as none is chosen.
  Network* way_out(std::uint32_t peer);
  bool offers(std::uint32_t peer, const Network& network) const;
  /// The network that writes to the peer's memory, and lets it write to memory here: at most one of them does that.
  /// Null if none can now. Which way the peer's data take is its own choice; it may also take none of what it is shown.
  Network* writer_to(std::uint32_t peer) const;
  /// Goes on with the choice; true if it is made.
  bool choose(std::uint32_t peer, Clock::time_point now);
  void go_on(std::uint32_t peer, const std::string& outcome);
  void end_data(std::uint32_t peer);
  void bury();
  void set_timer();

  std::unique_ptr<Network> lifeline_;
  std::vector<std::unique_ptr<Network>> others_;
  std::vector<Network*> order_;
  std::chrono::milliseconds last_patience_;
  std::uint32_t fork_generation_;
  tcp::Watch watch_;
  std::vector<std::uint32_t> watched_;
  std::uint32_t self_ = 0;
  std::vector<std::string> hosts_;
  std::vector<std::vector<bool>> offered_;  ///< by endpoint: which of `others_` its card has
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> choosing_;
  Clock::time_point next_look_ = Clock::time_point::max();
  bool news_ = false;
  bool lifeline_carries_ = false;  ///< data of a pair
  unsigned unlooked_ = 0;          ///< rounds since the lifeline was looked at
  Clock::time_point looked_at_{};  ///< when the lifeline was looked at last
};

}  // namespace unisono
