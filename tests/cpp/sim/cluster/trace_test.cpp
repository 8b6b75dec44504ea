// The timeline: bars of calls are called by operation and algorithm, and arrows lead from sends to receives.
#include "sim/cluster/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kClock = 250'000;
constexpr std::uint32_t kNumber = 6;  ///< of the communicator
constexpr std::uint32_t kPlace = 2;

/// A call as a host gives it, to a node whose communicator has these nodes.
void give(CallLog& log, std::uint32_t own, const std::vector<std::uint32_t>& nodes, const CallDescriptor& call) {
  for (std::uint32_t rank = 0; rank < registers::kMemberWords; ++rank) {
    std::uint32_t word = 0;
    if (rank < nodes.size()) {
      word = registers::kMemberValid | (nodes[rank] == own ? static_cast<std::uint32_t>(kSelfSession) : nodes[rank]);
    }
    log.write(registers::member(kPlace, rank), word);
  }
  const auto words = encode(call);
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    log.write(exchange::kCallSlot + 8 * i, static_cast<std::uint32_t>(words[i]));
    log.write(exchange::kCallSlot + 8 * i + 4, static_cast<std::uint32_t>(words[i] >> 32U));
  }
  log.write(exchange::kDoorbell, 1);
}

CallDescriptor described(Collective collective, const char* algorithm, std::uint32_t number) {
  CallDescriptor call;
  call.collective = collective;
  call.algorithm =
      algorithm == nullptr ? std::uint8_t{0} : static_cast<std::uint8_t>(find_algorithm(collective, algorithm) + 1);
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.count = 12;
  call.communicator = kPlace;
  call.call_id = number;
  return call;
}

MoveRecord moved(std::uint32_t call, std::uint32_t index, std::uint64_t entered) {
  MoveRecord record;
  record.call_id = call;
  record.index = index;
  record.communicator = kNumber;
  record.entered = entered;
  record.issued = entered + 10;
  record.began = entered + 20;
  record.completed = entered + 90;
  record.retired = entered + 100;
  return record;
}

std::string text_of(const std::vector<NodeTrace>& nodes) {
  std::ostringstream text;
  write_trace(text, nodes, kClock);
  return text.str();
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

/// Rank 0 of the communicator is on node 3, rank 1 on node 1: rank 0 sends `sends` messages, rank 1 receives two.
std::vector<NodeTrace> exchange_of(int sends) {
  CallLog first(3), second(1);
  give(first, 3, {3, 1}, described(Collective::kBcast, "linear", 17));
  give(second, 1, {3, 1}, described(Collective::kBcast, "linear", 9));
  std::vector<NodeTrace> nodes(4);
  for (int i = 0; i < sends; ++i) {
    MoveRecord record = moved(17, static_cast<std::uint32_t>(i), 1000 + 200U * static_cast<std::uint32_t>(i));
    record.sends = true;
    record.destination = 1;
    nodes[3].records.push_back(record);
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    MoveRecord record = moved(9, i, 1100 + 200U * i);
    record.receives = true;
    record.source = 0;
    record.func = Func::kSum;
    nodes[1].records.push_back(record);
  }
  nodes[3].calls = first.calls();
  nodes[1].calls = second.calls();
  return nodes;
}

TEST(Trace, CallsAreNamedByOperationAndAlgorithm) {
  const std::string text = text_of(exchange_of(2));
  EXPECT_EQ(lines_with(text, R"("name": "bcast linear", "ph": "X")").size(), 2U) << text;
  EXPECT_EQ(lines_with(text, R"("operation": "bcast linear")").size(), 4U) << "the moves say whose they are";
  EXPECT_EQ(lines_with(text, R"("call": 17, "sequence": 0, "count": 12, "dtype": "fp32")").size(), 1U) << text;
  EXPECT_EQ(name_of(described(Collective::kAllreduce, "ring", 1)), "allreduce ring");
  EXPECT_EQ(name_of(described(Collective::kAllreduce, nullptr, 1)), "allreduce");
  EXPECT_EQ(name_of(described(Collective::kNop, nullptr, 1)), "nop");
  EXPECT_EQ(name_of(described(Collective::kProgram, nullptr, 1)), "program");
}

TEST(Trace, ACallThatNobodySawIsNamedByItsNumber) {
  std::vector<NodeTrace> nodes = exchange_of(2);
  for (NodeTrace& node : nodes) node.calls.clear();
  const std::string text = text_of(nodes);
  EXPECT_EQ(lines_with(text, R"("name": "call 17")").size(), 1U);
  EXPECT_THAT(lines_with(text, R"("ph": "s")"), testing::IsEmpty());
}

TEST(Trace, ANumberGivenAgainIsTheNextCall) {
  std::vector<NodeTrace> nodes(1);
  CallLog log(0);
  give(log, 0, {0}, described(Collective::kAllreduce, "ring", 5));
  give(log, 0, {0}, described(Collective::kScan, "linear", 5));
  nodes[0].calls = log.calls();
  nodes[0].records = {moved(5, 0, 100), moved(5, 0, 900)};
  nodes[0].records[1].sequence = 1;
  const std::string text = text_of(nodes);
  EXPECT_EQ(lines_with(text, R"("name": "allreduce ring", "ph": "X")").size(), 1U);
  EXPECT_EQ(lines_with(text, R"("name": "scan linear", "ph": "X")").size(), 1U);
}

TEST(Trace, ArrowsLeadFromSendsToReceives) {
  const std::string text = text_of(exchange_of(2));
  const auto starts = lines_with(text, R"("ph": "s")");
  const auto ends = lines_with(text, R"("ph": "f")");
  ASSERT_EQ(starts.size(), 2U) << text;
  ASSERT_EQ(ends.size(), 2U);
  // Cycles are 4 ns: the first message begins at cycle 1020 on node 3 and is in place at 1190 on node 1.
  EXPECT_THAT(starts[0],
              testing::AllOf(testing::HasSubstr(R"("pid": 3)"), testing::HasSubstr(R"("id": 1, "ts": 4.080)")));
  EXPECT_THAT(ends[0],
              testing::AllOf(testing::HasSubstr(R"("pid": 1)"), testing::HasSubstr(R"("id": 1, "ts": 4.760)")));
  EXPECT_THAT(starts[1], testing::HasSubstr(R"("id": 2, "ts": 4.880)"));
  EXPECT_THAT(ends[1], testing::HasSubstr(R"("bp": "e", "id": 2, "ts": 5.560)"));
  EXPECT_THAT(lines_with(text_of(exchange_of(1)), R"("ph": "s")"), testing::IsEmpty()) << "whose message is not known";
}

TEST(Trace, MessagesOfOneTagBelongTogether) {
  std::vector<NodeTrace> nodes(2);
  for (const std::uint32_t node : {0U, 1U}) {
    CallLog log(node);
    // The receiver takes them in the other order of tags.
    for (std::uint32_t i = 0; i < 2; ++i) {
      CallDescriptor call = described(node == 0 ? Collective::kSend : Collective::kRecv, nullptr, 1 + i);
      call.tag = node == 0 ? i : 1 - i;
      give(log, node, {0, 1}, call);
      MoveRecord record = moved(1 + i, 0, 1000 + 300 * i + 2000 * node);
      (node == 0 ? record.sends : record.receives) = true;
      record.destination = 1;
      record.source = 0;
      record.sequence = i;
      nodes[node].records.push_back(record);
    }
    nodes[node].calls = log.calls();
  }
  const std::string text = text_of(nodes);
  ASSERT_EQ(lines_with(text, R"("ph": "s")").size(), 2U);
  // The send of tag 0 is the first, its receive the second.
  EXPECT_THAT(lines_with(text, R"("ph": "s")")[0], testing::HasSubstr(R"("id": 1, "ts": 4.080)"));
  EXPECT_THAT(lines_with(text, R"("ph": "f")")[0], testing::HasSubstr(R"("id": 1, "ts": 13.560)"));
}

}  // namespace
}  // namespace unisono::sim
