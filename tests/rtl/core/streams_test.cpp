// Streams of kernels: as operands and local results of moves, and as src and dst of calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>

#include "collectives/algorithm.hpp"
#include "collectives/build.hpp"
#include "collectives/record.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/jobs.hpp"
#include "tests/rtl/core/machine.hpp"

namespace unisono::rtl {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{64} << 10U;
constexpr std::size_t kSrcPort = 1, kDstPort = 2;
constexpr std::uint32_t kBuffers = 1024;

const Algorithm& algorithm_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) return algorithm;
  }
  throw std::runtime_error("no such algorithm");
}

std::uint64_t place(std::uint32_t slot, std::size_t region) {
  return kFirstRegion + (slot * 5 + region) * kRegionStep % (std::uint64_t{2} << 20U) + 16 * region;
}

Bytes random_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Words of a packet; what is not kept holds other bytes.
void give(KernelPort& port, std::span<const std::byte> bytes, std::mt19937_64& random) {
  for (std::size_t at = 0; at < bytes.size(); at += kWord) {
    const std::size_t count = std::min(kWord, bytes.size() - at);
    Beat beat;
    for (auto& byte : beat.data) byte = static_cast<std::uint8_t>(random());
    std::memcpy(beat.data.data(), bytes.data() + at, count);
    beat.keep = count == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    beat.last = at + count == bytes.size();
    port.gives.push_back(beat);
  }
}

/// In packets of any length, which need not be those of the moves.
void give_in_pieces(KernelPort& port, std::span<const std::byte> bytes, std::mt19937_64& random) {
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), 1 + random() % 900);
    give(port, bytes.first(count), random);
    bytes = bytes.subspan(count);
  }
}

/// The packets that a kernel got; words but the last of each must be full.
std::vector<Bytes> packets(const KernelPort& port) {
  std::vector<Bytes> result(1);
  for (std::size_t i = 0; i < port.got.size(); ++i) {
    const Beat& beat = port.got[i];
    const auto count = static_cast<std::size_t>(__builtin_popcountll(beat.keep));
    const auto* bytes = reinterpret_cast<const std::byte*>(beat.data.data());
    result.back().insert(result.back().end(), bytes, bytes + count);
    EXPECT_TRUE(beat.last || count == kWord) << "a word inside a packet is not full";
    EXPECT_FALSE(port.cut[i]);
    if (beat.last) result.emplace_back();
  }
  EXPECT_TRUE(result.back().empty()) << "a packet has no end";
  result.pop_back();
  return result;
}

Bytes joined(const std::vector<Bytes>& packets) {
  Bytes all;
  for (const Bytes& packet : packets) all.insert(all.end(), packet.begin(), packet.end());
  return all;
}

bool uses_dst(const Call& call, std::uint32_t rank) {
  switch (call.collective) {
    case Collective::kReduce:
    case Collective::kGather:
      return rank == call.root;
    case Collective::kExscan:
      return rank != 0;
    default:
      return true;
  }
}

/// Runs a job with streams for src, dst or both, on every rank or on one. False: an engine has refused it.
bool run(const reference::Job& job, bool src, bool dst, int only, const MachineSettings& settings) {
  std::mt19937_64 random(settings.seed);
  const std::uint32_t size = job.size();
  CoreMachine machine(size, settings);
  std::vector<reference::RankInput> inputs(size);
  const bool bcast = job.call.collective == Collective::kBcast;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    inputs[rank].src = random_bytes(job.bytes(rank, Region::kSrc), random);
    inputs[rank].dst = random_bytes(job.bytes(rank, Region::kDst), random);
  }
  const auto expected = reference::interpret(job, inputs);
  const auto streams = [&](std::uint32_t rank) { return only < 0 || rank == static_cast<std::uint32_t>(only); };
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::array<std::pair<std::uint64_t, std::uint64_t>, 5> regions{};
    for (std::size_t region = 0; region < 5; ++region)
      regions[region] = {place(0, region), job.region_bytes[rank][region]};
    auto* memory = machine[rank].memory().data();
    std::memcpy(memory + place(0, 0), inputs[rank].src.data(), inputs[rank].src.size());
    std::memcpy(memory + place(0, 1), inputs[rank].dst.data(), inputs[rank].dst.size());
    if (!job.params.empty() && !job.params[rank].empty()) {
      std::memcpy(memory + place(0, 3), job.params[rank].data(), job.params[rank].size() * sizeof job.params[rank][0]);
    }
    if (src && streams(rank)) {
      regions[0] = {kSrcPort, 0};
      give_in_pieces(machine[rank].kernel(kSrcPort), inputs[rank].src, random);
    }
    if (dst && streams(rank)) {
      regions[1] = {kDstPort, 0};
      if (bcast && rank == job.call.root) give(machine[rank].kernel(kDstPort), inputs[rank].dst, random);
    }
    machine[rank].bind_streams(0, src && streams(rank), dst && streams(rank));
    Call call = job.call;
    call.rank = rank;
    machine[rank].begin(0, call, job.programs[rank], 7, regions);
  }
  for (std::uint64_t cycle = 0;; machine.tick(), ++cycle) {
    bool all = machine.quiet();
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const std::uint16_t code = machine[rank].failed(0);
      if (code == static_cast<std::uint16_t>(ErrorCode::kUnsupported)) return false;
      if (code != 0) {
        ADD_FAILURE() << "rank " << rank << " failed with code " << code;
        return true;
      }
      all = all && machine[rank].settled() && machine[rank].finished(0);
    }
    if (all) break;
    if (cycle == 200'000) {
      ADD_FAILURE() << "not ended: " << describe(job);
      return true;
    }
  }
  machine.run(100);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    EXPECT_EQ(machine[rank].free_buffers(), kBuffers);
    EXPECT_TRUE(machine[rank].kernel(kSrcPort).gives.empty());
    if (!uses_dst(job.call, rank) || (bcast && rank == job.call.root)) continue;
    Bytes got;
    if (dst && streams(rank)) {
      got = joined(packets(machine[rank].kernel(kDstPort)));
    } else {
      const std::byte* at = machine[rank].memory().data() + place(0, 1);
      got.assign(at, at + expected[rank].size());
    }
    EXPECT_TRUE(got == expected[rank]) << describe(job) << ", rank " << rank << (src ? " src" : "")
                                       << (dst ? " dst" : "");
  }
  return true;
}

std::string name(const Algorithm& algorithm) {
  return std::string(name_of(algorithm.collective)) + "/" + std::string(algorithm.name);
}

// Every algorithm is either right with streams or refused: with one for src (s), for dst (d), for both (b). The lists
// are those of docs/rtl/kernel_streams.md.
TEST(Streams, AsSrcAndDstOfCalls) {
  const std::map<std::string, std::string> known = {{"allgather/bruck", "s"},
                                                    {"allgather/chain", "sdb"},
                                                    {"allgather/flat", "s"},
                                                    {"allgather/recursive_doubling", "s"},
                                                    {"allgather/recursive_exchange", ""},
                                                    {"allgather/ring", "s"},
                                                    {"allgather/scattered", ""},
                                                    {"allgather/two_level", "s"},
                                                    {"allreduce/chain", "sdb"},
                                                    {"allreduce/flat", "d"},
                                                    {"allreduce/knomial", "s"},
                                                    {"allreduce/multi_leader", "s"},
                                                    {"allreduce/one_shot", "d"},
                                                    {"allreduce/rabenseifner", ""},
                                                    {"allreduce/recursive_doubling", "d"},
                                                    {"allreduce/recursive_multiplying", "d"},
                                                    {"allreduce/reduce_bcast", "s"},
                                                    {"allreduce/ring", ""},
                                                    {"allreduce/two_level", "s"},
                                                    {"allreduce/two_shot", ""},
                                                    {"alltoall/bruck", ""},
                                                    {"alltoall/pairwise", ""},
                                                    {"alltoall/scattered", ""},
                                                    {"alltoall/two_level", ""},
                                                    {"bcast/binomial", ""},
                                                    {"bcast/chain", "d"},
                                                    {"bcast/knomial", ""},
                                                    {"bcast/linear", ""},
                                                    {"bcast/scatter_allgather", ""},
                                                    {"bcast/two_level", ""},
                                                    {"bcast/two_shot", ""},
                                                    {"combine/direct", "s"},
                                                    {"copy/direct", "sdb"},
                                                    {"exscan/linear", "s"},
                                                    {"exscan/one_shot", "d"},
                                                    {"exscan/recursive_doubling", ""},
                                                    {"exscan/two_level", "s"},
                                                    {"gather/binomial", "s"},
                                                    {"gather/knomial", "s"},
                                                    {"gather/linear", "sdb"},
                                                    {"gather/two_level", "s"},
                                                    {"reduce/binomial", "s"},
                                                    {"reduce/chain", "sdb"},
                                                    {"reduce/knomial", "s"},
                                                    {"reduce/linear", "s"},
                                                    {"reduce/two_level", "s"},
                                                    {"reduce/two_shot", "d"},
                                                    {"reduce_scatter/one_shot", "d"},
                                                    {"reduce_scatter/pairwise", ""},
                                                    {"reduce_scatter/recursive_halving", "d"},
                                                    {"reduce_scatter/ring", "d"},
                                                    {"reduce_scatter/two_level", "sdb"},
                                                    {"scan/linear", "sdb"},
                                                    {"scan/one_shot", "d"},
                                                    {"scan/recursive_doubling", ""},
                                                    {"scan/two_level", "sdb"},
                                                    {"scatter/binomial", "d"},
                                                    {"scatter/knomial", "d"},
                                                    {"scatter/linear", "sdb"},
                                                    {"scatter/two_level", "d"}};
  std::map<std::string, std::string> found;
  for (const Algorithm& algorithm : algorithms()) {
    const Collective collective = algorithm.collective;
    if (algorithm.direct || reference::is_vector(collective)) continue;
    if (std::set{Collective::kBarrier, Collective::kPut, Collective::kGet, Collective::kSend, Collective::kRecv,
                 Collective::kNop}
            .contains(collective)) {
      continue;
    }
    Call call;
    call.collective = collective;
    call.func = reference::is_reduction(collective) ? Func::kSum : Func::kNone;
    call.dtype = Datatype::kInt16;
    call.size = collective == Collective::kCopy || collective == Collective::kCombine ? 1 : 4;
    call.root = reference::is_rooted(collective) ? call.size - 2 : 0;
    std::string able;
    bool listed = false;  // not of algorithms for communicators with switches: this machine has none
    for (const auto& [src, dst, sign] : {std::tuple{true, false, 's'}, {false, true, 'd'}, {true, true, 'b'}}) {
      if (collective == Collective::kBcast && src) continue;
      bool runs = true;
      for (const std::uint64_t count : {1U, 37U, 1500U, 6001U}) {
        if (!runs) break;
        call.count = count;
        MachineSettings settings;
        settings.seed = count + call.size;
        settings.stall_percent = count == 6001 ? 20 : 0;
        settings.segment_bytes = count == 1500 ? 1008 : 4096;
        settings.eager_limit = count == 37 ? 16 : settings.segment_bytes;
        const auto jobs = jobs_of(algorithm, call, 1);
        if (jobs.empty()) continue;
        listed = true;
        runs = run(jobs[0], src, dst, -1, settings);
        if (HasFailure()) FAIL() << name(algorithm) << ' ' << count << ' ' << sign;
        if (count == 1500 && runs) run(jobs[0], src, dst, static_cast<int>(call.root), settings);
      }
      if (runs) able += sign;
    }
    if (listed) found[name(algorithm)] = able;
  }
  for (const auto& [algorithm, able] : found) {
    const auto expected = known.find(algorithm);
    EXPECT_EQ(able, expected == known.end() ? "not listed" : expected->second) << algorithm;
  }
  EXPECT_EQ(found.size(), known.size());
}

Program program_of(std::vector<Move> moves) {
  Program program;
  program.moves = std::move(moves);
  return program;
}

using build::Build;

/// Runs one rank's program without regions until it ends; the code of its failure, or 0.
std::uint16_t run_alone(CoreMachine& machine, std::uint32_t slot, const Program& program,
                        std::uint64_t limit = 20'000) {
  Call call;
  call.size = machine.size();
  machine[0].begin(slot, call, program, 3, {});
  for (std::uint64_t cycle = 0; cycle < limit; ++cycle) {
    machine.tick();
    if (machine[0].settled() && machine[0].failed(slot) != 0) {
      const std::uint16_t code = machine[0].failed(slot);
      machine[0].abandon(slot);
      while (!machine[0].settled()) machine.tick();
      return code;
    }
    if (machine[0].settled() && machine[0].finished(slot)) return 0;
  }
  return static_cast<std::uint16_t>(ErrorCode::kTimeout);
}

Call bytes_call() {
  Call call;
  call.dtype = Datatype::kByte;
  call.size = 2;
  return call;
}

TEST(Streams, AMoveFromPortToPort) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    MachineSettings settings;
    settings.seed = seed;
    settings.stall_percent = seed == 1 ? 0 : 30;
    settings.segment_bytes = seed == 3 ? 2000 : 4096;
    CoreMachine machine(1, settings);
    std::mt19937_64 random(seed);
    Bytes all;
    std::vector<Bytes> expected;
    std::vector<Move> moves;
    for (const std::size_t count : {1U, 64U, 63U, 65U, 5000U, 128U, 1U, 9000U, 30U}) {
      moves.push_back(Build(bytes_call()).take_stream(3).keep_stream(0).count(count).after(moves.empty() ? 0 : 1));
      expected.push_back(random_bytes(count, random));
      all.insert(all.end(), expected.back().begin(), expected.back().end());
    }
    give_in_pieces(machine[0].kernel(3), all, random);
    ASSERT_EQ(run_alone(machine, 0, program_of(moves), 60'000), 0);
    machine.run(500);
    EXPECT_EQ(packets(machine[0].kernel(0)), expected) << "seed " << seed;
  }
}

TEST(Streams, RefusesWhatItCannotDo) {
  MachineSettings settings;
  CoreMachine machine(2, settings);
  const auto unsupported = static_cast<std::uint16_t>(ErrorCode::kUnsupported);
  const auto malformed = static_cast<std::uint16_t>(ErrorCode::kMalformedProgram);
  const auto code = [&](const Move& move) { return run_alone(machine, 5, program_of({move})); };
  EXPECT_EQ(code(Build(bytes_call()).take_stream(4).keep_stream(0).count(8)), unsupported);
  EXPECT_EQ(code(Build(bytes_call()).take_stream(0).keep_stream(15).count(8)), unsupported);
  EXPECT_EQ(code(Build(bytes_call()).take_stream(16).keep_stream(0).count(8)), malformed);
  Move remote = Build(bytes_call()).take_stream(0).keep_stream(1).count(8);
  remote.remote.kind = RemoteKind::kStream;
  remote.remote.peer = 1;
  EXPECT_EQ(code(remote), unsupported);
  // To several peers, from a stream that can be read once.
  Program several = program_of({Build(bytes_call()).take_stream(0).send(PeerMode::kList, 0, 0).count(8)});
  several.pool = {1, 1};
  EXPECT_EQ(run_alone(machine, 5, several), unsupported);
  // The slot is as good as new.
  std::mt19937_64 random(1);
  const Bytes bytes = random_bytes(200, random);
  give(machine[0].kernel(0), bytes, random);
  EXPECT_EQ(run_alone(machine, 5, program_of({Build(bytes_call()).take_stream(0).keep_stream(1).count(200)})), 0);
  machine.run(100);
  EXPECT_EQ(packets(machine[0].kernel(1)), std::vector<Bytes>{bytes});
}

void begin_pair(CoreMachine& machine, std::uint32_t rank, std::uint32_t slot, bool send, std::uint64_t bytes,
                std::uint32_t tag, std::uint32_t sequence, std::uint64_t place, bool stream) {
  Call call;
  call.collective = send ? Collective::kSend : Collective::kRecv;
  call.rank = rank;
  call.size = machine.size();
  call.root = 1 - rank;
  call.count = bytes;
  std::array<std::pair<std::uint64_t, std::uint64_t>, 5> regions{};
  regions[send ? 0 : 1] = {place, stream ? 0 : bytes};
  if (stream) machine[rank].bind_streams(slot, send, !send);
  machine[rank].begin(slot, call, record(algorithm_of(call.collective), call), sequence, regions, tag);
}

// Calls on one port take their data in the order in which they came, and their packets come in that order, while
// others with memory run beside them.
TEST(Streams, CallsOfAPortKeepTheirOrder) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    MachineSettings settings;
    settings.seed = seed;
    settings.stall_percent = seed % 2 == 0 ? 25 : 0;
    settings.eager_limit = settings.segment_bytes = seed % 3 == 0 ? 1000 : 4096;
    settings.rx_buffers = static_cast<std::uint32_t>(1 + seed % 3);
    CoreMachine machine(2, settings);
    std::mt19937_64 random(seed);
    std::uint32_t sequence = 0;
    Bytes all;
    std::vector<Bytes> expected;
    for (int round = 0; round < 5; ++round) {
      std::vector<Bytes> data, other;
      for (int i = 0; i < 4; ++i) {
        data.push_back(random_bytes(std::array<std::size_t, 6>{1, 64, 100, 1000, 3000, 9001}[random() % 6], random));
        other.push_back(random_bytes(std::array<std::size_t, 3>{40, 1000, 5000}[random() % 3], random));
        expected.push_back(data.back());
      }
      Bytes pieces;
      for (const Bytes& one : data) pieces.insert(pieces.end(), one.begin(), one.end());
      // The kernel may be early or late.
      const bool early = random() % 2 == 0;
      if (early) give_in_pieces(machine[0].kernel(2), pieces, random);
      for (std::uint32_t i = 0; i < 4; ++i) {
        begin_pair(machine, 0, i, true, data[i].size(), i, sequence++, 2, true);
        std::memcpy(machine[0].memory().data() + place(i + 4, 0), other[i].data(), other[i].size());
        begin_pair(machine, 0, i + 4, true, other[i].size(), 100 + i, sequence++, place(i + 4, 0), false);
        begin_pair(machine, 1, i, false, data[i].size() + random() % 50, i, 0, 3, true);
        begin_pair(machine, 1, i + 4, false, other[i].size(), 100 + i, 0, place(i + 4, 1), false);
        machine.run(random() % 80);
      }
      machine.run(random() % 300);
      if (!early) give_in_pieces(machine[0].kernel(2), pieces, random);
      for (std::uint64_t cycle = 0;; machine.tick(), ++cycle) {
        bool done = machine[0].settled() && machine[1].settled();
        for (std::uint32_t slot = 0; slot < 8; ++slot) {
          for (std::uint32_t rank = 0; rank < 2; ++rank) {
            ASSERT_EQ(machine[rank].failed(slot), 0);
            done = done && machine[rank].finished(slot);
          }
        }
        if (done) break;
        ASSERT_LT(cycle, 60'000U) << "seed " << seed << " round " << round << " does not end";
      }
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::byte* at = machine[1].memory().data() + place(i + 4, 1);
        EXPECT_TRUE(std::equal(other[i].begin(), other[i].end(), at));
      }
    }
    machine.run(2000);
    EXPECT_EQ(packets(machine[1].kernel(3)), expected) << "seed " << seed;
    for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_EQ(machine[rank].free_buffers(), kBuffers);
  }
}

// A kernel that takes nothing, and one that gives nothing, hold up their own calls only.
TEST(Streams, AKernelThatSleepsHoldsUpNobodyElse) {
  MachineSettings settings;
  settings.rx_buffers = 2;
  CoreMachine machine(2, settings);
  std::mt19937_64 random(5);
  machine[1].kernel(0).reads = false;
  const Bytes much = random_bytes(40'000, random);
  give(machine[0].kernel(1), much, random);
  begin_pair(machine, 0, 0, true, much.size(), 9, 0, 1, true);  // more than the queue of the port takes
  begin_pair(machine, 1, 0, false, much.size(), 9, 0, 0, true);
  begin_pair(machine, 1, 1, false, 500, 10, 0, place(1, 1), false);
  begin_pair(machine, 1, 2, true, 3000, 11, 0, 3, true);  // nobody gives anything there
  begin_pair(machine, 0, 2, false, 3000, 11, 0, place(2, 1), false);
  machine.run(3000);
  std::uint32_t sequence = 1;
  for (int round = 0; round < 30; ++round) {
    const Bytes data = random_bytes(1 + random() % 9000, random);
    std::memcpy(machine[0].memory().data() + place(4, 0), data.data(), data.size());
    begin_pair(machine, 0, 4, true, data.size(), 12, sequence++, place(4, 0), false);
    begin_pair(machine, 1, 4, false, data.size(), 12, 0, place(4, 1), false);
    for (int cycle = 0; !(machine[0].settled() && machine[0].finished(4) && machine[1].finished(4)); ++cycle) {
      machine.tick();
      ASSERT_LT(cycle, 5000) << "round " << round;
    }
    EXPECT_TRUE(std::equal(data.begin(), data.end(), machine[1].memory().data() + place(4, 1)));
  }
  EXPECT_FALSE(machine[1].finished(0));
  EXPECT_FALSE(machine[0].finished(2));
  machine[1].kernel(0).reads = true;
  const Bytes late = random_bytes(3000, random);
  give(machine[1].kernel(3), late, random);
  for (int cycle = 0; !(machine[0].finished(0) && machine[1].finished(0) && machine[0].finished(2)); ++cycle) {
    machine.tick();
    ASSERT_LT(cycle, 20'000);
  }
  machine.run(1000);
  EXPECT_EQ(packets(machine[1].kernel(0)), std::vector<Bytes>{much});
  EXPECT_TRUE(std::equal(late.begin(), late.end(), machine[0].memory().data() + place(2, 1)));
}

// A call is ended in the middle of its packet: the packet is cut off, the next one is whole.
TEST(Streams, ACallThatEndsEarlyCutsItsPacket) {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MachineSettings settings;
    settings.seed = seed;
    settings.segment_bytes = 1000;
    CoreMachine machine(1, settings);
    std::mt19937_64 random(seed);
    const Bytes first = random_bytes(6000, random), second = random_bytes(777, random);
    give(machine[0].kernel(0), std::span(first).first(1 + random() % 5500), random);
    Call call = bytes_call();
    machine[0].begin(1, call, program_of({Build(call).take_stream(0).keep_stream(1).count(6000)}), 3, {});
    machine.run(20 + random() % 400);
    machine[0].abandon(1);
    for (int i = 0; !machine[0].settled(); ++i) {
      machine.tick();
      ASSERT_LT(i, 500);
    }
    give(machine[0].kernel(2), second, random);
    ASSERT_EQ(run_alone(machine, 1, program_of({Build(call).take_stream(2).keep_stream(1).count(777)})), 0);
    machine.run(200);
    KernelPort& port = machine[0].kernel(1);
    const auto end = std::find(port.cut.begin(), port.cut.end(), true);
    Bytes before;
    if (end != port.cut.end()) {
      const auto words = static_cast<std::size_t>(end - port.cut.begin()) + 1;
      for (std::size_t i = 0; i < words; ++i) {
        const auto* at = reinterpret_cast<const std::byte*>(port.got[i].data.data());
        before.insert(before.end(), at, at + __builtin_popcountll(port.got[i].keep));
        EXPECT_EQ(port.got[i].last, i + 1 == words);
      }
      port.got.erase(port.got.begin(), port.got.begin() + static_cast<std::ptrdiff_t>(words));
      port.cut.erase(port.cut.begin(), end + 1);
      EXPECT_TRUE(before.size() < first.size() && std::equal(before.begin(), before.end(), first.begin()));
      EXPECT_EQ(before.size() % 1000, 0U);
    }
    sizes.insert(before.size());
    EXPECT_EQ(packets(port), std::vector<Bytes>{second}) << "seed " << seed;
  }
  EXPECT_GT(sizes.size(), 3U);
}

}  // namespace
}  // namespace unisono::rtl
