#include "switch/service/worker.hpp"

#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace unisono::slots {

Worker::Worker(const tcp::Address& at, const udp::ImpairmentSettings& impairment)
    : impaired_(impairment.any()), datagrams_(at, datagram_bytes(kMostPayload), impairment) {}

Worker::~Worker() { stop(); }

void Worker::start() {
  thread_ = std::thread([this] { work(); });
}

void Worker::stop() noexcept {
  stopped_.store(true);
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

void Worker::add(std::shared_ptr<HostedPool> pool, const PoolId& job) {
  const Turn turn(*this);
  const std::uint64_t number = pool->number();
  pools_[number] = {std::move(pool), fair_share_.enter(job)};
}

void Worker::remove(std::uint64_t number) {
  std::shared_ptr<HostedPool> last;  // its memory goes without the lock
  const Turn turn(*this);
  const auto found = pools_.find(number);
  if (found == pools_.end()) return;
  fair_share_.leave(found->second.share);
  counters_.frames_out += found->second.pool->traffic().frames_out;
  last = std::move(found->second.pool);
  pools_.erase(found);
}

WorkerCounters Worker::counters() {
  const Turn turn(*this);
  look_for_losses();
  WorkerCounters all = counters_;
  for (const auto& [number, hosted] : pools_) all.frames_out += hosted.pool->traffic().frames_out;
  return all;
}

void Worker::work() {
  // Datagrams that a bad network holds back for a while go with a later flush.
  const int patience = impaired_ ? 1 : -1;
  std::array<pollfd, 2> watched{{{datagrams_.descriptor(), POLLIN, 0}, {bell_.descriptor(), POLLIN, 0}}};
  while (!stopped_.load()) {
    poll(watched.data(), watched.size(), patience);
    if ((watched[1].revents & POLLIN) != 0) bell_.quiet();
    // Where something came there may soon be more.
    for (int idle = 0; idle < kIdleLooks && !stopped_.load();) {
      const bool waited = give_way_();
      if (take_batch()) {
        idle = 0;
      } else if (waited) {
        ++idle;
      } else {
        break;
      }
    }
  }
}

/// False if nothing had come.
bool Worker::take_batch() {
  while (wanted_.load() != 0) std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  std::size_t came = 0;
  const bool more = 0 != datagrams_.receive([&](std::span<std::byte> datagram, const tcp::SystemAddress& from) {
    ++came;
    take(datagram, from);
  });
  datagrams_.flush();
  // Only a full queue loses anything, and of that a whole batch comes.
  if (came == Datagrams::kBatch) look_for_losses();
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
  if (!fair_share_.takes(found->second.share)) {
    ++counters_.over_share;
    return;
  }
  try {
    if (found->second.pool->take(datagram, *labels, from)) {
      ++counters_.frames_in;
    } else {
      ++counters_.forged;
    }
  } catch (const std::exception&) {
    // One pool's trouble is no other's. Its members fail at their deadlines.
    ++counters_.broken;
  }
}

/// Asks the system how many datagrams it had no room for.
void Worker::look_for_losses() {
  std::array<std::uint32_t, SK_MEMINFO_VARS> of_socket{};
  socklen_t bytes = sizeof of_socket;
  if (getsockopt(datagrams_.descriptor(), SOL_SOCKET, SO_MEMINFO, of_socket.data(), &bytes) != 0) return;
  const std::uint32_t lost = of_socket[SK_MEMINFO_DROPS];
  calm_batches_ = lost != static_cast<std::uint32_t>(counters_.lost) ? 0 : std::min(calm_batches_ + 1, kCalm);
  counters_.lost += lost - static_cast<std::uint32_t>(counters_.lost);  // it may begin at 0 again
  fair_share_.press(calm_batches_ < kCalm);
}

}  // namespace unisono::slots
