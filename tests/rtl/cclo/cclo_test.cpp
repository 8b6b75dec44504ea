// The whole engine, from call descriptors to results, on a simulated network, against the interpreter.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "tests/rtl/cclo/call_case.hpp"
#include "tests/rtl/cclo/job.hpp"

namespace unisono::rtl {
namespace {

Job& job_of(std::uint32_t size) {
  static std::array<std::unique_ptr<Job>, 9> jobs;
  if (!jobs[size]) jobs[size] = std::make_unique<Job>(size);
  return *jobs[size];
}

std::uint32_t next_call_id() {
  static std::uint32_t id = 0;
  return ++id;
}

TEST(Cclo, AnswersANop) {
  Job& job = job_of(2);
  CallDescriptor call;
  call.collective = Collective::kNop;
  call.call_id = next_call_id();
  job.host(1).submit(call);
  EXPECT_EQ(job.host(1).completion(1000), std::pair(call.call_id, std::uint16_t{0}));
}

TEST(Cclo, RefusesAnUnknownAlgorithm) {
  Job& job = job_of(2);
  CallDescriptor call;
  call.collective = Collective::kBarrier;
  call.algorithm = 250;
  call.communicator = kPlace;
  call.call_id = next_call_id();
  job.host(0).submit(call);
  const auto [id, code] = job.host(0).completion(10000);
  EXPECT_EQ(id, call.call_id);
  EXPECT_EQ(code, static_cast<std::uint16_t>(ErrorCode::kUnknownAlgorithm));
}

TEST(Cclo, SeveralLongSendsToOnePeerAreToldApart) {
  // All are granted at once; receives stand in another order than sends.
  constexpr std::uint32_t kMessages = 4;
  constexpr std::uint64_t kCount = 20'000;
  Job& job = job_of(2);
  std::vector<std::uint32_t> ids(2 * kMessages);
  const auto place = [](std::uint32_t message) { return sim::Node::kMemoryAddress + message * (kCount * 4 + 64); };
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    std::vector<std::int32_t> data(kCount);
    for (std::size_t k = 0; k < kCount; ++k) data[k] = static_cast<std::int32_t>(k * 5 + i * 1'000'003);
    job.cluster().node(0).store(place(i), std::as_bytes(std::span(data)));
    CallDescriptor call;
    call.dtype = Datatype::kInt32;
    call.communicator = kPlace;
    call.count = kCount;
    call.collective = Collective::kSend;
    call.root = 1;
    call.tag = i;
    call.src_address = place(i);
    call.src_bytes = kCount * 4;
    call.call_id = ids[i] = next_call_id();
    job.host(0).submit(call);
    call.collective = Collective::kRecv;
    call.root = 0;
    call.tag = kMessages - 1 - i;
    call.src_address = call.src_bytes = 0;
    call.dst_address = place(call.tag);
    call.dst_bytes = kCount * 4;
    call.call_id = ids[kMessages + i] = next_call_id();
    job.host(1).submit(call);
  }
  for (std::uint32_t node = 0; node < 2; ++node) {
    for (std::uint32_t i = 0; i < kMessages; ++i) EXPECT_EQ(job.host(node).completion(kLimit).second, 0) << node;
  }
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    std::vector<std::int32_t> got(kCount), sent(kCount);
    job.cluster().node(1).load(place(i), std::as_writable_bytes(std::span(got)));
    job.cluster().node(0).load(place(i), std::as_writable_bytes(std::span(sent)));
    EXPECT_EQ(got, sent) << "message " << i;
  }
}

class Calls : public testing::TestWithParam<const Algorithm*> {};

void check(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count) {
  const Datatype dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  const auto tested = CallCase::make(algorithm, ranks, count, dtype, kPlace, next_call_id(), count + ranks, 0);
  if (!tested) return;
  Job& job = job_of(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    tested->place(job.cluster().node(rank), rank);
    job.host(rank).submit(tested->descriptor(rank));
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(job.host(rank).completion(kLimit), std::pair(tested->id(), std::uint16_t{0})) << "rank " << rank;
  }
  const auto expected = tested->expected();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(tested->result(job.cluster().node(rank), rank) == expected[rank])
        << ranks << " ranks, " << count << " elements, rank " << rank;
  }
}

TEST_P(Calls, AgreeWithTheInterpreter) {
  for (const std::uint32_t ranks : {3U, 5U}) {
    for (const std::uint64_t count : {1U, 6001U}) {
      check(*GetParam(), ranks, count);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Calls, testing::ValuesIn(CallCase::algorithms()), [](const auto& tested) {
  return std::string(name_of(tested.param->collective)) + "_" + tested.param->name;
});

}  // namespace
}  // namespace unisono::rtl
