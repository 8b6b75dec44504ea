// A thread with a socket of its own, and the pools whose datagrams come there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "switch/datagrams.hpp"
#include "switch/service/bell.hpp"
#include "switch/service/fair_share.hpp"
#include "switch/service/give_way.hpp"
#include "switch/service/hosted_pool.hpp"

namespace unisono::slots {

/// What has come to a worker, and what it has thrown away.
struct WorkerCounters {
  std::uint64_t frames_in = 0;   ///< datagrams of pools
  std::uint64_t frames_out = 0;  ///< of pools that were freed; those of others stand in their traffic
  std::uint64_t garbage = 0;     ///< too short to be any
  std::uint64_t strangers = 0;   ///< of no pool that is here: it was freed, or is not made yet
  std::uint64_t forged = 0;      ///< name a pool, but none of its members has made them
  std::uint64_t broken = 0;      ///< ended in an error of the switch itself
  std::uint64_t over_share = 0;  ///< of jobs that sent more than their part while datagrams were lost
  std::uint64_t lost = 0;        ///< by the system, since the worker did not come after
};

/// The lock is taken once for each batch of datagrams, and by others to add, remove and look at pools.
class Worker {
 public:
  /// Takes the UDP port, at this address; 0: any. Throws Error(kBootstrap) if it is taken.
  Worker(const tcp::Address& at, const udp::ImpairmentSettings& impairment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  /// Ends the thread, and waits for that. May be called again.
  void stop() noexcept;

  std::uint16_t port() const { return datagrams_.port(); }
  /// For addresses (thread-safe) and to make pools with; only the worker sends by it.
  Datagrams& datagrams() { return datagrams_; }

  void add(std::shared_ptr<HostedPool> pool, const PoolId& job);
  void remove(std::uint64_t number);
  WorkerCounters counters();
  /// Runs `work` while the thread does not look at pools. It should be short.
  template <class Work>
  auto with_lock(Work&& work) {
    const Turn turn(*this);
    return work();
  }

 private:
  /// After so many full batches in which nothing was lost, the queue is not full any more.
  static constexpr std::uint32_t kCalm = 64;
  /// So many looks in a row find nothing before the thread sleeps: some 30 microseconds, if nobody else runs.
  static constexpr int kIdleLooks = 30;

  /// The lock, for others than the thread. The thread takes it again so soon after a batch that nobody else might ever
  /// get it; so it waits for those who want it.
  struct Turn {
    explicit Turn(Worker& owner) : worker(owner) {
      worker.wanted_.fetch_add(1);
      worker.mutex_.lock();
      worker.wanted_.fetch_sub(1);
    }
    ~Turn() { worker.mutex_.unlock(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Worker& worker;
  };
  void work();
  bool take_batch();
  void take(std::span<std::byte> datagram, const tcp::SystemAddress& from);
  void look_for_losses();

  struct Hosted {
    std::shared_ptr<HostedPool> pool;
    std::uint32_t share = 0;  ///< of its job
  };
  const bool impaired_;
  Datagrams datagrams_;
  Bell bell_;
  GiveWay give_way_;
  std::mutex mutex_;
  std::atomic<unsigned> wanted_{0};
  std::atomic<bool> stopped_{false};
  std::unordered_map<std::uint64_t, Hosted> pools_;
  FairShare fair_share_;
  std::uint32_t calm_batches_ = kCalm;  ///< full ones in a row in which the system has lost nothing
  WorkerCounters counters_;
  std::thread thread_;
};

}  // namespace unisono::slots
