// An endpoint that is a piece of memory: it tells of what came in another order, has no room, fails, and carries what
// strangers write.
#pragma once

#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "network/ofi/endpoint.hpp"

namespace unisono::test {

/// How unkind.
struct Manners {
  unsigned shuffled = 0;  ///< a message is told of before up to so many that came before it
  unsigned no_room = 0;   ///< percent of posts that are to be tried again
};

class MemoryEndpoint;
/// The endpoints that there are, by address: one byte.
using Wires = std::vector<MemoryEndpoint*>;

class MemoryEndpoint final : public ofi::Endpoint {
 public:
  MemoryEndpoint(Wires& wires, const Manners& manners)
      : wires_(wires), manners_(manners), random_(static_cast<unsigned>(wires.size() + 1)) {
    address_ = static_cast<std::uint8_t>(wires.size());
    wires.push_back(this);
  }
  ~MemoryEndpoint() override { wires_[address_] = nullptr; }

  ofi::Card card() const override { return {"memory", 1, 1, {std::byte{address_}}}; }
  std::uint64_t insert(std::span<const std::byte> address) override { return static_cast<std::uint64_t>(address[0]); }
  void* add_memory(std::byte* memory, std::size_t /*bytes*/) override { return memory; }
  std::size_t most_receives() const override { return 8; }
  ofi::Posted post_receive(ofi::Block& block, std::size_t room) override {
    if (chance(manners_.no_room)) return {0, true};
    if (block.descriptor == nullptr) throw std::logic_error("memory that is not known to the provider");
    receives_.push_back({&block, room});
    return {};
  }
  ofi::Posted post_send(std::uint64_t to, ofi::Block& block) override {
    if (chance(manners_.no_room)) return {0, true};
    if (block.descriptor == nullptr) throw std::logic_error("memory that is not known to the provider");
    if (wires_[to] == nullptr) {
      done_.push_back({&block, 0, 111});
      return {};
    }
    wires_[to]->put({block.frame(), block.bytes});
    done_.push_back({&block, block.bytes});
    return {};
  }
  std::size_t read(std::span<ofi::Completion> completions) override {
    while (!came_.empty() && !receives_.empty()) {
      const auto [block, room] = receives_.front();
      receives_.pop_front();
      // Pieces of one sender are in order; told of in another.
      const std::vector<std::byte> bytes = std::move(came_.front());
      came_.pop_front();
      if (bytes.size() > room) {
        told_.push_back({block, 0, 265, true});
        continue;
      }
      if (!bytes.empty()) std::memcpy(block->frame(), bytes.data(), bytes.size());
      const std::size_t back = manners_.shuffled == 0 ? 0 : random_() % (manners_.shuffled + 1);
      told_.insert(told_.end() - static_cast<std::ptrdiff_t>(std::min(back, told_.size())),
                   {block, static_cast<std::uint32_t>(bytes.size())});
    }
    std::size_t count = 0;
    for (std::deque<ofi::Completion>* const queue : {&done_, &told_}) {
      for (; !queue->empty() && count < completions.size(); queue->pop_front()) completions[count++] = queue->front();
    }
    return count;
  }
  std::string text_of(int fault) const override { return "fault " + std::to_string(fault); }
  int descriptor() const override { return -1; }
  bool may_sleep() override { return true; }
  void abandon() override {}

  /// Something is on its way to it.
  void put(std::span<const std::byte> bytes) { came_.emplace_back(bytes.begin(), bytes.end()); }
  /// The last of it.
  const std::vector<std::byte>& heard() const { return came_.back(); }
  /// The first of it, which nobody else will get; empty if there is none.
  std::vector<std::byte> take() {
    if (came_.empty()) return {};
    std::vector<std::byte> first = std::move(came_.front());
    came_.pop_front();
    return first;
  }

 private:
  bool chance(unsigned percent) { return percent != 0 && random_() % 100 < percent; }

  Wires& wires_;
  Manners manners_;
  std::minstd_rand random_;
  std::uint8_t address_;
  std::deque<std::pair<ofi::Block*, std::size_t>> receives_;
  std::deque<std::vector<std::byte>> came_;
  std::deque<ofi::Completion> done_;
  std::deque<ofi::Completion> told_;
};

}  // namespace unisono::test
