// Communicators: members, epoch, agreement, window, revocation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/call_comparison.hpp"
#include "engine/fast_path.hpp"
#include "engine/known_tuning.hpp"
#include "engine/state.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

class Communicators {
 public:
  /// `settings` may change; what is made later is made with what they are then.
  Communicators(const Blocks& blocks, const EngineSettings& settings, FastPath::Watch& watch)
      : blocks_(blocks), settings_(settings), watch_(watch) {}
  /// Rules of which members may have agreed on the hash.
  void know(const KnownTuning::Rules& rules) { rules_.add(rules); }

  /// See Engine::create_communicator.
  void create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
              const Agreement& agreed, const Grouping& grouping);
  /// See NativeEngine::add_switches.
  void add_switches(std::uint32_t number, const CallTree* tree, std::span<const std::uint32_t> switches);
  void free(std::uint32_t number);
  /// See Engine::settle_numbers.
  void settle(std::uint32_t below);

  /// The communicator of that number and epoch, or null.
  Communicator* find(std::uint32_t number, std::uint16_t epoch);
  /// The communicator of that number that is alive, or null.
  Communicator* find(std::uint32_t number);
  /// The communicator of that number. Throws Error(kFreedCommunicator) if it was freed, or
  /// Error(kInvalidArgument) if it never was.
  Communicator& get(std::uint32_t number);

  /// The agreements of a communicator.
  Consensus& consensus(Communicator& communicator);

  /// Keeps a message of a communicator that is not made here yet; drops one of a freed communicator.
  void hold(std::uint32_t endpoint, const Incoming& incoming);

  /// Marks a communicator as failed and ends its calls with `code`. `tell` the other members, if this
  /// rank is the first to know.
  void revoke(Communicator& communicator, ErrorCode code, const std::string& reason, bool tell);

  /// A collective call of a member, as its flight record tells; nothing if that is not known.
  std::optional<SeenCall> seen(const Communicator& communicator, std::uint32_t rank, std::uint32_t sequence) const;
  /// The first collective call that a member has made otherwise than this rank, as far as their flight records tell.
  std::optional<CallDifference> difference(const Communicator& communicator, std::uint32_t rank) const;
  /// This rank makes no further collective call on a communicator. Throws Error(kMismatchedCall) if a member is seen to
  /// have called otherwise: the last one to leave has seen all of them.
  void conclude(Communicator& communicator);

  /// Notes that the memory shared with an endpoint is corrupt: nothing is sent to it or taken of it any more.
  /// May be called in the middle of anything; its communicators end in `end_broken`.
  void broke(std::uint32_t endpoint, const std::string& text);
  bool broken(std::uint32_t endpoint) const { return !broken_.empty() && !broken_[endpoint].empty(); }
  /// Revokes the communicators of endpoints that broke since. Returns whether there were any.
  bool end_broken();

  /// Notes that an endpoint has vanished, as this one or one that it can reach has seen: it stays out of all
  /// agreements. So do the others of its host: what is cut lies between hosts.
  void lose(std::uint32_t endpoint);
  bool lost(std::uint32_t endpoint) const { return !lost_.empty() && lost_[endpoint]; }
  bool lost_any() const { return !lost_.empty(); }
  /// Notes that this endpoint is of a part that does not go on, and another one is not of it.
  void part_from(std::uint32_t endpoint) { note(parted_, endpoint); }
  bool parted_from(std::uint32_t endpoint) const { return !parted_.empty() && parted_[endpoint]; }

  template <class Use>
  void for_each(Use&& use) {
    for (auto& [number, communicator] : all_) use(*communicator);
  }

 private:
  struct Held {
    std::uint32_t endpoint = 0;
    Header header;
    std::vector<std::byte> payload;
    std::size_t bytes() const { return sizeof(Held) + payload.size(); }
  };
  using Identity = std::pair<std::uint32_t, std::uint16_t>;  ///< number and epoch
  /// Bytes kept for communicators that are not made yet. Credits bound eager messages, but not puts.
  static constexpr std::size_t kHeldBytes = std::size_t{256} << 20U;

  /// The endpoints' numbers in shared memory; none if this endpoint does not share it with all of them.
  std::vector<std::uint32_t> seats_in_memory(std::span<const std::uint32_t> endpoints) const;
  static Identity identity(const Header& header) { return {header.communicator, header.epoch}; }
  /// Before its window is its owner's: peers that write to it past this engine stop.
  void close_window(Communicator& communicator);
  void spill();
  void note(std::vector<bool>& endpoints, std::uint32_t endpoint) const;

  const Blocks& blocks_;
  const EngineSettings& settings_;
  KnownTuning rules_;
  FastPath::Watch& watch_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Communicator>> all_;
  /// Of a number that was used and has no communicator: whether one of this epoch is of the past.
  bool is_past(std::uint32_t number, std::uint16_t epoch) const;
  std::map<std::uint32_t, std::uint16_t> freed_;  ///< number -> epoch freed last, from `settled_` on
  std::uint32_t settled_ = 0;                     ///< lower ones are not made any more
  std::vector<Held> held_;
  std::size_t held_bytes_ = 0;
  std::set<Identity> spilled_;       ///< for these too much has come: they are revoked as they are made
  std::vector<std::string> broken_;  ///< by endpoint, why; empty while none is
  bool broke_ = false;               ///< since `end_broken`
  std::vector<bool> lost_;           ///< by endpoint; empty while none is
  std::vector<bool> parted_;         ///< likewise
};

}  // namespace unisono::cclo
