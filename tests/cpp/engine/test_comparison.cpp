// Whether two ranks have made the same calls, from what their flight records hold.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/user_op.hpp"
#include "engine/call_comparison.hpp"
#include "engine/call_order.hpp"
#include "engine/recorder.hpp"

namespace unisono::cclo {
namespace {

Call bcast(std::uint64_t count, std::uint32_t root) {
  Call call;
  call.collective = Collective::kBcast;
  call.dtype = Datatype::kFp32;
  call.count = count;
  call.root = root;
  call.size = 2;
  return call;
}

/// One rank's side: the order of its calls, and its record.
struct Side {
  explicit Side(std::uint32_t rank) : records(std::make_unique<CommunicatorRecord[]>(kRecordedCommunicators)) {
    recorder = std::make_unique<CallRecorder>(records.get(), 3, 1, rank, 2);
  }
  void make(const Call& call, std::uint32_t op = 0, double post_scale = 1) {
    const std::uint32_t signature = signature_of(call, {.op = op, .post_scale = post_scale});
    const CallOrder::Place place = order.enter_alone(signature);
    recorder->end(recorder->begin(RecordEntry::of(call, signature, 0, post_scale), place.sequence),
                  RecordedState::kEnded);
  }
  void leave() { recorder->leave(order.next(), order.digest()); }
  SeenCommunicator seen() const { return *read(recorder->record()); }

  std::unique_ptr<CommunicatorRecord[]> records;
  std::unique_ptr<CallRecorder> recorder;
  CallOrder order;
};

TEST(CallOrderTest, DigestsAreEqualExactlyForEqualCalls) {
  CallOrder one, other, alone;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto a = one.enter(i * 7);
    const auto b = other.enter(i == 400 ? 1 : i * 7);
    const auto c = alone.enter_alone(i * 7);
    EXPECT_EQ(a.sequence, i);
    EXPECT_EQ(a.digest, c.digest);
    EXPECT_EQ(a.digest == b.digest, i < 400) << i;
  }
  EXPECT_EQ(one.next(), 1000U);
  EXPECT_EQ(one.digest(), alone.digest());
}

TEST(Comparison, NamesTheFirstCallThatDiffers) {
  Side a(0), b(1);
  for (std::uint32_t i = 0; i < 40; ++i) {
    a.make(bcast(5, i == 37 ? 1 : 0));
    b.make(bcast(5, i == 38 ? 1 : 0));
  }
  const auto difference = first_difference(a.seen(), b.seen());
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->sequence, 37U);
  EXPECT_EQ(difference->call, "bcast");
  EXPECT_EQ(difference->text, "rank 0 called bcast(5 fp32, root 1), rank 1 called bcast(5 fp32, root 0)");
}

// What is behind a number is this process's own knowledge.
TEST(Comparison, DoesNotKnowTheNameOfAnOperatorElsewhere) {
  const Func own = add_user_op({"one", nullptr, nullptr, true});
  Call call;
  call.collective = Collective::kAllreduce;
  call.dtype = Datatype::kFp32;
  call.count = 4;
  call.func = own;
  Side a(0), b(1), c(1);
  a.make(call, 77);
  b.make(call, 78);
  call.func = Func::kOrdered3;
  c.make(call, 79);
  const auto difference = first_difference(a.seen(), b.seen());
  const auto other = first_difference(a.seen(), c.seen());
  remove_user_op(own);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->text,
            "rank 0 called allreduce(4 fp32, one), rank 1 called allreduce(4 fp32, an op of the user); what differs is "
            "the algorithm that was named, its radix, the operator of the user, or a digit of post_scale");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->text,
            "rank 0 called allreduce(4 fp32, one), rank 1 called allreduce(4 fp32, an op of the user that does not "
            "commute)");
}

TEST(Comparison, NamesFactorsOfTheResult) {
  Call call;
  call.collective = Collective::kAllreduce;
  call.dtype = Datatype::kFp32;
  call.count = 4;
  call.func = Func::kSum;
  const auto text = [&call](double one, double other) {
    Side a(0), b(1);
    a.make(call, 0, one);
    b.make(call, 0, other);
    const auto difference = first_difference(a.seen(), b.seen());
    return difference ? difference->text : std::string();
  };
  EXPECT_EQ(text(0.5, 0.25),
            "rank 0 called allreduce(4 fp32, sum, post_scale 0.5), rank 1 called allreduce(4 fp32, sum, post_scale "
            "0.25)");
  EXPECT_EQ(text(1, 0), "rank 0 called allreduce(4 fp32, sum), rank 1 called allreduce(4 fp32, sum, post_scale 0)");
  EXPECT_EQ(text(0.0, -0.0).find("rank 0 called allreduce(4 fp32, sum, post_scale 0)"), 0U);
  EXPECT_EQ(text(0.1, 0.1), "");
  // More digits than fp32 has.
  const std::string close = text(0.5, 0.5 + 1e-12);
  EXPECT_NE(close.find("a digit of post_scale"), std::string::npos) << close;
}

TEST(Comparison, WhoIsBehindDiffersOnlyWhenItHasLeft) {
  Side a(0), b(1);
  a.make(bcast(5, 0));
  b.make(bcast(5, 0));
  a.make(bcast(6, 0));
  EXPECT_FALSE(first_difference(a.seen(), b.seen()));
  EXPECT_FALSE(first_difference(b.seen(), a.seen()));
  a.leave();
  EXPECT_FALSE(first_difference(a.seen(), b.seen()));
  b.leave();
  const auto difference = first_difference(a.seen(), b.seen());
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->sequence, 1U);
  EXPECT_EQ(difference->text, "rank 0 called bcast(6 fp32, root 0), rank 1 has left without this call");
}

TEST(Comparison, DigestsTellOfWhatIsNoLongerRecorded) {
  Side a(0), b(1);
  a.make(bcast(5, 0));
  b.make(bcast(5, 1));
  for (std::uint32_t i = 0; i < kRecordedCalls; ++i) {
    a.make(bcast(i, 0));
    b.make(bcast(i, 0));
  }
  EXPECT_FALSE(first_difference(a.seen(), b.seen()));
  a.leave();
  b.leave();
  ASSERT_TRUE(first_difference(a.seen(), b.seen()));
}

TEST(Comparison, ARecordThatWasLeftIsUsedAgainLast) {
  auto records = std::make_unique<CommunicatorRecord[]>(kRecordedCommunicators);
  { CallRecorder(records.get(), 1, 1, 0, 2).leave(0, 0); }
  std::vector<std::unique_ptr<CallRecorder>> living;
  const auto number_of_first = [&] { return static_cast<std::uint32_t>(records[0].identity.load()); };
  for (std::uint32_t i = 2; i <= kRecordedCommunicators; ++i) {
    living.push_back(std::make_unique<CallRecorder>(records.get(), i, 1, 0, 2));
    EXPECT_EQ(number_of_first(), 1U);
  }
  living.push_back(std::make_unique<CallRecorder>(records.get(), 777, 1, 0, 2));
  EXPECT_EQ(number_of_first(), 777U);
}

/// A reader beside the writer sees whole calls only: here root and count are the same number, and the signature tells.
TEST(Comparison, ACallThatIsBeingWrittenIsNotSeen) {
  Side side(0);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) side.make(bcast(i % 1000, i % 1000));
  });
  std::uint64_t calls = 0;
  while (calls < 200'000) {
    for (const SeenCall& call : side.seen().calls) {
      ++calls;
      ASSERT_EQ(call.count, call.peer);
      ASSERT_EQ(call.signature, signature_of(bcast(call.count, call.peer), {}));
    }
    if (calls == 0) std::this_thread::yield();
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace unisono::cclo
