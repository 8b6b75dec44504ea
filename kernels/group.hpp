// The channels of one communicator on one rank: its links, and what its members tell each other beside elements.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/objects.hpp"
#include "kernels/link.hpp"
#include "unisono/smi.h"

namespace unisono::kernels {

class AnyCollective;
class Rank;

/// What an SMI_Comm points to; the driver's, but for `rank`, `size` and the numbers.
class Group final : public unisono_smi_comm, public Receiver {
 public:
  /// Messages of a link, by their tags.
  enum class Way : std::uint8_t { kData = 0, kCredit = 1, kControl = 2 };
  static constexpr std::uint32_t kPorts = 65536;

  Group(Rank& owner, std::shared_ptr<driver::Communicator> communicator);
  ~Group();

  Rank& owner() const { return owner_; }
  std::uint32_t number() const { return communicator_->number; }
  std::uint32_t rank() const { return communicator_->rank; }
  std::uint32_t size() const { return communicator_->size; }
  const std::shared_ptr<driver::Communicator>& communicator() const { return communicator_; }
  /// For sentences: " of communicator N", or nothing of that of all ranks.
  std::string suffix() const;
  static std::uint32_t tag(std::uint32_t port, Way way);

  SendLink& sender(std::uint32_t port, std::uint32_t peer);
  ReceiveLink& receiver(std::uint32_t port, std::uint32_t peer);

  /// Calls function(link, sends) of every link there is.
  template <class Function>
  void each_end(Function&& function) const {
    for (const auto& [key, link] : senders_) function(static_cast<const Link&>(*link), true);
    for (const auto& [key, link] : receivers_) function(static_cast<const Link&>(*link), false);
  }

  /// Owns a collective until it has ended.
  AnyCollective& keep(std::unique_ptr<AnyCollective> collective);
  void drop(const AnyCollective& collective);

  /// Sends what kernels have pushed, and the thread `me`; null: no thread.
  void ship(const Task* me);
  /// A kernel has ended: its channels have, too. Returns a sentence about one that has not; empty if all have.
  std::string leave(const Task& kernel);

  /// Tells the sender what the receiver has found wrong.
  void tell_broken(std::uint32_t port, std::uint32_t peer, const std::string& sentence);
  /// And the receiver what the sender has.
  void tell_left(std::uint32_t port, std::uint32_t peer, const std::string& sentence);
  /// Tells all others what is waited for here, for `stuck`.
  void tell_waits(const std::string& waits);
  /// What others have told of their waits, by rank; empty: nothing yet.
  const std::vector<std::string>& waits() const { return waits_; }
  /// Receivers will tell something.
  bool awaits() const;
  /// Tells all others that nothing comes from here any more.
  void leave_all();
  /// Whether all others have said so, or never could hear of it.
  bool all_left() const;
  /// All have the posted receive that messages beside elements need.
  void listen();
  void landed(const std::shared_ptr<Flight>& flight) override;

 private:
  struct Control;
  void tell(std::uint32_t peer, const Control& control);

  Rank& owner_;
  const std::shared_ptr<driver::Communicator> communicator_;
  std::map<std::uint64_t, std::unique_ptr<SendLink>> senders_;
  std::map<std::uint64_t, std::unique_ptr<ReceiveLink>> receivers_;
  std::vector<SendLink*> list_;  ///< of senders
  std::vector<std::unique_ptr<AnyCollective>> collectives_;
  bool listens_ = false;
  std::vector<bool> left_;  ///< by rank: it has said so
  std::vector<std::string> waits_;
};

}  // namespace unisono::kernels
