// The network of an endpoint in a job of several hosts: memory shared with those of its own host, a network to others.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/network.hpp"
#include "network/poe.hpp"
#include "network/shm/shm_poe.hpp"
#include "network/tcp/watch.hpp"

namespace unisono {

/// What is known of an endpoint of a job of several hosts.
struct Seat {
  std::uint32_t pid = 0;
  std::uint32_t host = 0;      ///< its number; counts from 0 in the order of their first endpoints
  std::uint32_t position = 0;  ///< of the endpoint in its host's shared memory
  std::string host_name;       ///< for messages to people
};

/// Routes by endpoint. Who sleeps here is woken by either.
class MixedPoe final : public Poe {
 public:
  /// `seats` by endpoint; `host` is this endpoint's end of its host's memory; the network has met all others.
  /// `crowded`: some machine has more endpoints than usable
  /// cores. Throws Error(kBootstrap).
  MixedPoe(std::uint32_t self, std::vector<Seat> seats, std::unique_ptr<shm::ShmPoe> host,
           std::unique_ptr<Network> network, bool crowded);

  std::uint32_t self() const override { return self_; }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(seats_.size()); }
  std::uint32_t max_payload(Lane lane) const override;

  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool takes_loans(std::uint32_t peer) const override;
  Sent lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) override;
  bool lends(std::uint32_t peer) const override;
  std::optional<std::uint32_t> settle() override;
  bool takes_writes(std::uint32_t peer) const override;
  std::optional<Reach> show(std::uint32_t peer, std::span<std::byte> memory) override;
  void hide(std::uint32_t peer, const Reach& reach, bool written) override;
  bool write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
             std::span<const std::byte> payload, Ticket& ticket) override;
  bool done(std::uint32_t peer, Ticket ticket) const override;
  void withdraw(std::uint32_t peer, Ticket ticket) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  std::optional<std::span<const std::uint32_t>> talkers() override;
  void land_in(Landings* landings) override { network_->land_in(landings); }
  void hold(bool holds) override {
    quiet_ = 0;  // what is held goes with the next poll
    network_->hold(holds);
  }

  bool poll() override;
  bool has_output() const override { return network_->has_output(); }
  std::chrono::steady_clock::time_point output_due() const override { return network_->output_due(); }
  std::uint32_t activity() const override;
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override;

  Liveness liveness(std::uint32_t peer) override;
  Fate fate(std::uint32_t peer) override;
  shm::ShmPoe* shared_memory() override { return host_.get(); }
  std::optional<std::uint32_t> in_shared_memory(std::uint32_t endpoint) const override;
  std::optional<bool> crowded() const override { return crowded_; }
  bool sleeps_on_word() const override { return false; }
  std::uint32_t host_of(std::uint32_t endpoint) const override { return seat(endpoint).host; }
  const char* way_to(std::uint32_t peer) const override;

  std::string describe(std::uint32_t peer) const override;
  std::string condition(std::uint32_t peer) const override;
  CommunicatorRecord* records(std::uint32_t endpoint) const override;
  NativeCounters* counters(std::uint32_t endpoint) const override;
  const JobOrders* orders() const override { return host_->orders(); }
  bool attach(Companion* companion) override;

 private:
  bool is_here(std::uint32_t endpoint) const { return seats_[endpoint].host == seats_[self_].host; }
  const Seat& seat(std::uint32_t endpoint) const;
  bool looks_at_network();
  bool polls_network();

  std::uint32_t self_;
  std::vector<Seat> seats_;
  std::shared_ptr<shm::Segment> memory_;  ///< in which the network counts, to its last moment
  std::unique_ptr<Network> network_;
  std::unique_ptr<shm::ShmPoe> host_;  ///< goes first: it listens to the network's descriptor
  bool crowded_;
  std::vector<std::uint32_t> talkers_;  ///< first those of this host, who may always have sent something
  std::size_t here_ = 0;                ///< how many those are
  std::uint32_t rounds_ = 0;
  std::uint32_t quiet_ = 0;                            ///< looks at the network in a row that brought nothing
  std::chrono::steady_clock::time_point looked_at_{};  ///< when it was looked at last, while there is a companion
  Companion* companion_ = nullptr;
  std::unique_ptr<tcp::Watch> both_;  ///< of the network and the companion, once there is one
  std::uint32_t network_watched_ = 0;
  std::uint32_t companion_watched_ = 0;
  std::atomic<std::uint32_t> came_{0};  ///< polls of the network that brought something
};

}  // namespace unisono
