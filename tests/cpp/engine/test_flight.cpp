// Flight records: what a rank tells of its calls, and what a reader makes of the records of all.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "engine/flight_report.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using cclo::flight_report;
using cclo::ReportDetail;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The report, once it contains `part`; or the last one after ten seconds.
std::string report_with(const Rank& self, const std::string& part, ReportDetail detail = ReportDetail::kNow) {
  const auto end = std::chrono::steady_clock::now() + seconds(10);
  std::string text;
  do {
    text = flight_report(self.poe, detail);
    if (has(text, part)) break;
    std::this_thread::sleep_for(milliseconds(1));
  } while (std::chrono::steady_clock::now() < end);
  return text;
}

/// Calls of different counts on every rank's own data: allreduce of `count` elements.
CallRequest allreduce(std::vector<std::int32_t>& src, std::vector<std::int32_t>& dst, std::uint64_t count) {
  CallRequest r = request<std::int32_t>(Collective::kAllreduce, count, 0, Func::kMax);
  r.src = bind(src);
  r.dst = bind(dst);
  return r;
}

class Flight : public testing::TestWithParam<bool> {
 protected:
  static EngineSettings settings() { return GetParam() ? quick_settings() : message_settings(); }
};

TEST_P(Flight, SaysWhoWaitsForWhom) {
  std::atomic<bool> told{false};
  run_ranks(4, settings(), [&](Rank& self) {
    std::vector<std::int32_t> src(100, static_cast<std::int32_t>(self.rank)), dst(100);
    self.run(allreduce(src, dst, 7));
    if (self.rank == 2) {
      const std::string text = report_with(self, "=> rank 0, rank 1 and rank 3 wait for rank 2");
      for (const char* part : {"communicator 0, 4 ranks", "  rank 0, endpoint 0", "in allreduce #1 of 50 int32 by max",
                               "waits for", "rank 2, endpoint 2 (pid", "in no call; the last was allreduce #0, ended",
                               "=> rank 0, rank 1 and rank 3 wait for rank 2"}) {
        EXPECT_TRUE(has(text, part)) << part << " is not in\n" << text;
      }
      const std::string past = flight_report(self.poe, ReportDetail::kHistory);
      EXPECT_TRUE(has(past, "ended: allreduce #0 of 7 int32 by max")) << past;
      EXPECT_TRUE(has(past, "in progress: allreduce #1 of 50 int32 by max")) << past;
      told = true;
    }
    self.run(allreduce(src, dst, 50));
    EXPECT_EQ(dst[0], 3);
    // Nobody waits for anybody any more.
    self.run(request<std::int32_t>(Collective::kBarrier, 0, 0, Func::kNone));
    const std::string after = flight_report(self.poe, ReportDetail::kHistory);
    EXPECT_TRUE(has(after, "ended: allreduce #1 of 50 int32 by max")) << after;
  });
  EXPECT_TRUE(told);
}

TEST_P(Flight, FindsCirclesAndCallsThatDiffer) {
  std::atomic<int> seen{0};
  run_ranks(3, settings(), [&](Rank& self) {
    // Everybody receives of the next rank, and nobody sends: a circle.
    std::vector<std::int32_t> data(4);
    CallRequest r = request<std::int32_t>(Collective::kRecv, 4, (self.rank + 1) % 3, Func::kNone);
    r.dst = bind(data);
    r.tag = 40 + self.rank;
    const CallId id = self.engine.submit(r);
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    std::string text;
    while (!has(text, "circle") && std::chrono::steady_clock::now() < end) {
      self.engine.wait(id, milliseconds(5));
      text = flight_report(self.poe, ReportDetail::kNow);
    }
    ++seen;  // the circle stays until all have seen it
    while (seen < 3 && std::chrono::steady_clock::now() < end) self.engine.wait(id, milliseconds(5));
    EXPECT_TRUE(has(text, "which waits for")) << text;
    EXPECT_TRUE(has(text, "recv from rank 0 (tag 42)")) << text;
    std::vector<std::int32_t> given(4, static_cast<std::int32_t>(self.rank));
    CallRequest s = request<std::int32_t>(Collective::kSend, 4, (self.rank + 2) % 3, Func::kNone);
    s.src = bind(given);
    s.tag = 40 + (self.rank + 2) % 3;
    self.run(s);
    self.finish(id);
    EXPECT_EQ(data[0], static_cast<std::int32_t>((self.rank + 1) % 3));

    ++seen;  // and nobody fails before all have received
    while (seen < 6 && std::chrono::steady_clock::now() < end) self.engine.progress();
    CallRequest differs = request<std::int32_t>(Collective::kBarrier, 0, 0, Func::kNone);
    std::vector<std::int32_t> src(100, 1), dst(100);
    if (self.rank == 1) differs = allreduce(src, dst, 9);
    EXPECT_THROW(self.run(differs), Error);  // or is refused, if a rank has found it and revoked the communicator
    text = report_with(self, "differs");
    EXPECT_TRUE(has(text, "  ! call #0 differs: rank ")) << text;
    EXPECT_TRUE(has(text, " allreduce #0 of 9 int32 by max")) << text;
    EXPECT_TRUE(has(text, " barrier #0")) << text;
    EXPECT_TRUE(has(text, "(revoked)")) << text;
  });
}

TEST_P(Flight, ACircleSaysInWhichCommunicatorEachRankSits) {
  std::atomic<int> seen{0};
  run_ranks(3, settings(), [&](Rank& self) {
    const std::vector<std::uint32_t> pair{2, 1};  // in another order
    if (self.rank != 0) {
      self.engine.create_communicator(5, 0, pair, self.agreed);
      self.engine.name_communicator(5, "the pair");
    }
    // Rank 0 waits for rank 1, which waits for rank 2 in the pair, where that is rank 0, and that for rank 0.
    std::vector<std::int32_t> data(4);
    CallRequest r = request<std::int32_t>(Collective::kRecv, 4, self.rank == 0 ? 1 : 0, Func::kNone);
    if (self.rank == 1) r.communicator = 5;
    r.tag = self.rank;
    r.dst = bind(data);
    const CallId id = self.engine.submit(r);
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    std::string text;
    while (!has(text, "circle") && std::chrono::steady_clock::now() < end) {
      self.engine.wait(id, milliseconds(5));
      text = flight_report(self.poe, ReportDetail::kNow);
    }
    ++seen;
    while (seen < 3 && std::chrono::steady_clock::now() < end) self.engine.wait(id, milliseconds(5));
    for (const char* part :
         {"communicator 5 \"the pair\", 2 ranks", "a circle, in which nobody can go on\n", "rank 0: endpoint 0 (pid ",
          "sits in recv from rank 1 (tag 0) of communicator 0, as rank 0 of it",
          "sits in recv from rank 0 (tag 1) of communicator 5 \"the pair\", as rank 1 of it",
          "sits in recv from rank 0 (tag 2) of communicator 0, as rank 2 of it"}) {
      EXPECT_TRUE(has(text, part)) << part << " is not in\n" << text;
    }
    std::vector<std::int32_t> given(4, static_cast<std::int32_t>(self.rank));
    CallRequest s = request<std::int32_t>(Collective::kSend, 4, self.rank == 0 ? 2 : 0, Func::kNone);
    if (self.rank == 2) {
      s.communicator = 5;
      s.call.root = 1;
    }
    s.tag = (self.rank + 2) % 3;
    s.src = bind(given);
    self.run(s);
    self.finish(id);
    EXPECT_EQ(data[0], static_cast<std::int32_t>((self.rank + 1) % 3));
  });
}

TEST_P(Flight, ATimeoutTellsWhatTheMissingDoInstead) {
  run_ranks(3, settings(), [&](Rank& self) {
    std::vector<std::uint32_t> pair{0, 1};
    if (self.rank < 2) self.engine.create_communicator(5, 0, pair, self.agreed);
    std::vector<std::int32_t> src(10, 1), dst(10);
    if (self.rank == 1) {  // waits elsewhere, for rank 0
      std::vector<std::int32_t> data(4);
      CallRequest r = request<std::int32_t>(Collective::kRecv, 4, 0, Func::kNone);
      r.communicator = 5;
      r.dst = bind(data);
      EXPECT_THROW(self.run(r), Error);
      return;
    }
    CallRequest r = allreduce(src, dst, 10);
    r.timeout = milliseconds(400);
    const CallResult result = self.engine.wait(self.engine.submit(r));
    EXPECT_TRUE(has(result.message, "Not arrived: rank 1")) << result.message;
    EXPECT_TRUE(has(result.message,
                    "has called nothing on it, but in communicator 5 (as rank 1) it is in recv from "
                    "rank 0 (tag 0)"))
        << result.message;
    if (self.rank == 0) self.engine.revoke(5, "the test is over");
  });
}

TEST_P(Flight, KeepsTheLastCallsOnly) {
  run_ranks(2, settings(), [&](Rank& self) {
    std::vector<std::int32_t> src(100, 1), dst(100);
    for (std::uint64_t count = 1; count <= kRecordedCalls + 5; ++count) self.run(allreduce(src, dst, count));
    self.run(request<std::int32_t>(Collective::kBarrier, 0, 0, Func::kNone));
    const std::string text = flight_report(self.poe, ReportDetail::kHistory);
    EXPECT_TRUE(has(text, "allreduce #36 of 37")) << text;
    EXPECT_FALSE(has(text, "allreduce #4 of 5 ")) << text;
  });
}

// A reader makes what it can of any contents: nothing of them is trusted.
TEST(FlightReport, TakesAnyContents) {
  std::vector<CommunicatorRecord> records(kRecordedCommunicators);
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    for (CommunicatorRecord& record : records) {
      auto* words = reinterpret_cast<std::atomic<std::uint64_t>*>(&record);
      for (std::size_t i = 0; i < sizeof record / 8; ++i) {
        words[i] = random() % 4 == 0 ? random() : random() % 9;
      }
      record.identity = random() % 3 | std::uint64_t{1} << 48U;
    }
    const cclo::ObservedEndpoint endpoint{"pid 1", "", records.data()};
    const std::vector<cclo::ObservedEndpoint> all(3, endpoint);
    EXPECT_FALSE(flight_report(all, ReportDetail::kHistory, std::chrono::steady_clock::now()).empty());
    EXPECT_FALSE(cclo::flight_table(all, std::chrono::steady_clock::now()).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Flight, testing::Bool(),
                         [](const auto& way) { return way.param ? "Lanes" : "Messages"; });

}  // namespace
}  // namespace unisono::test
