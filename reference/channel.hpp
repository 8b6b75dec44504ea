// A channel of a mixed run: what is sent, what is under way, and what has come, for one ordered pair of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/finding.hpp"
#include "reference/lowered.hpp"
#include "reference/mix.hpp"
#include "reference/symbols.hpp"

namespace unisono::reference {

/// Part of a message. Messages of a pair count from 0; one without elements counts as one element without a value.
struct Segment {
  Node sender = 0;
  std::uint64_t message = 0;
  std::uint64_t offset = 0;    ///< elements
  std::uint64_t elements = 0;  ///< of this part
  std::uint64_t length = 0;    ///< elements of the message
  bool eager = false;          ///< against a credit
  std::vector<Symbol> values{};

  bool last() const { return offset + elements == length; }
};

/// What travels in an order of its own.
enum class Course : std::uint8_t {
  kData,
  kRequests,  ///< for a grant
  kBack,      ///< from the receiver: lines, credits, grants
};
inline constexpr std::size_t kCourses = 3;

/// What one end finds wrong with what came from the other.
struct ChannelFault {
  FindingKind kind = FindingKind::kOverflow;
  std::string text;
};

/// Both ends of a channel, and what is between them. An end acts only on what has been delivered to it, and the
/// receiver does not trust the sender. After a fault the channel is of no use.
class Channel {
 public:
  /// Called for all that leaves: it may be delivered from then on.
  using Depart = std::function<void(Course)>;

  /// `segment`: elements of the longest segment.
  Channel(const ChannelKind& kind, std::uint64_t segment, Depart depart)
      : kind_(kind), segment_(segment), depart_(std::move(depart)) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const ChannelKind& kind() const { return kind_; }

  // The sender's end.

  /// How many elements may be sent now of the message whose turn it is, of which `done` of `length` have been sent. The
  /// message may take its credit here, or ask for a grant: it is to be sent as soon as all else allows.
  virtual std::uint64_t room(std::uint64_t done, std::uint64_t length) = 0;
  /// Sends elements of the message whose turn it is, for which there was room. The last one gives the next its turn.
  void send(Node sender, std::uint64_t done, std::uint64_t elements, std::uint64_t length, std::vector<Symbol> values);
  /// What a message without room waits for: "a credit".
  virtual std::string awaited() const = 0;

  // The receiver's end.

  /// The arrival whose turn it is takes a message of so many elements. `can_land`: its result may be the landing.
  void issue(std::uint64_t length, bool can_land);
  bool issued() const { return issued_; }
  /// Elements that have come of that arrival's message, and were not taken.
  std::uint64_t readable() const { return issued_ ? here_ : 0; }
  /// Who sends what is readable.
  Node sender() const { return received_.front().sender; }
  /// The first of those elements.
  void copy(Symbol* out, std::size_t elements) const;
  /// They have been taken. The last one ends the arrival.
  void take(std::uint64_t elements);

  // Between the ends.

  struct Delivery {
    std::optional<ChannelFault> fault;
    const Segment* segment = nullptr;  ///< that came, or null; valid until the channel is used again
    bool lands = false;                ///< in the result of the arrival
  };
  /// What is next on a course arrives; there must be something.
  Delivery deliver(Course course);
  /// What is wrong when all programs have ended and nothing is under way: data that nobody took, credits that are lost.
  std::optional<ChannelFault> at_rest() const;

 protected:
  /// What comes back: lines or credits that are free, or up to where a message may be sent.
  struct Notice {
    std::uint32_t freed = 0;
    std::uint64_t message = 0;
    std::uint64_t limit = 0;  ///< elements; 0: no grant
  };

  /// The sender's end: completes a segment that leaves.
  virtual void leaves(Segment& segment) = 0;
  virtual std::optional<ChannelFault> notified(const Notice& notice) = 0;
  /// The receiver's end: a segment that is in order has come.
  virtual std::optional<ChannelFault> arrived(const Segment& segment) = 0;
  virtual std::optional<ChannelFault> requested(std::uint64_t /*message*/) { return std::nullopt; }
  virtual void opened(bool /*can_land*/) {}
  virtual bool lands() const { return false; }
  /// The last element of a segment has been taken.
  virtual void segment_taken() {}
  /// Elements of the message whose turn it is have been taken, but not all.
  virtual void advanced() {}
  /// All have been; the next message has its turn when this returns.
  virtual void ended() {}
  virtual std::optional<ChannelFault> unbalanced() const = 0;
  /// Takes what comes next of the segments under way.
  virtual Segment next_segment();

  void give_back(const Notice& notice);
  void request();
  static ChannelFault overflow(std::string text) { return {FindingKind::kOverflow, std::move(text)}; }

  const ChannelKind kind_;
  const std::uint64_t segment_;
  std::deque<Segment> data_;   ///< under way
  std::uint64_t sending_ = 0;  ///< message whose turn it is at the sender
  std::uint64_t taking_ = 0;   ///< message whose turn it is at the receiver
  std::uint64_t taken_ = 0;    ///< elements of that
  std::uint64_t length_ = 0;   ///< of that, as its arrival has it
  bool issued_ = false;        ///< its arrival has

 private:
  std::uint64_t count_here() const;

  Depart depart_;
  std::deque<std::uint64_t> requests_;  ///< messages
  std::deque<Notice> back_;
  std::deque<Segment> received_;
  std::uint64_t used_ = 0;    ///< elements of the front of `received_`
  std::uint64_t here_ = 0;    ///< elements of message `taking_` in `received_`
  std::uint64_t coming_ = 0;  ///< message of which the next segment is
  std::uint64_t came_ = 0;    ///< elements of that
};

/// Makes the channel of a kind.
using MakeChannel = std::function<std::unique_ptr<Channel>(const ChannelKind&, std::uint64_t segment, Channel::Depart)>;
std::unique_ptr<Channel> make_channel(const ChannelKind& kind, std::uint64_t segment, Channel::Depart depart);

}  // namespace unisono::reference
