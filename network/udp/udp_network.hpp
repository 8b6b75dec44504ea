// Messages over UDP: reliable and in order on our own terms.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/network.hpp"
#include "network/tcp/interfaces.hpp"
#include "network/tcp/watch.hpp"
#include "network/udp/caller.hpp"
#include "network/udp/port.hpp"
#include "network/udp/receiver.hpp"
#include "network/udp/refusals.hpp"
#include "network/udp/sender.hpp"
#include "network/udp/tagger.hpp"

namespace unisono::udp {

/// What a person may choose.
struct UdpSettings {
  std::string interfaces;                          ///< see `chosen_by`; empty: all
  std::optional<tcp::Address> towards;             ///< the rendezvous: addresses on the way there come first
  ImpairmentSettings impairment;                   ///< for tests
  std::size_t ring_bytes = std::size_t{1} << 20U;  ///< memory of the data lane, of each direction of a session in use
  std::size_t largest_datagram = 0;                ///< 0: what the way to the peer takes
};

/// One socket. A session serves one direction of a pair: its sender calls, and the other end acknowledges. So there are
/// never two attempts at one session, and either direction may have a way of its own.
///
/// It does not know whether a peer lives: one that does not answer may be busy. Somebody else must (see Ways), and
/// `end` its sessions.
class UdpNetwork final : public Network {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes a port from here on. Throws Error(kBootstrap).
  explicit UdpNetwork(const UdpSettings& settings = {});
  /// Sends what waits, for up to a second, until peers have it.
  ~UdpNetwork() override;

  const char* name() const override { return "udp"; }
  std::vector<std::byte> card() const override;
  void meet(NetworkMembers members) override;

  std::uint32_t max_payload(Lane lane) const override { return kMaxPayload[index_of(lane)]; }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  void add_talkers(std::vector<std::uint32_t>& peers) override;

  bool poll() override;
  int descriptor() const override { return watch_.descriptor(); }
  bool in_use() const override { return !calling_.empty() || !called_.empty(); }
  bool has_output() const override;
  Clock::time_point output_due() const override;

  Poe::Liveness liveness(std::uint32_t peer) override;
  std::string condition(std::uint32_t peer) const override;
  std::uint64_t refused() const override { return refusals_.count(); }
  void show_refused(std::atomic<std::uint64_t>& word) override { refusals_.show(word); }

  Trial trial(std::uint32_t peer) override;
  void end(std::uint32_t peer, const std::string& cause) override;
  bool delivered(std::uint32_t peer) const override;
  std::string places(std::uint32_t peer) const override;

  std::uint16_t port() const { return port_.port(); }
  /// The sending end of a session, for tests and tools; null if there is none.
  const Sender* sender(std::uint32_t peer) const;

 private:
  struct Outgoing {
    std::uint32_t peer = 0;
    Sender sender;
    std::optional<Caller> caller{};
    Tagger data{};
    Tagger acks{};
    tcp::SystemAddress to{};
    Caller::Place place{};
    bool open = false;
    bool over = false;
    std::string cause{};
  };
  struct Incomings {
    std::uint32_t peer = 0;
    Digest secret{};
    Tagger data;
    Tagger acks;
    tcp::SystemAddress from{};
    Receiver receiver;
    bool over = false;
  };

  void check_process() const;
  void check_peer(std::uint32_t peer) const;
  /// Bytes that a peer may send before they are taken: what the kernel keeps for a peer that does not look must hold
  /// them.
  std::size_t room() const;
  Outgoing& outgoing(std::uint32_t peer);
  Outgoing* known(std::uint32_t peer) const { return peer < outgoing_.size() ? outgoing_[peer].get() : nullptr; }

  void take(const Came& came);
  void take_hello(const Came& came);
  void take_challenge(const Came& came);
  void take_proof(const Came& came);
  void take_data(const Came& came);
  void take_ack(const Came& came);
  void open(Outgoing& session);
  void break_off(Outgoing& session, std::string cause);

  void call(Outgoing& session);
  void pump(Outgoing& session);
  bool send_batch();
  void say_if_due(Incomings& session);
  void say(Incomings& session);
  void serve();
  void wake_at(Clock::time_point at);
  /// Has the timer go off when there is something to do; at the end of whatever changes that.
  void arm();
  void leave();

  UdpSettings settings_;
  std::uint32_t pid_;
  std::uint32_t fork_generation_;
  std::vector<tcp::OwnAddress> own_;
  std::vector<tcp::Address> own_chosen_;
  tcp::Watch watch_;
  Port port_;
  Refusals refusals_;
  Digest nonce_secret_{};  ///< of this process: what its nonces are made of
  NetworkMembers members_;
  bool met_ = false;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;   ///< by peer
  std::vector<std::unique_ptr<Incomings>> incoming_;  ///< by peer
  std::vector<Outgoing*> calling_;
  std::vector<Incomings*> called_;
  Batch batch_;
  Outgoing* batch_of_ = nullptr;  ///< whose batch waits for the kernel
  std::uint32_t watched_ = 0;
  Clock::time_point now_{};
  Clock::time_point due_ = Clock::time_point::max();    ///< when there is something to do
  Clock::time_point armed_ = Clock::time_point::max();  ///< when the timer goes off
  bool news_ = false;
  bool owes_ = false;  ///< acknowledgements that the next poll sends
};

}  // namespace unisono::udp
