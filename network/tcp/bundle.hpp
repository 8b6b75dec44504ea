// The connections of one session, as if they were one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "network/poe.hpp"
#include "network/tcp/attempt.hpp"
#include "network/tcp/connection.hpp"

namespace unisono::tcp {

/// One connection of a session, and what it takes to get it.
struct Strand {
  using Clock = std::chrono::steady_clock;
  Connection connection{};
  std::unique_ptr<Attempt> attempt{};
  Clock::time_point awaited_until = Clock::time_point::max();  ///< the peer's own attempt, said to be under way
  std::uint32_t peer = 0;
  std::uint32_t number = 0;  ///< 0: the one that made the session
  std::uint32_t watched = 0;
  std::uint32_t quiet = 0;  ///< looks in a row in which nothing came
  bool over = false;        ///< its end was told of
  bool unread = false;      ///< it holds bytes which nothing stirs for, and has room for them again
};

/// A session begins with one connection, which stays the only one for control messages and for short ones. Once there
/// are more, long data messages go by any of them, each whole, and are numbered together; the other end hands them out
/// by number. Each connection has memory of its own for what comes and goes.
///
/// Numbers rise on each connection. So the message whose turn it is comes next on one of them, whatever the others
/// hold, and nothing that waits for its turn can keep it away.
///
/// All of them end together: one that breaks breaks the session. What had come by the others before can still be read.
class Bundle {
 public:
  using State = Connection::State;
  /// Messages that are shorter go by the first connection.
  static constexpr std::size_t kSpread = std::size_t{8} * 1024;

  Strand& first() { return first_; }
  const Strand& first() const { return first_; }
  std::size_t size() const { return 1 + more_.size(); }
  Strand& at(std::size_t number) { return number == 0 ? first_ : *more_[number - 1]; }
  const Strand& at(std::size_t number) const { return number == 0 ? first_ : *more_[number - 1]; }
  /// From now on messages may come, and go, by `count` connections, of which all but the first are still to be made.
  /// Once only. Their arrivals land as those of the first one do.
  void widen(std::uint32_t count, Landings* landings);

  /// Of the session: open as long as something may come, and dead if one of its connections is.
  State state() const { return more_.empty() ? first_.connection.state() : state_of_all(); }
  /// Why it broke, in words that follow the peer's name.
  const std::string& cause() const { return more_.empty() ? first_.connection.cause() : cause_; }
  /// Ends all connections, for a reason of others.
  void break_off(const std::string& cause);
  /// Whether one of several connections has broken, so that the others end, too: see `end_together`.
  bool is_ending() const;
  /// Ends those that have nothing more to read; what they hold unread stays until there is room for it. True if
  /// something came.
  bool end_together();

  // As the functions of Connection.
  std::byte* reserve(Lane lane, std::uint32_t bytes);
  void commit(Lane lane, const Header& header, bool holds);
  bool send(Lane lane, const Header& header, std::span<const std::byte> payload, bool holds);
  Sent lend(std::span<const Header> headers, const std::byte* payload);
  bool lends() const;
  void settle();
  bool peek(Lane lane, Incoming& incoming);
  /// The connection that had the message, and may have room again.
  Strand& release(Lane lane);
  void land_in(Landings* landings, std::uint32_t peer);
  bool talks() const;
  const std::string& fault() const;
  bool has_messages() const;
  void leave();

 private:
  State state_of_all() const;
  bool takes_data() const;
  /// Has a connection `take` a long message: one that can send it at once, if there is any.
  template <class Take>
  bool hand_out(Take&& take);
  /// Nothing has its turn: whether it can come to that.
  void examine_gap();

  Strand first_;
  std::vector<std::unique_ptr<Strand>> more_;
  std::uint32_t outgoing_ = 0;  ///< numbers of the next data messages, if there are several connections
  std::uint32_t incoming_ = 0;
  std::size_t turn_ = 0;            ///< which connection is asked first to take a message
  std::size_t from_ = 0;            ///< which one had the last data message that was peeked
  Connection* reserved_ = nullptr;  ///< which one has memory for the message that was reserved last
  std::string cause_;
  std::string fault_;
};

}  // namespace unisono::tcp
