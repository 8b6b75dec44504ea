// Every collective by every algorithm, on different numbers of ranks, lengths and protocols, against values
// computed from the definition of the collective.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>

#include "core/arithmetic.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using Element = std::int64_t;
constexpr Element kUntouched = -77;

/// Element i of rank r's input.
Element input(std::uint32_t r, std::uint64_t i) { return static_cast<Element>((r + 1) * 1'000'003ULL + i * 7); }

/// One rank's buffers for one call, and what they must hold afterwards.
struct Case {
  CallRequest request;
  std::vector<Element> src, dst, expected_src, expected_dst;
  std::vector<std::uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
  VectorArguments vectors;
};

/// Elements that rank i sends to rank j in alltoallv, symmetric, and zero for some pairs.
std::uint64_t pair_count(std::uint64_t count, std::uint32_t i, std::uint32_t j) {
  return count == 0 || (i + j) % 4 == 3 ? 0 : (count * (i + j + 1) + i * j) % 29 + count % 7;
}
/// Elements of rank i's block in the other v-collectives.
std::uint64_t block_count(std::uint64_t count, std::uint32_t i) { return i % 3 == 1 ? 0 : count / (i + 1) + i; }

/// Displacements with a gap of `gap` elements between blocks; returns the buffer's length.
std::uint64_t lay_out(const std::vector<std::uint64_t>& counts, std::uint64_t gap, std::vector<std::uint64_t>& begins) {
  std::uint64_t at = 0;
  begins.clear();
  for (const std::uint64_t n : counts) {
    begins.push_back(at);
    at += n + gap;
  }
  return at;
}

void fill(std::vector<Element>& values, std::uint64_t at, std::uint32_t r, std::uint64_t from, std::uint64_t n) {
  for (std::uint64_t k = 0; k < n; ++k) values[at + k] = input(r, from + k);
}

Element fold(std::uint32_t ranks, std::uint64_t i) {
  Element sum = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) sum += input(r, i);
  return sum;
}

void prepare(Case& c, Collective collective, std::uint32_t rank, std::uint32_t size, std::uint64_t n,
             std::uint32_t root, bool in_place) {
  c = Case{};
  const bool is_root = rank == root;
  const bool at_dst = in_place;  // input stands in dst
  auto& src = c.src;
  auto& dst = c.dst;
  c.request = request<Element>(collective, n, root);
  c.request.call.in_place = in_place;
  const auto own_input = [&](std::uint64_t length, std::uint64_t dst_length, std::uint64_t dst_at) {
    dst.assign(dst_length, kUntouched);
    if (at_dst) {
      fill(dst, dst_at, rank, 0, length);
    } else {
      src.resize(length);
      fill(src, 0, rank, 0, length);
    }
  };
  switch (collective) {
    case Collective::kBarrier:
    case Collective::kNop:
      break;
    case Collective::kBcast:
      dst.assign(n, kUntouched);
      if (is_root) fill(dst, 0, root, 0, n);
      c.expected_dst.resize(n);
      fill(c.expected_dst, 0, root, 0, n);
      break;
    case Collective::kReduce:
      if (is_root) {
        own_input(n, n, 0);
        for (std::uint64_t i = 0; i < n; ++i) c.expected_dst.push_back(fold(size, i));
      } else {
        src.resize(n);
        fill(src, 0, rank, 0, n);
      }
      c.request.call.func = Func::kSum;
      break;
    case Collective::kAllreduce:
      own_input(n, n, 0);
      for (std::uint64_t i = 0; i < n; ++i) c.expected_dst.push_back(fold(size, i));
      c.request.call.func = Func::kSum;
      break;
    case Collective::kScan:
      own_input(n, n, 0);
      for (std::uint64_t i = 0; i < n; ++i) c.expected_dst.push_back(fold(rank + 1, i));
      c.request.call.func = Func::kSum;
      break;
    case Collective::kExscan:
      own_input(n, n, 0);
      c.expected_dst = dst;
      if (rank > 0) {
        for (std::uint64_t i = 0; i < n; ++i) c.expected_dst[i] = fold(rank, i);
      }
      c.request.call.func = Func::kSum;
      break;
    case Collective::kReduceScatter:
      own_input(n * size, at_dst ? n * size : n, 0);
      for (std::uint64_t i = 0; i < n; ++i) c.expected_dst.push_back(fold(size, rank * n + i));
      c.request.call.func = Func::kSum;
      break;
    case Collective::kAllgather:
      own_input(n, n * size, rank * n);
      c.expected_dst.resize(n * size);
      for (std::uint32_t r = 0; r < size; ++r) fill(c.expected_dst, r * n, r, 0, n);
      break;
    case Collective::kGather:
      if (is_root) {
        own_input(n, n * size, rank * n);
        c.expected_dst.resize(n * size);
        for (std::uint32_t r = 0; r < size; ++r) fill(c.expected_dst, r * n, r, 0, n);
      } else {
        src.resize(n);
        fill(src, 0, rank, 0, n);
      }
      break;
    case Collective::kScatter:
      if (is_root) {
        src.resize(n * size);
        fill(src, 0, root, 0, n * size);
      }
      if (!(is_root && in_place)) {
        dst.assign(n, kUntouched);
        c.expected_dst.resize(n);
        fill(c.expected_dst, 0, root, rank * n, n);
      }
      break;
    case Collective::kAlltoall:
      own_input(n * size, n * size, 0);
      c.expected_dst.resize(n * size);
      for (std::uint32_t r = 0; r < size; ++r) fill(c.expected_dst, r * n, r, rank * n, n);
      break;
    case Collective::kGatherv:
    case Collective::kAllgatherv: {
      for (std::uint32_t r = 0; r < size; ++r) c.recv_counts.push_back(block_count(n, r));
      const std::uint64_t length = lay_out(c.recv_counts, 2, c.recv_displacements);
      const bool collects = is_root || collective == Collective::kAllgatherv;
      const std::uint64_t own = c.recv_counts[rank];
      if (collects) {
        own_input(own, length, c.recv_displacements[rank]);
        c.expected_dst.assign(length, kUntouched);
        for (std::uint32_t r = 0; r < size; ++r) fill(c.expected_dst, c.recv_displacements[r], r, 0, c.recv_counts[r]);
      } else {
        src.resize(own);
        fill(src, 0, rank, 0, own);
      }
      break;
    }
    case Collective::kReduceScatterv: {
      for (std::uint32_t r = 0; r < size; ++r) c.recv_counts.push_back(block_count(n, r));
      const std::uint64_t length = lay_out(c.recv_counts, 2, c.recv_displacements);
      own_input(length, at_dst ? length : c.recv_counts[rank], 0);
      for (std::uint64_t i = 0; i < c.recv_counts[rank]; ++i) {
        c.expected_dst.push_back(fold(size, c.recv_displacements[rank] + i));
      }
      c.request.call.func = Func::kSum;
      break;
    }
    case Collective::kScatterv: {
      for (std::uint32_t r = 0; r < size; ++r) c.send_counts.push_back(block_count(n, r));
      const std::uint64_t length = lay_out(c.send_counts, 3, c.send_displacements);
      if (is_root) {
        src.assign(length, kUntouched);
        for (std::uint32_t r = 0; r < size; ++r) fill(src, c.send_displacements[r], r, 5, c.send_counts[r]);
      }
      if (!(is_root && in_place)) {
        dst.assign(c.send_counts[rank], kUntouched);
        c.expected_dst.resize(c.send_counts[rank]);
        fill(c.expected_dst, 0, rank, 5, c.send_counts[rank]);
      }
      break;
    }
    case Collective::kAlltoallv: {
      for (std::uint32_t r = 0; r < size; ++r) {
        c.send_counts.push_back(pair_count(n, rank, r));
        c.recv_counts.push_back(pair_count(n, r, rank));
      }
      c.request.call.count = 64;  // in place: at least the longest block of all
      const std::uint64_t sends = lay_out(c.send_counts, 1, c.send_displacements);
      const std::uint64_t receives = lay_out(c.recv_counts, 2, c.recv_displacements);
      dst.assign(receives, kUntouched);
      c.expected_dst.assign(receives, kUntouched);
      if (!in_place) src.assign(sends, kUntouched);
      for (std::uint32_t r = 0; r < size; ++r) {
        auto& from = in_place ? dst : src;
        fill(from, in_place ? c.recv_displacements[r] : c.send_displacements[r], rank, 100 * r, c.send_counts[r]);
        fill(c.expected_dst, c.recv_displacements[r], r, 100 * rank, c.recv_counts[r]);
      }
      break;
    }
    default:
      break;
  }
  c.expected_src = src;
  c.request.src = bind(src);
  c.request.dst = bind(dst);
  const auto pointer = [](const std::vector<std::uint64_t>& v) { return v.empty() ? nullptr : v.data(); };
  c.vectors = {pointer(c.send_counts), pointer(c.send_displacements), pointer(c.recv_counts),
               pointer(c.recv_displacements)};
  c.request.vectors = &c.vectors;
}

bool has_in_place(Collective c) {
  return c != Collective::kBarrier && c != Collective::kBcast && c != Collective::kNop;
}

bool same(const Case& c) {
  if (c.src != c.expected_src) return false;
  // The result of an in-place reduce-scatter is the begin of dst; the rest is the call's to use.
  return std::equal(c.expected_dst.begin(), c.expected_dst.end(), c.dst.begin());
}

struct Setting {
  const char* name;
  std::uint32_t eager_limit;
  std::uint32_t segment_bytes;
  std::uint32_t rx_buffer_count;
};
constexpr Setting kSettings[] = {
    {"Default", 8192, 32768, 32},
    {"RendezvousOnly", 0, 4096, 1},
    {"OneTinyBuffer", 64, 64, 1},
    {"TinySegments", 8192, 128, 2},
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

class Collectives : public testing::TestWithParam<std::tuple<std::uint32_t, Setting>> {};

TEST_P(Collectives, EveryAlgorithmDelivers) {
  const auto& [size, setting] = GetParam();
  EngineSettings settings = quick_settings();
  settings.eager_limit = setting.eager_limit;
  settings.segment_bytes = setting.segment_bytes;
  settings.rx_buffer_count = setting.rx_buffer_count;
  std::vector<std::uint64_t> counts{0, 1, 3, 17, 1023};
  if (setting.segment_bytes > 1000) counts.push_back(4097);
  std::atomic<int> runs{0};
  run_ranks(size, settings, [&](Rank& self) {
    Case c;
    for (std::size_t position = 0; position < algorithms().size(); ++position) {
      const Algorithm& algorithm = algorithms()[position];
      if (algorithm.collective < Collective::kBcast) continue;
      for (const std::uint64_t count : counts) {
        for (const bool in_place : {false, true}) {
          if (in_place && !has_in_place(algorithm.collective)) continue;
          const std::uint32_t root = static_cast<std::uint32_t>(count + position) % self.size;
          prepare(c, algorithm.collective, self.rank, self.size, count, root, in_place);
          c.request.algorithm = static_cast<int>(position);
          try {
            self.run(c.request);
          } catch (const Error& error) {
            if (error.code() == ErrorCode::kUnsupported) continue;  // on every rank alike
            throw;
          }
          ++runs;
          EXPECT_TRUE(same(c)) << name_of(algorithm.collective) << " by " << algorithm.name << ", count " << count
                               << ", root " << root << (in_place ? ", in place" : "") << ", rank " << self.rank
                               << " of " << self.size;
        }
      }
    }
  });
  EXPECT_GT(runs, 300);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives,
                         testing::Combine(testing::Values(1U, 2U, 3U, 4U, 5U, 8U), testing::ValuesIn(kSettings)),
                         [](const auto& p) {
                           return std::string(std::get<1>(p.param).name) + std::to_string(std::get<0>(p.param));
                         });

TEST(Collectives, ManyInFlightOnTwoCommunicators) {
  // Forty calls of different kinds at once, waited for in another order than they were made.
  EngineSettings settings = quick_settings();
  settings.rx_buffer_count = 2;
  settings.eager_limit = 256;
  run_ranks(4, settings, [&](Rank& self) {
    const std::vector<std::uint32_t> reversed{3, 2, 1, 0};
    self.engine.create_communicator(7, 3, reversed, self.agreed);
    EXPECT_EQ(self.engine.rank(7), 3 - self.rank);
    const Collective kinds[] = {Collective::kAllreduce, Collective::kBcast, Collective::kAlltoall, Collective::kBarrier,
                                Collective::kScatterv};
    std::vector<Case> cases(40);
    std::vector<CallId> ids;
    for (std::uint32_t i = 0; i < cases.size(); ++i) {
      const std::uint32_t communicator = i % 2 * 7;
      prepare(cases[i], kinds[i % 5], self.engine.rank(communicator), 4, 11 * i, i % 4, false);
      cases[i].request.communicator = communicator;
      ids.push_back(self.engine.submit(cases[i].request));
    }
    for (std::uint32_t i = 0; i < cases.size(); ++i) self.finish(ids[i * 7 % 40]);
    for (const Case& c : cases) EXPECT_TRUE(same(c)) << name_of(c.request.call.collective);
    self.engine.free_communicator(7);
  });
}

TEST(Collectives, ChainedCallsRunInTurn) {
  run_ranks(3, quick_settings(), [](Rank& self) {
    // allreduce into a, then allreduce a into b, then b into a: each reads what the one before wrote.
    std::vector<Element> a(500), b(500);
    for (std::uint64_t i = 0; i < a.size(); ++i) b[i] = input(self.rank, i);
    std::vector<CallId> ids;
    for (int step = 0; step < 3; ++step) {
      CallRequest r = request<Element>(Collective::kAllreduce, a.size(), 0, Func::kSum);
      r.src = bind(step % 2 == 0 ? b : a);
      r.dst = bind(step % 2 == 0 ? a : b);
      if (!ids.empty()) r.wait_for = {&ids.back(), 1};
      const CallId id = self.engine.submit(r);
      ids.push_back(id);
    }
    for (const CallId id : ids) self.finish(id);
    for (std::uint64_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], 9 * fold(3, i));
  });
}

TEST(Collectives, EveryOperatorOnEveryDatatype) {
  // Two ranks, so that the order of the operands cannot matter to the bits: func(rank 0, rank 1).
  run_ranks(2, quick_settings(), [](Rank& self) {
    for (const Datatype dtype : kAllDatatype) {
      for (const Func func : kAllFunc) {
        if (!is_defined(func, dtype)) continue;
        const std::uint64_t count = 777;
        const std::uint64_t bytes = count * bytes_of(dtype);
        const auto data = [&](std::uint32_t r) {
          std::vector<std::uint8_t> values(bytes);
          for (std::uint64_t i = 0; i < bytes; ++i) {
            values[i] = static_cast<std::uint8_t>((i * 37 + r * 101 + 13) % 251 & 0x3f);  // finite everywhere
          }
          return values;
        };
        std::vector<std::uint8_t> src = data(self.rank), dst(bytes), expected(bytes);
        const std::vector<std::uint8_t> zero = data(0), one = data(1);
        ASSERT_TRUE(combine(func, dtype, reinterpret_cast<const std::byte*>(zero.data()),
                            reinterpret_cast<const std::byte*>(one.data()),
                            reinterpret_cast<std::byte*>(expected.data()), count));
        CallRequest r = request<Element>(Collective::kAllreduce, count, 0, func);
        r.call.dtype = dtype;
        r.src = bind(src);
        r.dst = bind(dst);
        self.run(r);
        EXPECT_EQ(dst, expected) << name_of(func) << " of " << name_of(dtype);
      }
    }
  });
}

}  // namespace
}  // namespace unisono::test
