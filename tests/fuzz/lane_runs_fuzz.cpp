// A collective over lanes whose other ends write whatever they like: the run goes on, waits, or ends in a fault that
// names the rank.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "engine/live.hpp"
#include "engine/lower.hpp"
#include "network/shm/lanes.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint32_t kSize = 3;
constexpr std::uint32_t kDigest = 77;

/// The program of rank 0 for some call that lanes carry, with memory of exactly the length it has.
struct Run {
  std::optional<cclo::LoweredProgram> program;
  std::array<std::uint64_t, 2> bytes{};
};

Run some_run(fuzz::Input& input) {
  Run run;
  const auto table = algorithms();
  const Algorithm& algorithm = table[input.up_to(static_cast<std::uint32_t>(table.size()) - 1)];
  constexpr std::uint64_t kCounts[] = {0, 1, 12, 13, 500, 20'000};
  Call call;
  call.collective = algorithm.collective;
  call.size = kSize;
  call.dtype = Datatype::kInt32;
  call.func = Func::kSum;
  call.count = kCounts[input.up_to(static_cast<std::uint32_t>(std::size(kCounts)) - 1)];
  call.root = input.up_to(kSize - 1);
  // Messages from rank to rank go other ways, and a rank may send them to itself.
  if (algorithm.direct || call.collective < Collective::kBcast || call.collective == Collective::kProgram) return run;
  if (algorithm.admits != nullptr && !algorithm.admits(call)) return run;
  run.program = cclo::lower(record(algorithm, call), kSize);
  run.bytes.fill(call.count * sizeof(std::int32_t) * kSize);
  return run;
}

class Scene {
 public:
  explicit Scene(fuzz::Input& input) : input_(input) {
    shm::Geometry geometry;
    geometry.endpoints = kSize;
    geometry.arena_bytes = std::uint64_t{64} << 20U;
    segment_ = shm::Segment::create(geometry);
    const std::array<std::uint32_t, kSize> all{0, 1, 2};
    for (std::uint32_t self = 0; self < kSize; ++self) {
      sets_[self] = std::make_unique<shm::LaneSet>(segment_, std::make_shared<shm::Arena>(segment_, self), self, 0,
                                                   std::uint16_t{0}, all);
      claim(sets_[self]->open(), "lanes are there");
      if (self != 0) peers_.push_back(sets_[self]->sender(shm::LaneSpace::kCollective, 0));
      if (self != 0) read_.push_back(sets_[self]->receiver(shm::LaneSpace::kCollective, 0));
    }
    live_.open(*sets_[0], shm::LaneSpace::kCollective, 0, kSize);
  }

  void play() {
    // Several one after another: the rings are where the last run left them.
    for (int round = 0; round < 4 && !input_.empty(); ++round) {
      const Run run = some_run(input_);
      if (!run.program) continue;
      if (!go(*run.program, run.bytes)) return;
    }
  }

 private:
  /// False once the communicator has failed.
  bool go(const cclo::LoweredProgram& program, const std::array<std::uint64_t, 2>& bytes) {
    const auto src = std::make_unique<std::byte[]>(bytes[0]);
    const auto dst = std::make_unique<std::byte[]>(bytes[1]);
    const auto scratch = std::make_unique<std::byte[]>(program.scratch_bytes);
    live_.values.regions = {src.get(), dst.get(), scratch.get(), nullptr, nullptr};
    live_.channels.digest = kDigest;
    cclo::Flight flight;
    flight.start_windowed(program, kSize);
    for (int act = 0; act < 300; ++act) {
      try {
        while (!flight.ended_windowed() && live_.executor->windowed(flight)) continue;
      } catch (const cclo::LaneFault& fault) {
        claim(fault.peer != 0 && fault.peer < kSize, "a fault names who has written it");
        return false;
      }
      if (flight.ended_windowed()) return true;
      live_.executor->awaited_windowed(
          flight, [](std::uint32_t rank, cclo::Need) { claim(rank < kSize, "who is awaited is a rank"); });
      if (input_.empty()) return false;
      const auto kind = input_.take<std::uint8_t>();
      const std::size_t peer = kind / 128;
      if (kind % 4 == 0) {
        words(peer, kind % 8 == 0);
      } else {
        line(peer, program);
      }
    }
    return false;
  }

  void words(std::size_t peer, bool right) {
    shm::LaneTail& tail = *read_[peer].tail;
    const shm::LaneSender& lane = live_.channels.send[peer + 1];
    tail.lines = right ? lane.sent : input_.take<std::uint64_t>();
    tail.bytes = right ? lane.filled : input_.take<std::uint64_t>();
  }

  /// A line that the program may await, or nearly one, or any words.
  void line(std::size_t peer, const cclo::LoweredProgram& program) {
    shm::LaneSender& to = peers_[peer];
    to.sent = live_.channels.receive[peer + 1].taken + input_.up_to(3) % 3;
    const auto kind = input_.take<std::uint8_t>();
    std::uint64_t head = input_.take<std::uint64_t>();
    if ((kind & 7U) != 0 && !program.moves.empty()) {
      const auto& move = program.moves[static_cast<std::size_t>(head % program.moves.size())];
      const std::uint64_t segment = live_.channels.segment_bytes();
      const std::uint64_t rest = move.bytes % segment;
      head = cclo::LaneChannels::head((kind & 8U) != 0 || move.bytes < segment ? rest : segment, move.tag_in);
    }
    to.publish(head, (kind & 48U) != 0 ? kDigest : static_cast<std::uint32_t>(head >> 32U));
  }

  fuzz::Input& input_;
  std::shared_ptr<shm::Segment> segment_;
  std::array<std::unique_ptr<shm::LaneSet>, kSize> sets_;
  cclo::LiveRank live_;
  std::vector<shm::LaneSender> peers_;   ///< of ranks 1 and 2, to rank 0
  std::vector<shm::LaneReceiver> read_;  ///< likewise, from rank 0
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Scene(input).play();
  return 0;
}
