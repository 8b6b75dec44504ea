// The calls over which the tests of the programs range, and the programs of all ranks of a call.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"

namespace unisono::testing_programs {

/// How long the blocks of a v-collective are.
inline std::uint64_t block_count(std::uint64_t n, std::uint32_t from, std::uint32_t to) {
  return n == 0 ? 0
                : (n + std::uint64_t{3} * from + std::uint64_t{5} * to) % (2 * n + 1);  // differs by pair, sometimes 0
}

inline bool is_vector(Collective collective) {
  return collective == Collective::kGatherv || collective == Collective::kScatterv ||
         collective == Collective::kAllgatherv || collective == Collective::kAlltoallv ||
         collective == Collective::kReduceScatterv;
}

inline bool has_func(Collective collective) {
  return collective == Collective::kCombine || collective == Collective::kReduce ||
         collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduceScatterv || collective == Collective::kScan ||
         collective == Collective::kExscan;
}

inline bool has_root(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kReduce || collective == Collective::kGather ||
         collective == Collective::kScatter || collective == Collective::kGatherv ||
         collective == Collective::kScatterv;
}

/// Collectives that take part in no message with another rank's program of the same collective.
inline bool is_one_sided(Collective collective) { return collective < Collective::kBcast; }

/// A call of `collective` on `size` ranks, agreed fields only.
inline Call make_call(Collective collective, std::uint32_t size, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.size = size;
  call.dtype = Datatype::kNone;
  if (collective == Collective::kBarrier) return call;
  call.count = count;
  call.dtype = Datatype::kInt32;
  if (has_func(collective)) call.func = Func::kSum;
  if (collective == Collective::kAlltoallv) {
    call.count = 2 * count;  // a bound for every block
  } else if (is_vector(collective)) {
    call.count = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) call.count += block_count(count, rank, 0);
  }
  return call;
}

/// A call, agreed fields only, and what the lengths of blocks follow from if they differ.
struct Case {
  Call call;
  std::uint64_t count = 0;
};

/// Whether `count` is that of one block of a vector of `size` blocks.
inline bool counts_blocks(Collective collective) {
  return collective >= Collective::kReduceScatter && collective <= Collective::kScatter &&
         collective != Collective::kGatherv && collective != Collective::kScatterv;
}

/// The largest count that a call may have: a vector, all its blocks together, has as many elements as a move may have.
inline std::uint64_t largest_count(Collective collective, std::uint32_t size) {
  if (collective == Collective::kAlltoallv) return kMaxCount / 2 / size;  // a bound of twice as much is agreed on
  if (is_vector(collective)) return kMaxCount / size - 8 * std::uint64_t{size};
  return counts_blocks(collective) || collective == Collective::kAlltoall ? kMaxCount / size : kMaxCount;
}

/// All calls of an algorithm that a test looks at.
inline std::vector<Case> cases_of(const Algorithm& algorithm, std::uint32_t size) {
  const Collective collective = algorithm.collective;
  std::vector<Case> cases;
  std::vector<std::uint32_t> roots{0};
  if (has_root(collective) && size > 1) roots = {0, size / 2, size - 1};
  std::vector<std::uint32_t> groups{0};
  if (std::string_view(algorithm.name) == "two_level") groups = {0, 1, 2, 3, 5, size};
  std::vector<std::pair<bool, std::uint8_t>> forms{{false, 0}, {true, 0}};
  if (algorithm.default_radix != 0) forms.insert(forms.end(), {{false, 2}, {true, 2}, {false, 3}, {true, 7}});
  const bool may_be_in_place = collective > Collective::kBcast && collective != Collective::kBarrier;
  const std::uint64_t largest = largest_count(collective, size);
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{size},
                                    std::uint64_t{3} * size + 2, std::uint64_t{16} * size + 3, largest}) {
    // Whole cache lines are the direct ones' business.
    if (count > 16 && count != largest && !algorithm.direct && size > 4) continue;
    for (const std::uint32_t root : roots) {
      for (const std::uint32_t group : groups) {
        for (const auto& [in_place, radix] : forms) {
          Call call = make_call(collective, size, count);
          if (count == largest && call.dtype != Datatype::kNone) call.dtype = Datatype::kComplex128;  // 16 bytes
          call.root = root;
          call.group_size = group;
          call.radix = radix;
          call.in_place = in_place;
          call.direct = algorithm.direct;
          if (in_place && !may_be_in_place) continue;
          if (algorithm.admits == nullptr || algorithm.admits(call)) cases.push_back({call, count});
        }
      }
    }
  }
  return cases;
}

/// A program with its params filled in.
struct Bound {
  Program program;
  std::vector<std::uint64_t> params;

  std::uint64_t count(const Move& move) const { return move.count_indirect ? params.at(move.count / 8) : move.count; }
  std::uint64_t offset(const Operand& operand) const {
    return operand.indirect ? params.at(operand.offset / 8) : operand.offset;
  }
  std::vector<std::uint32_t> peers(PeerMode mode, std::uint32_t peer) const {
    if (mode == PeerMode::kRank) return {peer};
    const auto first = program.pool.begin() + peer + 1;
    return {first, first + program.pool.at(peer)};
  }
};

/// The program of one rank; v-collectives with blocks of `block_count(count, ...)` elements.
inline Bound bind(const Algorithm& algorithm, Call call, std::uint32_t rank, std::uint64_t count) {
  call.rank = rank;
  Bound bound{record(algorithm, call), {}};
  bound.params.resize(bound.program.params_bytes / 8);
  if (algorithm.fill_params == nullptr) return bound;
  std::vector<std::uint64_t> send(call.size);
  std::vector<std::uint64_t> receive(call.size);
  for (std::uint32_t i = 0; i < call.size; ++i) {
    if (algorithm.collective != Collective::kAlltoallv) {
      send[i] = receive[i] = block_count(count, i, 0);
    } else if (call.in_place) {
      send[i] = receive[i] = block_count(count, rank + i, 0);  // both ways the same
    } else {
      send[i] = block_count(count, rank, i);
      receive[i] = block_count(count, i, rank);
    }
  }
  algorithm.fill_params(call, {send.data(), nullptr, receive.data(), nullptr}, bound.params.data());
  return bound;
}

inline std::string describe(const Algorithm& algorithm, const Call& call) {
  return std::string(name_of(algorithm.collective)) + " " + algorithm.name + ": " + std::to_string(call.size) +
         " ranks, count " + std::to_string(call.count) + ", root " + std::to_string(call.root) + ", group " +
         std::to_string(call.group_size) + ", radix " + std::to_string(call.radix) +
         (call.in_place ? ", in place" : "");
}

/// One parameter of a test for each algorithm of the table.
inline std::vector<int> all_positions() {
  std::vector<int> positions;
  for (std::size_t i = 0; i < algorithms().size(); ++i) positions.push_back(static_cast<int>(i));
  return positions;
}

inline std::string position_name(int position) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(position)];
  return std::string(name_of(algorithm.collective)) + "_" + algorithm.name;
}

}  // namespace unisono::testing_programs
