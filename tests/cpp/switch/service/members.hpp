// Switches that serve in this process, and members that speak to them over the loopback, as ranks would.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/secret.hpp"
#include "switch/control.hpp"
#include "switch/datagrams.hpp"
#include "switch/envelope.hpp"
#include "switch/path_time.hpp"
#include "switch/service/service.hpp"
#include "switch/window.hpp"

namespace unisono::slots {

inline const std::string kSecret = "a secret of the tests";

inline join::Deadline within(std::chrono::milliseconds time) { return join::Clock::now() + time; }

/// A switch that serves until it goes.
class Serving {
 public:
  explicit Serving(ServiceSettings settings) : service_(with_secret(std::move(settings))) {
    thread_ = std::thread([this] { service_.run(); });
  }
  explicit Serving(const std::string& name) : Serving(ServiceSettings{.listen = "127.0.0.1:0", .name = name}) {}
  ~Serving() {
    service_.stop();
    thread_.join();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  const std::string& address() const { return service_.address(); }
  std::uint16_t port() const { return service_.port(); }

 private:
  static ServiceSettings with_secret(ServiceSettings settings) {
    if (settings.secret.empty()) settings.secret = kSecret;
    return settings;
  }
  Service service_;
  std::thread thread_;
};

inline std::unique_ptr<ControlConnection> call_at(const std::string& address) {
  return std::make_unique<ControlConnection>(address, bytes_of_text(kSecret), within(std::chrono::seconds(5)));
}

inline std::string ask_at(const std::string& address, const std::string& question) {
  const auto blob = call_at(address)->ask(ControlKind::kAsk, bytes_of_text(question), within(std::chrono::seconds(5)));
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

/// Whether something comes to hold within a time.
inline bool comes(const std::function<bool()>& holds, std::chrono::milliseconds time) {
  const auto until = within(time);
  while (!holds()) {
    if (join::Clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// What a job with so many ranks asks one switch for.
inline PoolRequest request_for(const std::string& name, std::uint32_t ranks, std::uint32_t slots = 8) {
  PoolRequest request;
  fill_random(request.id);
  request.job_name = "test \"quoted\"";
  request.communicator = 7;
  request.epoch = 2;
  request.ranks = ranks;
  request.slots = slots;
  request.payload_bytes = 1344;
  PoolNode node;
  node.name = name;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) node.below.push_back({"", {rank, 1}});
  request.nodes.push_back(node);
  return request;
}

/// The same with leaves of so many ranks each below a top.
inline PoolRequest tree_for(const std::string& top, const std::vector<std::string>& leaves, std::uint32_t each) {
  PoolRequest request = request_for(top, static_cast<std::uint32_t>(leaves.size()) * each);
  request.nodes.front().below.clear();
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    request.nodes.front().below.push_back({leaves[i], {i * each, each}});
    PoolNode leaf;
    leaf.name = leaves[i];
    leaf.above = top;
    leaf.position = i;
    for (std::uint32_t rank = 0; rank < each; ++rank) leaf.below.push_back({"", {i * each + rank, 1}});
    request.nodes.push_back(leaf);
  }
  return request;
}

/// A rank at one switch.
class Member final : public Uplink {
 public:
  Member(const PoolRequest& request, const std::string& name, std::uint32_t position, std::uint16_t port,
         const udp::ImpairmentSettings& impairment = {})
      : datagrams_(0, datagram_bytes(request.payload_bytes), impairment),
        window_(shape_of(request, name, position), *this) {
    const Digest secret = pool_secret(bytes_of_text(kSecret), request.id);
    const std::uint64_t number = number_of_pool(request.id);
    up_ = Envelope(secret, number, name, position, Direction::kUp);
    down_ = Envelope(secret, number, name, position, Direction::kDown);
    go_to(port);
  }
  void go_to(std::uint16_t port) {
    tcp::Address loopback;
    loopback.bytes[0] = 127;
    loopback.bytes[3] = 1;
    loopback.port = port;
    switch_ = datagrams_.reachable(loopback, 0);
  }
  void up(const SlotFrame& head, std::span<const std::byte> payload) override {
    const std::size_t bytes = up_.seal(head, payload, datagrams_.room(), stamp_of(now()));
    if (recorded) recorded->assign(datagrams_.room().begin(), datagrams_.room().begin() + static_cast<long>(bytes));
    datagrams_.queue(switch_, bytes);
  }
  /// Takes what has come, and does what is due.
  void step() {
    const auto take = [this](std::span<std::byte> datagram, const tcp::SystemAddress&) {
      FrameView frame;
      if (!down_.open(datagram, frame)) return;
      path_ = path_of(labels_of(datagram)->stamp, now());
      window_.take(frame, now(), path_);
    };
    while (datagrams_.receive(take)) datagrams_.flush();
    window_.tick(now());
    datagrams_.flush();
  }
  static Time now() { return std::chrono::steady_clock::now(); }
  Window& window() { return window_; }
  /// How long datagrams are on their way to the switch and back, as the last one said.
  std::optional<Span> path() const { return path_; }
  int descriptor() const { return datagrams_.descriptor(); }

  std::vector<std::byte>* recorded = nullptr;  ///< the last datagram that was sent, if wanted

 private:
  static WindowShape shape_of(const PoolRequest& request, const std::string& name, std::uint32_t position) {
    const PoolNode& node = *request.node(name);
    WindowShape shape;
    shape.communicator = request.communicator;
    shape.epoch = request.epoch;
    shape.rank = node.below[position].child.first;
    shape.ranks = request.ranks;
    shape.position = position;
    shape.slots = request.slots;
    shape.payload_bytes = request.payload_bytes;
    return shape;
  }
  Datagrams datagrams_;
  tcp::SystemAddress switch_;
  Envelope up_;
  Envelope down_;
  std::optional<Span> path_;
  Window window_;
};

/// All ranks of a communicator, driven by one thread.
class Members {
 public:
  static constexpr std::size_t kCount = 3000;  ///< elements of a call

  void add(const PoolRequest& request, const std::string& name, std::uint16_t port,
           const udp::ImpairmentSettings& impairment = {}) {
    udp::ImpairmentSettings own = impairment;
    for (std::uint32_t i = 0; i < request.node(name)->below.size(); ++i) {
      own.seed = impairment.seed + ranks_.size() + 1;
      ranks_.push_back(std::make_unique<Member>(request, name, i, port, own));
    }
  }
  Member& rank(std::size_t number) { return *ranks_[number]; }
  std::size_t size() const { return ranks_.size(); }

  /// Begins an allreduce of fp32, sum, with data that differ on every rank and in every call.
  void start(std::chrono::seconds deadline = std::chrono::seconds(30)) {
    ++calls_;
    sources_.assign(size(), std::vector<float>(kCount));
    results_.assign(size(), std::vector<float>(kCount));
    for (std::size_t rank = 0; rank < size(); ++rank) {
      for (std::size_t i = 0; i < kCount; ++i) {
        sources_[rank][i] = 1.0F / static_cast<float>(3 + i + 7 * rank + 11 * calls_) * (rank % 2 == 0 ? 1e3F : 1.0F);
      }
      SlotCall call;
      call.sequence = calls_;
      call.collective = Collective::kAllreduce;
      call.func = Func::kSum;
      call.dtype = Datatype::kFp32;
      call.count = kCount;
      call.src = reinterpret_cast<const std::byte*>(sources_[rank].data());
      call.dst = reinterpret_cast<std::byte*>(results_[rank].data());
      call.deadline = Member::now() + deadline;
      number_ = ranks_[rank]->window().start(call, Member::now()).value();
      ranks_[rank]->step();
    }
  }
  bool done() const {
    for (const auto& rank : ranks_) {
      if (!rank->window().done(number_)) return false;
    }
    return true;
  }
  void step() {
    std::vector<pollfd> watched;
    for (const auto& rank : ranks_) watched.push_back({rank->descriptor(), POLLIN, 0});
    poll(watched.data(), watched.size(), 1);
    for (const auto& rank : ranks_) rank->step();
  }
  /// What went wrong, or nothing. `groups`: ranks below each leaf; each leaf folds its own, and rounds.
  std::string finish(std::size_t groups = 0) {
    while (!done()) {
      step();
      for (const auto& rank : ranks_) {
        if (rank->window().failure()) return rank->window().failure()->text;
      }
    }
    const std::size_t each = groups == 0 ? size() : groups;
    for (std::size_t i = 0; i < kCount; ++i) {
      float sum = 0;
      for (std::size_t first = 0; first < size(); first += each) {
        float part = sources_[first][i];
        for (std::size_t rank = first + 1; rank < first + each; ++rank) part += sources_[rank][i];
        sum = first == 0 ? part : sum + part;
      }
      for (std::size_t rank = 0; rank < size(); ++rank) {
        if (std::memcmp(&results_[rank][i], &sum, sizeof sum) != 0) {
          return "rank " + std::to_string(rank) + " has another result in element " + std::to_string(i);
        }
      }
    }
    return {};
  }
  std::string allreduce(std::size_t groups = 0) {
    start();
    return finish(groups);
  }

 private:
  std::vector<std::unique_ptr<Member>> ranks_;
  std::vector<std::vector<float>> sources_;
  std::vector<std::vector<float>> results_;
  std::uint32_t calls_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace unisono::slots
