// What can be said of every program without running it: the rules of docs/model.md that a look at the
// moves decides, for every algorithm, on many sizes, counts, roots and groups.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "core/footprint.hpp"

namespace unisono::testing_programs {
namespace {

const std::vector<std::uint32_t> kSizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33, 64};

class Programs : public testing::TestWithParam<int> {
 protected:
  const Algorithm& algorithm() const { return algorithms()[static_cast<std::size_t>(GetParam())]; }

  // Calls `look(call, count)` for every call; count is what `bind` wants.
  template <class Look>
  void for_each_call(Look look) const {
    for (const std::uint32_t size : kSizes) {
      for (const Case& one : cases_of(algorithm(), size)) {
        SCOPED_TRACE(describe(algorithm(), one.call));
        look(one.call, one.count);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(Programs, EmitAtMostSixteenMovesAStep) {
  for_each_call([&](const Call& agreed, std::uint64_t) {
    for (std::uint32_t rank = 0; rank < agreed.size; ++rank) {
      Call call = agreed;
      call.rank = rank;
      EmitSink sink;
      sink.move = [](void*, const Move&) {};
      sink.pool_word = [](void*, std::uint32_t) {};
      Emit emit(sink);
      for (std::uint32_t s = 0, before = 0; s < algorithm().steps(call); ++s, before = emit.moves()) {
        algorithm().step(call, s, emit);
        ASSERT_LE(emit.moves() - before, kMovesPerStep) << "rank " << rank << ", step " << s;
      }
    }
  });
}

// Steps may be generated one by one, with other calls' steps between: nothing is remembered but indices.
TEST_P(Programs, AreAFunctionOfTheCall) {
  for_each_call([&](const Call& agreed, std::uint64_t) {
    Call call = agreed;
    call.rank = agreed.size - 1;
    Call other = agreed;
    other.rank = 0;
    const Program first = record(algorithm(), call);
    record(algorithm(), other);
    ASSERT_EQ(first, record(algorithm(), call));
  });
}

TEST_P(Programs, HaveMovesThatTheEncodingHolds) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      for (std::size_t i = 0; i < bound.program.moves.size(); ++i) {
        const Move& move = bound.program.moves[i];
        ASSERT_TRUE(fits(move)) << "rank " << rank << ", move " << i;
        ASSERT_TRUE(well_formed_move(encode(move))) << "rank " << rank << ", move " << i;
      }
    }
  });
}

TEST_P(Programs, ApplyAFunctionWhereTwoValuesMeet) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      for (std::size_t i = 0; i < bound.program.moves.size(); ++i) {
        const Move& move = bound.program.moves[i];
        const bool two = move.op0.kind != OperandKind::kNone && move.op1.kind != OperandKind::kNone;
        const bool of_peers = move.op1.kind == OperandKind::kArrival || move.op1.kind == OperandKind::kRemoteMemory;
        const bool fan_in = of_peers && move.arrival.mode != PeerMode::kRank;
        ASSERT_EQ(move.func, two || fan_in ? call.func : Func::kNone) << "rank " << rank << ", move " << i;
        ASSERT_TRUE(move.local.kind != OperandKind::kNone || move.remote.kind != RemoteKind::kNone || move.signal)
            << "rank " << rank << ", move " << i << " delivers nothing";
      }
    }
  });
}

TEST_P(Programs, DependOnEarlierMovesOnly) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      const std::vector<Move>& moves = bound.program.moves;
      for (std::size_t i = 0; i < moves.size(); ++i) {
        if (i < kWindow) {
          ASSERT_EQ(moves[i].dependencies >> i, 0U) << "rank " << rank << ", move " << i;
        }
        for (const std::uint32_t distance : {moves[i].segment_dependency0, moves[i].segment_dependency1}) {
          if (distance == 0) continue;
          ASSERT_LE(distance, i) << "rank " << rank << ", move " << i;
          ASSERT_LT(distance, kWindow) << "rank " << rank << ", move " << i;
          const Move& producer = moves[i - distance];
          ASSERT_EQ(bound.count(producer), bound.count(moves[i])) << "rank " << rank << ", move " << i;
          ASSERT_EQ(producer.local.kind, OperandKind::kMemory) << "rank " << rank << ", move " << i;
        }
      }
    }
  });
}

TEST_P(Programs, NameOnlyMemoryThatIsBound) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      const bool root = has_root(call.collective) && rank == call.root;
      for (std::size_t i = 0; i < bound.program.moves.size(); ++i) {
        const Move& move = bound.program.moves[i];
        const std::uint64_t bytes = bound.count(move) * bytes_of(move.dtype);
        for (const Operand& operand : {move.op0, move.op1, move.local}) {
          if (operand.kind != OperandKind::kMemory || bytes == 0) continue;
          const std::uint64_t end = bound.offset(operand) + bytes;
          if (operand.region == Region::kScratch) {
            ASSERT_LE(end, bound.program.scratch_bytes) << "rank " << rank << ", move " << i;
          }
          if (operand.region == Region::kSrc && call.in_place) {
            // Only reduce, gather and scatter read src in place, on the ranks that have none or a root's block.
            ASSERT_TRUE(has_root(call.collective) && call.collective != Collective::kBcast &&
                        (root == (call.collective == Collective::kScatter || call.collective == Collective::kScatterv)))
                << "rank " << rank << ", move " << i;
          }
          if (operand.region == Region::kDst && call.collective == Collective::kReduce) {
            ASSERT_TRUE(root) << "rank " << rank << ", move " << i;
          }
          if (!is_vector(call.collective) && operand.region != Region::kScratch) {
            const bool blocks = call.collective >= Collective::kReduceScatter && call.collective < Collective::kScan;
            ASSERT_LE(end, call.count * (blocks ? call.size : 1) * element_bytes(call))
                << "rank " << rank << ", move " << i;
          }
        }
      }
    }
  });
}

// Memory of peers is within what the call binds there, and only programs of direct calls reach src and dst.
TEST_P(Programs, ReachOnlyMemoryThatPeersHaveBound) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    bool reaches = false;
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      for (std::size_t i = 0; i < bound.program.moves.size(); ++i) {
        const Move& move = bound.program.moves[i];
        if (bound.count(move) == 0 || !reaches_directly(move)) continue;
        reaches = true;
        const std::uint64_t end = move.remote_address.offset + bound.count(move) * bytes_of(move.dtype);
        const auto within = [&](PeerMode mode, std::uint32_t peer, Region region) {
          for (const std::uint32_t one : bound.peers(mode, peer)) {
            Call there = call;
            there.rank = one;
            const Footprint footprint = footprint_of(there);
            const std::uint64_t elements = region == Region::kSrc ? footprint.src : footprint.dst;
            ASSERT_LE(end, elements * element_bytes(call))
                << "rank " << rank << ", move " << i << ", " << name_of(region) << " of rank " << one;
          }
        };
        if (move.op1.kind == OperandKind::kRemoteMemory) {
          within(move.arrival.mode, move.arrival.peer, move.remote_address.region);
        }
        if (move.remote.kind == RemoteKind::kMemory) {
          within(move.remote.mode, move.remote.peer, move.remote_address.result_region);
        }
      }
    }
    ASSERT_EQ(reaches, call.direct && call.size > 1 && call.count > 0);
  });
}

TEST_P(Programs, NamePeersOfTheCommunicatorOnce) {
  for_each_call([&](const Call& call, std::uint64_t count) {
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      for (std::size_t i = 0; i < bound.program.moves.size(); ++i) {
        const Move& move = bound.program.moves[i];
        for (const auto& [used, mode, peer] :
             {std::tuple{move.op1.kind == OperandKind::kArrival || move.op1.kind == OperandKind::kRemoteMemory,
                         move.arrival.mode, move.arrival.peer},
              std::tuple{move.remote.kind != RemoteKind::kNone, move.remote.mode, move.remote.peer}}) {
          if (!used) continue;
          const std::vector<std::uint32_t> peers = bound.peers(mode, peer);
          ASSERT_FALSE(peers.empty()) << "rank " << rank << ", move " << i;
          ASSERT_EQ(std::set<std::uint32_t>(peers.begin(), peers.end()).size(), peers.size())
              << "rank " << rank << ", move " << i << " names a peer twice";
          for (const std::uint32_t one : peers) ASSERT_LT(one, call.size) << "rank " << rank << ", move " << i;
        }
      }
    }
  });
}

// Rule 5: the n-th message from a to b meets the n-th arrival of b from a, with the same tag and count.
TEST_P(Programs, SendWhatTheOtherEndAwaits) {
  if (is_one_sided(algorithm().collective)) return;  // the other end is a different call
  struct Message {
    std::uint32_t tag;
    std::uint64_t count;
    bool operator==(const Message&) const = default;
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  for_each_call([&](const Call& call, std::uint64_t count) {
    std::map<Pair, std::vector<Message>> sent;
    std::map<Pair, std::vector<Message>> awaited;
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      const Bound bound = bind(algorithm(), call, rank, count);
      for (const Move& move : bound.program.moves) {
        const std::uint64_t elements = bound.count(move);
        if (elements == 0 && !move.signal) continue;  // rule 4: neither message nor wait
        if (move.remote.kind == RemoteKind::kMessage) {
          for (const std::uint32_t to : bound.peers(move.remote.mode, move.remote.peer)) {
            sent[{rank, to}].push_back({move.remote.tag, elements});
          }
        }
        if (move.op1.kind == OperandKind::kArrival) {
          for (const std::uint32_t from : bound.peers(move.arrival.mode, move.arrival.peer)) {
            awaited[{from, rank}].push_back({move.arrival.tag, elements});
          }
        }
      }
    }
    ASSERT_EQ(sent.size(), awaited.size());
    for (const auto& [pair, messages] : sent) {
      ASSERT_EQ(messages, awaited[pair]) << "from rank " << pair.first << " to rank " << pair.second;
    }
    if (call.size > 1 && !is_vector(call.collective) && (call.count > 0 || call.collective == Collective::kBarrier)) {
      ASSERT_FALSE(sent.empty()) << "nobody says anything";
    }
  });
}

// With one group a two-level scan is a line of all ranks, move by move; what is said of one holds for the other.
TEST(TwoLevel, ScansAreLinearWithoutGroups) {
  for (const Collective collective : {Collective::kScan, Collective::kExscan}) {
    const Algorithm& levels = algorithms()[static_cast<std::size_t>(find_algorithm(collective, "two_level"))];
    const Algorithm& linear = algorithms()[static_cast<std::size_t>(find_algorithm(collective, "linear"))];
    for (const std::uint32_t size : kSizes) {
      for (const bool in_place : {false, true}) {
        Call call = make_call(collective, size, 5);
        call.in_place = in_place;
        for (call.rank = 0; call.rank < size; ++call.rank) {
          for (const std::uint32_t group_size : {0U, size, size + 1}) {
            call.group_size = group_size;
            ASSERT_EQ(record(levels, call), record(linear, call)) << describe(levels, call) << ", rank " << call.rank;
          }
        }
        if (size < 2) continue;
        call.rank = size - 1;
        call.group_size = 1;
        ASSERT_EQ(record(levels, call), record(linear, call)) << "groups of one rank are the same line";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Programs, testing::ValuesIn(all_positions()),
                         [](const auto& parameter) { return position_name(parameter.param); });

}  // namespace
}  // namespace unisono::testing_programs
