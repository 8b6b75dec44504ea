// Switches that carry the collective calls of this endpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/carrier.hpp"
#include "engine/engine.hpp"
#include "network/companion.hpp"
#include "network/tcp/watch.hpp"
#include "switch/datagrams.hpp"
#include "switch/endpoint/arrange.hpp"
#include "switch/endpoint/carried_communicator.hpp"
#include "switch/endpoint/keeper.hpp"
#include "switch/endpoint/settings.hpp"

namespace unisono::slots {

/// Beside a native engine whose network spans hosts. `arrange_for` is called once for each new communicator, by all of
/// its members; from then on calls that slots carry go to the switches (CallCarrier), until these are given up.
class Aggregation final : private CallCarrier, private Companion {
 public:
  /// Null if the endpoint has no network between hosts. Otherwise never fails: if `settings` throws Error, that is told
  /// in `arrange_for`, so that no rank is waited for in vain. Engine and network outlive it.
  static std::unique_ptr<Aggregation> make(NativeEngine& engine, Poe& poe,
                                           const std::function<AggregationSettings()>& settings);
  ~Aggregation();
  Aggregation(const Aggregation&) = delete;
  Aggregation& operator=(const Aggregation&) = delete;

  /// Collective over a communicator that all of its members have made, before its first call: its first rank asks the
  /// switches and tells the others. Takes seconds at most. A communicator that is not carried is as it was; its first
  /// rank logs why. Throws what calls of the engine throw.
  void arrange_for(std::uint32_t communicator, std::uint16_t epoch, std::span<const std::uint32_t> endpoints);

  /// By the first rank of a communicator: has its switches fold by an operator of the user, whose number there is
  /// `at_switches`. Why they do not, in a sentence; empty: all of them do, also those above. Takes seconds at most.
  std::string load_operator(std::uint32_t communicator, Func at_switches, std::span<const std::byte> binary,
                            bool commutative = true);
  /// By all members, between the same calls, if `load_operator` had nothing to say: calls by it are carried.
  void add_operator(std::uint32_t communicator, Func here, Func at_switches, std::uint32_t element_bytes);

  /// What carries a communicator's calls, in words; empty: its ranks alone.
  std::string carrier_of(std::uint32_t communicator);

 private:
  struct Endpoint {
    std::size_t pool = 0;
    CarriedCommunicator* communicator = nullptr;
  };

  Aggregation(NativeEngine& engine, Poe& poe, const std::function<AggregationSettings()>& settings);

  std::shared_ptr<KernelRun> carry(std::uint32_t communicator, const Call& call, double post_scale, const Binding& src,
                                   const Binding& dst) override;
  bool progress(CallStarter& starter) override;
  void freed(CallStarter& starter, std::uint32_t communicator) override;
  bool busy() const override;
  bool poll() override;
  int descriptor() const override { return watch_.descriptor(); }

  bool serve_freed(CallStarter& starter, Time now);

  Plan plan_for(std::uint32_t communicator, std::uint16_t epoch, const std::vector<MemberCard>& cards);
  void add(std::uint32_t communicator, std::uint16_t epoch, std::span<const std::uint32_t> endpoints, const Plan& plan);
  void open_socket(std::size_t longest);
  void join_group(const PlannedPool::Leaf& leaf, std::size_t longest);

  NativeEngine& engine_;
  Poe& poe_;
  AggregationSettings settings_;
  std::string fault_;  ///< of the settings, if they cannot be used
  std::vector<SwitchPlace> places_;
  std::unique_ptr<Keeper> keeper_;  ///< of first ranks
  PoolId job_{};
  bool knows_job_ = false;

  // From here on under the engine's lock.
  tcp::Watch watch_;
  std::unique_ptr<Datagrams> datagrams_;
  std::uint32_t watched_ = 0;
  struct Group {
    std::unique_ptr<Datagrams> datagrams;  ///< null: it could not be joined
    std::uint32_t watched = 0;
  };
  std::map<std::string, Group> groups_;
  bool by_group_ = false;       ///< results have come by one of them of late
  std::uint32_t unlooked_ = 0;  ///< polls since the last look at what comes to this rank alone
  Time looked_at_{};            ///< when that was
  std::map<std::uint32_t, std::shared_ptr<WindowsToSwitch>> windows_;  ///< by the switch's place among the addresses
  Time armed_ = Time::max();
  std::uint32_t idle_rounds_ = 0;
  struct Freed {
    std::unique_ptr<CarriedCommunicator> communicator;
    Time until;
  };
  std::unordered_map<std::uint32_t, std::unique_ptr<CarriedCommunicator>> communicators_;
  std::unordered_map<std::uint64_t, Endpoint> pools_;
  /// This rank has all results of these; another one may lack the last of them when it gives the switches up, and can
  /// have it only from those that still keep what they gave. In the order in which they were freed.
  std::deque<Freed> freed_;
};

}  // namespace unisono::slots
