// A cluster without hardware: speaks protocol.hpp with functional devices behind it. Like the simulated one it lets
// time pass, and serves what takes time, only while every host that is attached waits.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "platform/device/functional.hpp"
#include "platform/device/protocol.hpp"
#include "platform/device/registers.hpp"
#include "platform/join/job.hpp"

namespace unisono::test {

class FunctionalCluster {
 public:
  /// One descriptor for each node; closed at the end.
  explicit FunctionalCluster(const std::vector<int>& descriptors)
      : job_(static_cast<std::uint32_t>(descriptors.size())), nodes_(descriptors.size()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].descriptor = descriptors[i];
      nodes_[i].network = job_.endpoint(static_cast<std::uint32_t>(i));
      nodes_[i].device = std::make_unique<FunctionalDevice>(*nodes_[i].network);
    }
  }
  ~FunctionalCluster() {
    for (Node& node : nodes_) leave(node);
  }
  FunctionalCluster(const FunctionalCluster&) = delete;
  FunctionalCluster& operator=(const FunctionalCluster&) = delete;

  /// Serves until all hosts have gone.
  void run() {
    while (attached() != 0) {
      if (!listen()) continue;
      time_ += 1000;
      for (Node& node : nodes_) {
        // What a host has left behind goes on.
        if (node.descriptor < 0) node.device->read(exchange::kStatus);
        if (node.request) serve(node);
      }
    }
  }
  std::uint64_t nanoseconds() const { return time_; }
  std::uint64_t requests() const { return requests_; }

 private:
  struct Node {
    int descriptor = -1;
    std::unique_ptr<Poe> network;
    std::unique_ptr<FunctionalDevice> device;
    std::optional<device::Request> request;
    std::vector<std::byte> payload;
    std::uint64_t until = 0;
  };

  std::size_t attached() const {
    std::size_t count = 0;
    for (const Node& node : nodes_) count += node.descriptor >= 0 ? 1 : 0;
    return count;
  }

  static void leave(Node& node) {
    if (node.descriptor >= 0) close(node.descriptor);
    node.descriptor = -1;
    node.request.reset();
  }

  static bool take(int descriptor, void* bytes, std::size_t count) {
    auto* place = static_cast<char*>(bytes);
    while (count != 0) {
      const ssize_t done = recv(descriptor, place, count, 0);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      place += done;
      count -= static_cast<std::size_t>(done);
    }
    return true;
  }

  static bool give(int descriptor, const void* bytes, std::size_t count) {
    const auto* place = static_cast<const char*>(bytes);
    while (count != 0) {
      const ssize_t done = send(descriptor, place, count, MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      place += done;
      count -= static_cast<std::size_t>(done);
    }
    return true;
  }

  /// Takes requests until every attached host waits. False if the hosts have changed.
  bool listen() {
    for (;;) {
      std::vector<pollfd> quiet;
      std::vector<Node*> whose;
      for (Node& node : nodes_) {
        if (node.descriptor < 0 || node.request) continue;
        quiet.push_back({node.descriptor, POLLIN, 0});
        whose.push_back(&node);
      }
      if (quiet.empty()) return true;
      poll(quiet.data(), quiet.size(), -1);
      for (std::size_t i = 0; i < quiet.size(); ++i) {
        if (quiet[i].revents != 0 && !hear(*whose[i])) {
          leave(*whose[i]);
          return false;
        }
      }
    }
  }

  bool hear(Node& node) {
    device::Request request;
    if (!take(node.descriptor, &request, sizeof request) || request.magic != device::kProtocolMagic) return false;
    node.payload.clear();
    if (request.kind == device::RequestKind::kWrite || request.kind == device::RequestKind::kStore) {
      node.payload.resize(request.length);
      if (!take(node.descriptor, node.payload.data(), request.length)) return false;
    }
    ++requests_;
    if (request.kind == device::RequestKind::kHello) {
      device::Greeting greeting;
      greeting.node = node.device->node();
      greeting.nodes = static_cast<std::uint32_t>(nodes_.size());
      greeting.clock_mhz = 250;
      greeting.memory_address = node.device->memory_address();
      greeting.memory_bytes = node.device->memory_bytes();
      return reply(node, 0, {}, std::as_bytes(std::span(&greeting, 1)));
    }
    node.request = request;
    node.until = time_ + request.argument;
    return true;
  }

  bool reply(const Node& node, std::uint64_t value, ErrorCode code, std::span<const std::byte> bytes) const {
    device::Reply answer;
    answer.code = static_cast<std::uint32_t>(code);
    answer.value = value;
    answer.nanoseconds = time_;
    answer.length = bytes.size();
    return give(node.descriptor, &answer, sizeof answer) && give(node.descriptor, bytes.data(), bytes.size());
  }

  void serve(Node& node) {
    const device::Request request = *node.request;
    std::uint64_t value = 0;
    std::vector<std::byte> bytes;
    ErrorCode code = ErrorCode::kOk;
    try {
      switch (request.kind) {
        case device::RequestKind::kRead:
          value = node.device->read(static_cast<std::uint32_t>(request.argument));
          break;
        case device::RequestKind::kWrite: {
          std::vector<std::uint32_t> words(node.payload.size() / 4);
          std::memcpy(words.data(), node.payload.data(), node.payload.size());
          node.device->write(static_cast<std::uint32_t>(request.argument), words);
          break;
        }
        case device::RequestKind::kStore:
          node.device->store(request.argument, node.payload);
          break;
        case device::RequestKind::kLoad:
          bytes.resize(request.length);
          node.device->load(request.argument, bytes);
          break;
        case device::RequestKind::kWait:
          value = node.device->read(exchange::kStatus);
          if ((value & registers::kStatusCompletion) == 0 && time_ < node.until) return;
          break;
        default:
          leave(node);
          return;
      }
    } catch (const Error& error) {
      code = error.code();
      bytes.clear();
    }
    node.request.reset();
    if (!reply(node, value, code, bytes)) leave(node);
  }

  ThreadJob job_;
  std::vector<Node> nodes_;
  std::uint64_t time_ = 0;  ///< nanoseconds; a microsecond for each round
  std::uint64_t requests_ = 0;
};

}  // namespace unisono::test
