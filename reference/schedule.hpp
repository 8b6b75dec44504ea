// Who goes on in a mixed run, and what arrives when.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "reference/channel.hpp"
#include "reference/dice.hpp"
#include "reference/lowered.hpp"
#include "reference/mix.hpp"

namespace unisono::reference {

/// Picks one thing after the other: a move that may have something to do, or a delivery. Deliveries of one channel and
/// course come in the order of their departures. Nothing waits for ever: what is slow comes when nothing else can go
/// on.
class Schedule {
 public:
  struct Pick {
    Node node = kNowhere;  ///< or, if there is none, a delivery:
    std::uint32_t channel = 0;
    Course course = Course::kData;
  };

  Schedule(const Mix& mix, const Lowered& lowered);

  /// A move may have something to do.
  void wake(Node node);
  /// Something has left on a course of a channel.
  void departed(std::uint32_t channel, Course course);
  /// The next pick; nothing if no move was woken and nothing is under way.
  std::optional<Pick> next();
  /// For what else is drawn.
  Dice& dice() { return dice_; }
  bool random() const { return mix_.schedule == Mix::Schedule::kRandom; }

 private:
  struct Departure {
    std::uint64_t number = 0;  ///< among all departures of the run
    std::uint64_t due = 0;     ///< time from which on it may be delivered: picks so far
  };
  /// One course of one channel.
  struct Way {
    std::deque<Departure> under_way;
    std::uint64_t slowness = 0;  ///< the longest delay
  };

  std::optional<Node> next_move();
  std::size_t draw_move();
  std::optional<Pick> next_delivery(bool due_only);
  Pick deliver(std::size_t position);

  const Mix& mix_;
  Dice dice_;
  std::vector<Way> ways_;            ///< [channel * kCourses + course]
  std::vector<std::uint32_t> busy_;  ///< those with something under way
  std::deque<Node> woken_;
  std::vector<bool> is_woken_;             ///< by node
  std::vector<std::uint32_t> priorities_;  ///< by node
  bool prefers_ = false;                   ///< moves of high priority
  std::uint64_t departures_ = 0;
  std::uint64_t time_ = 0;  ///< picks so far
};

}  // namespace unisono::reference
