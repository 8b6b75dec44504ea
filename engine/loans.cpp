#include "engine/loans.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/kernels.hpp"

namespace unisono::cclo {

using shm::Reach;

std::string refusal_of(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores) {
  std::array<char, 2 + 16 + 1> place{};
  static_cast<void>(
      std::snprintf(place.data(), place.size(), "0x%llx", static_cast<unsigned long long>(outcome.address)));
  return "the kernel does not let this rank " + std::string(stores ? "write to" : "read") + " rank " +
         std::to_string(rank) + "'s buffer at " + place.data() + " (" + std::strerror(outcome.error) +
         "): it was unmapped, or is memory of a device. Keep buffers mapped until the call has ended; for memory of "
         "devices set UNISONO_KERNEL_COPY=off on all ranks";
}

void Loans::open(const Ways& ways) {
  ways_.emplace(ways);
  guard_ = ways.lanes.touch_guard();
  paces_.resize(ways.endpoints.size());
}

void Loans::begin(const LoweredProgram& program, bool lends, std::uint64_t least_copied) {
  lends_ = lends;
  least_copied_ = least_copied;
  free_ = lends && std::all_of(program.moves.begin(), program.moves.end(), [](const WindowedMove& move) {
            return move.bytes == 0 || (move.only_sends() && !move.out.present);
          });
}

std::uint64_t Loans::word_of(std::uint32_t peer, const std::byte* data, std::uint64_t bytes) {
  if (!ways_) return Reach::kNone;
  if (ways_->one_process) return reinterpret_cast<std::uintptr_t>(data);
  if (const std::uint64_t offset = ways_->segment->offset_of(data, bytes)) return offset;
  const bool copies = ways_->copy != nullptr && bytes >= least_copied_ &&
                      ways_->copy->reaches(ways_->endpoints[peer]) && own_.holds(data, bytes);
  return copies ? Reach::copied(data) : Reach::kNone;
}

Loans::Far Loans::reach(std::uint32_t peer, std::uint64_t word, std::uint64_t bytes) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a thread's own address
  if (ways_->one_process) return {reinterpret_cast<std::byte*>(word), 0};
  if (!Reach::by_copy(word)) return {ways_->segment->at(word, bytes), 0};
  return {nullptr, ways_->copy != nullptr && ways_->copy->reaches(ways_->endpoints[peer]) ? Reach::address(word) : 0};
}

std::uint64_t Loans::offer(std::uint32_t peer, const std::byte* data, std::uint64_t bytes) {
  return lends_ && bytes >= least ? word_of(peer, data, bytes) : Reach::kNone;
}

std::uint64_t Loans::answer(std::uint32_t peer, const Loan& loan, const std::byte* out, bool shared) {
  if (!ways_) return Loan::kDeclined;
  const Far far = reach(peer, loan.address, loan.length());
  const bool fetches = far.mapped != nullptr || far.address != 0;
  const std::uint64_t own = shared ? word_of(peer, out, loan.length()) : Reach::kNone;
  // What the sender cannot map it may not be able to write either: then all is this rank's to copy.
  if (fetches) return own;
  return own == Reach::kNone || Reach::by_copy(own) ? Loan::kDeclined : own;
}

std::array<std::uint64_t, 2> Loans::take_piece(Loan& loan) {
  // A system call costs what 16 KiB do. Smaller pieces were tried: they cost more than the better balance gains.
  constexpr std::uint64_t kPiece = 262144;
  if (loan.taken.load(std::memory_order_relaxed) >= loan.length()) return {0, 0};
  const std::uint64_t begin = loan.taken.fetch_add(kPiece, std::memory_order_relaxed);
  if (begin >= loan.length()) return {0, 0};
  return {begin, std::min(kPiece, loan.length() - begin)};
}

namespace {

/// While it lives, this rank is at the memory of a peer.
class Touch {
 public:
  explicit Touch(const shm::TouchGuard& of) : guard_(of) {
    if (!guard_.enter()) throw AccessBanned{};
  }
  ~Touch() { guard_.leave(); }
  Touch(const Touch&) = delete;
  Touch& operator=(const Touch&) = delete;

 private:
  const shm::TouchGuard& guard_;
};

}  // namespace

bool Loans::store_piece(std::uint32_t peer, Loan& loan, const std::byte* data) {
  const std::uint64_t word = loan.answer.load(std::memory_order_acquire);
  if (word == Loan::kNone || word == Loan::kAlone || word == Loan::kDeclined) return false;
  const Far far = reach(peer, word, loan.length());
  if (far.mapped == nullptr && far.address == 0) return false;  // the receiver copies all
  const auto [begin, bytes] = take_piece(loan);
  if (bytes == 0) return false;
  const Touch touch(guard_);
  if (far.mapped != nullptr) {
    paces_[peer].store(bytes, [&, begin = begin, bytes = bytes](bool past_caches) {
      copy_bytes(far.mapped + begin, data + begin, bytes, past_caches);
    });
  } else {
    const shm::CopyOutcome outcome =
        ways_->copy->store(ways_->endpoints[peer], far.address + begin, data + begin, bytes);
    if (outcome.kind == shm::CopyOutcome::Kind::kGone) return false;  // the wait for the peer finds out
    if (!outcome.done()) throw LaneFault{peer, false, refusal_of(outcome, peer, true)};
  }
  ways_->traffic.add_direct(bytes);
  loan.stored.fetch_add(bytes, std::memory_order_release);
  return true;
}

bool Loans::fetch_piece(std::uint32_t peer, Loan& loan, std::byte* out) {
  const Far far = reach(peer, loan.address, loan.length());
  if (far.mapped == nullptr && far.address == 0) return false;  // the sender copies all
  const auto [begin, bytes] = take_piece(loan);
  if (bytes == 0) return false;
  const Touch touch(guard_);
  if (far.mapped != nullptr) {
    copy_bytes(out + begin, far.mapped + begin, bytes, false);
  } else {
    const shm::CopyOutcome outcome =
        ways_->copy->fetch(ways_->endpoints[peer], far.address + begin, out + begin, bytes);
    if (outcome.kind == shm::CopyOutcome::Kind::kGone) return false;
    if (!outcome.done()) throw LaneFault{peer, false, refusal_of(outcome, peer, false)};
  }
  ways_->traffic.add_direct(bytes);
  loan.fetched += bytes;
  return true;
}

}  // namespace unisono::cclo
