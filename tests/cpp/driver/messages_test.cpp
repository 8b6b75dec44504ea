// Wildcards, statuses and probes through the front doors in C and C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using Error = api::Error;

std::vector<double> mine(std::uint32_t rank, std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1000.0 * rank);
  return values;
}

std::string error_of(const std::function<void()>& body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Messages, OfAnybodySayWhatTheyAre) {
  constexpr std::uint32_t kRanks = 3;
  on_ranks(kRanks, [&](const Communicator& world) {
    const std::uint32_t rank = world.rank();
    if (rank != 0) {
      for (std::size_t n : {7UL, 3000UL}) world.send(mine(rank, n + rank), 0, 40 + rank);
      return;
    }
    EXPECT_FALSE(world.iprobe(api::kAnySource, 99));
    std::vector<std::size_t> next(kRanks, 0);
    for (int i = 0; i < 4; ++i) {
      const api::Status found = world.probe();
      EXPECT_EQ(found.datatype, UNISONO_FP64);
      std::vector<double> in(4000);
      api::Status came;
      if (i % 2 == 0) {
        came = world.recv(in, api::kAnySource, api::kAnyTag);
      } else {
        api::Request request = world.recv_async(in, found.source, api::kAnyTag);
        request.wait();
        came = request.status();
        EXPECT_EQ(came.count, request.received());
      }
      const std::size_t n = (next[came.source]++ == 0 ? 7 : 3000) + came.source;
      EXPECT_EQ(came.tag, 40 + came.source);
      EXPECT_EQ(came.count, static_cast<std::int64_t>(n));
      EXPECT_EQ(came.bytes, 8 * n);
      in.resize(n);
      EXPECT_EQ(in, mine(came.source, n));
    }
    EXPECT_FALSE(world.iprobe());
  });
}

TEST(Messages, ElementsOfAStatusAreThoseOfTheReceive) {
  on_ranks(2, [&](const Communicator& world) {
    if (world.rank() == 1) {
      world.send(mine(1, 6), 0);
      return;
    }
    std::vector<std::byte> in(100);
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = UNISONO_RECV;
    call.datatype = UNISONO_FP64;
    call.root = UNISONO_ANY_SOURCE;
    call.tag = UNISONO_ANY_TAG;
    call.count = 12;
    call.dst = in.data();
    call.dst_bytes = in.size();
    unisono_status status{};
    EXPECT_EQ(unisono_recv(world.handle(), &call, &status), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_THAT(unisono_last_error(), HasSubstr("struct_size is 0"));
    status.struct_size = sizeof status;
    ASSERT_EQ(unisono_recv(world.handle(), &call, &status), 0) << unisono_last_error();
    EXPECT_EQ(status.count, 6);
    EXPECT_EQ(status.source, 1);
    EXPECT_EQ(status.bytes, 48U);
  });
}

TEST(Messages, WhatIsWrongIsSaid) {
  on_ranks(1, [&](const Communicator& world) {
    std::vector<double> data(3);
    EXPECT_THAT(error_of([&] { world.recv(data, -1); }, ErrorCode::kInvalidRoot), HasSubstr("peer -1 was given"));
    EXPECT_THAT(error_of([&] { world.recv(data, 0, -1); }, ErrorCode::kInvalidArgument), HasSubstr("tag -1 was given"));
    EXPECT_THAT(error_of([&] { world.recv(data, api::kAnyTag, api::kAnySource); }, ErrorCode::kInvalidRoot),
                HasSubstr("peer -2000 was given"));
    EXPECT_THAT(error_of([&] { world.probe(3); }, ErrorCode::kInvalidRoot), HasSubstr("probe: source 3 was given"));
    EXPECT_THAT(error_of([&] { world.probe(0, 0, 0.05); }, ErrorCode::kTimeout), HasSubstr("timed out after 50 ms"));
  });
}

// Both threads look for messages of one peer on one lane: one that blocks, and one that starts receives.
TEST(Messages, OfOnePeerAreReceivedByTwoThreadsAtOnce) {
  constexpr std::int64_t kMessages = 500;
  on_ranks(2, [&](const Communicator& world) {
    const std::uint32_t other = 1 - world.rank();
    const auto value = [](std::uint32_t of, int tag, std::int64_t i) { return 1000 * (10 * of + tag) + i; };
    std::thread blocks([&] {
      std::vector<std::int64_t> out(1), in(1);
      for (std::int64_t i = 0; i < kMessages; ++i) {
        out[0] = value(world.rank(), 1, i);
        world.send(out, other, 1);
        world.recv(in, other, 1);
        EXPECT_EQ(in[0], value(other, 1, i));
      }
    });
    std::vector<std::int64_t> out(1), in(1);
    for (std::int64_t i = 0; i < kMessages; ++i) {
      out[0] = value(world.rank(), 2, i);
      api::Request sending = world.send_async(out, other, 2);
      api::Request receiving = world.recv_async(in, other, 2);
      receiving.wait();
      sending.wait();
      EXPECT_EQ(in[0], value(other, 2, i));
    }
    blocks.join();
  });
}

}  // namespace
}  // namespace unisono::test
