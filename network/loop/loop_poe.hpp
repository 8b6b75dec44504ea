// The network of an endpoint that is a host of its own, in a job on the loop network.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/loop/loop_network.hpp"
#include "network/poe.hpp"

namespace unisono::loop {

/// Everything goes over the one network. Sleeps on its mailbox, without polling first: there may be a thousand such
/// endpoints to a core.
class LoopPoe final : public Poe {
 public:
  explicit LoopPoe(std::unique_ptr<LoopNetwork> network) : network_(std::move(network)) {}

  LoopNetwork& network() { return *network_; }

  std::uint32_t self() const override { return network_->self(); }
  std::uint32_t size() const override { return network_->job().size(); }
  std::uint32_t max_payload(Lane lane) const override { return network_->max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    return network_->reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override { network_->commit(peer, lane, header); }
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override {
    return network_->send(peer, lane, header, payload);
  }
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override { return network_->peek(peer, lane, incoming); }
  void release(std::uint32_t peer, Lane lane) override { network_->release(peer, lane); }
  std::optional<std::span<const std::uint32_t>> talkers() override {
    talkers_.clear();
    network_->add_talkers(talkers_);
    return talkers_;
  }

  bool poll() override {
    const bool came = companion_ != nullptr && companion_->poll();
    return network_->poll() || came;
  }
  /// Nothing rings for a companion while this endpoint sleeps, so it sleeps for a short time only.
  bool attach(Companion* companion) override {
    companion_ = companion;
    return true;
  }
  std::uint32_t activity() const override { return network_->box().activity(); }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override {
    // Longer than a process lives, and within what the clock can hold.
    constexpr std::chrono::microseconds kLongest = std::chrono::hours(24 * 365);
    constexpr std::chrono::microseconds kBesideCompanion{100};
    network_->box().sleep(seen, std::chrono::steady_clock::now() +
                                    std::min(at_most, companion_ == nullptr ? kLongest : kBesideCompanion));
  }

  Liveness liveness(std::uint32_t peer) override { return network_->liveness(peer); }
  Fate fate(std::uint32_t peer) override { return network_->fate(peer); }
  std::optional<bool> crowded() const override { return true; }
  bool sleeps_on_word() const override { return false; }
  std::uint32_t host_of(std::uint32_t endpoint) const override { return endpoint; }
  const char* way_to(std::uint32_t /*peer*/) const override { return network_->name(); }
  std::string describe(std::uint32_t peer) const override { return "endpoint " + std::to_string(peer); }
  std::string condition(std::uint32_t peer) const override { return network_->condition(peer); }

 private:
  std::unique_ptr<LoopNetwork> network_;
  std::vector<std::uint32_t> talkers_;
  Companion* companion_ = nullptr;
};

}  // namespace unisono::loop
