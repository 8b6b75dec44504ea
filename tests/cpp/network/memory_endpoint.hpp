// An endpoint that is a piece of memory: it tells of what came in another order, has no room, fails, and carries what
// strangers write.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
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
  enum class Writes : std::uint8_t {
    kNone,
    kOrdered,    ///< messages behind a write come after it; it is over when it was posted
    kUnordered,  ///< messages overtake it; it is over when it is there
  };
  Writes writes = Writes::kNone;
  bool registers_sources = false;
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

  ofi::Card card() const override {
    return {"memory", 1, 1, {std::byte{address_}}, longest_write() != 0 ? ofi::Card::kWrites : std::uint8_t{0}};
  }
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
    if (wires_[to] == nullptr || way_fault_ != 0) {
      done_.push_back({&block, 0, way_fault_ != 0 ? way_fault_ : 111});
      return {};
    }
    wires_[to]->put({block.frame(), block.bytes});
    done_.push_back({&block, block.bytes});
    return {};
  }

  std::uint64_t longest_write() const override { return manners_.writes == Manners::Writes::kNone ? 0 : 100'000; }
  bool orders_writes() const override { return manners_.writes == Manners::Writes::kOrdered; }
  bool registers_sources() const override { return manners_.registers_sources; }
  std::optional<ofi::RegisteredPiece> register_piece(std::byte* memory, std::size_t bytes,
                                                     ofi::Access access) override {
    const std::uint64_t key = (std::uint64_t{random_()} << 32U) + ++registered_;
    pieces_[key] = {memory, bytes, access};
    return ofi::RegisteredPiece{memory, memory, 0, key};
  }
  void deregister(const ofi::RegisteredPiece& piece) override {
    if (pieces_.erase(piece.key) != 1) throw std::logic_error("memory that was not registered");
  }
  ofi::Posted post_write(std::uint64_t to, ofi::Block& block, const ofi::RemoteWrite& write) override {
    if (chance(manners_.no_room)) return {0, true};
    if (registers_sources() != (write.descriptor != nullptr)) throw std::logic_error("a source of the wrong kind");
    if (write.bytes > longest_write()) throw std::logic_error("a write that is too long");
    if (wires_[to] == nullptr) {
      done_.push_back({&block, 0, 111});
      return {};
    }
    Came came;
    came.is_write = true;
    came.write = write;
    came.from = address_;
    came.block = &block;
    if (orders_writes()) {
      // What it is from may change from now on.
      came.bytes.assign(write.from, write.from + write.bytes);
      done_.push_back({&block, 0});
      wires_[to]->came_.push_back(std::move(came));
    } else {
      wires_[to]->late_.push_back(std::move(came));
    }
    return {};
  }

  std::size_t read(std::span<ofi::Completion> completions) override {
    while (!came_.empty()) {
      if (came_.front().is_write) {
        if (!take_write(came_.front())) break;
        came_.pop_front();
        continue;
      }
      if (receives_.empty()) break;
      const auto [block, room] = receives_.front();
      receives_.pop_front();
      // Pieces of one sender are in order; told of in another.
      const std::vector<std::byte> bytes = std::move(came_.front().bytes);
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
    while (!late_.empty() && take_write(late_.front())) late_.pop_front();
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
  void put(std::span<const std::byte> bytes) {
    Came came;
    came.bytes.assign(bytes.begin(), bytes.end());
    came_.push_back(std::move(came));
  }
  /// The last of it.
  const std::vector<std::byte>& heard() const { return came_.back().bytes; }
  /// The first of it, which nobody else will get; empty if there is none.
  std::vector<std::byte> take() {
    if (came_.empty()) return {};
    std::vector<std::byte> first = std::move(came_.front().bytes);
    came_.pop_front();
    return first;
  }

  /// From now on whatever is sent fails so; 0: no more.
  void fail_sends(int fault) { way_fault_ = fault; }

  /// Writes that have come begin, and do not end: they know where they go, whatever is deregistered now.
  void hold_writes(bool holds) { holds_ = holds; }
  bool has_begun_writes() const { return begun_ != 0; }
  /// Writes with a key that nobody has.
  std::size_t refused_writes() const { return refused_writes_; }
  std::size_t registered_ever() const { return registered_; }
  std::size_t registered_now() const { return pieces_.size(); }

 private:
  struct Came {
    std::vector<std::byte> bytes;
    bool is_write = false;
    bool begun = false;
    ofi::RemoteWrite write;
    std::byte* into = nullptr;
    std::uint8_t from = 0;
    ofi::Block* block = nullptr;
  };
  struct Piece {
    std::byte* memory;
    std::size_t bytes;
    ofi::Access access;
  };

  bool chance(unsigned percent) { return percent != 0 && random_() % 100 < percent; }
  /// False if it goes on.
  bool take_write(Came& came) {
    if (!came.begun) {
      came.begun = true;
      ++begun_;
      const auto piece = pieces_.find(came.write.key);
      const bool good = piece != pieces_.end() && piece->second.access == ofi::Access::kTarget &&
                        came.write.address <= piece->second.bytes &&
                        came.write.bytes <= piece->second.bytes - came.write.address;
      if (good) came.into = piece->second.memory + came.write.address;
      if (!good) ++refused_writes_;
    }
    if (holds_) return false;
    --begun_;
    const std::byte* const bytes = came.bytes.empty() ? came.write.from : came.bytes.data();
    if (came.into != nullptr) std::memcpy(came.into, bytes, came.write.bytes);
    if (came.bytes.empty() && wires_[came.from] != nullptr) wires_[came.from]->done_.push_back({came.block, 0});
    return true;
  }

  Wires& wires_;
  Manners manners_;
  std::minstd_rand random_;
  std::uint8_t address_;
  std::deque<std::pair<ofi::Block*, std::size_t>> receives_;
  std::deque<Came> came_;
  std::deque<Came> late_;  ///< writes that messages overtake
  std::deque<ofi::Completion> done_;
  std::deque<ofi::Completion> told_;
  std::map<std::uint64_t, Piece> pieces_;
  std::size_t registered_ = 0;
  std::size_t refused_writes_ = 0;
  std::size_t begun_ = 0;
  bool holds_ = false;
  int way_fault_ = 0;
};

}  // namespace unisono::test
