// Ranks that speak to switches as engines in hardware do, and the ways between all of them, on which messages of a pair
// stay in order and everything else comes in any order.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "core/header.hpp"
#include "core/tree_table.hpp"
#include "sim/switch/switch_communicator.hpp"

namespace unisono::sim {

struct Terms {
  std::uint32_t eager_limit = 256, segment_bytes = 512, rx_buffers = 2;
};

inline constexpr std::uint32_t kCommunicator = 77;
inline constexpr std::uint16_t kEpoch = 3;
inline constexpr std::uint32_t kFirstAddress = 1000;  ///< of node n of the tree: this and n

/// Everything that is on its way: by sender, receiver and channel.
class Ways {
 public:
  struct Message {
    Header header;
    std::vector<std::byte> payload;
  };

  explicit Ways(std::uint64_t seed) : dice_(seed) {}

  void send(std::uint32_t from, std::uint32_t to, bool control, const Header& header,
            std::span<const std::byte> payload) {
    ways_[{from, to, control}].push_back({header, {payload.begin(), payload.end()}});
  }
  /// The next message of some way, or nothing.
  bool next(std::uint32_t& from, std::uint32_t& to, Message& message) {
    if (ways_.empty()) return false;
    auto way = ways_.begin();
    std::advance(way, static_cast<std::ptrdiff_t>(dice_() % ways_.size()));
    from = std::get<0>(way->first);
    to = std::get<1>(way->first);
    message = std::move(way->second.front());
    way->second.pop_front();
    if (way->second.empty()) ways_.erase(way);
    return true;
  }
  bool empty() const { return ways_.empty(); }
  std::mt19937_64& dice() { return dice_; }

 private:
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::deque<Message>> ways_;
  std::mt19937_64 dice_;
};

/// A rank: makes calls one after the other, and carries out its programs.
class Member {
 public:
  Member(Ways& ways, const CallTree* tree, std::uint32_t rank, const Terms& terms)
      : ways_(ways), tree_(tree), rank_(rank), terms_(terms), above_(tree->parent[rank]), credit_(terms.rx_buffers) {}

  /// `signature` stands for what all ranks must call alike.
  void call(Call call, std::uint32_t signature, std::vector<std::byte> src, std::vector<std::byte> dst) {
    call.rank = rank_;
    call.size = tree_->members;
    call.tree = tree_;
    const auto* algorithm = &algorithms()[0];
    while (!algorithm->switched || algorithm->collective != call.collective) ++algorithm;
    auto& made = calls_.emplace_back();
    made.sequence = next_++;
    made.signature = signature;
    made.dtype = call.dtype;
    made.program = record(*algorithm, call);
    made.src = std::move(src);
    made.dst = std::move(dst);
    advance();
  }

  void take(const Header& header, std::span<const std::byte> payload) {
    credit_ += header.credits;
    EXPECT_EQ(header.source, above_);
    EXPECT_EQ(header.destination, rank_);
    EXPECT_EQ(header.communicator, kCommunicator);
    EXPECT_EQ(header.epoch, kEpoch);
    if (header.type != MessageType::kCredit) {
      for (auto& one : calls_) {
        if (one.sequence != header.sequence) continue;
        if (header.signature != one.signature) {
          mismatched = true;
        } else if (header.type == MessageType::kGrant) {
          one.slot = header.token_slot;
          one.generation = header.token_generation;
          one.limit = header.message_bytes;
          one.may = true;
        } else if (header.type == MessageType::kRequest) {
          EXPECT_FALSE(one.asked);
          one.asked = true;
        } else {
          receive(one, header, payload);
        }
      }
    }
    advance();
  }

  bool idle() const {
    for (const auto& one : calls_) {
      if (!one.done()) return false;
    }
    return true;
  }
  std::span<const std::byte> dst(std::size_t call) const { return calls_[call].dst; }

  bool mismatched = false;

 private:
  struct Running {
    std::uint32_t sequence = 0, signature = 0;
    Datatype dtype = Datatype::kNone;
    Program program;
    std::vector<std::byte> src, dst;
    std::size_t out = 0, in = 0;          ///< moves whose sends, and whose arrivals, are over
    bool requested = false, may = false;  ///< of the message being sent: asked for, and granted
    std::uint64_t sent = 0, limit = 0;
    std::uint16_t slot = 0, generation = 0;
    bool asked = false, gave = false;  ///< for the message that comes next; and was that granted
    std::uint64_t received = 0, granted = 0;

    bool done() const { return out == program.moves.size() && in == program.moves.size(); }
  };

  Header header_of(const Running& one, MessageType type) const {
    Header header = make_header(type);
    header.communicator = kCommunicator;
    header.epoch = kEpoch;
    header.source = rank_;
    header.destination = above_;
    header.sequence = one.sequence;
    header.signature = one.signature;
    header.dtype = one.dtype;
    return header;
  }
  void put(bool control, Header header, std::span<const std::byte> payload = {}) {
    header.credits = static_cast<std::uint16_t>(owed_);
    held_ -= owed_;
    owed_ = 0;
    header.segment_bytes = static_cast<std::uint32_t>(payload.size());
    ways_.send(kFirstAddress + rank_, kFirstAddress + above_, control, header, payload);
  }

  void receive(Running& one, const Header& header, std::span<const std::byte> payload) {
    const Move& move = one.program.moves[one.in];
    const std::uint64_t bytes = move.count * bytes_of(move.dtype);
    ASSERT_EQ(header.tag, move.arrival.tag);
    ASSERT_EQ(header.message_bytes, bytes);
    ASSERT_EQ(header.offset, one.received);
    if (bytes <= terms_.eager_limit && !one.asked) {
      ASSERT_EQ(header.type, MessageType::kEager);
      ++owed_;
      ASSERT_LE(++held_, terms_.rx_buffers);
    } else {
      ASSERT_EQ(header.type, MessageType::kWrite);
      ASSERT_EQ(header.token_slot, 9);
      ASSERT_LE(header.offset + payload.size(), one.granted);
      ASSERT_LE(payload.size(), terms_.segment_bytes);
    }
    if (!payload.empty())
      std::memcpy(one.dst.data() + move.local.offset + header.offset, payload.data(), payload.size());
    one.received += payload.size();
    ASSERT_EQ(header.last, one.received == bytes);
    if (!header.last) return;
    one.received = one.granted = 0;
    one.asked = one.gave = false;
    ++one.in;
  }

  void advance() {
    for (auto& one : calls_) {
      while (step_in(one) || step_out(one)) {
      }
    }
    // As engines do: half of all is worth a message of its own.
    if (owed_ >= std::max(1U, terms_.rx_buffers / 2)) put(true, credit_message());
  }
  Header credit_message() const {
    Header header = make_header(MessageType::kCredit);
    header.communicator = kCommunicator;
    header.epoch = kEpoch;
    header.source = rank_;
    header.destination = above_;
    return header;
  }

  bool step_in(Running& one) {
    if (one.in == one.program.moves.size()) return false;
    const Move& move = one.program.moves[one.in];
    if (move.op1.kind != OperandKind::kArrival) {
      ++one.in;
      return true;
    }
    const std::uint64_t bytes = move.count * bytes_of(move.dtype);
    const std::uint64_t limit = std::min<std::uint64_t>(bytes, one.received + std::uint64_t{2} * terms_.segment_bytes);
    if (bytes <= terms_.eager_limit ? !one.asked || one.gave : limit == one.granted) return false;
    one.gave = true;
    one.granted = limit;
    Header header = header_of(one, MessageType::kGrant);
    header.tag = move.arrival.tag;
    header.first = header.last = true;
    header.message_bytes = limit;
    header.token_slot = 9;
    header.token_generation = static_cast<std::uint16_t>(one.in);
    put(true, header);
    return false;
  }

  bool step_out(Running& one) {
    if (one.out == one.program.moves.size()) return false;
    const Move& move = one.program.moves[one.out];
    const std::uint64_t bytes = move.count * bytes_of(move.dtype);
    std::span<const std::byte> data;
    if (move.op0.kind == OperandKind::kMemory) {
      data = std::span<const std::byte>(move.op0.region == Region::kSrc ? one.src : one.dst)
                 .subspan(move.op0.offset, bytes);
      if (move.local.kind == OperandKind::kMemory) {
        std::memmove(one.dst.data() + move.local.offset, data.data(), data.size());
      }
    }
    if (move.remote.kind != RemoteKind::kMessage) {
      ++one.out;
      return true;
    }
    Header header = header_of(one, MessageType::kEager);
    header.tag = move.remote.tag;
    header.message_bytes = bytes;
    std::uint64_t part = bytes;
    if (bytes <= terms_.eager_limit && !one.requested && credit_ > 0) {
      --credit_;
    } else if (!one.requested) {
      header.type = MessageType::kRequest;
      header.first = header.last = true;
      one.requested = true;
      one.limit = 0;
      one.may = false;
      put(false, header);
      return false;
    } else {
      part = std::min<std::uint64_t>(terms_.segment_bytes, bytes - one.sent);
      if (!one.may || one.limit < one.sent + part) return false;
      header.type = MessageType::kWrite;
      header.token_slot = one.slot;
      header.token_generation = one.generation;
    }
    header.offset = one.sent;
    header.first = one.sent == 0;
    header.last = one.sent + part == bytes;
    put(false, header, data.empty() ? data : data.subspan(one.sent, part));
    one.sent += part;
    if (!header.last) return true;
    one.sent = one.limit = 0;
    one.requested = false;
    ++one.out;
    return true;
  }

  Ways& ways_;
  const CallTree* tree_;
  const std::uint32_t rank_;
  const Terms terms_;
  const std::uint32_t above_;
  std::uint32_t credit_, owed_ = 0, held_ = 0, next_ = 5;
  std::deque<Running> calls_;
};

/// The switches of a tree and its members.
class Job {
 public:
  Job(const std::string& text, const Terms& terms, std::uint64_t seed) : tree(parse_tree(text, false)), ways(seed) {
    SwitchEntry entry{kCommunicator,       kEpoch,          this->tree, 0, {}, terms.eager_limit,
                      terms.segment_bytes, terms.rx_buffers};
    for (std::uint32_t node = 0; node < this->tree->members + this->tree->switches; ++node) {
      entry.addresses.push_back(kFirstAddress + node);
    }
    for (; entry.number < this->tree->switches; ++entry.number) {
      outlets.push_back(std::make_unique<Outlet>(ways, entry.addresses[this->tree->members + entry.number]));
      switches.push_back(std::make_unique<SwitchCommunicator>(entry, *outlets.back()));
    }
    for (std::uint32_t rank = 0; rank < this->tree->members; ++rank) {
      members.push_back(std::make_unique<Member>(ways, this->tree, rank, terms));
    }
  }

  /// Until nothing is on its way.
  void run() {
    std::uint32_t from = 0, to = 0;
    for (Ways::Message message; ways.next(from, to, message);) {
      const std::uint32_t node = to - kFirstAddress;
      if (node < members.size()) {
        members[node]->take(message.header, message.payload);
      } else {
        switches[node - members.size()]->take(from, message.header, message.payload);
      }
    }
  }

  struct Outlet final : SwitchOutlet {
    Outlet(Ways& of, std::uint32_t own) : ways(of), address(own) {}
    void send(std::uint32_t to, bool control, const Header& header, std::span<const std::byte> payload) override {
      EXPECT_EQ(header.segment_bytes, payload.size());
      ways.send(address, to, control, header, payload);
    }
    std::uint16_t take_token() override {
      ++tokens;
      return next++;
    }
    void give_token(std::uint16_t /*slot*/) override { --tokens; }

    Ways& ways;
    std::uint32_t address;
    std::uint16_t next = 0;
    int tokens = 0;
  };

  const CallTree* tree;
  Ways ways;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::vector<std::unique_ptr<SwitchCommunicator>> switches;
  std::vector<std::unique_ptr<Member>> members;
};

}  // namespace unisono::sim
