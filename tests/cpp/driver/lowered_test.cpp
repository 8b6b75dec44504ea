// The lowered form of every algorithm: complete, in order, never waiting in a circle, and with the interpreter's bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectives/build.hpp"
#include "core/error.hpp"
#include "driver/lowered_check.hpp"
#include "engine/model.hpp"
#include "reference/checker.hpp"
#include "reference/interpreter.hpp"

namespace unisono::driver {
namespace {

using cclo::LaneModel;
using cclo::LoweredFault;
using cclo::LoweredProgram;
using cclo::LoweredRank;
using cclo::Step;
using reference::Job;

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
  return all;
}

/// Calls `use(job)` for the calls that `unisono check` looks at.
template <class Use>
void for_each_job(const Algorithm& algorithm, std::uint32_t size, const reference::CheckOptions& options, Use&& use) {
  for (const reference::CheckedCall& checked : reference::calls_to_check(algorithm, size, options)) {
    if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
    use(reference::make_job(algorithm, checked.call, checked.vectors));
  }
}

/// A job, lowered, with an input for every rank.
struct LoweredJob {
  explicit LoweredJob(const Job& from) : job(from) {
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      auto made = cclo::lower(job.programs[rank], job.size());
      if (!made) return;
      std::array<std::uint64_t, 5> regions{};
      for (std::size_t i = 0; i < regions.size(); ++i) regions[i] = job.bytes(rank, static_cast<Region>(i));
      if (!made->indirect.empty()) {
        cclo::Launcher::bind(*made, job.params[rank], regions);
        cclo::Launcher().number(*made);
      }
      job.programs[rank] = cclo::with_params(job.programs[rank], job.params[rank]);
      programs.push_back(std::move(*made));
      std::vector<float> numbers((job.bytes(rank, Region::kSrc) + job.bytes(rank, Region::kDst)) / 4 + 2);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((rank * 131 + i * 17) % 257);
      const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
      const auto* middle = bytes + job.bytes(rank, Region::kSrc);
      std::vector<std::byte> window(job.bytes(rank, Region::kWindow));
      for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<std::byte>(rank * 37 + i * 11 + 3);
      inputs.push_back({{bytes, middle}, {middle, middle + job.bytes(rank, Region::kDst)}, std::move(window)});
    }
    carried = true;
    expected = reference::Interpreter(job).run_numbers(inputs, reference::Policy::generous()).memory;
  }

  std::optional<LoweredFault> compare() const {
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      if (auto check = cclo::compare_lowered(job.programs[rank], programs[rank], rank, job.size()); check.fault) {
        return check.fault;
      }
    }
    return std::nullopt;
  }
  /// The fault of a run; `right` tells whether every dst and window is as it must be.
  std::optional<LoweredFault> run(const LaneModel& model, bool& right) const {
    std::vector<LoweredRank> ranks;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      ranks.push_back({&programs[rank], inputs[rank].src, inputs[rank].dst, inputs[rank].window});
    }
    const cclo::LoweredRun result = cclo::run_lowered(ranks, model);
    right = !result.fault;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      const auto& memory = expected[rank];
      right = right && ranks[rank].dst == memory[static_cast<std::size_t>(Region::kDst)] &&
              ranks[rank].window == memory[static_cast<std::size_t>(Region::kWindow)];
    }
    return result.fault;
  }

  Job job;
  bool carried = false;
  std::vector<LoweredProgram> programs;
  std::vector<reference::RankInput> inputs;
  std::vector<std::array<std::vector<std::byte>, 5>> expected;  ///< memory by rank and region
};

/// Whether a later move of a program must wait for an earlier one, by way of others too. By rules 5, 8, 9 and 10 alone.
std::vector<std::vector<bool>> closure(const Program& program) {
  const std::size_t count = program.moves.size();
  const auto peers = [&](std::uint32_t peer, PeerMode mode) {
    if (mode == PeerMode::kRank) return std::vector<std::uint32_t>{peer};
    return std::vector<std::uint32_t>(program.pool.begin() + peer + 1,
                                      program.pool.begin() + peer + 1 + program.pool[peer]);
  };
  const auto meet = [](const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    return std::any_of(a.begin(), a.end(), [&](std::uint32_t r) { return std::count(b.begin(), b.end(), r) != 0; });
  };
  std::vector<std::vector<bool>> after(count, std::vector<bool>(count));
  for (std::size_t n = 0; n < count; ++n) {
    const Move& move = program.moves[n];
    for (std::size_t m = n; m-- > 0;) {
      const Move& earlier = program.moves[m];
      const std::size_t distance = n - m;
      const bool both_speak = (move.count != 0 || move.signal) && (earlier.count != 0 || earlier.signal);
      const bool direct =
          distance >= kWindow || (move.dependencies >> (distance - 1) & 1U) != 0 ||
          move.segment_dependency0 == distance || move.segment_dependency1 == distance ||
          (both_speak && move.remote.kind == RemoteKind::kMessage && earlier.remote.kind == RemoteKind::kMessage &&
           meet(peers(move.remote.peer, move.remote.mode), peers(earlier.remote.peer, earlier.remote.mode))) ||
          (both_speak && move.op1.kind == OperandKind::kArrival && earlier.op1.kind == OperandKind::kArrival &&
           meet(peers(move.arrival.peer, move.arrival.mode), peers(earlier.arrival.peer, earlier.arrival.mode)));
      if (!direct || after[n][m]) continue;
      after[n][m] = true;
      for (std::size_t k = 0; k < m; ++k) after[n][k] = after[n][k] || after[m][k];
    }
  }
  return after;
}

class Lowered : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Lowered, FormsOfTheCheckersCallsRunToTheirEnd) {
  const Algorithm& algorithm = *GetParam();
  LoweredChecker checker;
  std::uint64_t calls = 0;
  for (const std::uint32_t size : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 17U, 33U}) {
    for_each_job(algorithm, size, {}, [&](const Job& job) {
      ++calls;
      const auto finding = checker.check(job);
      ASSERT_FALSE(finding) << reference::describe(job) << ": " << finding->text;
    });
  }
  EXPECT_GT(calls, 0U);
  EXPECT_EQ(checker.calls(), calls);
  EXPECT_EQ(checker.not_carried(), 0U);
  EXPECT_EQ(checker.straight(), checker.calls());
}

/// Whether two steps fold messages of the same ranks into messages of the same ranks, and nothing else: exchanged, they
/// are what they were.
bool pass_on_alike(const LoweredProgram& program, const Step& a, const Step& b) {
  const auto ranks = [&](const cclo::RankList& list) {
    return std::vector<std::uint32_t>(program.ranks.begin() + list.begin,
                                      program.ranks.begin() + list.begin + list.count);
  };
  const auto no_memory = [](const Step& step) {
    const cclo::Action& take = step.take;
    return step.kind == Step::Kind::kGeneral && !take.own.present && !take.other.present && !take.out.present &&
           take.reach.count == 0 && take.write.count == 0;
  };
  return no_memory(a) && no_memory(b) && ranks(a.take.from) == ranks(b.take.from) &&
         ranks(a.take.forward) == ranks(b.take.forward) && a.take.bytes == b.take.bytes &&
         a.take.tag_in == b.take.tag_in && a.take.tag_forward == b.take.tag_forward;
}

TEST_P(Lowered, MistakesAreFound) {
  const Algorithm& algorithm = *GetParam();
  reference::CheckOptions options;
  options.counts = {algorithm.direct ? 150U : 11U};
  options.group_sizes = {0};
  options.roots = {1};
  std::uint32_t dropped = 0, exchanged = 0;
  for (const std::uint32_t size : {4U, 5U}) {
    for_each_job(algorithm, size, options, [&](const Job& job) {
      if (job.size() != size) return;  // switches are no ranks of the engine's
      LoweredJob lowered(job);
      if (!lowered.carried) return;
      bool right = false;
      ASSERT_FALSE(lowered.compare());
      ASSERT_FALSE(lowered.run(LaneModel::straight(), right));
      ASSERT_TRUE(right);
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const LoweredProgram original = lowered.programs[rank];
        LoweredProgram& program = lowered.programs[rank];
        const auto moves = cclo::compare_lowered(lowered.job.programs[rank], original, rank, size).moves;
        const auto after = closure(lowered.job.programs[rank]);
        for (std::size_t s = 0; s < original.steps.size(); ++s) {
          if (original.steps[s].kind == Step::Kind::kNothing) continue;
          const auto place = static_cast<std::ptrdiff_t>(s);
          const auto where = [&] {
            return reference::describe(job) + ", rank " + std::to_string(rank) + ", step " + std::to_string(s);
          };
          // A step that is missing, that stands twice, or that stands for another number of moves.
          program.steps.erase(program.steps.begin() + place);
          EXPECT_TRUE(lowered.compare()) << where();
          program = original;
          program.steps.insert(program.steps.begin() + place, program.steps[s]);
          EXPECT_TRUE(lowered.compare()) << where();
          program = original;
          ++program.steps[s].moves;
          EXPECT_TRUE(lowered.compare()) << where();
          program = original;
          ++dropped;
          // Another place of memory, tag or function.
          const bool sends =
              original.steps[s].kind == Step::Kind::kSend || original.steps[s].kind == Step::Kind::kExchange;
          cclo::Action& action = sends ? program.steps[s].send : program.steps[s].take;
          (action.own.present        ? action.own.offset
           : action.out.present      ? action.out.offset
           : action.reach.count != 0 ? action.reach_in.offset
                                     : action.bytes) += 4;
          EXPECT_TRUE(lowered.compare()) << where();
          program = original;
          if (s + 1 == original.steps.size() || pass_on_alike(original, original.steps[s], original.steps[s + 1]))
            continue;
          // Exchanged with the next: a mistake where the program orders them. Where it does not, a rank may come to
          // wait in a circle, but never to another result.
          std::swap(program.steps[s], program.steps[s + 1]);
          const bool ordered = std::any_of(moves[s].begin(), moves[s].end(), [&](std::uint32_t a) {
            return std::any_of(moves[s + 1].begin(), moves[s + 1].end(), [&](std::uint32_t b) { return after[b][a]; });
          });
          if (ordered) ++exchanged;
          EXPECT_EQ(lowered.compare().has_value(), ordered) << where();
          if (!ordered) {
            const auto fault = lowered.run(LaneModel::straight(), right);
            EXPECT_TRUE(fault ? fault->kind == LoweredFault::Kind::kDeadlock : right) << where();
          }
          program = original;
        }
        for (std::size_t n = 0; n < original.moves.size(); ++n) {
          if (original.moves[n].dependencies != 0) {
            program.moves[n].dependencies &= program.moves[n].dependencies - 1;
            EXPECT_TRUE(lowered.compare());
          }
          program = original;
          program.moves[n].follows[1] = 7;
          EXPECT_TRUE(lowered.compare());
          program = original;
        }
      }
    });
  }
  RecordProperty("dropped", std::to_string(dropped));
  RecordProperty("exchanged", std::to_string(exchanged));
}

INSTANTIATE_TEST_SUITE_P(Table, Lowered, testing::ValuesIn(all_algorithms()), [](const auto& tested) {
  return std::string(name_of(tested.param->collective)) + "_" + tested.param->name;
});

// A run by itself, without the comparison, finds what a lowered form lacks.
/// What binding says of a launch; empty if nothing.
std::string refusal(LoweredProgram& program, const std::vector<std::uint64_t>& params,
                    const std::array<std::uint64_t, 5>& regions) {
  try {
    cclo::Launcher::bind(program, params, regions);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidCount);
    return error.what();
  }
}

TEST_P(Lowered, LaunchesThatReachBeyondARegionAreRefused) {
  const Algorithm& algorithm = *GetParam();
  std::uint32_t refused = 0;
  for_each_job(algorithm, 3, {}, [&](const Job& job) {
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      auto program = cclo::lower(job.programs[rank], job.size());
      ASSERT_TRUE(program);
      if (program->indirect.empty()) continue;
      const std::vector<std::uint64_t> params = job.params[rank];
      std::array<std::uint64_t, 5> regions{};
      for (std::size_t i = 0; i < regions.size(); ++i) regions[i] = job.bytes(rank, static_cast<Region>(i));
      ASSERT_EQ(refusal(*program, params, regions), "") << reference::describe(job);
      for (const cclo::Indirect& part : program->indirect) {
        if (part.count == cclo::Indirect::kFixed) continue;
        std::vector<std::uint64_t> wrong = params;
        wrong[part.count] = kMaxCount + 1;
        EXPECT_THAT(refusal(*program, wrong, regions), testing::HasSubstr("an indirect count of 1099511627776"));
        const cclo::WindowedMove& move = program->moves[part.move];
        wrong[part.count] = kMaxCount;
        if (move.own.present || move.other.present || move.out.present) {
          EXPECT_THAT(refusal(*program, wrong, regions), testing::HasSubstr("is 4398046511100 bytes at byte"));
        }
      }
      // One byte less than is needed, region by region.
      ASSERT_EQ(refusal(*program, params, regions), "");
      std::array<std::uint64_t, 5> needed{};
      for (const cclo::Indirect& part : program->indirect) {
        const cclo::WindowedMove& move = program->moves[part.move];
        for (const cclo::Piece* piece : {&move.own, &move.other, &move.out}) {
          std::uint64_t& most = needed[static_cast<std::size_t>(piece->region)];
          if (piece->present && move.bytes != 0) most = std::max(most, piece->offset + move.bytes);
        }
      }
      for (std::size_t i = 0; i < regions.size(); ++i) {
        if (needed[i] == 0) continue;
        std::array<std::uint64_t, 5> less = regions;
        less[i] = needed[i] - 1;
        ++refused;
        EXPECT_THAT(refusal(*program, params, less),
                    testing::HasSubstr("which has " + std::to_string(less[i]) + " bytes"));
      }
      EXPECT_EQ(refusal(*program, params, regions), "") << "a refusal leaves nothing behind";
    }
  });
  if (algorithm.fill_params != nullptr) {
    EXPECT_GT(refused, 0U);
  }
}

TEST(LoweredRun, FindsStepsThatAreMissing) {
  std::uint32_t runs = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::kAllreduce && algorithm.collective != Collective::kAllgather) continue;
    reference::CheckOptions options;
    options.counts = {150};
    options.group_sizes = {0};
    options.in_place = false;
    for_each_job(algorithm, 5, options, [&](const Job& job) {
      LoweredJob lowered(job);
      ASSERT_TRUE(lowered.carried);
      for (std::uint32_t rank = 0; rank < 5; ++rank) {
        const LoweredProgram original = lowered.programs[rank];
        for (std::size_t s = 0; s < original.steps.size(); ++s) {
          LoweredProgram& program = lowered.programs[rank];
          program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(s));
          bool right = true;
          const auto fault = lowered.run(LaneModel::straight(), right);
          EXPECT_FALSE(right) << reference::describe(job) << ", rank " << rank << ", step " << s;
          ++runs;
          program = original;
        }
      }
    });
  }
  EXPECT_GT(runs, 100U);
}

Job two_ranks(const std::vector<std::vector<Move>>& moves) {
  std::vector<Program> programs(moves.size());
  for (std::size_t rank = 0; rank < moves.size(); ++rank) programs[rank].moves = moves[rank];
  return reference::make_job(std::move(programs), Datatype::kFp32, 64, 64);
}

build::Build floats() {
  Call call;
  call.dtype = Datatype::kFp32;
  return build::Build(call);
}

/// Each rank sends `messages` to the other, and takes as many.
Job exchange(std::uint32_t messages) {
  std::vector<std::vector<Move>> moves(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t m = 0; m < messages; ++m) {
      moves[rank].push_back(floats().take({Region::kSrc, 8 * m}).send(1 - rank, m).count(2));
    }
    for (std::uint32_t m = 0; m < messages; ++m) {
      moves[rank].push_back(floats().arrive(1 - rank, m).keep({Region::kDst, 8 * m}).count(2));
    }
  }
  return two_ranks(moves);
}

TEST(LoweredRun, NamesWhoWaitsForWhom) {
  LoweredJob lowered(exchange(1));
  for (LoweredProgram& program : lowered.programs) {
    ASSERT_EQ(program.steps.size(), 1U);
    ASSERT_EQ(program.steps[0].kind, Step::Kind::kExchange);
    Step take = program.steps[0];
    take.kind = Step::Kind::kTake;
    take.moves = 1;
    Step send = program.steps[0];
    send.kind = Step::Kind::kSend;
    send.moves = 1;
    program.steps = {take, send};
  }
  EXPECT_FALSE(lowered.compare()) << "no order of the two is demanded";
  bool right = true;
  std::vector<std::vector<std::vector<std::uint32_t>>> moves;
  std::vector<LoweredRank> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    moves.push_back(cclo::compare_lowered(lowered.job.programs[rank], lowered.programs[rank], rank, 2).moves);
    ranks.push_back({&lowered.programs[rank], lowered.inputs[rank].src, lowered.inputs[rank].dst});
  }
  const auto fault = cclo::run_lowered(ranks, LaneModel::straight(), moves).fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, LoweredFault::Kind::kDeadlock);
  EXPECT_EQ(fault->text,
            "these wait for each other:\n"
            "  rank 0, step 0 (move 1): waits for a message of rank 1\n"
            "  rank 1, step 0 (move 1): waits for a message of rank 0");
  EXPECT_FALSE(lowered.run(LaneModel::windowed_with_one_segment(2, 4), right));
  EXPECT_TRUE(right);
}

TEST(LoweredRun, LanesOfAModelHoldWhatItSays) {
  const LoweredJob lowered(exchange(3));
  bool right = false;
  EXPECT_FALSE(lowered.run(LaneModel::straight(), right));
  EXPECT_TRUE(right);
  LaneModel limited = LaneModel::straight();
  limited.straight_is_limited = true;
  limited.lines = 3;
  EXPECT_FALSE(lowered.run(limited, right));
  limited.lines = 1;  // two messages are sent before the first is taken
  const auto lines = lowered.run(limited, right);
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->kind, LoweredFault::Kind::kDeadlock);
  EXPECT_NE(lines->text.find("waits for room for a message to rank 1"), std::string::npos) << lines->text;
  limited.lines = LaneModel::kUnlimited;
  limited.bytes = 15;
  EXPECT_TRUE(lowered.run(limited, right));
  limited.bytes = 24;
  EXPECT_FALSE(lowered.run(limited, right));
  for (const std::uint64_t segment : {4U, 8U, 100U}) {
    EXPECT_FALSE(lowered.run(LaneModel::windowed_with_one_segment(2, segment), right)) << segment;
    EXPECT_TRUE(right);
  }
}

TEST(LoweredRun, FindsMessagesThatDoNotMeet) {
  bool right = true;
  const auto fault_of = [&](const auto& change) {
    LoweredJob lowered(exchange(2));
    change(lowered.programs[0]);
    LaneModel model = LaneModel::windowed_with_one_segment(2, 4);
    model.lines = 2;
    return lowered.run(model, right);
  };
  const auto tag = fault_of([](LoweredProgram& program) { program.moves[1].tag_forward = 9; });
  ASSERT_TRUE(tag);
  EXPECT_EQ(tag->kind, LoweredFault::Kind::kMismatch);
  EXPECT_NE(tag->text.find("with tag 1 of rank 0; there came 4 bytes with tag 9"), std::string::npos) << tag->text;
  const auto left = fault_of([](LoweredProgram& program) { program.moves.pop_back(); });
  ASSERT_TRUE(left);
  EXPECT_EQ(left->kind, LoweredFault::Kind::kLeftOver) << left->text;
  const auto ended = fault_of([](LoweredProgram& program) { program.moves.erase(program.moves.begin() + 1); });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->kind, LoweredFault::Kind::kDeadlock) << ended->text;
  const auto beyond = fault_of([](LoweredProgram& program) { program.moves[3].out.offset = 64; });
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->kind, LoweredFault::Kind::kOutOfBounds) << beyond->text;
}

}  // namespace
}  // namespace unisono::driver
