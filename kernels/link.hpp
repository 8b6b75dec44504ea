// Links: one direction of a port between two ranks, in chunks of elements, with credits. Channels use them one after
// the other; every channel, of collectives too, is made of links.
//
// A chunk is a message of the engine: a header, which says what channel it is of, and elements. The receiver tells what
// was popped, if the sender must know. Messages of a link keep their order, so nothing else is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "kernels/flight.hpp"
#include "kernels/task.hpp"
#include "unisono/smi.h"

namespace unisono::kernels {

class Group;
struct PortComplaint;
struct UnitOpen;

/// What a channel has a link do.
struct Use {
  std::uint64_t count = 0;  ///< elements that go over the link
  Datatype dtype = Datatype::kNone;
  std::uint8_t kind = 0;  ///< UNISONO_SMI_...
  Func func = Func::kNone;
  std::uint32_t root = 0;
  std::int64_t degree = -1;  ///< asynchronicity degree; -1: none was given
  bool credits = false;      ///< in hardware: the sender waits for credits, also if k is as large as the count
  bool unit = false;         ///< in hardware: elements go through the units of collectives
};

/// Before the elements of a chunk.
struct ChunkHeader {
  std::uint32_t sequence;  ///< of the channel, among those that have used the link
  std::uint8_t dtype;
  std::uint8_t kind;
  std::uint8_t func;
  std::uint8_t flags;
  std::uint64_t count;
  std::uint32_t credit_every;  ///< popped elements after which the receiver tells; 0: it need not
  std::uint32_t root;
  std::uint64_t reserved;
};
static_assert(sizeof(ChunkHeader) == 32);

/// What the receiver tells the sender.
struct Credit {
  std::uint32_t sequence;
  std::uint32_t last;    ///< 1: all have been popped
  std::uint64_t popped;  ///< elements of this channel, all together
};

/// What both directions have in common.
class Link : public Receiver {
 public:
  Link(Group& group, std::uint32_t port, std::uint32_t peer) : group_(group), port_(port), peer_(peer) {}

  std::uint32_t port() const { return port_; }
  std::uint32_t peer() const { return peer_; }
  std::uint32_t sequence() const { return sequence_; }
  bool active() const { return active_; }
  const Task* owner() const { return owner_; }
  const Use& use() const { return use_; }
  /// From now on nothing can be done with it: every use throws this.
  void fail(ErrorCode code, const std::string& sentence);
  bool failed() const { return !failure_.empty(); }
  /// An edge of a tree along which the units of a node in hardware pass elements on, beside the end `leader` that the
  /// channel of this rank has: compares the ends, and has `leader` fail if they differ, now or later. Throws Error.
  void join_tree(const Use& use, Link& leader, bool sends);
  /// Who has used it is gone.
  void abandon() {
    owner_ = waiter_ = nullptr;
    leader_ = nullptr;
    active_ = false;
  }

  /// Who waits for it looks again.
  void notify() { wake(); }
  std::uint32_t element() const { return element_; }

  unisono_smi_end end{};

 protected:
  ~Link() = default;
  std::uint32_t peer_in_job() const;
  void check_timed(const Use& use) const;
  void exchange_cards(const Use& use, bool sends);
  void offer_unit(const UnitOpen& unit, bool sends) const;
  void begin(const Use& use, const char* verb);
  void wait(Wait::Kind kind, std::uint64_t element);
  void check() const;
  void wake();
  std::string direction(bool sends) const;

  Group& group_;
  const std::uint32_t port_;
  const std::uint32_t peer_;
  std::uint32_t sequence_ = 0;
  bool active_ = false;
  Task* owner_ = nullptr;  ///< who has used it last
  Task* waiter_ = nullptr;
  Link* leader_ = nullptr;  ///< fails with this one; null: nobody
  Use use_;
  std::uint32_t element_ = 1;  ///< bytes of one
  ErrorCode code_ = ErrorCode::kOk;
  std::string failure_;
};

class SendLink final : public Link {
 public:
  using Link::Link;
  ~SendLink() = default;

  /// For a channel's first element. Throws Error if another channel uses it.
  void open(const Use& use);
  /// Takes elements, and does not wait: they may be more than the window has room for. `settle` is next.
  void append(const void* elements, std::uint64_t count);
  /// Waits until no more elements are out than may be. The channel ends with its last element.
  void settle();
  /// Sends what has been taken.
  void ship();
  /// Where the rank's kernels stand at a node in hardware, instead of these three: takes elements and waits for room,
  /// strictly for that of the last one only if `last_waits`, else in settle_timed; has what was pushed leave.
  void push_timed(const void* elements, std::uint64_t count, bool last_waits = true);
  /// Instead of open: the end that pushes to the port's unit, which this opens.
  void open_unit(const Use& use, const UnitOpen& unit);
  void settle_timed();
  void flush_timed();
  bool dirty() const { return end.cursor != begin_; }
  std::uint64_t pushed() const { return shipped_ + static_cast<std::uint64_t>(end.cursor - begin_) / element_; }

  /// The receiver will tell something.
  bool awaits() const { return awaited_ != 0 && !failed(); }
  /// The receiver has told; within a rank, it calls.
  void credited(const Credit& credit);
  void landed(const std::shared_ptr<Flight>& flight) override;

 private:
  void open_timed(const Use& use);
  void prepare_timed(const Use& use, std::uint32_t protocol);
  void renew();
  void limit();
  bool room() const;
  void listen();

  std::shared_ptr<Flight> chunk_;
  std::shared_ptr<Flight> credit_;  ///< posted
  std::uint64_t awaited_ = 0;       ///< channels of which the receiver has not told that all was popped
  unsigned char* begin_ = nullptr;  ///< of the chunk's elements
  std::uint64_t shipped_ = 0;       ///< elements
  std::uint64_t popped_ = 0;        ///< as far as is known
  bool exact_ = false;              ///< it stalls at element window + 1, and not later
  std::uint64_t window_ = 0;        ///< elements that may be out; kUnbounded: it never stalls
  std::uint64_t capacity_ = 0;      ///< elements of a chunk
};

class ReceiveLink final : public Link {
 public:
  using Link::Link;
  ~ReceiveLink() = default;

  void open(const Use& use);
  /// Elements that are here, at the cursor, at least 1: waits for them.
  std::uint64_t available();
  /// The same without waiting; may be 0.
  std::uint64_t present();
  const unsigned char* elements() const { return end.cursor; }
  /// Takes so many of them.
  void consume(std::uint64_t count);
  std::uint64_t popped() const { return before_ + static_cast<std::uint64_t>(end.cursor - begin_) / element_; }

  /// Where the rank's kernels stand at a node in hardware, instead of these: the sender may begin; and elements, when
  /// they have come. `lanes`: of a word, at most.
  void offer_timed(std::uint64_t lanes);
  void pop_timed(void* elements, std::uint64_t count);
  /// Instead of open: the end that pops from the port's unit, which this opens.
  void open_unit(const Use& use, const UnitOpen& unit);

  /// From the sender of the same rank.
  void deliver(std::shared_ptr<Flight> flight);
  void landed(const std::shared_ptr<Flight>& flight) override;

 private:
  void open_timed(const Use& use);
  void await_port();
  [[noreturn]] void complain(const PortComplaint& complaint);
  void post();
  bool next();
  void release();
  void tell(bool last);
  std::string disagreement(const ChunkHeader& header) const;

  std::deque<std::shared_ptr<Flight>> posted_;  ///< in the order of messages
  std::shared_ptr<Flight> chunk_;
  unsigned char* begin_ = nullptr;
  std::uint64_t before_ = 0;  ///< elements of earlier chunks
  std::uint64_t told_ = 0;
  std::uint32_t credit_every_ = 0;
  unsigned char* stop_ = nullptr;  ///< end of the chunk's elements
  bool strictly_ = false;          ///< there, no element comes that nobody has asked for
  bool offered_ = false;           ///< the node in hardware has the channel
};

/// For sentences: what a channel is for.
const char* kind_name(std::uint32_t kind);
/// Both ends of point to point are one kind.
std::uint8_t common_kind(std::uint8_t kind);

/// Bytes of the elements of a chunk. With its header it is an eager message, which goes without its receiver's doing.
inline constexpr std::size_t kChunkBytes = 8160;
inline constexpr std::size_t kMessageBytes = sizeof(ChunkHeader) + kChunkBytes;
/// Chunks that a channel may have out whatever its asynchronicity degree, and those that are awaited at a time.
inline constexpr std::uint64_t kWindowChunks = 32;
inline constexpr std::size_t kPostedChunks = 8;

}  // namespace unisono::kernels
