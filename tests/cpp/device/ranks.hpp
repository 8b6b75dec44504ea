// Runs one function on every rank of a job of threads, each with an engine on a device.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "cluster.hpp"
#include "platform/device/device_engine.hpp"
#include "platform/device/functional.hpp"
#include "platform/device/simulated.hpp"
#include "platform/join/job.hpp"

namespace unisono::test {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Where the devices of a job are.
enum class Way {
  kFunctional,  ///< in this process
  kSocket,      ///< behind protocol.hpp, with a firmware to load and hosts that talk to each other
};

/// How a job's engines are made.
struct Job {
  Way way = Way::kFunctional;
  EngineSettings settings = [] {
    EngineSettings made;
    made.eager_limit = made.segment_bytes = 4096;
    made.rx_buffer_count = 4;
    made.timeout = seconds(20);
    return made;
  }();
  std::uint64_t memory_bytes = std::uint64_t{1} << 26U;
  /// Of a rank's device; only where it is in this process.
  std::function<Capability(std::uint32_t rank)> capability = [](std::uint32_t) {
    return FunctionalDevice::usual_capability();
  };
  /// Stands before a rank's device.
  std::function<std::unique_ptr<Device>(std::uint32_t rank, std::unique_ptr<Device>)> wrap =
      [](std::uint32_t, std::unique_ptr<Device> device) { return device; };
};

/// A rank's view of the job. Communicator 0 has all ranks.
struct Rank {
  std::uint32_t rank;
  std::uint32_t size;
  DeviceEngine& engine;
  Agreement agreed;

  CallResult finish(CallId id) const {
    const CallResult result = engine.wait(id);
    engine.forget(id);
    return result;
  }
  CallResult run(const CallRequest& request) const { return finish(engine.submit(request)); }
};

inline std::vector<std::uint32_t> ranks_up_to(std::uint32_t size) {
  std::vector<std::uint32_t> all(size);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

/// Runs `body` on `size` ranks at once. What a rank throws is thrown here, once all have ended. Ranks leave together,
/// unless `body` returns false: then that rank leaves at once.
inline void run_ranks_that_may_leave(std::uint32_t size, const Job& job, const std::function<bool(Rank&)>& body) {
  ThreadJob network(size);  // of the devices, or among the hosts
  std::vector<std::unique_ptr<Poe>> endpoints(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) endpoints[rank] = network.endpoint(rank);
  std::vector<int> host_ends(size, -1);
  std::thread cluster;
  if (job.way == Way::kSocket) {
    std::vector<int> node_ends;
    for (int& end : host_ends) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("socketpair");
      end = pair[0];
      node_ends.push_back(pair[1]);
    }
    cluster = std::thread([node_ends] { FunctionalCluster(node_ends).run(); });
  }
  std::vector<std::exception_ptr> errors(size);
  std::vector<Agreement> all_capabilities(size);
  std::atomic<std::uint32_t> ready{0};
  std::atomic<std::uint32_t> running{size};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<DeviceEngine> engine;
      bool stays = true;
      bool joined = false;
      try {
        DeviceOptions options;
        options.settings = job.settings;
        options.nodes = ranks_up_to(size);
        std::unique_ptr<Device> device;
        if (job.way == Way::kSocket) {
          device = std::make_unique<SimulatedDevice>(host_ends[rank], seconds(30));
          for (std::uint32_t word = 0; word < 20; ++word) options.firmware.push_back(word * 0x01010101U + rank);
          options.hosts = endpoints[rank].get();
        } else {
          device = std::make_unique<FunctionalDevice>(*endpoints[rank], job.capability(rank), job.memory_bytes);
        }
        device = job.wrap(rank, std::move(device));
        engine = std::make_unique<DeviceEngine>(std::move(device), std::move(options));
        all_capabilities[rank] = engine->capabilities();
        Agreement agreed;
        joined = true;
        if (job.way == Way::kSocket) {
          const Agreement own = all_capabilities[rank];
          std::vector<Agreement> all;
          for (const auto& bytes : engine->exchange(std::as_bytes(std::span(&own, 1)), seconds(30))) {
            Agreement other;
            std::memcpy(static_cast<void*>(&other), bytes.data(), sizeof other);
            all.push_back(other);
          }
          agreed = agree(all);
        } else {
          for (++ready; ready < size;) std::this_thread::yield();
          agreed = agree(all_capabilities);
        }
        engine->create_communicator(0, 0, ranks_up_to(size), agreed);
        if (job.way == Way::kSocket) engine->start_together(seconds(30));
        Rank self{rank, size, *engine, agreed};
        stays = body(self);
      } catch (...) {
        errors[rank] = std::current_exception();
        if (!joined) ++ready;
      }
      --running;
      // Messages of this rank may still wait for space, and a cluster's time passes only while all its hosts wait.
      while (stays && engine && running > 0) {
        engine->progress();
        if (job.way == Way::kSocket) engine->pass(microseconds(20));
        std::this_thread::yield();
      }
      engine.reset();
      endpoints[rank].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (cluster.joinable()) cluster.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

inline void run_ranks(std::uint32_t size, const Job& job, const std::function<void(Rank&)>& body) {
  run_ranks_that_may_leave(size, job, [&](Rank& rank) {
    body(rank);
    return true;
  });
}

template <class T>
Binding bind(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

/// A request on 32-bit integers, without buffers.
inline CallRequest request(Collective collective, std::uint64_t count, std::uint32_t root = 0,
                           Func func = Func::kNone) {
  CallRequest made;
  made.call.collective = collective;
  made.call.dtype = Datatype::kInt32;
  made.call.count = count;
  made.call.root = root;
  made.call.func = func;
  return made;
}

inline CallRequest allreduce(std::vector<std::int32_t>& src, std::vector<std::int32_t>& dst) {
  CallRequest made = request(Collective::kAllreduce, src.size(), 0, Func::kSum);
  made.src = bind(src);
  made.dst = bind(dst);
  return made;
}

/// Different on every rank.
inline std::vector<std::int32_t> data_of(std::uint32_t rank, std::size_t count) {
  std::vector<std::int32_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int32_t>(i * 7 + rank * 1000 + 1);
  return data;
}

inline std::vector<std::int32_t> sum_of(std::uint32_t ranks, std::size_t count) {
  std::vector<std::int32_t> sum(count, 0);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto own = data_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += own[i];
  }
  return sum;
}

}  // namespace unisono::test
