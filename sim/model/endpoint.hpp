// An endpoint of a model: it executes a program of moves, by segments, in the time that its costs say. Data are not
// modelled, only their lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "core/program.hpp"
#include "sim/model/costs.hpp"

namespace unisono::sim {

/// What the frames of a model say.
struct ModelHeader {
  enum class Kind : std::uint32_t { kData, kGrant, kRequest };
  Kind kind = Kind::kData;
  std::uint32_t source = 0;    ///< rank
  std::uint32_t message = 0;   ///< number among those of the pair
  std::uint32_t segments = 0;  ///< of a grant: so many may come in all; of a request: so many are to come
  std::uint32_t bytes = 0;     ///< of data
};

/// What carries an endpoint's frames.
class Outlet {
 public:
  virtual ~Outlet() = default;
  Outlet() = default;
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  virtual void send(std::uint32_t rank, const ModelHeader& header) = 0;
  /// Words of data frames that wait to leave.
  virtual std::uint32_t waiting_words() const = 0;
};

class Endpoint {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// The program stays where it is as long as this does. Ranks from `switches` on are asked before long messages.
  Endpoint(std::uint32_t rank, const Program& program, const EndpointCosts& costs, Outlet& outlet,
           std::uint32_t switches);

  /// The call is given.
  void start(std::uint64_t now);
  /// The last word of a frame has come.
  void receive(const ModelHeader& header, std::uint64_t now);
  /// Does what is due. To be called in each cycle from `due()` on.
  void run(std::uint64_t now);
  std::uint64_t due() const { return events_.empty() ? kNever : events_.top().cycle; }
  /// The transport has room again.
  void room(std::uint64_t now);

  bool finished() const { return retired_ == states_.size() && started_; }
  /// The cycle of the call's answer.
  std::uint64_t answered() const { return answered_; }

 private:
  enum class What : std::uint8_t { kGive, kLook, kMade, kLeave, kOffer, kGranted, kGrant };
  struct Event {
    std::uint64_t cycle = 0, order = 0;
    What what{};
    std::uint32_t move = 0;  ///< or rank
    ModelHeader header;
    std::uint32_t rank = 0;
    bool operator>(const Event& other) const {
      return cycle != other.cycle ? cycle > other.cycle : order > other.order;
    }
  };
  struct Segment {
    std::uint64_t ready = 0;   ///< from when a job may take it past the buffers
    std::uint64_t stored = 0;  ///< from when it can be read from its buffer
  };
  struct Peer {
    std::uint32_t rank = 0, message = 0;
  };
  struct State {
    std::uint64_t bytes = 0;
    std::uint64_t segment = 0;  ///< bytes, at most
    std::uint32_t segments = 1;
    std::vector<Peer> sources, destinations;
    std::uint64_t ready = 0;  ///< from when the first job can go
    std::uint64_t lane = 0;   ///< where moves run side by side: from when on its own one is free
    std::uint32_t next = 0;   ///< segment
    std::uint32_t made = 0;   ///< segments that have ended
    bool exists = false, given = false, issued = false, complete = false;
  };
  /// Packets of data one after the other, in Tx or in Rx. Control goes first between them, and never within one.
  class Packets {
   public:
    /// A packet that is announced at `begin`, and has passed at `end`. It waits for those before it.
    void add(std::uint64_t begin, std::uint64_t end) {
      spans_.emplace_back(std::max(begin, spans_.empty() ? 0 : spans_.back().second), end);
    }
    /// From when on control can go that is there now.
    std::uint64_t gap(std::uint64_t now) {
      while (!spans_.empty() && spans_.front().second <= now) spans_.pop_front();
      for (const auto& [begin, end] : spans_) {
        if (begin < now && now < end) return end;
      }
      return now;
    }

   private:
    std::deque<std::pair<std::uint64_t, std::uint64_t>> spans_;
  };
  using Message = std::pair<std::uint32_t, std::uint32_t>;  ///< rank and number

  void plan();
  void post(std::uint64_t cycle, What what, std::uint32_t move, const ModelHeader& header = {}, std::uint32_t rank = 0);
  /// The events that are due.
  void settle(std::uint64_t now);
  void look(std::uint64_t now);
  bool may_issue(std::uint32_t index, std::uint64_t now) const;
  void issue(std::uint32_t index, std::uint64_t now);
  /// 0: a job has left; else when to look again, or kNever.
  std::uint64_t try_job(std::uint32_t index, std::uint64_t now);
  void grant_more(State& state, std::uint64_t now);
  std::uint32_t segment_bytes(const State& state, std::uint32_t segment) const;

  std::uint32_t rank_;
  const Program& program_;
  const EndpointCosts& costs_;
  Outlet& outlet_;
  std::uint32_t switches_;
  std::vector<State> states_;
  std::map<Message, std::vector<Segment>> inbox_;
  std::map<Message, std::uint32_t> granted_to_us_, granted_by_us_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  std::uint32_t given_ = 0, retired_ = 0;
  std::uint64_t rx_free_ = 0, dispatcher_free_ = 0, compute_free_ = 0, send_free_ = 0;
  Packets in_tx_, in_rx_;
  std::uint32_t reserved_words_ = 0;  ///< of the transport, for jobs in the lanes
  bool started_ = false;
  std::uint64_t answered_ = 0;
};

}  // namespace unisono::sim
