// Jobs whose endpoints each have a network in this process, and a Poe that is one endpoint's network.
#pragma once

#include <poll.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "network/network.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono::test {

/// A network as a Poe, as the engine will see it: `activity` polls, `wait` sleeps on the descriptor.
class NetworkPoe : public Poe {
 public:
  NetworkPoe(Network& network, std::uint32_t self, std::uint32_t size) : network_(network), self_(self), size_(size) {}
  std::uint32_t self() const override { return self_; }
  std::uint32_t size() const override { return size_; }
  std::uint32_t max_payload(Lane lane) const override { return network_.max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    return network_.reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override { network_.commit(peer, lane, header); }
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override { return network_.peek(peer, lane, incoming); }
  void release(std::uint32_t peer, Lane lane) override { network_.release(peer, lane); }
  std::optional<std::uint32_t> settle() override { return network_.settle(); }
  bool takes_writes(std::uint32_t peer) const override { return network_.takes_writes(peer); }
  std::optional<Reach> show(std::uint32_t peer, std::span<std::byte> memory) override {
    return network_.show(peer, memory);
  }
  void hide(std::uint32_t peer, const Reach& reach, bool written) override { network_.hide(peer, reach, written); }
  bool write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
             std::span<const std::byte> payload, Ticket& ticket) override {
    return network_.write(peer, reach, offset, done, payload, ticket);
  }
  bool done(std::uint32_t peer, Ticket ticket) const override { return network_.done(peer, ticket); }
  void withdraw(std::uint32_t peer, Ticket ticket) override { network_.withdraw(peer, ticket); }
  std::uint32_t activity() const override {
    while (network_.poll()) ++activity_;
    return activity_;
  }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override {
    if (activity() != seen) return;
    pollfd sleep{network_.descriptor(), POLLIN, 0};
    ::poll(&sleep, 1, static_cast<int>(at_most / std::chrono::milliseconds(1)));
    activity();
  }
  Liveness liveness(std::uint32_t peer) override { return network_.liveness(peer); }
  Fate fate(std::uint32_t peer) override { return network_.fate(peer); }
  std::string describe(std::uint32_t peer) const override { return "endpoint " + std::to_string(peer); }
  std::string condition(std::uint32_t peer) const override { return network_.condition(peer); }

 private:
  Network& network_;
  std::uint32_t self_;
  std::uint32_t size_;
  mutable std::uint32_t activity_ = 0;
};

inline JobKey key_of(std::uint8_t seed) {
  JobKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(seed + 3 * i);
  return key;
}

/// Networks that know each other's cards; the endpoints may then go to threads, or to children of fork.
template <class Kind>
struct NetworkJob {
  /// `make(endpoint)` gives a network.
  template <class Make>
  NetworkJob(std::uint32_t size, Make make) {
    for (std::uint32_t i = 0; i < size; ++i) networks.push_back(make(i));
    for (const auto& network : networks) cards.push_back(network->card());
    for (std::uint32_t i = 0; i < size; ++i) networks[i]->meet(members(i));
  }
  NetworkMembers members(std::uint32_t self) const {
    NetworkMembers members;
    members.self = self;
    members.key = key_of(7);
    members.cards = cards;
    for (std::size_t i = 0; i < cards.size(); ++i) members.hosts.push_back("host" + std::to_string(i));
    return members;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(cards.size()); }
  NetworkPoe poe(std::uint32_t self) { return {*networks[self], self, size()}; }
  Kind& operator[](std::uint32_t endpoint) { return *networks[endpoint]; }

  /// Polls all networks in turn until `ready`, or throws after `patience`.
  void drive(const std::function<bool()>& ready, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    const auto deadline = Clock::now() + patience;
    while (!ready()) {
      bool news = false;
      for (const auto& network : networks) news |= network != nullptr && network->poll();
      if (Clock::now() > deadline) throw std::runtime_error("what was to come has not come");
      if (!news) std::this_thread::yield();
    }
  }
  /// Runs `body(poe)` in a thread for each endpoint, which leaves when its body has ended; rethrows what any throws.
  void on_all(const std::function<void(Poe&)>& body, const std::function<void()>& meanwhile = {}) {
    std::vector<std::exception_ptr> failures(size());
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          NetworkPoe own = poe(rank);
          body(own);
          networks[rank].reset();
        } catch (...) {
          failures[rank] = std::current_exception();
        }
      });
    }
    if (meanwhile) meanwhile();
    for (auto& thread : threads) thread.join();
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  std::vector<std::vector<std::byte>> cards;
  std::vector<std::unique_ptr<Kind>> networks;
};

/// As NetworkJob::drive.
template <class Kind>
void drive(NetworkJob<Kind>& job, const std::function<bool()>& ready,
           std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  job.drive(ready, patience);
}

}  // namespace unisono::test
