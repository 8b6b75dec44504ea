// Communicators: members, epoch, agreement, window, revocation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/state.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

class Communicators {
 public:
  Communicators(const Blocks& blocks, const EngineSettings& settings) : blocks_(blocks), settings_(settings) {}

  /// See Engine::create_communicator.
  void create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
              const Agreement& agreed, std::uint32_t group_size);
  void free(std::uint32_t number);

  /// The communicator of that number and epoch, or null.
  Communicator* find(std::uint32_t number, std::uint16_t epoch);
  /// The communicator of that number. Throws Error(kFreedCommunicator) if it was freed, or
  /// Error(kInvalidArgument) if it never was.
  Communicator& get(std::uint32_t number);

  /// Keeps a message of a communicator that is not made here yet; drops one of a freed communicator.
  void hold(std::uint32_t endpoint, const Incoming& incoming);

  /// Marks a communicator as failed and ends its calls with `code`. `tell` the other members, if this
  /// rank is the first to know.
  void revoke(Communicator& communicator, ErrorCode code, const std::string& reason, bool tell);

  template <class Use>
  void for_each(Use&& use) {
    for (auto& [number, communicator] : all_) use(*communicator);
  }

 private:
  struct Held {
    std::uint32_t endpoint = 0;
    Header header;
    std::vector<std::byte> payload;
  };
  /// Bytes kept for communicators that are not made yet. Their members' credits bound what can come.
  static constexpr std::size_t kHeldBytes = std::size_t{256} << 20U;

  const Blocks& blocks_;
  EngineSettings settings_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Communicator>> all_;
  std::unordered_map<std::uint32_t, std::uint16_t> freed_;  ///< number -> epoch freed last
  std::vector<Held> held_;
  std::size_t held_bytes_ = 0;
};

}  // namespace unisono::cclo
