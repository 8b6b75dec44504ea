#include "reference/schedule.hpp"

#include <algorithm>
#include <utility>

namespace unisono::reference {

Schedule::Schedule(const Mix& mix, const Lowered& lowered)
    : mix_(mix), dice_(Dice::apart(~mix.seed)), ways_(lowered.channels().size() * kCourses), is_woken_(lowered.size()) {
  if (!random()) return;
  constexpr std::uint64_t kSlowness[] = {0, 0, 2, 10, 100};
  for (Way& way : ways_) way.slowness = kSlowness[dice_.below(std::size(kSlowness))];
  // Nobody is preferred, some moves are, or all of some ranks, so that others lag behind.
  const std::uint64_t style = dice_.below(3);
  prefers_ = style != 0;
  if (!prefers_) return;
  std::vector<std::uint32_t> of_ranks(lowered.job().size());
  for (std::uint32_t& priority : of_ranks) priority = static_cast<std::uint32_t>(dice_.next() >> 32U);
  for (Node n = 0; n < lowered.size(); ++n) {
    priorities_.push_back(style == 1 ? of_ranks[lowered.node(n).rank]
                                     : static_cast<std::uint32_t>(dice_.next() >> 32U));
  }
}

void Schedule::wake(Node node) {
  if (is_woken_[node]) return;
  is_woken_[node] = true;
  woken_.push_back(node);
}

void Schedule::departed(std::uint32_t channel, Course course) {
  const std::size_t index = channel * kCourses + static_cast<std::size_t>(course);
  Way& way = ways_[index];
  if (way.under_way.empty()) busy_.push_back(static_cast<std::uint32_t>(index));
  way.under_way.push_back({departures_++, time_ + dice_.below(way.slowness + 1)});
}

std::optional<Schedule::Pick> Schedule::next() {
  ++time_;
  if (mix_.schedule == Mix::Schedule::kFirst) {
    if (auto delivery = next_delivery(false)) return delivery;
  } else if (random() && dice_.below(2) == 0) {
    if (auto delivery = next_delivery(true)) return delivery;
  }
  if (const auto node = next_move()) return Pick{*node};
  return next_delivery(false);
}

std::optional<Node> Schedule::next_move() {
  if (woken_.empty()) return std::nullopt;
  if (random()) std::swap(woken_[draw_move()], woken_.back());
  const bool first = mix_.schedule == Mix::Schedule::kFirst;
  const Node node = first ? woken_.front() : woken_.back();
  first ? woken_.pop_front() : woken_.pop_back();
  is_woken_[node] = false;
  return node;
}

std::size_t Schedule::draw_move() {
  std::size_t best = dice_.below(woken_.size());
  for (int i = 0; prefers_ && i < 3; ++i) {
    const std::size_t other = dice_.below(woken_.size());
    if (priorities_[woken_[other]] > priorities_[woken_[best]]) best = other;
  }
  return best;
}

/// With `due_only` one that is drawn, if it is due.
std::optional<Schedule::Pick> Schedule::next_delivery(bool due_only) {
  if (busy_.empty()) return std::nullopt;
  const auto front = [&](std::size_t position) { return ways_[busy_[position]].under_way.front(); };
  if (due_only) {
    const std::size_t drawn = dice_.below(busy_.size());
    if (front(drawn).due > time_) return std::nullopt;
    return deliver(drawn);
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < busy_.size(); ++i) {
    const Departure one = front(i);
    const Departure other = front(best);
    const bool before = random()                                 ? one.due < other.due
                        : mix_.schedule == Mix::Schedule::kFirst ? one.number < other.number
                                                                 : one.number > other.number;
    if (before) best = i;
  }
  return deliver(best);
}

Schedule::Pick Schedule::deliver(std::size_t position) {
  const std::uint32_t index = busy_[position];
  Way& way = ways_[index];
  way.under_way.pop_front();
  if (way.under_way.empty()) {
    busy_[position] = busy_.back();
    busy_.pop_back();
  }
  return {kNowhere, static_cast<std::uint32_t>(index / kCourses), static_cast<Course>(index % kCourses)};
}

}  // namespace unisono::reference
