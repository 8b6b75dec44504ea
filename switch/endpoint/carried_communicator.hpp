// A communicator whose calls switches carry, on one of its ranks.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/tree.hpp"
#include "engine/carrier.hpp"
#include "switch/datagrams.hpp"
#include "switch/endpoint/carried_call.hpp"
#include "switch/endpoint/plan.hpp"
#include "switch/envelope.hpp"
#include "switch/window.hpp"

namespace unisono::slots {

/// What switches fold a call by: of a mean the sum, which each rank divides.
constexpr Func folded_by(Func func) { return func == Func::kAvg ? Func::kSum : func; }

/// A rank's link to the switch that it hangs below in one pool.
class Link final : public Uplink {
 public:
  Link(const WindowShape& shape, const Digest& secret, std::uint64_t pool, const std::string& upper,
       Datagrams& datagrams, const tcp::SystemAddress& to);

  void up(const SlotFrame& head, std::span<const std::byte> payload) override;
  /// Sends what waits.
  void flush() { datagrams_.flush(); }
  /// A datagram of its pool. False if it is not of the switch.
  bool take(std::span<std::byte> datagram, Time now);
  /// Whom the switch waits for, by position in the tree, if it has said so for a while, and again since this was asked
  /// last. What it said before may be over: a rank that it has waited for may have come, got the result, and left.
  std::optional<std::uint32_t> awaited_still(Time now);

  Window window;             // NOLINT(misc-non-private-member-variables-in-classes)
  Time heard{};              ///< when something came last that shows that both directions are whole
  std::uint64_t frames = 0;  ///< that came

 private:
  std::uint32_t rank_;
  Datagrams& datagrams_;
  tcp::SystemAddress to_;
  Envelope up_;
  Envelope down_;
  Envelope group_;  ///< of what the switch sends to a group
  bool by_group_ = false;
  std::uint32_t missing_ = kEveryone;  ///< whom the switch has named last
  Time missing_since_{};               ///< in a row
  bool missing_again_ = false;         ///< since this was asked
};

/// What a communicator is like.
struct CarriedShape {
  std::uint32_t number = 0;
  std::uint16_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t shadow = 0;  ///< a communicator of the same members, for what they do without the switches
  std::chrono::milliseconds patience{3000};
  std::vector<std::string> addresses;                      ///< of switches, as people wrote them
  std::vector<tcp::SystemAddress> reachable{};             ///< by pool: the switch that this rank hangs below
  std::vector<std::shared_ptr<WindowsToSwitch>> others{};  ///< by pool: this rank's windows to that switch
};

/// Calls begin at the windows in the order in which they were made, on every rank. When nothing comes from a switch for
/// longer than the patience, all members give the switches up together (`halt`): they tell each other up to which turn
/// they have results and have contributed, do again among themselves the turns of which some have the result and others
/// have not, finish the calls that some rank has begun, and make later calls by their programs.
///
/// Source of the stand-ins: collectives/tree_place.hpp. All of it is under the engine's lock.
class CarriedCommunicator {
 public:
  CarriedCommunicator(const CarriedShape& shape, const Plan& plan, Datagrams& datagrams);
  ~CarriedCommunicator();
  CarriedCommunicator(const CarriedCommunicator&) = delete;
  CarriedCommunicator& operator=(const CarriedCommunicator&) = delete;

  /// See CallCarrier::carry.
  std::shared_ptr<CarriedCall> carry(const Call& call, double post_scale, const std::byte* src, std::byte* dst);
  /// See CallCarrier::progress.
  bool progress(CallStarter& starter, Time now);
  /// From now on calls by an operator of the user are carried, too; `at_switches` is its number there. All members say
  /// so between the same calls.
  void add_operator(Func here, Func at_switches, std::uint32_t element_bytes);
  /// Begins calls whose turn it is.
  void pump(Time now);
  /// The links, to hand them what comes.
  std::size_t pools() const { return links_.size(); }
  Link& link(std::size_t pool) { return *links_[pool]; }
  std::uint64_t pool_number(std::size_t pool) const { return number_of_pool(plan_.pools[pool].id); }
  void tick(Time now);
  Time next_due() const;
  bool busy() const { return !calls_.empty() || (phase_ != Phase::kCarrying && phase_ != Phase::kOff); }

  /// The switches have been given up, and nothing that the ranks do about that is under way here.
  bool settled() const { return (phase_ == Phase::kOff || phase_ == Phase::kBroken) && running_.empty(); }

  const CarriedShape& shape() const { return shape_; }
  const Plan& plan() const { return plan_; }
  /// "the switch rack1 (10.0.0.1:7000)", of all.
  const std::string& title() const { return title_; }
  /// Whether calls that are made now are carried.
  bool carrying() const { return phase_ == Phase::kCarrying; }
  /// Whether the tree lists ranks in their order; what does not commute is carried only then.
  bool in_rank_order() const { return in_rank_order_; }

 private:
  friend class CarriedCall;
  enum class Phase : std::uint8_t {
    kCarrying,
    kTelling,  ///< this rank has stopped, and awaits what the others say
    kMending,  ///< turns that some lack are done again
    kOff,      ///< the ranks are by themselves
    kBroken,   ///< that has failed, too
  };
  /// What a rank says when it stops: by pool.
  struct Halt {
    std::array<std::uint64_t, kMostPools> lacking{};
    std::array<std::uint64_t, kMostPools> begun{};
  };
  /// Calls among the ranks that have ended. Listeners run without the engine's lock, and may outlive this.
  struct Ended {
    std::mutex mutex;
    std::vector<std::tuple<std::uint64_t, ErrorCode, std::string>> calls;
  };
  using Then = std::function<void(CallStarter& starter)>;

  /// By identity, which ranks agree on; numbers of a process differ from rank to rank, and change hands.
  struct OwnOperator {
    Func at_switches = Func::kNone;
    std::uint32_t element_bytes = 0;
    std::uint32_t identity = 0;
  };
  const OwnOperator* own_operator(Func here) const;
  Func func_here(Func at_switches) const;
  bool carries(const Call& call) const;
  std::vector<CarriedPart> parts_of(const CarriedCall& call) const;
  void start(CarriedCall& call, Time now);
  bool finished(CarriedCall& call);
  void left(CarriedCall& call);

  void look_for_silence(Time now);
  void halt(const std::string& why);
  void tell(CallStarter& starter);
  void heard_all(CallStarter& starter);
  void mend_next(CallStarter& starter);
  void by_ranks(CallStarter& starter, const std::shared_ptr<CarriedCall>& call);
  void begin_by_ranks(CallStarter& starter);
  void broken(ErrorCode code, const std::string& why);
  bool take_ended(CallStarter& starter);
  void run(CallStarter& starter, const CallRequest& request, Then then);
  CallRequest among_ranks(std::size_t pool, Collective collective, Func func, const SlotCall& like) const;
  std::uint32_t rank_of(std::size_t pool, std::uint32_t order) const { return ranks_[pool][order]; }

  const CarriedShape shape_;
  const Plan plan_;
  std::string title_;
  std::vector<std::unique_ptr<Link>> links_;       ///< by pool
  std::vector<std::vector<std::uint32_t>> ranks_;  ///< by pool: ranks in the order of its tree
  std::vector<const CallTree*> trees_;             ///< by pool: in which members stand in for switches
  std::vector<std::uint64_t> begun_;               ///< by pool: turns of calls that were begun here
  bool in_rank_order_ = true;
  std::vector<OwnOperator> operators_;              ///< of the user, that the switches have
  std::uint32_t sequence_ = 0;                      ///< of carried calls
  std::deque<std::shared_ptr<CarriedCall>> calls_;  ///< that have not ended, in order
  Time waiting_since_{};
  Time next_look_{};

  Phase phase_ = Phase::kCarrying;
  std::string reason_;
  bool told_ = false;
  Halt own_;
  std::vector<Halt> halts_;                            ///< by rank
  std::array<std::uint64_t, kMostPools> least_had_{};  ///< of all ranks: first turn that some lack
  std::array<std::uint64_t, kMostPools> most_had_{};   ///< and that all lack
  std::array<std::uint64_t, kMostPools> all_begun_{};  ///< turns of calls that some rank has begun
  std::size_t mend_pool_ = 0;                          ///< what is mended next
  std::uint64_t mend_turn_ = 0;
  std::shared_ptr<Ended> ended_ = std::make_shared<Ended>();
  std::uint64_t next_run_ = 0;
  std::map<std::uint64_t, Then> running_;
};

}  // namespace unisono::slots
