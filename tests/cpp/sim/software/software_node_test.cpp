// Nodes of SMI's transport in software, on a bus among themselves.
#include "sim/software/software_node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/cpp/sim/software/cabled_job.hpp"

namespace unisono::sim {
namespace {

using kernels::SmiNode;
using kernels::SmiNodeSettings;
using testing::bus_image;
using testing::CabledJob;
using ::testing::HasSubstr;
using testing::random_rounds;
using testing::run;
using testing::TestMessage;

std::unique_ptr<SmiNode> in_software(const SmiNodeSettings& settings) {
  return std::make_unique<SoftwareNode>(settings);
}

std::unique_ptr<SmiNode> with_delay(const SmiNodeSettings& settings) {
  SmiNodeSettings slow = settings;
  slow.delay = 50;
  return std::make_unique<SoftwareNode>(slow);
}

std::unique_ptr<SmiNode> with_units(const SmiNodeSettings& settings) {
  SmiNodeSettings more = settings;
  more.units = {.broadcasts = 2,
                .reductions = 2,
                .datatypes = 1U << static_cast<unsigned>(Datatype::kInt32),
                .funcs = 1U << static_cast<unsigned>(Func::kSum)};
  return std::make_unique<SoftwareNode>(more);
}

class SoftwareNodes : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Packets, SoftwareNodes, ::testing::Values(32, 64, 128, 256));

TEST_P(SoftwareNodes, CarryMessagesOfAllKindsInEqualCycles) {
  CabledJob once(4, 4, GetParam(), in_software), again(4, 4, GetParam(), in_software);
  EXPECT_EQ(random_rounds(once, 4, 30, GetParam()), random_rounds(again, 4, 30, GetParam()));
  CabledJob slow(4, 4, GetParam(), with_delay);
  random_rounds(slow, 4, 10, GetParam());
}

TEST(SoftwareNode, StandsStillStrictlyBehindTheWindow) {
  CabledJob job(2, 4, 32, in_software);
  for (const std::uint32_t window : {0U, 1U, 5U}) {
    TestMessage message;
    message.open(40, 2, true, true, window);
    message.receives.lanes = 1;
    message.start(job);
    // Nobody pops.
    kernels::PushEnd& end = job.node(0).push[0];
    std::uint32_t taken = 0;
    for (int cycle = 0; cycle < 400; ++cycle) {
      if (!end.valid && taken < 40) {
        std::copy_n(message.sent.begin() + 4 * taken, 4, end.word.begin());
        end.count = 1;
        end.flush = false;
        end.valid = true;
        ++taken;
      }
      job.cycle();
    }
    EXPECT_EQ(taken - 1, window);  // the last one is offered, and not taken
    // Now somebody does, one by one.
    for (int cycle = 0; cycle < 4000 && !message.closed(job); ++cycle) {
      if (!end.valid && taken < 40) {
        std::copy_n(message.sent.begin() + 4 * taken, 4, end.word.begin());
        end.count = 1;
        end.valid = true;
        ++taken;
      }
      kernels::PopEnd& from = job.node(1).pop[0];
      if (from.count != 0) message.got.insert(message.got.end(), from.word.begin(), from.word.begin() + 4);
      from.count = 0;
      from.ready = true;
      job.cycle();
    }
    EXPECT_TRUE(message.closed(job));
    EXPECT_EQ(message.got, message.sent);
  }
}

TEST(SoftwareNode, ComplainsOfCountsThatDiffer) {
  CabledJob job(3, 4, 32, in_software);
  std::mt19937 random(1);
  for (const bool credits : {false, true}) {
    for (const std::uint32_t expected : {90U, 110U}) {
      std::vector<TestMessage> messages(1);
      TestMessage& message = messages[0];
      message.to = 2;
      message.open(100, 1, credits);
      message.receives.count = expected;
      message.start(job);
      ASSERT_TRUE(run(job, messages, random));
      message.sent.resize(std::min(message.sent.size(), std::size_t{2} * expected));
      EXPECT_EQ(message.got, message.sent);
      const auto& complaint = job.node(2).pop[0].complaint;
      ASSERT_TRUE(complaint);
      EXPECT_FALSE(complaint->foreign);
      EXPECT_EQ(complaint->src, 0U);
      EXPECT_EQ(complaint->expected, expected);
      EXPECT_EQ(complaint->got, 100U);
    }
  }
}

TEST(SoftwareNode, NobodyWaitsForEverWhereEndsDiffer) {
  CabledJob job(2, 4, 32, in_software);
  std::mt19937 random(2);
  const auto differ = [&](const std::function<void(TestMessage&)>& change) {
    std::vector<TestMessage> messages(1);
    messages[0].open(100, 2, true, true, 10);
    change(messages[0]);
    messages[0].start(job);
    EXPECT_TRUE(run(job, messages, random, 2000));
    EXPECT_TRUE(messages[0].got.empty());
  };
  differ([](TestMessage& message) { message.receives.size = 1; });
  differ([](TestMessage& message) { message.receives.window = 11; });
  differ([](TestMessage& message) { message.receives.strict = false; });
  // The sender asks, because a receiver without credits says nothing by itself.
  differ([](TestMessage& message) { message.receives.credits = message.receives.strict = false; });
  // What follows goes well.
  std::vector<TestMessage> messages(1);
  messages[0].open(100, 2, true);
  messages[0].start(job);
  EXPECT_TRUE(run(job, messages, random));
  EXPECT_EQ(messages[0].got, messages[0].sent);
}

TEST(SoftwareNode, LeavesOutForeignPacketsAndCountsStrays) {
  CabledJob job(3, 4, 32, in_software);
  std::mt19937 random(3);
  std::vector<TestMessage> messages(2);
  messages[0].from = 0;
  messages[0].to = 1;
  messages[0].open(10, 2);
  messages[0].start(job);
  messages[1] = messages[0];
  messages[1].from = 2;
  messages[1].open(20, 2);
  messages[1].start(job);  // rank 1 receives from rank 2 alone
  for (int cycle = 0; cycle < 500; ++cycle) {
    messages[1].step(job, random);
    kernels::PushEnd& end = job.node(0).push[0];
    if (end.active && !end.valid && messages[0].pushed == 0) {
      end.count = 10 - 2;
      end.flush = true;
      end.valid = true;
      messages[0].pushed = 32;
    }
    job.cycle();
  }
  messages[1].step(job, random);
  EXPECT_EQ(messages[1].got, messages[1].sent);
  ASSERT_TRUE(job.node(1).pop[0].complaint);
  EXPECT_TRUE(job.node(1).pop[0].complaint->foreign);
  EXPECT_EQ(job.node(1).pop[0].complaint->src, 0U);

  EXPECT_EQ(job.node(2).strays(), "");
  TestMessage stray;
  stray.from = 1;
  stray.to = 2;
  stray.open(0, 2);
  stray.start_sending(job);
  job.node(1).push[0].open.peer = 2;
  job.node(1).push[0].open.port = 9;
  for (int cycle = 0; cycle < 100; ++cycle) job.cycle();
  EXPECT_EQ(job.node(2).strays(), "1 packets were for nobody; the first came from rank 1, for port 9 of rank 2");
}

/// All ranks of a bus of 4 open a collective at port 1, along a tree that is no chain: 1 is the root, 0 and 2 its
/// children, 3 that of 2. Each pushes and pops as its place says, at its own pace; what each has popped.
std::vector<std::vector<std::uint32_t>> collective(CabledJob& job, kernels::UnitOpen::Kind kind, std::uint32_t count,
                                                   std::mt19937& random) {
  const bool reduces = kind == kernels::UnitOpen::Kind::kReduce;
  constexpr std::uint32_t kPort = 1;
  std::vector<std::vector<std::uint32_t>> popped(4);
  std::vector<std::uint32_t> pushed(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    kernels::UnitEnd& end = job.node(static_cast<int>(rank)).unit[kPort];
    end.open = {};
    end.open.kind = kind;
    end.open.root = 1;
    end.open.port = kPort;
    end.open.count = count;
    end.open.size = 2;
    if (reduces) {
      end.open.dtype = static_cast<std::uint32_t>(Datatype::kInt32);
      end.open.func = static_cast<std::uint32_t>(Func::kSum);
    }
    if (rank != 1) end.open.place.parent = rank == 3 ? 2 : 1;
    end.open.place.children = rank == 1   ? std::vector<std::uint32_t>{0, 2}
                              : rank == 2 ? std::vector<std::uint32_t>{3}
                                          : std::vector<std::uint32_t>{};
    end.pushes = reduces || rank == 1;
    end.pops = reduces == (rank == 1);
    end.opening = true;
  }
  for (int cycle = 0; cycle < 20000; ++cycle) {
    bool open = false;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      kernels::SmiNode& node = job.node(static_cast<int>(rank));
      kernels::PushEnd& to = node.push[kPort];
      if (to.active && !to.valid && pushed[rank] < count && random() % 3 != 0) {
        const auto words = std::min<std::uint32_t>(count - pushed[rank], 1 + random() % 8);
        for (std::uint32_t i = 0; i < words; ++i) {
          const std::uint32_t element = (rank + 1) * 100000 + pushed[rank]++;
          std::memcpy(to.word.data() + std::size_t{4} * i, &element, 4);
        }
        to.count = words;
        to.flush = random() % 4 == 0;
        to.valid = true;
      }
      kernels::PopEnd& from = node.pop[kPort];
      for (std::uint32_t i = 0; i < from.count; ++i) {
        std::uint32_t element = 0;
        std::memcpy(&element, from.word.data() + std::size_t{4} * i, 4);
        popped[rank].push_back(element);
      }
      from.count = 0;
      if (random() % 3 != 0) from.ready = true;
      open = open || node.unit[kPort].opening || to.active || from.active;
    }
    if (!open) return popped;
    job.cycle();
  }
  throw std::runtime_error("the collective does not end");
}

TEST(SoftwareNode, BroadcastsAndReducesAlongAnyTree) {
  CabledJob job(4, 4, 32, with_units);
  EXPECT_TRUE(job.node(0).broadcasts(1));
  EXPECT_FALSE(job.node(0).broadcasts(2));
  EXPECT_TRUE(
      job.node(0).reduces(1, static_cast<std::uint32_t>(Datatype::kInt32), static_cast<std::uint32_t>(Func::kSum)));
  EXPECT_FALSE(
      job.node(0).reduces(1, static_cast<std::uint32_t>(Datatype::kInt32), static_cast<std::uint32_t>(Func::kMax)));
  std::mt19937 random(4);
  for (const std::uint32_t count : {1U, 7U, 8U, 500U, 20U, 499U}) {
    const auto sums = collective(job, kernels::UnitOpen::Kind::kReduce, count, random);
    ASSERT_EQ(sums[1].size(), count);
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(sums[1][i], 1000000 + 4 * i);
    const auto same = collective(job, kernels::UnitOpen::Kind::kBroadcast, count, random);
    for (const int rank : {0, 2, 3}) {
      ASSERT_EQ(same[static_cast<std::size_t>(rank)].size(), count);
      for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(same[static_cast<std::size_t>(rank)][i], 200000 + i);
    }
  }
}

TEST(SoftwareNode, TellsWhyTablesAreRefused) {
  const auto refused = [](const std::vector<std::uint8_t>& image, software::Tables::Shape shape) -> std::string {
    try {
      const software::Tables tables(image, shape);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  const std::vector<std::uint8_t> good = bus_image(1, 3, 4);
  EXPECT_EQ(refused(good, {4, 2, 4}), "");
  EXPECT_THAT(refused(good, {4, 2, 16}), HasSubstr("they are for 4 ports, and the node has 16"));
  EXPECT_THAT(refused(good, {8, 2, 4}), HasSubstr("they are for 4 links, and the node has 8"));
  std::vector<std::uint8_t> bad = good;
  bad[20] ^= 1;
  EXPECT_THAT(refused(bad, {4, 2, 4}), HasSubstr("the check sum is wrong"));
  bad = good;
  bad.pop_back();
  EXPECT_THAT(refused(bad, {4, 2, 4}), HasSubstr("bytes instead of"));
  bad = good;
  bad[0] = 'X';
  EXPECT_THAT(refused(bad, {4, 2, 4}), HasSubstr("no image of routes"));
}

TEST(SoftwareNode, LaysPacketsOutAsTheHardwareDoes) {
  software::Packet packet;
  const software::PacketFormat narrow(32), wide(64);
  narrow.set_header(packet, {3, 7, 12, software::Op::kLast, 20});
  EXPECT_EQ(packet.words[7], 3U | 7U << 8U | 12U << 16U | (7U | 20U << 3U) << 24U);
  EXPECT_EQ(narrow.header(packet).count, 20U);
  wide.set_header(packet, {300, 7, 12, software::Op::kSynch, 1000});
  EXPECT_EQ(packet.words[14], 300U | 7U << 16U);
  EXPECT_EQ(packet.words[15], 12U | (3U | 1000U << 3U) << 16U);
  EXPECT_TRUE(wide.header(packet).control());

  software::Control control;
  control.kind = software::Control::Kind::kDiffer;
  control.first = true;
  control.message = 9;
  control.packets = 0x12345678;
  control.elements = 0xfedcba98;
  control.opening.credits = true;
  control.opening.size = 3;
  control.opening.count = 0xabcdef01;
  control.opening.window = 77;
  set_control(packet, control);
  EXPECT_EQ(packet.words[0], control.elements);
  EXPECT_EQ(packet.words[1], control.packets);
  EXPECT_EQ(packet.words[2] & 0xffU, 1U | 2U << 2U | (9U << 4U & 0xf0U));
  EXPECT_EQ(packet.words[2] >> 8U, 77U);
  const software::Control read = control_of(packet);
  EXPECT_EQ(read.opening, control.opening);
  EXPECT_EQ(read.message, 9);
  EXPECT_EQ(read.kind, control.kind);
}

}  // namespace
}  // namespace unisono::sim
