// Jobs of thousands of ranks on the loop network: each a thread that sleeps while it waits.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "driver/interface.hpp"
#include "network/loop/loop_poe.hpp"

namespace unisono::test {

/// A rank of a large job.
struct LargeRank {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  unisono_communicator* world = nullptr;
  loop::Job* job = nullptr;

  Engine& engine() const { return *driver::communicator_of(world)->context->endpoint()->engine; }
  loop::LoopNetwork& network() const {
    return dynamic_cast<loop::LoopPoe&>(*driver::communicator_of(world)->context->endpoint()->poe).network();
  }
  std::uint32_t sessions() const { return static_cast<std::uint32_t>(network().sessions()); }
};

/// Where ranks come together without sending anything. The last one does `then` before all go on.
class Meeting {
 public:
  explicit Meeting(std::uint32_t members) : members_(members) {}
  void come(const std::function<void()>& then = {}) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++came_ == members_) {
      if (then) then();
      came_ = 0;
      ++round_;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [&] { return round_ != round; });
  }

 private:
  const std::uint32_t members_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::uint32_t came_ = 0;
  std::uint64_t round_ = 0;
};

/// The largest of what all ranks say.
class Most {
 public:
  void see(std::uint64_t value) {
    std::uint64_t now = most_.load();
    while (value > now && !most_.compare_exchange_weak(now, value)) {
    }
  }
  std::uint64_t value() const { return most_.load(); }

 private:
  std::atomic<std::uint64_t> most_{0};
};

/// Bytes that are allocated in this process, but for stacks; 0 where that is not known.
inline std::uint64_t allocated_bytes() {
  const auto now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// Seconds since the first one asked.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Calls `body` on every rank. A rank that throws fails the test and ends its communicator; one that was ended just
/// stops.
inline void on_large_job(std::uint32_t size, const std::function<void(LargeRank&)>& body, double timeout = 60) {
  const auto shared = std::make_shared<driver::SharedJob>(size, driver::SharedJob::Carrier::kLoop);
  auto* const job = driver::handle_of<unisono_thread_job>(driver::ThreadJobs::instance().add(shared));
  std::mutex mutex;
  std::vector<std::string> failures;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      unisono_settings settings{};
      settings.struct_size = sizeof settings;
      settings.timeout_seconds = timeout;
      unisono_context* context = nullptr;
      LargeRank self{rank, size, nullptr, shared->loop()};
      const auto fail = [&](const std::string& what) {
        const std::lock_guard lock(mutex);
        failures.push_back("rank " + std::to_string(rank) + ": " + what);
      };
      if (unisono_thread_context(job, rank, &settings, &context) != 0 || unisono_world(context, &self.world) != 0) {
        fail(unisono_last_error());
        return;
      }
      try {
        body(self);
      } catch (const loop::Ended&) {
        unisono_abandon(context);
        return;
      } catch (const std::exception& error) {
        fail(error.what());
        unisono_communicator_revoke(self.world, "a rank has failed");
      }
      unisono_abandon(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  unisono_thread_job_free(job);
  for (std::size_t i = 0; i < std::min<std::size_t>(failures.size(), 5); ++i) ADD_FAILURE() << failures[i];
  EXPECT_EQ(failures.size(), 0U);
}

/// Throws what a function of the C interface has said.
inline void need(int result, const char* what) {
  if (result == 0) return;
  const std::string text = unisono_last_error();
  if (text.find("was ended from outside") != std::string::npos) throw loop::Ended();
  throw Error(static_cast<ErrorCode>(result), std::string(what) + ": " + text);
}

/// One request on a communicator, to its end.
inline void run(const LargeRank& self, unisono_communicator* on, CallRequest request) {
  request.communicator = driver::communicator_of(on)->number;
  self.engine().run(request);
}

template <class T>
Binding bytes_of_vector(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

/// The sum over all ranks of a vector whose element i on rank r is r * 3 + i, checked.
inline void sum_and_check(const LargeRank& self, unisono_communicator* on, std::uint32_t count) {
  std::uint32_t rank = 0, size = 0;
  need(unisono_communicator_rank(on, &rank), "rank");
  need(unisono_communicator_size(on, &size), "size");
  std::vector<std::int64_t> src(count), dst(count);
  for (std::uint32_t i = 0; i < count; ++i) src[i] = std::int64_t{rank} * 3 + i;
  CallRequest request;
  request.call.collective = Collective::kAllreduce;
  request.call.dtype = Datatype::kInt64;
  request.call.func = Func::kSum;
  request.call.count = count;
  request.src = bytes_of_vector(src);
  request.dst = bytes_of_vector(dst);
  run(self, on, request);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t right = std::int64_t{size} * (size - 1) / 2 * 3 + std::int64_t{size} * i;
    if (dst[i] != right) {
      throw std::runtime_error("element " + std::to_string(i) + " of a sum is " + std::to_string(dst[i]) + ", not " +
                               std::to_string(right));
    }
  }
}

/// Each rank sends its number and some words to the ranks `steps` after it, and nothing to others; checked.
inline void exchange_sparsely(const LargeRank& self, const std::vector<std::uint32_t>& steps) {
  const std::uint32_t size = self.size;
  VectorArguments vectors;
  std::vector<std::uint64_t> send_counts(size), recv_counts(size), send_at(size), recv_at(size);
  std::vector<std::uint32_t> src, dst;
  for (const std::uint32_t step : steps) {
    const std::uint32_t to = (self.rank + step) % size, from = (self.rank + size - step) % size;
    send_counts[to] = 1 + self.rank % 3;
    send_at[to] = src.size();
    for (std::uint32_t i = 0; i < send_counts[to]; ++i) src.push_back(self.rank * 16 + to * 7 + i);
    recv_counts[from] = 1 + from % 3;
    recv_at[from] = dst.size();
    dst.resize(dst.size() + recv_counts[from]);
  }
  vectors.send_counts = send_counts.data();
  vectors.recv_counts = recv_counts.data();
  vectors.send_displacements = send_at.data();
  vectors.recv_displacements = recv_at.data();
  CallRequest request;
  request.call.collective = Collective::kAlltoallv;
  request.call.dtype = Datatype::kInt32;
  request.vectors = &vectors;
  request.src = bytes_of_vector(src);
  request.dst = bytes_of_vector(dst);
  run(self, self.world, request);
  for (const std::uint32_t step : steps) {
    const std::uint32_t from = (self.rank + size - step) % size;
    for (std::uint32_t i = 0; i < recv_counts[from]; ++i) {
      if (dst[recv_at[from] + i] != from * 16 + self.rank * 7 + i) {
        throw std::runtime_error("rank " + std::to_string(from) + " has sent something else");
      }
    }
  }
}

}  // namespace unisono::test
