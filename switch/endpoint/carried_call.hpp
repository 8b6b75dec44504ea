// A collective call that switches carry, as its engine and its communicator see it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/call.hpp"
#include "engine/kernel_run.hpp"
#include "switch/call_turns.hpp"
#include "switch/endpoint/plan.hpp"

namespace unisono::slots {

class CarriedCommunicator;

/// A part of a call, which one pool carries.
struct CarriedPart {
  std::size_t pool = 0;
  SlotCall call{};
  std::uint64_t number = 0;  ///< of its window's call
  std::uint64_t base = 0;    ///< its first turn there
};

/// All of it is under the engine's lock.
class CarriedCall final : public KernelRun {
 public:
  enum class State : std::uint8_t {
    kQueued,   ///< what it follows has not ended
    kReady,    ///< it is its communicator's turn to begin it
    kCarried,  ///< at the switches
    kByRanks,  ///< the switches have been given up: the ranks do it among themselves
    kDone,
    kFailed,
    kDeclined,  ///< the engine is to execute its program
  };

  CarriedCall(CarriedCommunicator& communicator, const Call& of, double scale, const std::byte* from, std::byte* to)
      : communicator_(&communicator), call(of), post_scale(scale), src(from), dst(to) {}

  const char* name() const override;
  void begin() override;
  bool ended(ErrorCode& code, std::string& sentence) override;
  bool declines() const override { return state == State::kDeclined; }
  std::string waits() const override;
  std::vector<std::uint32_t> awaits() const override;
  void leave() override;

  /// Its communicator is gone.
  void orphan() { communicator_ = nullptr; }
  void fail(ErrorCode code, std::string sentence);

 private:
  void divide();

  CarriedCommunicator* communicator_;
  bool divided_ = false;  ///< a mean's sum is, once it is there

 public:
  const Call call;  // NOLINT(misc-non-private-member-variables-in-classes): its communicator works with all of these
  const double post_scale;  ///< see CallRequest
  const std::byte* const src;
  std::byte* const dst;
  /// At the switches, where a mean is a sum; an operator of the user may be freed before the call begins there.
  Func func = Func::kNone;
  State state = State::kQueued;
  std::vector<CarriedPart> parts{};
  std::uint32_t left = 0;  ///< calls among the ranks that have not ended
  ErrorCode code = ErrorCode::kOk;
  std::string sentence{};
};

}  // namespace unisono::slots
