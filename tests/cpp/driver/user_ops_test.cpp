// Operators of the user through the C and C++ interfaces, on ranks that are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "unisono/unisono.hpp"

namespace unisono::test {
namespace {

constexpr std::uint32_t kRanks = 4;

template <class Body>
void run(Body body) {
  unisono_thread_job* job = nullptr;
  ASSERT_EQ(unisono_thread_job_create(kRanks, &job), 0) << unisono_last_error();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      unisono_context* context = nullptr;
      unisono_communicator* world = nullptr;
      ASSERT_EQ(unisono_thread_context(job, rank, nullptr, &context), 0) << unisono_last_error();
      ASSERT_EQ(unisono_world(context, &world), 0);
      body(rank, world);
      EXPECT_EQ(unisono_finalize(context), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  unisono_thread_job_free(job);
}

unisono_call allreduce(const std::vector<double>& src, std::vector<double>& dst, unisono_op op) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_FP64;
  call.op = op;
  call.count = static_cast<std::int64_t>(src.size());
  call.src = src.data();
  call.src_bytes = src.size() * sizeof(double);
  call.dst = dst.data();
  call.dst_bytes = dst.size() * sizeof(double);
  call.timeout_seconds = 20;
  return call;
}

/// a * factor + b. With the factor 0 it is "the last", which associates and does not commute.
int last(const void* a, const void* b, void* out, std::uint64_t count, unisono_datatype datatype, void* context) {
  EXPECT_EQ(datatype, UNISONO_FP64);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0U);
  const double factor = *static_cast<const double*>(context);
  for (std::uint64_t i = 0; i < count; ++i) {
    static_cast<double*>(out)[i] = factor * static_cast<const double*>(a)[i] + static_cast<const double*>(b)[i];
  }
  return 0;
}

TEST(UserOps, FoldInRankOrder) {
  double factor = 0;
  const UserOp op("last", &last, &factor, false);
  run([&](std::uint32_t rank, unisono_communicator* world) {
    for (const std::size_t count : {1, 7, 3000}) {
      std::vector<double> src(count);
      std::vector<double> dst(count);
      std::iota(src.begin(), src.end(), 10000.0 * rank);
      const unisono_call call = allreduce(src, dst, static_cast<int>(Op(op)));
      ASSERT_EQ(unisono_run(world, &call), 0) << unisono_last_error();
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(dst[i], 10000.0 * (kRanks - 1) + static_cast<double>(i));
    }
  });
}

TEST(UserOps, AFailureFailsTheCallAndNamesTheOperator) {
  const UserOp op("refuses", [](const void*, const void*, void*, std::uint64_t, int, void*) { return 7; });
  run([&](std::uint32_t rank, unisono_communicator* world) {
    std::vector<double> src(10, rank);
    std::vector<double> dst(10);
    const unisono_call call = allreduce(src, dst, static_cast<int>(Op(op)));
    EXPECT_NE(unisono_run(world, &call), 0);
    EXPECT_THAT(unisono_last_error(), testing::HasSubstr("\"refuses\" failed and returned 7"));
    // All say which call it was, who failed first and who was told.
    EXPECT_THAT(unisono_last_error(), testing::StartsWith("allreduce (communicator 0, rank " + std::to_string(rank) +
                                                          ", sequence 0, algorithm "));
  });
}

TEST(UserOps, AFunctionCanSayWhyItFails) {
  const UserOp op("explains", [](const void*, const void*, void*, std::uint64_t, int, void*) {
    return unisono_op_failed("no such\nsum, in words that end here");
  });
  const UserOp wordy("wordy", [](const void*, const void*, void*, std::uint64_t, int, void*) {
    return unisono_op_failed((std::string(199, 'x') + "\xc3\xa4 and more").c_str());
  });
  run([&](std::uint32_t rank, unisono_communicator* world) {
    std::vector<double> src(10, rank);
    std::vector<double> dst(10);
    unisono_call call = allreduce(src, dst, static_cast<int>(Op(wordy)));
    call.collective = UNISONO_COMBINE;
    EXPECT_NE(unisono_run(world, &call), 0);
    EXPECT_THAT(unisono_last_error(), testing::EndsWith(": " + std::string(199, 'x') + " ..."));
    call = allreduce(src, dst, static_cast<int>(Op(op)));
    EXPECT_NE(unisono_run(world, &call), 0);
    EXPECT_THAT(unisono_last_error(), testing::HasSubstr("\"explains\" failed: no such sum, in words that end here"));
  });
}

TEST(UserOps, ArgumentsAreChecked) {
  unisono_op op = 0;
  EXPECT_NE(unisono_op_create(nullptr, &last, nullptr, 1, &op), 0);
  EXPECT_THAT(unisono_last_error(), testing::HasSubstr("name is null"));
  EXPECT_NE(unisono_op_create("x", nullptr, nullptr, 1, &op), 0);
  EXPECT_THAT(unisono_last_error(), testing::HasSubstr("function is null"));
  EXPECT_NE(unisono_op_free(UNISONO_SUM), 0);
  for (const int number : {999, -1, 30}) {
    EXPECT_NE(unisono_op_free(number), 0);
    EXPECT_THAT(unisono_last_error(), testing::StartsWith("op " + std::to_string(number) + " is none"));
  }
  ASSERT_EQ(unisono_op_create("x", &last, nullptr, 1, &op), 0);
  EXPECT_NE(unisono_op_create("x", &last, nullptr, 0, &op), 0);
  EXPECT_EQ(unisono_op_free(op), 0);
  EXPECT_NE(unisono_op_free(op), 0);
}

}  // namespace
}  // namespace unisono::test
