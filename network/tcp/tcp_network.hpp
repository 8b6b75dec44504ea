// The network that every host has: TCP.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/network.hpp"
#include "network/tcp/attempt.hpp"
#include "network/tcp/bundle.hpp"
#include "network/tcp/interfaces.hpp"
#include "network/tcp/listener.hpp"
#include "network/tcp/question.hpp"
#include "network/tcp/watch.hpp"

namespace unisono::tcp {

/// What a person may choose.
struct TcpSettings {
  std::string interfaces;  ///< see `chosen_by`; empty: all
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;  ///< both 0: any port
  /// A peer's host that has not answered for so long, though something was sent, has vanished.
  std::chrono::milliseconds patience{3000};
  std::optional<Address> towards;  ///< the rendezvous: addresses on the way there come first
  bool tls = false;                ///< connections are encrypted, on all endpoints: see Tls
  std::uint32_t connections = 1;   ///< for each pair, at most kMostConnections; the lesser number of both ends holds
};

/// One connection for each pair of endpoints that have to do with each other. Both lanes share it: control frames go
/// before data frames that wait, and can be taken before data frames that have come, as long as those leave room in
/// the receiver's memory (256 KiB). If both ends are to have more for a pair, they are made when one of them sends the
/// first long message: see Bundle. Those that cannot be made are done without. Any method throws Error(kWrongProcess)
/// in a child of fork, but those that only read; destruction there leaves the parent's connections alone.
class TcpNetwork final : public Network {
 public:
  /// Listens from here on. Throws Error(kBootstrap), also if there is to be TLS and it is not there.
  explicit TcpNetwork(const TcpSettings& settings = {});
  /// Sends what waits, and a farewell, for up to a second: peers that read it see kLeft.
  ~TcpNetwork() override;

  const char* name() const override { return "tcp"; }
  std::vector<std::byte> card() const override;
  void meet(NetworkMembers members) override;

  std::uint32_t max_payload(Lane lane) const override {
    return lane == Lane::kData ? kMaxDataPayload : kMaxControlPayload;
  }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) override;
  bool takes_loans(std::uint32_t /*peer*/) const override { return true; }
  Sent lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) override;
  bool lends(std::uint32_t peer) const override;
  std::optional<std::uint32_t> settle() override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;
  void add_talkers(std::vector<std::uint32_t>& peers) override;
  void land_in(Landings* landings) override;
  void hold(bool holds) override { holds_ = holds; }

  bool poll() override;
  int descriptor() const override { return watch_.descriptor(); }
  bool in_use() const override { return sessions_in_use_ != 0; }
  bool has_output() const override;

  Poe::Liveness liveness(std::uint32_t peer) override;
  Poe::Fate fate(std::uint32_t peer) override;
  std::string condition(std::uint32_t peer) const override;
  std::uint64_t refused() const override { return listener_.refused(); }
  void show_refused(std::atomic<std::uint64_t>& word) override { listener_.show_refused(word); }
  const char* way_to(std::uint32_t /*peer*/) const override { return settings_.tls ? "tcp+TLS" : "tcp"; }

  Trial trial(std::uint32_t peer) override;
  void end(std::uint32_t peer, const std::string& cause) override;
  bool delivered(std::uint32_t peer) const override;

  std::uint16_t port() const { return listener_.port(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Session {
    Bundle bundle{};
    std::optional<JobKey> key{};    ///< for further connections, once there is the first one
    std::uint32_t connections = 1;  ///< how many both ends would have
    bool widens = false;            ///< the next long message asks for those
    Address listener{};             ///< where the peer listens, at the address that the first connection had
    Question question{};            ///< whether it still does, once the session has broken
    Clock::time_point asked{};      ///< when that was asked first
    Clock::time_point ask_not_before{};
    bool asked_again = false;
    Poe::Fate fate = Poe::Fate::kUnknown;
    bool talking = false;  ///< it is among `talking_`
    std::uint32_t peer() const { return bundle.first().peer; }
  };

  void check_process() const;
  /// Throws Error(kBootstrap) if not all endpoints encrypt, or none.
  static void check_security(const NetworkMembers& members);
  /// Throws Error(kInternal) for an endpoint that this network does not reach.
  void check_peer(std::uint32_t peer) const;
  /// The session, which is asked for if there is none.
  Session& session(std::uint32_t peer);
  Session& make_session(std::uint32_t peer);
  const std::string& host_of(std::uint32_t endpoint) const;

  /// A message is about to be sent: if it is a long one, the session is to have all its connections.
  void prepare(Session& to, Lane lane, const Header& header) {
    if (to.widens && lane == Lane::kData && header.message_bytes >= kLong) [[unlikely]]
      ask_for_more(to);
  }
  /// Messages of which the first asks for the further connections.
  static constexpr std::uint64_t kLong = std::uint64_t{256} * 1024;
  void ask_for_more(Session& session);
  /// Something was committed: holds it back for a moment, or sees to it that it goes on.
  void sent(Session& to);
  bool poll_strands();
  bool poll_watch();
  /// There is room again for what a connection holds beyond the kernel: a thread that sleeps, or is about to, is woken.
  void tell_unread(Strand& strand);
  bool poll_unread();
  bool serve(Strand& strand);
  void count_quiet(Strand& strand, bool came);
  std::size_t& quiet_of(const Strand& strand) { return strand.number == 0 ? quiet_first_ : quiet_further_; }
  /// Goes on to agree on TLS; true once that is done, and the connection open.
  bool secure(Strand& strand);
  void watch_strand(Strand& strand);
  /// A connection is open no more: neither is the session, if it has broken, or the last one has ended.
  void conclude(Session& session);
  void advance(Strand& strand, Clock::time_point now);
  void pass_deadlines(Clock::time_point now);
  void open(Strand& strand, Socket socket, TlsEnd end, const Agreed& agreed);
  void drop_attempt(Strand& strand);
  /// A further connection is not to be had.
  void do_without(Strand& strand, const std::string& cause);
  void give_up(Session& session, const std::string& cause);
  Ruling rule(const Acceptor& proven);
  Ruling rule_of_more(Session& session, const Acceptor& proven);
  /// Takes an ended connection from those that are polled.
  void retire(Strand& strand);
  void retire_all(Session& session);
  void leave();
  /// Asks the kernel of a peer whose connection has broken whether its process has ended.
  Poe::Fate inquire(Session& session, Clock::time_point now);

  // Tags of what is watched: the kind above; below it a number, or the peer and above that the connection.
  static constexpr unsigned kKindShift = 56;
  static constexpr unsigned kConnectionShift = 32;
  static constexpr std::uint64_t kOfListener = std::uint64_t{1} << kKindShift;
  static constexpr std::uint64_t kOfSession = std::uint64_t{2} << kKindShift;
  static constexpr std::uint64_t kOfAttempt = std::uint64_t{3} << kKindShift;
  static constexpr std::uint64_t kNumber = (std::uint64_t{1} << kKindShift) - 1;
  static std::uint64_t tag_of(std::uint64_t kind, const Strand& strand) {
    return kind | std::uint64_t{strand.number} << kConnectionShift | strand.peer;
  }

  TcpSettings settings_;
  std::uint32_t pid_;
  std::uint32_t fork_generation_;
  std::vector<OwnAddress> own_;
  std::vector<Address> own_chosen_;
  Watch watch_;
  Listener listener_;
  NetworkMembers members_;
  bool met_ = false;
  bool leaving_ = false;
  Landings* landings_ = nullptr;
  bool holds_ = false;
  std::vector<std::unique_ptr<Session>> sessions_;  ///< by peer
  std::vector<Strand*> open_;
  std::vector<Strand*> held_;        ///< those with messages that were held back, some perhaps twice
  std::vector<Session*> talking_;    ///< those of which messages have come that were not released
  std::vector<Strand*> unread_;      ///< those that hold bytes which nothing stirs for, and have room for them again
  std::vector<Strand*> connecting_;  ///< those that are asked for, and not there yet
  std::size_t quiet_first_ = 0;      ///< of the open ones, first connections of sessions
  std::size_t quiet_further_ = 0;    ///< likewise, all others
  std::size_t sessions_in_use_ = 0;
  std::uint32_t polls_ = 0;
  bool news_ = false;
};

}  // namespace unisono::tcp
