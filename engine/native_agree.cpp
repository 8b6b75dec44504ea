// Agreements among the members that are left.
#include <algorithm>
#include <mutex>

#include "engine/consensus.hpp"
#include "engine/flight_report.hpp"
#include "engine/interrupt.hpp"
#include "engine/native_engine.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is the blocks' outer shell

bool NativeEngine::recovers() const {
  const std::lock_guard lock(impl_->mutex);
  return !impl_->settings.hardware_peers;
}

Agreed NativeEngine::agree(std::uint32_t number, std::uint32_t purpose, std::uint64_t value, std::uint64_t proposal,
                           std::chrono::microseconds timeout) {
  Impl& engine = *impl_;
  Turn turn(engine);
  if (engine.settings.hardware_peers) refuse_recovery();
  Communicator& communicator = engine.communicators.get(number);
  const auto limit = timeout.count() > 0 ? timeout : communicator.timeout;
  const Clock::time_point begin = engine.blocks.poe->now();
  engine.communicators.consensus(communicator).begin(purpose, value, proposal);
  try {
    for (;;) {
      const std::uint32_t seen = engine.blocks.poe->activity();
      engine.progress();
      if (engine.communicators.find(number) != &communicator) {
        throw Error(ErrorCode::kFreedCommunicator,
                    "communicator " + std::to_string(number) + " was freed by this rank during an agreement on it");
      }
      Consensus& consensus = *communicator.consensus;
      if (consensus.step()) {
        // What this rank said last may still wait for room.
        while (engine.tx.flush()) {
        }
        return consensus.take();
      }
      if (engine.blocks.poe->now() - begin >= limit) {
        std::string text = "agreement on communicator " + std::to_string(number) + " (rank " +
                           std::to_string(communicator.rank) + "): timed out after " +
                           std::to_string(limit.count() / 1000) + " ms";
        for (const std::uint32_t peer : consensus.awaited()) {
          const std::uint32_t endpoint = communicator.peers.endpoint(peer);
          text += "; rank " + std::to_string(peer) + ", " + engine.blocks.poe->describe(endpoint) + ", has not come";
          const std::string what = doings(*engine.blocks.poe, endpoint, number, communicator.epoch);
          if (!what.empty()) text += ": " + what;
        }
        throw Error(ErrorCode::kTimeout, text);
      }
      turn.tell();
      turn.unlock();
      try {
        // A function that is asked may use the library: no lock is held here.
        if (Interrupt::current().pending()) throw Error(ErrorCode::kRevoked, kInterrupted);
        // The end of a peer need wake nobody. Where there are many, somebody notices it soon enough.
        constexpr std::uint32_t kMostMilliseconds = 50;
        engine.blocks.poe->wait(seen,
                                std::chrono::milliseconds(1 + std::min(communicator.size / 20, kMostMilliseconds)));
      } catch (...) {
        turn.lock();
        throw;
      }
      turn.lock();
    }
  } catch (...) {
    if (engine.communicators.find(number) == &communicator) communicator.consensus->abandon();
    throw;
  }
}

std::vector<bool> NativeEngine::gone(std::uint32_t communicator) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<bool> result;
  for (const std::uint32_t endpoint : impl_->communicators.get(communicator).peers.endpoints()) {
    result.push_back(impl_->blocks.poe->liveness(endpoint) != Poe::Liveness::kAlive);
  }
  return result;
}

}  // namespace unisono
