#include "driver/lowered_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "engine/fast_path.hpp"
#include "engine/lower.hpp"
#include "engine/model.hpp"
#include "network/shm/lanes.hpp"
#include "reference/interpreter.hpp"
#include "reference/text.hpp"

namespace unisono::driver {
namespace {

using reference::Finding;
using reference::FindingKind;
using reference::Job;

/// Elements that differ between ranks and places, and that are no NaN, of which bits may differ.
std::vector<std::byte> example(std::uint64_t bytes, Datatype dtype, std::uint32_t rank, std::uint32_t salt) {
  std::vector<std::byte> made(bytes);
  const auto hash = [&](std::uint64_t i) {
    return (rank * 0x9e3779b97f4a7c15ULL + i * 0xd1342543de82ef95ULL + salt) >> 40U;
  };
  const bool typed = arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::uint64_t i = 0; (i + 1) * sizeof(Element) <= bytes; ++i) {
      const auto value = static_cast<float>(hash(i) % 1021 + 1) / 8;
      if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
        element = arithmetic::narrow_fp16(value);
      } else if constexpr (std::is_same_v<Element, arithmetic::Bf16>) {
        element = arithmetic::narrow_bf16(value);
      } else if constexpr (std::is_floating_point_v<Element>) {
        element = static_cast<Element>(value);
      } else if constexpr (std::is_integral_v<Element>) {
        element = static_cast<Element>(hash(i) % 101 + 1);
      } else {
        continue;  // compound elements: any bytes will do, see below
      }
      std::memcpy(made.data() + i * sizeof(Element), &element, sizeof element);
    }
  });
  const bool plain = typed && made != std::vector<std::byte>(bytes);
  if (!plain) {
    for (std::uint64_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(hash(i));
  }
  return made;
}

FindingKind kind_of(cclo::LoweredFault::Kind kind) {
  switch (kind) {
    case cclo::LoweredFault::Kind::kDeadlock:
      return FindingKind::kDeadlock;
    case cclo::LoweredFault::Kind::kMismatch:
    case cclo::LoweredFault::Kind::kLeftOver:
      return FindingKind::kUnmatched;
    case cclo::LoweredFault::Kind::kOutOfBounds:
      return FindingKind::kOutOfBounds;
    case cclo::LoweredFault::Kind::kNotTheMoves:
    case cclo::LoweredFault::Kind::kOrder:
      return FindingKind::kMalformed;
  }
  return FindingKind::kMalformed;
}

Finding finding_of(const Job& job, const cclo::LoweredFault& fault, const std::string& how) {
  Finding finding;
  finding.kind = kind_of(fault.kind);
  finding.text = "lowered for lanes, " + how + ": " + fault.text;
  for (const auto& place : fault.places) {
    for (const std::uint32_t move : place.moves) {
      if (place.rank >= job.size() || move >= job.programs[place.rank].moves.size()) continue;
      finding.text += "\n  rank " + std::to_string(place.rank) + ", move " + std::to_string(move) + ": " +
                      reference::describe_move(job.programs[place.rank], move);
      if (finding.rank != reference::kNowhere) continue;
      finding.rank = place.rank;
      finding.move = move;
    }
  }
  return finding;
}

}  // namespace

std::optional<Finding> LoweredChecker::check(const Job& job) {
  const std::uint32_t size = job.size();
  std::vector<cclo::LoweredProgram> lowered;
  std::vector<std::vector<std::vector<std::uint32_t>>> moves_of;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    auto made = cclo::lower(job.programs[rank], size);
    if (!made) {
      if (cclo::carried_by_lanes(job.call.collective)) {
        return Finding{FindingKind::kMalformed,
                       rank,
                       0,
                       reference::kNowhere,
                       reference::kNowhere,
                       "lanes carry the collective, but not what this program does (streams, casts, params that moves "
                       "write)"};
      }
      ++not_carried_;
      return std::nullopt;
    }
    if (!made->indirect.empty()) {
      std::array<std::uint64_t, 5> regions{};
      for (std::size_t i = 0; i < regions.size(); ++i) regions[i] = job.bytes(rank, static_cast<Region>(i));
      cclo::Launcher::bind(*made, job.params[rank], regions);
      cclo::Launcher().number(*made);
    }
    auto compared = cclo::compare_lowered(cclo::with_params(job.programs[rank], job.params[rank]), *made, rank, size);
    if (compared.fault) return finding_of(job, *compared.fault, "not the program");
    lowered.push_back(std::move(*made));
    moves_of.push_back(std::move(compared.moves));
  }
  ++calls_;

  std::vector<reference::RankInput> inputs(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    inputs[rank] = {example(job.bytes(rank, Region::kSrc), job.dtype, rank, 1),
                    example(job.bytes(rank, Region::kDst), job.dtype, rank, 2),
                    example(job.bytes(rank, Region::kWindow), job.dtype, rank, 3)};
  }
  const auto expected = reference::Interpreter(job).run_numbers(inputs, reference::Policy::generous());
  if (expected.finding) return expected.finding;
  const auto wanted = [&](std::uint32_t rank, Region region) -> const std::vector<std::byte>& {
    return expected.memory[rank][static_cast<std::size_t>(region)];
  };

  const auto run = [&](const cclo::LaneModel& model, const std::string& how) -> std::optional<Finding> {
    std::vector<cclo::LoweredRank> ranks(size);
    for (std::uint32_t rank = 0; rank < size; ++rank)
      ranks[rank] = {&lowered[rank], inputs[rank].src, inputs[rank].dst, inputs[rank].window};
    const cclo::LoweredRun result = cclo::run_lowered(ranks, model, moves_of);
    if (result.fault) return finding_of(job, *result.fault, how);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const auto differs = [&](Region region, const std::vector<std::byte>& got,
                               const std::vector<std::byte>& want) -> std::optional<Finding> {
        if (got == want) return std::nullopt;
        const auto at = std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first - got.begin();
        return Finding{FindingKind::kWrongResult,
                       rank,
                       reference::kNowhere,
                       reference::kNowhere,
                       reference::kNowhere,
                       "lowered for lanes, " + how + ": byte " + std::to_string(at) + " of " + name_of(region) +
                           " of rank " + std::to_string(rank) + " is not the interpreter's"};
      };
      if (auto found = differs(Region::kSrc, ranks[rank].src, inputs[rank].src)) return found;
      if (auto found = differs(Region::kDst, ranks[rank].dst, wanted(rank, Region::kDst))) return found;
      if (auto found = differs(Region::kWindow, ranks[rank].window, wanted(rank, Region::kWindow))) return found;
    }
    return std::nullopt;
  };

  ++straight_;
  if (auto finding = run(cclo::LaneModel::straight(), "straight")) return finding;
  ++windowed_;
  const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(job.dtype));
  if (auto finding = run(cclo::LaneModel::windowed_with_one_segment(size, element), "windowed")) return finding;
  const bool lends = std::any_of(lowered.begin(), lowered.end(), [](const cclo::LoweredProgram& program) {
    return std::any_of(program.moves.begin(), program.moves.end(), [](const auto& move) { return move.only_sends(); });
  });
  using Loans = cclo::LaneModel::Loans;
  for (const auto& [loans, how] : {std::pair{Loans::kTaken, "windowed, with loans"},
                                   std::pair{Loans::kDeclined, "windowed, with loans that are declined"}}) {
    if (!lends) break;
    ++windowed_;
    if (auto finding = run(cclo::LaneModel::windowed_with_one_segment(size, element, loans), how)) return finding;
  }

  // Ranks may differ: LaneChannels::holds looks at what a rank's own lanes carry, against the length of a segment.
  // Every length that parts the ranks in another way is tried; straight ranks' lanes hold all, others one segment.
  std::vector<std::uint64_t> lengths;
  lengths.reserve(size);
  for (const auto& program : lowered) lengths.push_back(std::max(program.most_lane_bytes, element));
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (const std::uint64_t length : lengths) {
    cclo::LaneModel model{
        length, 1, cclo::LaneModel::kUnlimited, std::vector<bool>(size), false, lends ? Loans::kTaken : Loans::kNever};
    std::uint32_t windowed = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      model.windowed[rank] =
          lowered[rank].most_lane_bytes > length || lowered[rank].most_lane_messages > shm::kLaneLines / 2;
      windowed += model.windowed[rank] ? 1 : 0;
    }
    if (windowed == 0 || windowed == size) continue;
    ++mixed_;
    if (auto finding = run(model, "segments of " + std::to_string(length) + " bytes, " + std::to_string(windowed) +
                                      " of " + std::to_string(size) + " ranks windowed")) {
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace unisono::driver
