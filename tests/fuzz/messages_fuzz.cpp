// Messages over lanes whose other end writes whatever it likes: announcements, pieces, grants and answers of any kind.
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "engine/counters.hpp"
#include "engine/kernel_values.hpp"
#include "engine/point_to_point.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint64_t kArena = std::uint64_t{32} << 20U;

/// A send or receive of this rank. Its memory has its own length, so that a byte beyond it is noticed.
struct Pending {
  cclo::Transfer op;
  std::unique_ptr<std::byte[]> ordinary;
};

/// Rank 0 of two; rank 1 is the input.
class Scene {
 public:
  explicit Scene(fuzz::Input& input) : input_(input) {
    shm::Geometry geometry;
    geometry.endpoints = 2;
    geometry.arena_bytes = kArena;
    segment_ = shm::Segment::create(geometry);
    for (std::uint32_t self = 0; self < 2; ++self) {
      arenas_[self] = std::make_shared<shm::Arena>(segment_, self);
      const std::array<std::uint32_t, 2> all{0, 1};
      sets_[self] = std::make_unique<shm::LaneSet>(segment_, arenas_[self], self, 0, std::uint16_t{0}, all);
      claim(sets_[self]->open(), "lanes are there");
    }
    const std::uint32_t limits[] = {0, 100, 8192, 65536};
    const cclo::LaneTraffic traffic(counters_);
    const cclo::PointToPointWays ways{*sets_[0],
                                      segment_,
                                      nullptr,
                                      {},
                                      traffic,
                                      false,
                                      limits[input.up_to(3)],
                                      input.up_to(1) == 0 ? 10'000U : 16U << 20U};
    point_to_point_ = std::make_unique<cclo::PointToPoint>(ways, 2);
    for (std::size_t i = 0; i < std::size(kSpaces); ++i) {
      lines_[i] = sets_[1]->sender(kSpaces[i], 0);
      read_[i] = sets_[1]->receiver(kSpaces[i], 0);
    }
    shared_ = arenas_[0]->allocate(1U << 20U);
  }

  void play() {
    try {
      for (int act = 0; act < 200 && !input_.empty(); ++act) this->act();
    } catch (const Error& error) {
      claim(error.code() == ErrorCode::kCorruptMessage && error.what()[0] != '\0', "what is no message is refused");
    } catch (const cclo::AccessBanned&) {
      // The communicator has failed meanwhile.
    }
    for (const auto& pending : calls_) {
      point_to_point_->withdraw(pending->op);
      claim(pending->op.ended, "what was withdrawn has ended");
      claim(pending->op.received <= pending->op.bytes, "no more arrives than the receive takes");
      claim((pending->op.code == ErrorCode::kOk) == pending->op.text.empty(), "a failure has a text, success has none");
    }
    claim(point_to_point_->idle(), "nothing is left in flight");
  }

 private:
  static constexpr shm::LaneSpace kSpaces[] = {shm::LaneSpace::kPointToPoint, shm::LaneSpace::kAnswers};
  static constexpr Datatype kTypes[] = {Datatype::kByte, Datatype::kInt32, Datatype::kFp64};
  static constexpr std::uint64_t kLengths[] = {0, 1, 48, 49, 4000, 8192, 9000, 70'000, 600'000};

  void act() {
    const auto kind = input_.take<std::uint8_t>();
    switch (kind % 16) {
      case 0:
      case 1:
      case 2: {
        auto pending = std::make_unique<Pending>();
        fill(*pending, kind % 16 == 2, true);
        calls_.push_back(std::move(pending));
        point_to_point_->post(calls_.back()->op);
        break;
      }
      case 3: {
        Pending at_once;
        fill(at_once, kind >= 128, false);
        const cclo::Transfer& op = at_once.op;
        if (op.sends) {
          point_to_point_->try_send(1, op.tag, op.dtype, op.data, op.bytes);
        } else if (op.bytes <= cclo::PointToPoint::kShort) {
          std::uint64_t taken = 0;
          if (point_to_point_->try_receive(1, op.tag, op.dtype, op.data, op.bytes, taken) && taken > op.bytes)
            std::abort();
        }
        break;
      }
      case 4:
        if (!calls_.empty())
          point_to_point_->withdraw(calls_[input_.up_to(static_cast<std::uint32_t>(calls_.size() - 1))]->op);
        break;
      case 5:
        words(kind >= 128);
        break;
      case 6:
        if (kind >= 240) sets_[1]->touch_guard().ban();
        break;
      case 7:
        point_to_point_->progress_all(1 + kind % 2);
        static_cast<void>(point_to_point_->look_for({0, 0, true, true}));
        break;
      default:
        line(kind % 2);
        if (kind < 192) point_to_point_->progress(1);
    }
  }

  void fill(Pending& pending, bool sends, bool posts) {
    cclo::Transfer& op = pending.op;
    op.sends = sends;
    op.peer = 1;
    op.tag = input_.up_to(1);
    // At once only exact ones are sent and received.
    if (!sends) op.wanted = {1, op.tag, posts && input_.up_to(3) == 0, posts && input_.up_to(3) == 0};
    op.dtype = kTypes[input_.up_to(2)];
    op.bytes = kLengths[input_.up_to(static_cast<std::uint32_t>(std::size(kLengths)) - 1)];
    if (input_.up_to(2) == 0) {
      op.data = shared_;
    } else {
      pending.ordinary = std::make_unique<std::byte[]>(op.bytes);
      op.data = pending.ordinary.get();
    }
  }

  /// What rank 1 says it has read of rank 0's lanes: all of it, or anything.
  void words(bool right) {
    for (const shm::LaneReceiver& lane : read_) {
      const std::uint64_t lines = input_.take<std::uint64_t>();
      const std::uint64_t bytes = input_.take<std::uint64_t>();
      lane.tail->full = static_cast<std::uint32_t>(lines & 1U);
      if (!right) {
        lane.tail->lines = lines;
        lane.tail->bytes = bytes;
        continue;
      }
      // More than it can have written is read as nothing: take the number of lines that stand there.
      std::uint64_t last = 0;
      for (std::uint32_t i = 0; i < shm::kLaneLines; ++i) {
        last = std::max<std::uint64_t>(last, static_cast<std::uint32_t>(lane.lines[i].flag.load()));
      }
      lane.tail->lines = last;
    }
  }

  std::uint64_t address() {
    switch (input_.up_to(3)) {
      case 0:
        return ~std::uint64_t{0};  // cannot be reached
      case 1:
        return input_.take<std::uint64_t>();
      default:
        return segment_->offset_of(segment_->arena(1), 1) + (input_.up_to(31) << 20U);
    }
  }

  /// A line of rank 1: what a sound rank could say, or any words.
  void line(std::size_t lane) {
    shm::LaneSender& to = lines_[lane];
    shm::LaneLine& line = to.next();
    const auto kind = input_.take<std::uint8_t>();
    MessageLine said;
    said.tag = input_.up_to(1);
    said.dtype = kTypes[input_.up_to(2)];
    said.id = input_.up_to(3);
    constexpr MessageType kMessages[] = {MessageType::kEager, MessageType::kRequest, MessageType::kWrite,
                                         MessageType::kDone};
    constexpr MessageType kAnswers[] = {MessageType::kGrant, MessageType::kDone, MessageType::kControl,
                                        MessageType::kEager};
    said.type = (lane == 0 ? kMessages : kAnswers)[input_.up_to(3)];
    const bool announces = lane == 0 && said.type == MessageType::kRequest;
    said.bytes = lane == 1              ? 16
                 : announces            ? 24
                 : input_.up_to(3) == 0 ? input_.up_to((1U << 20U) - 1)
                                        : input_.up_to(9000);
    const std::uint64_t length = kLengths[input_.up_to(static_cast<std::uint32_t>(std::size(kLengths)) - 1)];
    const std::array<std::uint64_t, 2> first{length, address()};
    const std::array<std::uint64_t, 2> answer{first[1], input_.up_to(3) == 0 ? input_.take<std::uint64_t>() : length};
    std::memcpy(line.payload.data(), lane == 0 ? &first : &answer, sizeof first);
    std::array<std::uint64_t, 2> head = encode(said);
    if ((kind & 3U) == 0) head[0] = input_.take<std::uint64_t>();
    ++to.sent;
    line.head = head[0];
    std::uint64_t flag = static_cast<std::uint32_t>(to.sent) | (head[1] & ~std::uint64_t{0xffffffff});
    if ((kind & 28U) == 0) flag = input_.take<std::uint64_t>();
    line.flag = flag;
  }

  fuzz::Input& input_;
  NativeCounters counters_{};
  std::shared_ptr<shm::Segment> segment_;
  std::array<std::shared_ptr<shm::Arena>, 2> arenas_;
  std::array<std::unique_ptr<shm::LaneSet>, 2> sets_;
  std::array<shm::LaneSender, 2> lines_;   ///< of rank 1, by space
  std::array<shm::LaneReceiver, 2> read_;  ///< likewise
  std::byte* shared_ = nullptr;            ///< memory of rank 0 that rank 1 reaches
  std::unique_ptr<cclo::PointToPoint> point_to_point_;
  std::vector<std::unique_ptr<Pending>> calls_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Scene(input).play();
  return 0;
}
