#include "switch/service/worker.hpp"

#include <poll.h>

#include <array>
#include <exception>
#include <utility>

namespace unisono::slots {

Worker::Worker(std::uint16_t port, const udp::ImpairmentSettings& impairment)
    : impaired_(impairment.any()), datagrams_(port, datagram_bytes(kMostPayload), impairment) {}

Worker::~Worker() { stop(); }

void Worker::start() {
  thread_ = std::thread([this] { work(); });
}

void Worker::stop() noexcept {
  stopped_.store(true);
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

void Worker::add(std::shared_ptr<HostedPool> pool) {
  const Turn turn(*this);
  const std::uint64_t number = pool->number();
  pools_.insert_or_assign(number, std::move(pool));
}

void Worker::remove(std::uint64_t number) {
  std::shared_ptr<HostedPool> last;  // its memory goes without the lock
  const Turn turn(*this);
  const auto found = pools_.find(number);
  if (found == pools_.end()) return;
  counters_.frames_out += found->second->traffic().frames_out;
  last = std::move(found->second);
  pools_.erase(found);
}

WorkerCounters Worker::counters() {
  const Turn turn(*this);
  WorkerCounters all = counters_;
  for (const auto& [number, pool] : pools_) all.frames_out += pool->traffic().frames_out;
  return all;
}

void Worker::work() {
  // Datagrams that a bad network holds back for a while go with a later flush.
  const int patience = impaired_ ? 1 : -1;
  std::array<pollfd, 2> watched{{{datagrams_.descriptor(), POLLIN, 0}, {bell_.descriptor(), POLLIN, 0}}};
  while (!stopped_.load()) {
    poll(watched.data(), watched.size(), patience);
    if ((watched[1].revents & POLLIN) != 0) bell_.quiet();
    while (take_batch() && !stopped_.load()) {
    }
  }
}

/// False if nothing had come.
bool Worker::take_batch() {
  while (wanted_.load() != 0) std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  const bool more = datagrams_.receive(
      [this](std::span<std::byte> datagram, const tcp::SystemAddress& from) { take(datagram, from); });
  datagrams_.flush();
  return more;
}

void Worker::take(std::span<std::byte> datagram, const tcp::SystemAddress& from) {
  const std::optional<Labels> labels = labels_of(datagram);
  if (!labels) {
    ++counters_.garbage;
    return;
  }
  const auto found = pools_.find(labels->pool);
  if (found == pools_.end()) {
    ++counters_.strangers;
    return;
  }
  try {
    if (found->second->take(datagram, *labels, from)) {
      ++counters_.frames_in;
    } else {
      ++counters_.forged;
    }
  } catch (const std::exception&) {
    // One pool's trouble is no other's. Its members fail at their deadlines.
    ++counters_.broken;
  }
}

}  // namespace unisono::slots
