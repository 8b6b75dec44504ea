// Programs of the user that a device holds (docs/program-files.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/state.hpp"
#include "platform/device/device.hpp"
#include "platform/device/image.hpp"

namespace unisono {

/// The places that a device has for programs. A program stays until another one needs its place. Not thread-safe.
class LoadedPrograms {
 public:
  /// The moves of a program for which the device itself has no place, so that they stand in its memory.
  static std::span<const Move> rest_of(const cclo::CheckedProgram& program);
  /// Refuses a program that no place would take. Throws Error(kCapacity, kUnsupported).
  static void check_size(const cclo::CheckedProgram& program, const cclo::Communicator& communicator);

  explicit LoadedPrograms(Device& device) : device_(device) {}

  /// Whether the device holds the program, for calls of this signature.
  bool holds(const cclo::CallState& call) const { return place_of(call) != kNone; }
  /// A place where the program of a call stands, loaded if need be, until `leave`; nothing if all places are in use.
  /// `rest`: memory for `rest_of`, if it must be loaded. Throws Error(kDeviceLost).
  std::optional<std::uint32_t> take(const cclo::CallState& call, std::shared_ptr<DeviceImage> rest);
  void leave(std::uint32_t place) { --places_[place].users; }
  /// Gives back the memory of programs that no call uses, but for this call's; they are loaded again when called.
  void forget(const cclo::CallState& spared);

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Place {
    std::shared_ptr<const cclo::CheckedProgram> program;
    std::uint32_t signature = 0;  ///< of its calls
    std::uint32_t users = 0;      ///< calls that the device works on
    std::uint64_t used = 0;       ///< when it was called last
    std::shared_ptr<DeviceImage> rest;
  };
  std::uint32_t place_of(const cclo::CallState& call) const;
  bool load(std::uint32_t place, const cclo::CallState& call, const std::shared_ptr<DeviceImage>& rest);
  std::uint32_t use(std::uint32_t place);

  Device& device_;
  std::array<Place, kLoadedPrograms> places_;
  std::uint64_t called_ = 0;
};

}  // namespace unisono
