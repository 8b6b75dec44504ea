// A send and a receive at once, and elements of the user's own. Every rank has different data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using Error = api::Error;

constexpr std::uint32_t kRanks = 3;

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

class SendRecv : public testing::TestWithParam<std::size_t> {};

TEST_P(SendRecv, ShiftsAroundACircle) {
  const std::size_t n = GetParam();
  on_ranks(kRanks, [&](const Communicator& world) {
    const std::uint32_t r = world.rank(), right = (r + 1) % kRanks, left = (r + 2) % kRanks;
    std::vector<double> received(n + 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(world.sendrecv(mine(r, n), right, received, left), static_cast<std::int64_t>(n));
      received.resize(n);
      EXPECT_EQ(received, mine(left, n));
      received.assign(n + 1, 0);
    }
  });
}

TEST_P(SendRecv, HasATagAndATypeForEachDirection) {
  const std::size_t n = GetParam();
  on_ranks(2, [&](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<double> doubles = mine(r, n), doubles_in(n);
    std::vector<std::int32_t> integers(doubles.begin(), doubles.end()), integers_in(n);
    if (r == 0) {
      world.sendrecv(doubles, 1, 4, integers_in, 1, 5);
      EXPECT_EQ(std::vector<double>(integers_in.begin(), integers_in.end()), mine(1, n));
    } else {
      world.sendrecv(integers, 0, 5, doubles_in, 0, 4);
      EXPECT_EQ(doubles_in, mine(0, n));
    }
  });
}

TEST_P(SendRecv, WithoutASendIsAReceiveWhoseLengthIsTold) {
  const std::size_t n = GetParam();
  on_ranks(2, [&](const Communicator& world) {
    for (int i = 0; i < 20; ++i) {  // at once, and after a wait
      if (world.rank() == 0) {
        world.send(mine(i, n), 1, 6);
        world.barrier();
        continue;
      }
      const bool is_there = i % 2 == 0 && n <= 40;  // a longer message is sent no sooner than it is received
      if (is_there) world.barrier();
      std::vector<double> into(n + 5, -1);
      unisono_call recv{};
      recv.struct_size = sizeof recv;
      recv.collective = UNISONO_RECV;
      recv.datatype = UNISONO_FP64;
      recv.tag = 6;
      recv.count = static_cast<std::int64_t>(into.size());
      recv.dst = into.data();
      recv.dst_bytes = into.size() * sizeof(double);
      std::int64_t came = -1;
      ASSERT_EQ(unisono_sendrecv(world.handle(), nullptr, &recv, &came), 0) << unisono_last_error();
      EXPECT_EQ(came, static_cast<std::int64_t>(n));
      EXPECT_EQ(into.back(), -1);
      into.resize(n);
      EXPECT_EQ(into, mine(i, n));
      recv.collective = UNISONO_ALLREDUCE;
      EXPECT_NE(unisono_sendrecv(world.handle(), nullptr, &recv, &came), 0);
      EXPECT_THAT(unisono_last_error(), HasSubstr("the call given as recv is of collective"));
      if (!is_there) world.barrier();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Lengths, SendRecv, testing::Values(0, 1, 40, 3000, 200'000));

TEST(SendRecvErrors, AreFoundBeforeAnythingIsSent) {
  on_ranks(2, [](const Communicator& world) {
    const std::uint32_t other = 1 - world.rank();
    std::vector<double> data(8, world.rank());
    const std::span<double> all(data);
    EXPECT_THAT(
        error_of([&] { world.sendrecv(all.first(5), other, all.last(5), other); }, ErrorCode::kOverlappingBuffers),
        HasSubstr("sendrecv: src (40 bytes) and dst (40 bytes) overlap"));
    EXPECT_THAT(error_of([&] { world.sendrecv(all.first(4), other, all.last(4), 2); }, ErrorCode::kInvalidRoot),
                HasSubstr("recv: peer 2"));
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = UNISONO_BCAST;
    EXPECT_EQ(unisono_sendrecv(world.handle(), &call, &call, nullptr), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_THAT(unisono_last_error(), HasSubstr("sendrecv: the call given as send is of collective 7"));
    EXPECT_EQ(unisono_sendrecv(world.handle(), nullptr, &call, nullptr), static_cast<int>(ErrorCode::kInvalidArgument));
    // Nothing was: the next messages are these.
    world.sendrecv(all.first(4), other, all.last(4), other);
    EXPECT_EQ(data[7], other);
  });
}

/// No datatype has these.
struct Particle {
  std::array<char, 5> name;
  std::int16_t charge;
};

unisono_call of_particles(unisono_collective collective, std::vector<Particle>& dst, std::int64_t count) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = UNISONO_BYTE;
  call.element_bytes = sizeof(Particle);
  call.count = count;
  call.dst = dst.data();
  call.dst_bytes = dst.size() * sizeof(Particle);
  return call;
}

TEST(OwnElements, AreCounted) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const std::vector<Particle> own(r + 1, {{'p', static_cast<char>('0' + r)}, static_cast<std::int16_t>(-5 * r)});
    const std::array<std::int64_t, kRanks> counts{1, 2, 3}, places{5, 3, 0};
    std::vector<Particle> all(6);
    unisono_call call = of_particles(UNISONO_ALLGATHERV, all, 0);
    call.src = own.data();
    call.src_bytes = own.size() * sizeof(Particle);
    call.recv_counts = counts.data();
    call.recv_displacements = places.data();
    ASSERT_EQ(unisono_run(world.handle(), &call), 0) << unisono_last_error();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int from = i < 3 ? 2 : i < 5 ? 1 : 0;
      EXPECT_EQ(all[i].name[1], '0' + from);
      EXPECT_EQ(all[i].charge, -5 * from);
    }
    all.resize(5);
    call.dst_bytes = all.size() * sizeof(Particle);
    EXPECT_EQ(unisono_run(world.handle(), &call), static_cast<int>(ErrorCode::kBufferTooSmall));
    EXPECT_THAT(unisono_last_error(),
                HasSubstr("dst holds 5 elements (40 bytes); the call needs 6 elements (48 bytes)"));
  });
}

TEST(OwnElements, AreMovedOnly) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<Particle> data(4);
    unisono_call call = of_particles(UNISONO_ALLREDUCE, data, 4);
    call.op = UNISONO_BITWISE_OR;
    call.in_place = 1;
    EXPECT_EQ(unisono_run(world.handle(), &call), static_cast<int>(ErrorCode::kInvalidDatatype));
    EXPECT_THAT(unisono_last_error(), HasSubstr("allreduce: element_bytes is 8; the operation works on elements of a"));
    call = of_particles(UNISONO_BCAST, data, 4);
    call.datatype = UNISONO_INT64;
    EXPECT_EQ(unisono_run(world.handle(), &call), static_cast<int>(ErrorCode::kInvalidDatatype));
    EXPECT_THAT(unisono_last_error(), HasSubstr("elements of the user's own are of datatype byte (1)"));
    call = of_particles(UNISONO_BCAST, data, 5);
    EXPECT_EQ(unisono_run(world.handle(), &call), static_cast<int>(ErrorCode::kBufferTooSmall));
    EXPECT_THAT(unisono_last_error(), HasSubstr("dst holds 4 elements (32 bytes); the call needs 5 elements"));
  });
}

}  // namespace
}  // namespace unisono::test
