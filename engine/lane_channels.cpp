#include "engine/lane_channels.hpp"

#include <new>

namespace unisono::cclo {

namespace {

/// So often a receiver looks whether a lender that is free has begun: a microsecond or two.
constexpr std::uint16_t kPollsForFreeLender = 100;

Loan& loan_in(shm::LaneLine& line) { return *std::launder(reinterpret_cast<Loan*>(line.payload.data())); }

/// Bytes of the message that a line is of, or begins.
std::uint64_t bytes_of(shm::LaneLine& line) {
  const bool lent = (line.head & ~(std::uint64_t{0xffffff} << 32U)) == LaneChannels::loan_head(0);
  return lent ? loan_in(line).length() : line.head & 0xffffffffU;
}

}  // namespace

LoanState LaneChannels::lend(std::uint32_t peer, const std::byte* data, std::uint64_t bytes, std::uint32_t tag) {
  const std::uint64_t address = loans.offer(peer, data, bytes);
  if (address == shm::Reach::kNone) return LoanState::kNone;
  shm::LaneSender& lane = send[peer];
  if (!lane.has_line()) {
    stuck = {};
    return LoanState::kWaits;
  }
  new (lane.next().payload.data()) Loan{address, bytes | (loans.free() ? Loan::kFree : 0), Loan::kNone, 0, 0, 0};
  lane.publish(loan_head(tag), digest);
  shm::wake_if_parked(*lane.peer);
  return LoanState::kMoved;
}

/// The loan is in the last line that was sent: messages of a pair go one after the other.
LoanState LaneChannels::lent(std::uint32_t peer, const std::byte* data) {
  shm::LaneSender& lane = send[peer];
  Loan& loan = loan_in(lane.lines[(lane.sent - 1) % shm::kLaneLines]);
  if (loan_work_ != LoanWork::kAll) {
    left_ = left_ || loan.taken.load(std::memory_order_relaxed) < loan.length();
  } else if (loans.store_piece(peer, loan, data)) {
    shm::wake_if_parked(*lane.peer);
    return LoanState::kMoved;
  }
  lane.look();
  if (lane.read != lane.sent) {
    stuck = {};
    return LoanState::kWaits;
  }
  return loan.answer.load(std::memory_order_acquire) == Loan::kDeclined ? LoanState::kNone : LoanState::kEnded;
}

LoanState LaneChannels::borrow(std::uint32_t peer, std::byte* out, std::uint64_t bytes, std::uint32_t tag,
                               bool shared) {
  shm::LaneReceiver& lane = receive[peer];
  shm::LaneLine& line = lane.next();
  if (!is_there(lane, line)) return LoanState::kWaits;
  if (line.head != loan_head(tag)) return LoanState::kNone;
  Loan& loan = loan_in(line);
  if (loan.length() != bytes) throw LaneFault{peer, false, {}, loan.length(), bytes};
  if (loan.answer.load(std::memory_order_relaxed) == Loan::kNone) {
    const std::uint64_t answer = loans.answer(peer, loan, out, shared);
    loan.answer.store(answer, std::memory_order_release);
    if (answer == Loan::kDeclined) {
      lane.release(true);
      shm::wake_if_parked(*lane.peer);
      return LoanState::kMoved;
    }
    if (answer != Loan::kAlone) shm::wake_if_parked(*lane.peer);
    polls_left_ = kPollsForFreeLender;
  }
  const bool leaves = (loan.bytes & Loan::kFree) != 0 && polls_left_ != 0 &&
                      loan.answer.load(std::memory_order_relaxed) != Loan::kAlone &&
                      loan.taken.load(std::memory_order_relaxed) == 0;
  if (leaves && loan_work_ == LoanWork::kFetching) --polls_left_;
  if (leaves || (loan_work_ == LoanWork::kWords && loan.taken.load(std::memory_order_relaxed) < bytes)) {
    left_ = true;
    return LoanState::kWaits;
  }
  if (loans.fetch_piece(peer, loan, out)) return LoanState::kMoved;
  if (loan.fetched + loan.stored.load(std::memory_order_acquire) != bytes) {
    stuck = {};
    return LoanState::kWaits;
  }
  lane.release(true);
  shm::wake_if_parked(*lane.peer);
  return LoanState::kEnded;
}

/// Whether the line is what is due after all; of what does more than store a message, none is lent.
bool LaneChannels::is_streamed(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag) {
  shm::LaneReceiver& lane = receive[peer];
  shm::LaneLine& line = lane.next();
  if (line.head != loan_head(tag) || bytes <= inline_bytes()) throw LaneFault{peer, false, {}, bytes_of(line), bytes};
  loan_in(line).answer.store(Loan::kDeclined, std::memory_order_release);
  lane.release(true);
  shm::wake_if_parked(*lane.peer);
  stuck = {};
  return false;
}

}  // namespace unisono::cclo
