// The network between endpoints of one process that share no memory but their mailboxes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "network/loop/loop_job.hpp"
#include "network/network.hpp"

namespace unisono::loop {

/// One endpoint's side of a Job. A session is a few words, made when the first message goes or comes; a message is
/// memory of its own, given back as soon as it was released. What an endpoint has not taken is bounded: 256 KiB of data
/// and 1 MiB of control, of all its peers together, and one message more. Sending to itself is allowed.
class LoopNetwork final : public Network {
 public:
  static constexpr std::uint32_t kMaxDataPayload = 32 * 1024;
  static constexpr std::uint32_t kMaxControlPayload = 8 * 1024;
  static constexpr std::uint64_t kMostData = std::uint64_t{256} * 1024;
  static constexpr std::uint64_t kMostControl = std::uint64_t{1024} * 1024;

  /// Throws Error: kInvalidArgument if there is no such endpoint, kBootstrap if it was taken before.
  LoopNetwork(std::shared_ptr<Job> job, std::uint32_t self);
  /// Leaves in good order, unless the endpoint was ended.
  ~LoopNetwork() override;

  const char* name() const override { return "loop"; }
  std::vector<std::byte> card() const override;
  void meet(NetworkMembers members) override;

  std::uint32_t max_payload(Lane lane) const override {
    return lane == Lane::kData ? kMaxDataPayload : kMaxControlPayload;
  }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  void add_talkers(std::vector<std::uint32_t>& peers) override;

  bool poll() override;
  int descriptor() const override;
  bool in_use() const override { return !sessions_.empty() || box_.any(); }
  bool has_output() const override { return false; }

  Poe::Liveness liveness(std::uint32_t peer) override;
  Poe::Fate fate(std::uint32_t peer) override;
  std::string condition(std::uint32_t peer) const override;

  Trial trial(std::uint32_t peer) override;
  void end(std::uint32_t peer, const std::string& cause) override;
  bool delivered(std::uint32_t peer) const override;
  std::string places(std::uint32_t /*peer*/) const override { return "the mailbox"; }
  std::uint64_t refused() const override { return 0; }
  void show_refused(std::atomic<std::uint64_t>& /*word*/) override {}

  std::uint32_t self() const { return self_; }
  Job& job() const { return *job_; }
  Mailbox& box() const { return box_; }
  /// How many there are, and the bytes that they take, without messages.
  std::size_t sessions() const { return sessions_.size(); }
  std::size_t memory() const;

 private:
  struct Session {
    std::array<MessageQueue, 2> came;         ///< by lane
    std::array<Message*, 2> reserved{};       ///< by lane
    std::array<std::uint32_t, 2> sequence{};  ///< by lane, of what is sent
    bool talking = false;
    bool cut = false;  ///< see Network::end

    bool talks() const { return !came[0].empty() || !came[1].empty(); }
  };

  static std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
  void check_peer(std::uint32_t peer) const;
  Session& session(std::uint32_t peer);
  Session* known(std::uint32_t peer);
  bool sort();
  void drop_reserved(std::uint32_t peer, Session& of, Lane lane);

  std::shared_ptr<Job> job_;
  std::uint32_t self_;
  Mailbox& box_;
  std::unordered_map<std::uint32_t, Session> sessions_;  ///< by peer
  std::vector<std::uint32_t> talking_;                   ///< peers of which messages were not released
  std::uint32_t polled_ = 0;                             ///< the box's activity at the last poll
};

}  // namespace unisono::loop
