// Runs a function on every rank of a thread job.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <unisono/unisono.hpp>
#include <vector>

namespace unisono::test {

/// Calls `body(world)` on `size` ranks that are threads. An exception on a rank fails the test and, so that nobody
/// waits for that rank, revokes its communicator.
inline void on_ranks(std::uint32_t size, const std::function<void(Communicator)>& body, double timeout_seconds = 30) {
  const ThreadJob job(size);
  std::vector<std::thread> threads;
  std::vector<std::string> failures(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Context context(
            job, rank,
            {.eager_limit = 0, .segment_bytes = 0, .rx_buffer_count = 0, .timeout_seconds = timeout_seconds});
        Communicator world = context.world();
        try {
          body(world);
        } catch (...) {
          world.revoke("rank " + std::to_string(rank) + " failed");
          throw;
        }
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ(failures[rank], "") << "on rank " << rank;
}

}  // namespace unisono::test
