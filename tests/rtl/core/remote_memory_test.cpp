// Puts and gets between cores: what stands in windows and results afterwards, bit for bit as the interpreter has it,
// when they are complete, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "collectives/algorithm.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/machine.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kWindow = (std::uint64_t{8} << 20U) + 5;  // receive buffers stand below; an odd place
constexpr std::uint64_t kWindowBytes = 40'000;
constexpr std::uint64_t kSources = std::uint64_t{9} << 20U;  // of a slot's call: a step for each
constexpr std::uint64_t kStep = std::uint64_t{64} << 10U;
constexpr std::uint64_t kLimit = 200'000;

const Algorithm& algorithm_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) return algorithm;
  }
  throw std::runtime_error("no such algorithm");
}

/// What a rank puts, and where; or gets.
struct Put {
  std::uint32_t origin = 0, peer = 0, slot = 0;
  std::uint64_t offset = 0;  ///< in the window
  std::uint64_t count = 0;
  Datatype dtype = Datatype::kByte;
  std::uint64_t source = 0;  ///< bytes from the begin of the slot's memory: of what is put, or the place of what is got
  bool get = false;
};

class Puts : public testing::Test {
 protected:
  void make(std::uint32_t size, MachineSettings settings) {
    settings_ = settings;
    machine_ = std::make_unique<CoreMachine>(size, settings);
    std::mt19937_64 random(settings.seed);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      auto& memory = (*machine_)[rank].memory();
      for (std::uint64_t at = std::uint64_t{8} << 20U; at < memory.size(); ++at) {
        memory[at] = static_cast<std::byte>(random());
      }
      (*machine_)[rank].bind_window(kWindow, kWindowBytes);
      expected_.push_back(window(rank));
    }
  }
  std::vector<std::byte> window(std::uint32_t rank) {
    const auto begin = (*machine_)[rank].memory().begin() + static_cast<std::ptrdiff_t>(kWindow) - 64;
    return {begin, begin + static_cast<std::ptrdiff_t>(kWindowBytes) + 128};  // and what is beside it
  }
  static std::uint64_t bytes(const Put& put) { return put.count * bytes_of(put.dtype); }
  reference::Job job_of(const Put& put) const {
    Call call;
    call.collective = put.get ? Collective::kGet : Collective::kPut;
    call.dtype = put.dtype;
    call.size = machine_->size();
    call.rank = put.origin;
    call.root = put.peer;
    call.count = put.count;
    return reference::make_job(algorithm_of(call.collective), call);
  }
  static std::uint64_t place(const Put& put) { return kSources + put.slot * kStep + put.source; }
  void begin(const Put& put) {
    const reference::Job job = job_of(put);
    const std::pair<std::uint64_t, std::uint64_t> own{place(put), bytes(put)}, none{0, 0};
    // The binding of the window says what the call adds to offsets in it.
    (*machine_)[put.origin].begin(put.slot, job.call, job.programs[put.origin], 0,
                                  {{put.get ? none : own, put.get ? own : none, none, none, {put.offset, 0}}});
  }
  /// What the interpreter makes of the origin's result, with what is in the target's window now.
  std::vector<std::byte> result_of(const Put& get) {
    const reference::Job job = job_of(get);
    std::vector<reference::RankInput> inputs(job.size());
    const auto there = node(get.peer).memory().begin() + static_cast<std::ptrdiff_t>(kWindow + get.offset);
    inputs[get.origin].dst.resize(bytes(get));
    inputs[get.peer].window.assign(there, there + static_cast<std::ptrdiff_t>(bytes(get)));
    return reference::interpret(job, inputs)[get.origin];
  }
  /// The slot's memory at the origin, from 64 bytes before the result to 64 behind it.
  std::vector<std::byte> around(const Put& get) {
    const auto at = node(get.origin).memory().begin() + static_cast<std::ptrdiff_t>(place(get)) - 64;
    return {at, at + static_cast<std::ptrdiff_t>(bytes(get)) + 128};
  }
  /// What is to stand there.
  std::vector<std::byte> wanted(const Put& get) {
    std::vector<std::byte> memory = around(get);
    const std::vector<std::byte> result = result_of(get);
    std::copy(result.begin(), result.end(), memory.begin() + 64);
    return memory;
  }
  /// What the interpreter makes of the target's window.
  void expect(const Put& put) {
    const reference::Job job = job_of(put);
    std::vector<reference::RankInput> inputs(job.size());
    const auto& memory = (*machine_)[put.origin].memory();
    const auto from = memory.begin() + static_cast<std::ptrdiff_t>(kSources + put.slot * kStep + put.source);
    inputs[put.origin].src.assign(from, from + static_cast<std::ptrdiff_t>(bytes(put)));
    inputs[put.peer].window.assign(bytes(put), std::byte{0});
    const auto run = reference::Interpreter(job).run_numbers(inputs, reference::Policy::generous());
    ASSERT_FALSE(run.finding) << run.finding->text;
    const auto& window = run.memory[put.peer][static_cast<std::size_t>(Region::kWindow)];
    std::copy(window.begin(), window.end(), expected_[put.peer].begin() + static_cast<std::ptrdiff_t>(64 + put.offset));
  }
  CoreNode& node(std::uint32_t rank) { return (*machine_)[rank]; }
  /// Goes on until the slot's call has ended, or failed. The cycles that took.
  std::uint64_t finish(std::uint32_t rank, std::uint32_t slot) {
    const std::uint64_t from = machine_->cycle();
    while (!(node(rank).settled() && node(rank).finished(slot)) && node(rank).failed(slot) == 0) {
      machine_->tick();
      if (machine_->cycle() - from == kLimit) {
        ADD_FAILURE() << "rank " << rank << ": not ended";
        break;
      }
    }
    return machine_->cycle() - from;
  }
  void compare(const std::string& what) {
    for (std::uint32_t rank = 0; rank < machine_->size(); ++rank) {
      EXPECT_TRUE(window(rank) == expected_[rank]) << what << ", window of rank " << rank;
    }
  }

  MachineSettings settings_;
  std::unique_ptr<CoreMachine> machine_;
  std::vector<std::vector<std::byte>> expected_;
};

// When a put has ended for its origin, it stands in the window.
TEST_F(Puts, OfAllSizesAndPlacesStandInTheWindow) {
  for (const std::uint32_t stalls : {0U, 30U}) {
    MachineSettings settings;
    settings.stall_percent = stalls;
    settings.segment_bytes = 1024;
    expected_.clear();
    make(3, settings);
    std::uint32_t turn = 0;
    for (const std::uint64_t count : {0U, 1U, 3U, 63U, 64U, 65U, 1023U, 1024U, 1025U, 5001U, 20'000U}) {
      for (const std::uint64_t offset : {0U, 1U, 13U, 64U, 4095U}) {
        const Put put{turn % 3, (turn / 3 + turn + 1) % 3, turn % 8, offset, count, Datatype::kByte, turn % 67};
        ++turn;
        expect(put);
        begin(put);
        finish(put.origin, put.slot);
        EXPECT_EQ(node(put.origin).failed(put.slot), 0);
        compare(std::to_string(count) + " bytes at " + std::to_string(offset));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(Puts, FillTheWindowToItsLastByte) {
  make(2, {});
  const Put all{0, 1, 2, 0, kWindowBytes / 4, Datatype::kFp32, 3};
  const Put end{1, 0, 2, kWindowBytes - 6, 3, Datatype::kFp16, 1};
  for (const Put& put : {all, end}) {
    expect(put);
    begin(put);
  }
  for (const Put& put : {all, end}) {
    finish(put.origin, put.slot);
    EXPECT_EQ(node(put.origin).failed(put.slot), 0);
  }
  compare("all of it");
}

using Gets = Puts;

TEST_F(Gets, OfAllSizesAndPlacesStandInTheResult) {
  for (const std::uint32_t stalls : {0U, 30U}) {
    MachineSettings settings;
    settings.stall_percent = stalls;
    settings.segment_bytes = 1024;
    expected_.clear();
    make(3, settings);
    std::uint32_t turn = 0;
    for (const std::uint64_t count : {0U, 1U, 3U, 63U, 64U, 65U, 1023U, 1024U, 1025U, 5001U, 20'000U}) {
      for (const std::uint64_t offset : {0U, 1U, 13U, 64U, 4095U}) {
        const Put get{turn % 3, (turn / 3 + turn + 1) % 3, turn % 8, offset, count, Datatype::kByte, turn % 67, true};
        ++turn;
        const auto expected = wanted(get);
        begin(get);
        finish(get.origin, get.slot);
        EXPECT_EQ(node(get.origin).failed(get.slot), 0);
        EXPECT_TRUE(around(get) == expected) << count << " bytes at " << offset;
        if (HasFailure()) return;
      }
    }
    compare("gets change no window");
  }
}

TEST_F(Gets, EndWhenTheirMemoryHasThem) {
  MachineSettings settings;
  settings.memory_latency = 3000;
  make(2, settings);
  begin({0, 1, 0, 100, 200, Datatype::kByte, 0, true});
  EXPECT_GE(finish(0, 0), 2 * settings.memory_latency + 2 * settings.network_latency);
}

TEST_F(Gets, BeyondTheWindowAreRefused) {
  MachineSettings settings;
  settings.segment_bytes = 1024;
  make(2, settings);
  const auto too_small = static_cast<std::uint16_t>(ErrorCode::kBufferTooSmall);
  std::uint32_t slot = 0;
  for (const auto& [offset, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {kWindowBytes - 4000, 4001}, {kWindowBytes, 1}, {kWindowBytes - 1, 2}, {std::uint64_t{1} << 46U, 5000}}) {
    const Put get{0, 1, slot, offset, count, Datatype::kByte, 0, true};
    const auto before = around(get);
    begin(get);
    const Put beside{0, 1, slot + 4, kWindowBytes - 100, 100, Datatype::kByte, 5, true};
    const auto expected = wanted(beside);
    begin(beside);
    finish(0, slot);
    EXPECT_EQ(node(0).failed(slot), too_small) << offset << ", " << count;
    EXPECT_TRUE(around(get) == before);
    finish(0, slot + 4);
    EXPECT_EQ(node(0).failed(slot + 4), 0);
    EXPECT_TRUE(around(beside) == expected);
    node(0).abandon(slot);
    ++slot;
  }
  node(1).bind_window(kWindow, 0);
  begin({0, 1, 1, 0, 1, Datatype::kByte, 0, true});
  finish(0, 1);
  EXPECT_EQ(node(0).failed(1), too_small);
}

// A move may follow a get by segments, as any other: it goes on when the get is complete.
TEST_F(Gets, AreFollowedBySegments) {
  MachineSettings settings;
  settings.segment_bytes = 512;
  make(2, settings);
  for (const std::uint64_t count : {64U, 500U, 5001U, 15'000U}) {
    const Put get{0, 1, 3, 77, count, Datatype::kByte, 0, true};
    Program program = job_of(get).programs[0];
    ASSERT_EQ(program.moves.size(), 1U);
    // The result once more, behind itself, and twice.
    for (std::uint32_t k = 0; k < 2; ++k) {
      Move copy;
      copy.kind = MoveKind::kMove;
      copy.dtype = Datatype::kByte;
      copy.count = count;
      copy.segment_dependency0 = 1;
      copy.op0 = program.moves[0].local;
      copy.op0.offset = k * count;
      copy.local = program.moves[0].local;
      copy.local.offset = (k + 1) * count;
      program.moves.push_back(copy);
    }
    const auto result = result_of(get);
    const std::pair<std::uint64_t, std::uint64_t> own{place(get), 3 * count}, none{0, 0};
    node(0).begin(get.slot, job_of(get).call, program, 0, {{none, own, none, none, {get.offset, 0}}});
    EXPECT_LT(finish(0, get.slot), 20'000U);
    EXPECT_EQ(node(0).failed(get.slot), 0);
    for (std::uint32_t k = 0; k < 3; ++k) {
      const auto at = node(0).memory().begin() + static_cast<std::ptrdiff_t>(place(get) + k * count);
      EXPECT_TRUE(std::equal(result.begin(), result.end(), at)) << "copy " << k << " of " << count << " bytes";
    }
  }
}

TEST_F(Gets, ThatMemoryRefusesFail) {
  make(2, {});
  node(0).break_memory(4);
  begin({0, 1, 3, 0, 5000, Datatype::kByte, 0, true});
  finish(0, 3);
  EXPECT_EQ(node(0).failed(3), static_cast<std::uint16_t>(ErrorCode::kInternal));
  node(0).abandon(3);
  const Put again{0, 1, 3, 0, 5000, Datatype::kByte, 0, true};
  const auto expected = wanted(again);
  begin(again);
  finish(0, 3);
  EXPECT_EQ(node(0).failed(3), 0);
  EXPECT_TRUE(around(again) == expected);
}

// Data of a get that was given up is written nowhere, and ends nothing.
TEST_F(Gets, DataThatComesTooLateIsDropped) {
  MachineSettings settings;
  settings.network_latency = 2000;
  make(2, settings);
  for (const std::uint64_t patience : {100U, 2100U, 3900U, 4050U}) {
    const Put first{0, 1, 3, 0, 5000, Datatype::kByte, 0, true};
    const auto before = around(first);
    begin(first);
    machine_->run(patience);
    node(0).abandon(3);
    while (!node(0).settled()) machine_->tick();
    EXPECT_TRUE(around(first) == before) << patience;
    const Put get{0, 1, 3, 1000, 700, Datatype::kByte, 9, true};
    const auto expected = wanted(get);
    begin(get);
    EXPECT_GE(finish(0, 3), 2 * settings.network_latency) << patience;
    EXPECT_EQ(node(0).failed(3), 0);
    EXPECT_TRUE(around(get) == expected) << patience;
    machine_->run(5000);
    EXPECT_TRUE(around(get) == expected) << patience;
  }
}

// The answer comes when the memory of the target has taken the last word, and not before.
TEST_F(Puts, EndWhenTheMemoryOfTheTargetHasThem) {
  MachineSettings settings;
  settings.memory_latency = 3000;
  make(2, settings);
  const Put put{0, 1, 0, 100, 200, Datatype::kByte, 0};
  begin(put);
  EXPECT_GE(finish(0, 0), 2 * settings.memory_latency + 2 * settings.network_latency);
}

// Every rank puts from all its slots at once, to all ranks and to itself, beside collectives.
TEST_F(Puts, ManyAtOnceBesideCollectives) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    MachineSettings settings;
    settings.seed = seed;
    settings.segment_bytes = settings.eager_limit = 512;
    settings.rx_buffers = 2;
    settings.stall_percent = seed % 2 == 0 ? 25 : 0;
    expected_.clear();
    constexpr std::uint32_t kSize = 4;
    make(kSize, settings);
    std::mt19937_64 random(seed);

    Call call;
    call.collective = Collective::kAllgather;
    call.dtype = Datatype::kByte;
    call.size = kSize;
    call.count = 3001;
    const reference::Job job = reference::make_job(algorithm_of(Collective::kAllgather), call);
    std::vector<reference::RankInput> inputs(kSize);
    const std::uint64_t src = kSources + 7 * kStep, dst = src + 4096;
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      const auto& memory = node(rank).memory();
      inputs[rank].src.assign(memory.begin() + static_cast<std::ptrdiff_t>(src),
                              memory.begin() + static_cast<std::ptrdiff_t>(src + 3001));
      inputs[rank].dst.resize(kSize * 3001);
    }
    const auto gathered = reference::interpret(job, inputs);
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      Call own = call;
      own.rank = rank;
      node(rank).begin(7, own, job.programs[rank], 9, {{{src, 3001}, {dst, kSize * 3001}, {0, 0}, {0, 0}, {0, 0}}});
    }
    // Places in a window that no two puts share.
    constexpr std::uint64_t kPart = 1400;
    std::vector<Put> puts;
    for (std::uint32_t origin = 0; origin < kSize; ++origin) {
      for (std::uint32_t slot = 0; slot < 7; ++slot) {
        const auto count = static_cast<std::uint64_t>(random() % (kPart - 70));
        puts.push_back({origin, static_cast<std::uint32_t>(random() % kSize), slot,
                        (origin * 7 + slot) * kPart + random() % 64, count, Datatype::kByte, random() % 64,
                        random() % 2 == 0});
      }
    }
    // Nobody puts to what is got.
    std::vector<std::vector<std::byte>> results;
    for (const Put& put : puts) {
      results.push_back(put.get ? wanted(put) : std::vector<std::byte>{});
      if (!put.get) expect(put);
      begin(put);
    }
    for (std::size_t i = 0; i < puts.size(); ++i) {
      finish(puts[i].origin, puts[i].slot);
      EXPECT_EQ(node(puts[i].origin).failed(puts[i].slot), 0);
      if (puts[i].get) {
        EXPECT_TRUE(around(puts[i]) == results[i]) << "seed " << seed << ", operation " << i;
      }
    }
    compare("seed " + std::to_string(seed));
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      finish(rank, 7);
      const auto at = node(rank).memory().begin() + static_cast<std::ptrdiff_t>(dst);
      EXPECT_TRUE(std::equal(gathered[rank].begin(), gathered[rank].end(), at)) << "rank " << rank;
    }
    if (HasFailure()) return;
  }
}

// Not all of it fits: nothing is written, also of the segments that would; the call fails, others do not.
TEST_F(Puts, BeyondTheWindowAreRefused) {
  MachineSettings settings;
  settings.segment_bytes = 1024;
  make(2, settings);
  const auto too_small = static_cast<std::uint16_t>(ErrorCode::kBufferTooSmall);
  std::uint32_t slot = 0;
  for (const auto& [offset, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {kWindowBytes - 4000, 4001}, {kWindowBytes, 1}, {kWindowBytes - 1, 2}, {std::uint64_t{1} << 46U, 5000}}) {
    begin({0, 1, slot, offset, count, Datatype::kByte, 0});
    const Put beside{0, 1, slot + 4, 128 * slot, 100, Datatype::kByte, 5};
    expect(beside);
    begin(beside);
    finish(0, slot);
    EXPECT_EQ(node(0).failed(slot), too_small) << offset << ", " << count;
    finish(0, slot + 4);
    EXPECT_EQ(node(0).failed(slot + 4), 0);
    compare("at " + std::to_string(offset));
    node(0).abandon(slot);
    ++slot;
  }
  node(1).bind_window(kWindow, 0);
  begin({0, 1, 1, 0, 1, Datatype::kByte, 0});
  finish(0, 1);
  EXPECT_EQ(node(0).failed(1), too_small);
  compare("no window");
}

TEST_F(Puts, BeyondWhatAnyWindowCanHaveAreRefusedHere) {
  make(2, {});
  begin({0, 1, 3, (std::uint64_t{1} << 48U) - 4, 5, Datatype::kByte, 0});
  finish(0, 3);
  EXPECT_EQ(node(0).failed(3), static_cast<std::uint16_t>(ErrorCode::kInvalidArgument));
  machine_->run(500);
  compare("none");
}

TEST_F(Puts, ThatMemoryRefusesFail) {
  make(2, {});
  node(1).break_memory(4);
  begin({0, 1, 3, 0, 5000, Datatype::kByte, 0});
  finish(0, 3);
  EXPECT_EQ(node(0).failed(3), static_cast<std::uint16_t>(ErrorCode::kInternal));
  node(0).abandon(3);
  const Put again{0, 1, 3, 0, 5000, Datatype::kByte, 0};
  expect(again);
  begin(again);
  finish(0, 3);
  EXPECT_EQ(node(0).failed(3), 0);
  compare("again");
}

// The answer to a put that was given up does not end the next one of its slot.
TEST_F(Puts, AnAnswerThatComesTooLateEndsNothing) {
  MachineSettings settings;
  settings.network_latency = 2000;
  make(2, settings);
  for (const std::uint64_t patience : {100U, 2100U, 3900U, 4050U}) {
    begin({0, 1, 3, 0, 500, Datatype::kByte, 0});
    machine_->run(patience);
    node(0).abandon(3);
    const Put put{0, 1, 3, 1000, 700, Datatype::kByte, 9};
    begin(put);
    EXPECT_GE(finish(0, 3), 2 * settings.network_latency) << patience;
    EXPECT_EQ(node(0).failed(3), 0);
    machine_->run(5000);
  }
}

}  // namespace
}  // namespace unisono::rtl
