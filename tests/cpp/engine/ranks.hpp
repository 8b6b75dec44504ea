// Runs one function on every rank of a job of threads, each with an engine of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "collectives/algorithm.hpp"
#include "engine/engine.hpp"
#include "platform/join/job.hpp"

namespace unisono::test {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A rank's view of the job. Communicator 0 has all ranks.
struct Rank {
  std::uint32_t rank;
  std::uint32_t size;
  Engine& engine;
  Poe& poe;
  Agreement agreed;

  /// Submits, waits and forgets; throws Error if the call fails.
  CallResult run(const CallRequest& request) const {
    const CallId id = engine.submit(request);
    return finish(id);
  }
  CallResult finish(CallId id) const {
    CallResult result = engine.wait(id);
    engine.forget(id);
    if (result.code != ErrorCode::kOk) throw Error(result.code, result.message);
    return result;
  }
};

/// Settings under which a lost message fails a test soon.
inline EngineSettings quick_settings() {
  EngineSettings settings;
  settings.timeout = seconds(60);
  return settings;
}
/// The same for engines that exchange messages only, so that a test can forge or read these.
inline EngineSettings message_settings() {
  EngineSettings settings = quick_settings();
  settings.lanes = false;
  return settings;
}

/// Runs `body` on `size` ranks at once. What a rank throws is thrown here, once all have ended. Ranks leave
/// together: none goes before all have finished, as in a program that ends in good order.
inline void run_ranks(std::uint32_t size, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  ThreadJob job(size);
  std::vector<std::unique_ptr<Poe>> networks(size);
  std::vector<std::unique_ptr<Engine>> engines(size);
  std::vector<Agreement> all_capabilities;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    networks[rank] = job.endpoint(rank);
    engines[rank] = std::make_unique<NativeEngine>(*networks[rank], settings);
    all_capabilities.push_back(engines[rank]->capabilities());
  }
  const Agreement agreed = agree(all_capabilities);
  std::vector<std::uint32_t> endpoints(size);
  std::iota(endpoints.begin(), endpoints.end(), 0U);
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> running{size};
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        engines[rank]->create_communicator(0, 0, endpoints, agreed);
        Rank self{rank, size, *engines[rank], *networks[rank], agreed};
        body(self);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
      // Messages of this rank may still wait for space, and peers' puts and gets for service.
      --running;
      while (running > 0) {
        engines[rank]->progress();
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

template <class T>
Binding bind(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
constexpr Datatype datatype_of();
template <>
constexpr Datatype datatype_of<std::int32_t>() {
  return Datatype::kInt32;
}
template <>
constexpr Datatype datatype_of<std::int64_t>() {
  return Datatype::kInt64;
}
template <>
constexpr Datatype datatype_of<float>() {
  return Datatype::kFp32;
}
template <>
constexpr Datatype datatype_of<double>() {
  return Datatype::kFp64;
}

/// A request of the collective, without buffers.
template <class T>
CallRequest request(Collective collective, std::uint64_t count, std::uint32_t root = 0, Func func = Func::kNone) {
  CallRequest made;
  made.call.collective = collective;
  made.call.dtype = datatype_of<T>();
  made.call.count = count;
  made.call.root = root;
  made.call.func = func;
  return made;
}

}  // namespace unisono::test
