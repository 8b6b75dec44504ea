// Jobs whose endpoints talk by UDP on the loopback, through a network as bad as a test wants it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "network/udp/udp_network.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono::test {

inline udp::UdpSettings udp_loopback(const std::string& impairment = {}) {
  udp::UdpSettings settings;
  settings.interfaces = "lo";
  settings.impairment = udp::impairment_of(impairment);
  return settings;
}

/// Networks that know each other's cards; the endpoints may then go to threads.
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
  void on_all(const std::function<void(Poe&)>& body) {
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
    for (auto& thread : threads) thread.join();
    for (const auto& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  std::vector<std::vector<std::byte>> cards;
  std::vector<std::unique_ptr<Kind>> networks;
};

struct UdpJob : NetworkJob<udp::UdpNetwork> {
  explicit UdpJob(std::uint32_t size, const udp::UdpSettings& settings = udp_loopback())
      : NetworkJob(size, [&](std::uint32_t endpoint) {
          udp::UdpSettings own = settings;
          own.impairment.seed += endpoint;
          return std::make_unique<udp::UdpNetwork>(own);
        }) {}
};

inline std::uint32_t size_of_message(std::uint32_t number, std::uint32_t largest) {
  const std::uint32_t sizes[] = {0, 1, 63, 64, 65, 4000, largest - 1, largest, number * 977 % (largest + 1)};
  return std::min(sizes[number % std::size(sizes)], largest);
}

/// Every endpoint sends to every other one on both lanes, and takes what comes.
inline void exchange_with_all(Poe& poe, std::uint32_t messages) {
  constexpr Lane kLanes[] = {Lane::kData, Lane::kControl};
  std::vector<std::uint32_t> sent(2 * poe.size());
  std::vector<std::uint32_t> received(2 * poe.size());
  until(poe, [&] {
    bool done = true;
    for (std::uint32_t peer = 0; peer < poe.size(); ++peer) {
      if (peer == poe.self()) continue;
      for (std::uint32_t i = 0; i < 2; ++i) {
        const Lane lane = kLanes[i];
        const auto bytes = [&](std::uint32_t n) { return size_of_message(n, poe.max_payload(lane)); };
        std::uint32_t& out = sent[2 * peer + i];
        std::uint32_t& in = received[2 * peer + i];
        while (out < messages && try_send(poe, peer, lane, out, bytes(out))) ++out;
        while (in < messages && try_receive(poe, peer, lane, in, bytes(in))) ++in;
        done = done && out == messages && in == messages;
        if (in != messages && poe.liveness(peer) == Poe::Liveness::kDead) {
          throw std::runtime_error("endpoint " + std::to_string(peer) + " " + poe.condition(peer));
        }
      }
    }
    return done;
  });
}

}  // namespace unisono::test
