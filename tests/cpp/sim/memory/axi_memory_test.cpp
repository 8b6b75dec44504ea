#include "sim/memory/axi_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sim/memory/axi_pins.hpp"

namespace unisono::sim {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes noise(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// A master of one channel: issues what is queued, takes what comes, remembers when.
class Master {
 public:
  struct Answer {
    std::uint32_t id;
    Bytes data;
    std::vector<AxiResponse> responses;
    std::uint64_t first, last;  // edges
  };
  struct Done {
    std::uint32_t id;
    AxiResponse response;
    std::uint64_t edge;
  };

  Master(AxiMemory& memory, unsigned channel) : memory_(memory), channel_(channel) {}

  void read(std::uint64_t address, unsigned beats, std::uint32_t id = 0) { reads_.push_back({address, beats, id}); }
  void write(std::uint64_t address, const Bytes& data, std::uint64_t strobe = ~0ULL, std::uint32_t id = 0) {
    const unsigned width = memory_.config().beat_bytes;
    writes_.push_back({address, static_cast<unsigned>(data.size() / width), id});
    for (std::size_t at = 0; at < data.size(); at += width) {
      beats_.push_back({Bytes(data.begin() + at, data.begin() + at + width), strobe, at + width == data.size()});
    }
  }

  void edge() {
    const AxiOutputs before = memory_.outputs(channel_);
    AxiInputs in;
    const auto size = static_cast<std::uint8_t>(__builtin_ctz(memory_.config().beat_bytes));
    in.arsize = in.awsize = size;
    if (!reads_.empty()) {
      in.arvalid = true;
      in.araddr = reads_.front().address;
      in.arlen = static_cast<std::uint8_t>(reads_.front().beats - 1);
      in.arid = reads_.front().id;
    }
    if (!writes_.empty()) {
      in.awvalid = true;
      in.awaddr = writes_.front().address;
      in.awlen = static_cast<std::uint8_t>(writes_.front().beats - 1);
      in.awid = writes_.front().id;
    }
    if (!beats_.empty()) {
      in.wvalid = true;
      std::copy(beats_.front().data.begin(), beats_.front().data.end(), in.wdata.begin());
      in.wstrb = beats_.front().strobe;
      in.wlast = beats_.front().last;
    }
    in.rready = take_reads;
    in.bready = take_dones;
    if (in.arvalid && before.arready) {
      asked.push_back(now);
      reads_.pop_front();
    }
    if (in.awvalid && before.awready) writes_.pop_front();
    if (in.wvalid && before.wready) {
      sent.push_back(now);
      beats_.pop_front();
    }
    if (before.rvalid && in.rready) {
      Answer& answer = open_[before.rid];
      if (answer.data.empty()) answer.first = now;
      answer.id = before.rid;
      answer.data.insert(answer.data.end(), before.rdata.begin(), before.rdata.begin() + memory_.config().beat_bytes);
      answer.responses.push_back(before.rresp);
      answer.last = now;
      beat_edges.push_back(now);
      beat_ids.push_back(before.rid);
      if (before.rlast) {
        answers.push_back(answer);
        open_.erase(before.rid);
      }
    }
    if (before.bvalid && in.bready) done.push_back({before.bid, before.bresp, now});
    memory_.tick(channel_, in);
    ++now;
  }

  bool finished() const {
    return reads_.empty() && writes_.empty() && beats_.empty() && open_.empty() && memory_.idle();
  }
  void run(unsigned most = 100000) {
    while (!finished() && most-- > 0) edge();
    ASSERT_TRUE(finished()) << "no end";
  }

  bool take_reads = true, take_dones = true;
  std::uint64_t now = 0;
  std::vector<Answer> answers;
  std::vector<Done> done;
  std::vector<std::uint64_t> asked, sent, beat_edges;
  std::vector<std::uint32_t> beat_ids;

 private:
  struct Request {
    std::uint64_t address;
    unsigned beats;
    std::uint32_t id;
  };
  struct Beat {
    Bytes data;
    std::uint64_t strobe;
    bool last;
  };
  AxiMemory& memory_;
  unsigned channel_;
  std::deque<Request> reads_, writes_;
  std::deque<Beat> beats_;
  std::map<std::uint32_t, Answer> open_;
};

TEST(Pages, HoldWhatWasWrittenAcrossPagesAndTheEndOfMemory) {
  std::mt19937_64 random(1);
  const Bytes data = noise(random, 10000);
  for (const std::uint64_t address : {std::uint64_t{4090}, ~std::uint64_t{0} - 5000}) {
    Pages pages;
    pages.write(address, data);
    Bytes got(data.size() + 2, 0xFF);
    pages.read(address - 1, got);
    EXPECT_EQ(got.front(), 0);
    EXPECT_EQ(got.back(), 0);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin() + 1));
    EXPECT_LE(pages.pages(), 4U);
  }
}

TEST(AxiMemory, RefusesWrongConfigurations) {
  EXPECT_THROW(AxiMemory({.channels = 0}), std::invalid_argument);
  EXPECT_THROW(AxiMemory({.beat_bytes = 48}), std::invalid_argument);
  EXPECT_THROW(AxiMemory({.beat_bytes = 128}), std::invalid_argument);
  EXPECT_THROW(AxiMemory({.read_latency = 0}), std::invalid_argument);
  EXPECT_THROW(AxiMemory({.bandwidth_beats = 3, .bandwidth_cycles = 2}), std::invalid_argument);
  EXPECT_THROW(AxiMemory({.outstanding = 0}), std::invalid_argument);
}

TEST(AxiMemory, ReadsAndWritesWithStrobes) {
  for (const unsigned width : {8U, 16U, 64U}) {
    std::mt19937_64 random(width);
    AxiMemory memory({.beat_bytes = width});
    Bytes image = noise(random, 4096);
    memory.write(0, 1ULL << 40, image);
    Master master(memory, 0);
    const std::uint64_t strobe = random() & (width == 64 ? ~0ULL : (1ULL << width) - 1);
    const Bytes data = noise(random, 4 * width);
    master.write((1ULL << 40) + 2 * width, data, strobe);
    master.run();
    for (unsigned i = 0; i < data.size(); ++i) {
      if ((strobe >> (i % width) & 1U) != 0) image[2 * width + i] = data[i];
    }
    master.read(1ULL << 40, 4096 / width > 256 ? 256 : 4096 / width);
    master.run();
    ASSERT_EQ(master.answers.size(), 1U);
    const Bytes& got = master.answers[0].data;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), image.begin()));
    ASSERT_EQ(master.done.size(), 1U);
    EXPECT_EQ(master.done[0].response, AxiResponse::kOkay);
  }
}

TEST(AxiMemory, LatencyIsWhatIsAskedFor) {
  for (const unsigned latency : {1U, 2U, 40U}) {
    AxiMemory memory({.read_latency = latency, .write_latency = latency + 1});
    Master master(memory, 0);
    master.read(0, 4);
    master.run();
    EXPECT_EQ(master.answers.at(0).first - master.asked.at(0), latency);
    EXPECT_EQ(master.answers.at(0).last - master.answers.at(0).first, 3U);
    master.write(0, Bytes(256, 1));
    master.run();
    EXPECT_EQ(master.done.at(0).edge - master.sent.back(), latency + 1);
  }
}

TEST(AxiMemory, JitterStaysInItsRangeAndOrder) {
  AxiMemory memory({.read_latency = 10, .jitter = 20});
  std::set<std::uint64_t> seen;
  Master master(memory, 0);
  for (unsigned i = 0; i < 200; ++i) {
    master.read(64 * i, 1, i);
    master.run();
    const std::uint64_t took = master.answers.at(i).first - master.asked.at(i);
    EXPECT_GE(took, 10U);
    EXPECT_LE(took, 30U);
    seen.insert(took);
  }
  EXPECT_GT(seen.size(), 12U);
}

TEST(AxiMemory, StreamsAtOneBeatPerCycleBehindAnyLatency) {
  AxiMemory memory({.read_latency = 100, .write_latency = 100});
  Master master(memory, 0);
  for (unsigned i = 0; i < 16; ++i) {
    master.read(4096 * i, 64, i);
    master.write(4096 * i, Bytes(4096, 7), ~0ULL, i);
  }
  master.run();
  EXPECT_EQ(master.beat_edges.back() - master.beat_edges.front() + 1, 16U * 64);
  EXPECT_EQ(master.sent.back() - master.sent.front() + 1, 16U * 64);
  EXPECT_EQ(memory.counters(0).read_beats, 16U * 64);
  EXPECT_EQ(memory.counters(0).write_bursts, 16U);
}

TEST(AxiMemory, BandwidthIsAFraction) {
  struct Case {
    unsigned beats, cycles;
  };
  for (const auto& [beats, cycles] : {Case{1, 2}, Case{3, 4}, Case{2, 5}, Case{1, 7}}) {
    for (const bool shared : {false, true}) {
      AxiMemory memory({.bandwidth_beats = beats, .bandwidth_cycles = cycles, .shared_bus = shared});
      Master master(memory, 0);
      for (unsigned i = 0; i < 8; ++i) {
        master.read(4096 * i, 64);
        master.write(4096 * i, Bytes(4096, 7));
      }
      master.run();
      const double reads = 512.0 / static_cast<double>(master.beat_edges.back() - master.beat_edges.front() + 1);
      const double writes = 512.0 / static_cast<double>(master.sent.back() - master.sent.front() + 1);
      const double asked = static_cast<double>(beats) / cycles;
      if (shared) {
        const double both = 1024.0 / static_cast<double>(std::max(master.beat_edges.back(), master.sent.back()));
        EXPECT_LE(both, asked * 1.01);
        EXPECT_GE(both, asked * 0.85);
        EXPECT_GT(std::min(reads, writes), asked * 0.3) << "one direction starves";
      } else {
        EXPECT_NEAR(reads, asked, asked * 0.01);
        EXPECT_NEAR(writes, asked, asked * 0.01);
      }
    }
  }
}

TEST(AxiMemory, AnswersInOrderUnlessAskedToReorder) {
  for (const bool reorder : {false, true}) {
    AxiMemory memory({.jitter = 30, .reorder = reorder});
    Master master(memory, 0);
    for (unsigned i = 0; i < 40; ++i) {
      master.read(4096 * i, 8, i % 5);
      master.write(4096 * i, Bytes(512, 7), ~0ULL, i % 5);
    }
    master.run();
    std::vector<std::uint32_t> asked, got, done;
    for (unsigned i = 0; i < 40; ++i) asked.push_back(i % 5);
    for (const auto& answer : master.answers) got.push_back(answer.id);
    for (const auto& answer : master.done) done.push_back(answer.id);
    EXPECT_EQ(got == asked, !reorder);
    EXPECT_EQ(done == asked, !reorder);
    unsigned changes = 0;
    for (std::size_t i = 1; i < master.beat_ids.size(); ++i) changes += master.beat_ids[i] != master.beat_ids[i - 1];
    if (reorder) {
      EXPECT_GT(changes, 60U) << "beats of different ids are interleaved";
    } else {
      EXPECT_EQ(changes, 39U);
    }
  }
}

TEST(AxiMemory, ReorderingKeepsTheOrderOfEachId) {
  AxiMemory memory({.beat_bytes = 8, .jitter = 9, .reorder = true});
  for (unsigned i = 0; i < 64; ++i) {
    memory.write(0, 8 * i, Bytes(8, static_cast<std::uint8_t>(i)));
  }
  Master master(memory, 0);
  for (unsigned i = 0; i < 64; ++i) master.read(8 * i, 1, i % 3);
  master.run();
  std::map<std::uint32_t, std::uint8_t> last;
  for (const auto& answer : master.answers) {
    if (last.contains(answer.id)) {
      EXPECT_EQ(answer.data[0], last[answer.id] + 3);
    }
    last[answer.id] = answer.data[0];
  }
}

TEST(AxiMemory, AWriteIsInMemoryWithItsAnswerAndNotEarlier) {
  AxiMemory memory({.write_latency = 30});
  Master master(memory, 0);
  master.write(0, Bytes(64, 5));
  for (unsigned i = 0; i < 20; ++i) master.edge();
  Bytes got(64);
  memory.read(0, 0, got);
  EXPECT_EQ(got[0], 0);
  master.run();
  memory.read(0, 0, got);
  EXPECT_EQ(got[63], 5);
}

TEST(AxiMemory, InjectsErrorsByAddress) {
  AxiMemory memory({.channels = 2});
  memory.fail(1, 128, 191, AxiResponse::kDecodeError);
  memory.fail(1, 300, 300, AxiResponse::kSlaveError);
  Master master(memory, 1);
  master.write(64, Bytes(192, 9));
  master.run();
  EXPECT_EQ(master.done.at(0).response, AxiResponse::kDecodeError);
  Bytes got(192);
  memory.read(1, 64, got);
  EXPECT_EQ(got[0], 9);
  EXPECT_EQ(got[64], 0) << "a failed beat is not stored";
  EXPECT_EQ(got[128], 9);
  master.read(0, 8);
  master.run();
  using enum AxiResponse;
  EXPECT_THAT(master.answers.at(0).responses,
              testing::ElementsAre(kOkay, kOkay, kDecodeError, kOkay, kSlaveError, kOkay, kOkay, kOkay));
  memory.heal();
  master.read(0, 8);
  master.run();
  EXPECT_THAT(master.answers.at(1).responses, testing::Each(kOkay));
  Master other(memory, 0);
  other.read(0, 8);
  other.run();
  EXPECT_THAT(other.answers.at(0).responses, testing::Each(kOkay));
}

TEST(AxiMemory, OffersStayUntilTakenWhateverStalls) {
  AxiMemory memory({.seed = 3,
                    .jitter = 5,
                    .stall_ar = 100,
                    .stall_r = 100,
                    .stall_aw = 100,
                    .stall_w = 100,
                    .stall_b = 100,
                    .reorder = true});
  Master master(memory, 0);
  std::mt19937_64 random(2);
  for (unsigned i = 0; i < 60; ++i) {
    master.read(4096 * i, 1 + static_cast<unsigned>(random() % 20), i % 4);
    master.write(4096 * i, noise(random, 64 * (1 + random() % 20)), ~0ULL, i % 4);
  }
  AxiOutputs before;
  bool took_read = true, took_done = true;
  while (!master.finished()) {
    const AxiOutputs& now = memory.outputs(0);
    if (before.rvalid && !took_read) {
      EXPECT_TRUE(now.rvalid && now.rid == before.rid && now.rdata == before.rdata && now.rlast == before.rlast);
    }
    if (before.bvalid && !took_done) {
      EXPECT_TRUE(now.bvalid && now.bid == before.bid && now.bresp == before.bresp);
    }
    before = now;
    took_read = master.take_reads = random() % 3 != 0;
    took_done = master.take_dones = random() % 3 != 0;
    master.edge();
    ASSERT_LT(master.now, 100000U);
  }
  EXPECT_EQ(master.answers.size(), 60U);
  EXPECT_EQ(master.done.size(), 60U);
}

TEST(AxiMemory, SameSeedSameOutputs) {
  const auto run = [](std::uint64_t seed) {
    AxiMemory memory({.seed = seed, .jitter = 12, .stall_ar = 60, .stall_r = 60, .stall_w = 60, .reorder = true});
    Master master(memory, 0);
    for (unsigned i = 0; i < 50; ++i) {
      master.read(4096 * i, 5, i % 4);
      master.write(4096 * i, Bytes(128, 1), ~0ULL, i % 4);
    }
    std::vector<AxiOutputs> trace;
    for (unsigned i = 0; i < 2000; ++i) {
      master.edge();
      trace.push_back(memory.outputs(0));
    }
    return trace;
  };
  EXPECT_TRUE(run(7) == run(7));
  EXPECT_FALSE(run(7) == run(8));
}

TEST(AxiMemory, SkippedEdgesAreLikeThoseInWhichNothingIsAsked) {
  const auto run = [](bool skips) {
    AxiMemory memory({.seed = 3,
                      .read_latency = 9,
                      .jitter = 12,
                      .bandwidth_beats = 2,
                      .bandwidth_cycles = 5,
                      .tlb = {.entries = 2, .page_bytes = 4096, .miss_cycles = 40}});
    Master master(memory, 0);
    std::mt19937_64 random(5);
    std::vector<AxiOutputs> trace;
    std::uint64_t skipped = 0;
    for (unsigned i = 0; i < 200; ++i) {
      if (random() % 2 == 0) master.read(4096 * (random() % 4), 1 + random() % 5);
      if (random() % 2 == 0) master.write(4096 * (random() % 4), Bytes(128, 1));
      for (std::uint64_t edge = random() % 300; edge > 0; --edge) {
        master.edge();
        trace.push_back(memory.outputs(0));
      }
      if (!memory.can_skip()) continue;
      const std::uint64_t edges = random() % 2 == 0 ? random() % 4 : random() % 10'000;
      skipped += edges;
      if (skips) {
        memory.skip(edges);
      } else {
        for (std::uint64_t edge = 0; edge < edges; ++edge) memory.tick(0, AxiInputs{});
      }
      trace.push_back(memory.outputs(0));
    }
    EXPECT_GT(skipped, 100'000U);
    return std::pair(trace, memory.counters(0).cycles);
  };
  EXPECT_TRUE(run(true) == run(false));
  AxiMemory pauses({.stall_w = 1});
  EXPECT_FALSE(pauses.can_skip());
}

TEST(AxiMemory, LimitsBurstsInFlight) {
  AxiMemory memory({.read_latency = 50, .write_latency = 50, .outstanding = 3});
  Master master(memory, 0);
  for (unsigned i = 0; i < 20; ++i) {
    master.read(64 * i, 1);
    master.write(64 * i, Bytes(64, 1));
  }
  master.run();
  EXPECT_EQ(memory.counters(0).most_reads, 3U);
  EXPECT_EQ(memory.counters(0).most_writes, 3U);
}

TEST(AxiMemory, ReportsWhatMastersMayNotDo) {
  const auto request = [](const std::function<void(AxiInputs&)>& change, unsigned edges = 3) {
    AxiMemory memory({.beat_bytes = 64, .stall_ar = 0});
    AxiInputs in;
    in.arsize = in.awsize = 6;
    change(in);
    for (unsigned i = 0; i < edges; ++i) memory.tick(0, in);
  };
  EXPECT_NO_THROW(request([](AxiInputs& in) { in.arvalid = true, in.araddr = 4096 - 128, in.arlen = 1; }));
  EXPECT_THROW(request([](AxiInputs& in) { in.arvalid = true, in.araddr = 4096 - 128, in.arlen = 2; }), AxiViolation);
  EXPECT_THROW(request([](AxiInputs& in) { in.arvalid = true, in.arburst = 2; }), AxiViolation);
  EXPECT_THROW(request([](AxiInputs& in) { in.awvalid = true, in.awsize = 2; }), AxiViolation);
  EXPECT_THROW(request([](AxiInputs& in) { in.awvalid = in.wvalid = true, in.awlen = 1, in.wlast = true; }),
               AxiViolation);
  EXPECT_THROW(request([](AxiInputs& in) { in.awvalid = in.wvalid = true, in.wlast = false; }), AxiViolation);

  AxiMemory memory({.read_latency = 50, .outstanding = 1});
  AxiInputs in;
  in.arsize = 6;
  in.arvalid = true;
  for (unsigned i = 0; i < 4; ++i) memory.tick(0, in);
  in.araddr = 64;  // the second request waits: it may not change
  EXPECT_THROW(memory.tick(0, in), AxiViolation);
}

TEST(AxiMemory, ChannelsAreApartOrOneMemory) {
  for (const bool one : {false, true}) {
    AxiMemory memory({.channels = 2, .one_memory = one});
    Master first(memory, 0);
    first.write(640, Bytes(64, 3));
    first.run();
    Master second(memory, 1);
    second.read(640, 1);
    second.run();
    EXPECT_EQ(second.answers.at(0).data[0], one ? 3 : 0);
  }
}

TEST(InterleavedMemory, PutsBlocksIntoChannelsInTurn) {
  std::mt19937_64 random(9);
  AxiMemory memory({.channels = 4});
  InterleavedMemory all(memory, 4096);
  const Bytes data = noise(random, 50000);
  all.write(12345, data);
  Bytes got(data.size());
  all.read(12345, got);
  EXPECT_EQ(got, data);
  // Byte 6 * 4096 + 17 is in channel 2, in its second block.
  std::uint8_t byte = 0;
  memory.read(2, 4096 + 17, {&byte, 1});
  EXPECT_EQ(byte, data[6 * 4096 + 17 - 12345]);
}

TEST(Pin, ReadsAndSetsBitsOfAnyPort) {
  std::mt19937_64 random(4);
  std::array<std::uint32_t, 5> port{};
  for (const unsigned width : {1U, 3U, 8U, 33U, 40U, 64U}) {
    const unsigned channels = static_cast<unsigned>(port.size()) * 32 / width;
    const Pin pin(port, width);
    std::vector<std::uint64_t> values;
    for (unsigned c = 0; c < channels; ++c) {
      values.push_back(random() >> (64 - width));
      pin.set(c, values.back());
    }
    for (unsigned c = 0; c < channels; ++c) EXPECT_EQ(pin.get(c), values[c]) << width << ' ' << c;
  }
  std::uint8_t flag = 0;
  const Pin pin(flag, 1);
  pin.set(0, 1);
  EXPECT_EQ(flag, 1);
  pin.set(0, 0);
  EXPECT_EQ(flag, 0);
  EXPECT_FALSE(Pin());
  EXPECT_EQ(Pin().get(0), 0U);
}

}  // namespace
}  // namespace unisono::sim
