// Joining a job of processes: the members meet, find out who is on which host, and make what carries their messages.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/cores.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "network/mixed_poe.hpp"
#include "network/shm/shm_poe.hpp"
#include "platform/join/exchange.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/host.hpp"
#include "platform/join/job.hpp"
#include "platform/join/memory.hpp"
#include "platform/join/networks.hpp"
#include "platform/join/pack.hpp"
#include "platform/join/store.hpp"

namespace unisono {
namespace {

using namespace join;

void check_request(const JobEnvironment& environment, std::span<const std::byte> capabilities) {
  const auto refuse = [](const std::string& text) { throw Error(ErrorCode::kBootstrap, text); };
  if (environment.size == 0 || environment.size > kMaxJobSize) {
    refuse(formatted("a job of {} ranks; allowed are 1 to {}", environment.size, kMaxJobSize));
  }
  if (environment.rank >= environment.size) {
    refuse(formatted("rank {} of a job of {}; ranks count from 0", environment.rank, environment.size));
  }
  if (capabilities.size() > kMaxCapabilities) {
    refuse(formatted("an offer of {} bytes; allowed are {}", capabilities.size(), kMaxCapabilities));
  }
  if (environment.size == 1 || environment.meeting != MeetingPlace::kSocket) return;
  if (environment.addresses.empty() && (environment.rendezvous.empty() || environment.rendezvous.size() > kMaxName)) {
    refuse(
        formatted("a rendezvous name of {} characters; allowed are 1 to {}", environment.rendezvous.size(), kMaxName));
  }
  if (environment.secret.empty() || environment.secret.size() > kMaxSecret) {
    refuse(formatted("a secret of {} characters; allowed are 1 to {}", environment.secret.size(), kMaxSecret));
  }
}

/// From how many bytes on the job has the kernel copy.
shm::CopyFrom copy_from_of(const JobEnvironment& environment, const FindCopyFrom& find) {
  if (environment.kernel_copy == 0) return shm::CopyFrom::never();
  if (environment.kernel_copy) return {*environment.kernel_copy, *environment.kernel_copy, *environment.kernel_copy, 0};
  return find ? find() : shm::CopyFrom{};
}

/// Hands the job's memory to who has asked to look at it (UNISONO_OBSERVER), if he is there and of this user. What he
/// does with it, or that he has gone, is nothing to the job.
void show(const JobEnvironment& environment, const shm::Segment& segment) {
  constexpr std::chrono::seconds kGrace{2};
  if (environment.observer.empty()) return;
  try {
    const Descriptor connection = try_connect(environment.observer);
    if (!connection.valid()) return;
    const auto observer = credentials_of(connection);
    if (!observer || observer->uid != geteuid()) return;
    send_frame(connection, FrameKind::kMemory, {}, Clock::now() + kGrace, segment.descriptor());
  } catch (const Error&) {  // the system refuses a socket
  }
}

/// What a member says of itself in the first round.
struct Card {
  std::string host;
  std::string machine;
  std::string host_name;
  std::uint32_t pid = 0;
  Nonce nonce{};  ///< names the memory of its host, if it is the first there; rank 0's makes the networks' key
  Blob capabilities;
  std::uint32_t quota = 0;  ///< cores' worth of time that it is granted, rounded down
  CoreSet cores;            ///< where it may run

  Blob packed() const {
    return Packer()
        .add(host)
        .add(machine)
        .add(host_name)
        .add_value(pid)
        .add_value(nonce)
        .add(capabilities)
        .add_value(quota)
        .add(std::as_bytes(std::span(cores)))
        .take();
  }
  /// Throws Error(kBootstrap).
  static Card unpacked(const Blob& blob, std::uint32_t rank) {
    Unpacker unpacker(blob);
    Card card;
    card.host = unpacker.take_text();
    card.machine = unpacker.take_text();
    card.host_name = unpacker.take_text();
    card.pid = unpacker.take_value<std::uint32_t>();
    card.nonce = unpacker.take_value<Nonce>();
    const auto capabilities = unpacker.take();
    card.capabilities.assign(capabilities.begin(), capabilities.end());
    card.quota = unpacker.take_value<std::uint32_t>();
    const auto cores = unpacker.take();
    card.cores.resize(cores.size() / sizeof card.cores[0]);
    if (!card.cores.empty()) std::memcpy(card.cores.data(), cores.data(), card.cores.size() * sizeof card.cores[0]);
    if (!unpacker.whole()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("rank {} has said something else of itself than expected: use one version of Unisono on "
                            "all ranks",
                            rank));
    }
    return card;
  }
};

/// The way from a request to a job.
class Joining {
 public:
  Joining(JobEnvironment& environment, std::span<const std::byte> capabilities, const FindCopyFrom& find)
      : environment_(environment), capabilities_(capabilities), find_(find) {}

  JoinedJob run(std::unique_ptr<Store> store) {
    deadline_ = Clock::now() + environment_.timeout;
    exchange_ = make_exchange(environment_, std::move(store));
    try {
      meet();
      auto network = several_hosts_ ? make_network(environment_) : nullptr;
      std::unique_ptr<MemoryGiver> giver;
      if (household_.self == 0 && household_.members.size() > 1) giver = std::make_unique<MemoryGiver>(household_);
      shm::CopyFrom copy_from = shm::CopyFrom::never();
      if (environment_.rank == 0) copy_from = copy_from_of(environment_, find_);
      // The giver listens by the end of this round. While rank 0 measures, the others sleep in it.
      const auto said = exchange_->all_gather(
          Packer().add_value(copy_from).add(network ? network->card() : std::vector<std::byte>()).take());
      if (network) network->meet(members_of(said));
      auto host = memory(giver.get(), Unpacker(said[0]).take_value<shm::CopyFrom>());
      std::unique_ptr<Poe> poe;
      shm::ShmPoe& shared = *host;
      if (network) {
        poe = std::make_unique<MixedPoe>(environment_.rank, seats(), std::move(host), std::move(network), crowded());
      } else {
        poe = std::move(host);
      }
      exchange_->all_gather({});  // all are ready
      shared.watch_peers();
      return {std::move(poe), all_capabilities()};
    } catch (const Error& error) {
      exchange_->give_up(error.what());
      throw;
    }
  }

 private:
  void meet() {
    const Host host = this_host(environment_.host);
    Card own{host.identity, host.machine, host.name, static_cast<std::uint32_t>(getpid()), {}, {}, 0, affinity_of(0)};
    own.capabilities.assign(capabilities_.begin(), capabilities_.end());
    constexpr double kMostCores = 1U << 20U;
    own.quota = static_cast<std::uint32_t>(std::clamp(cgroup_quota().cores, 1.0, kMostCores));
    fill_random(own.nonce);
    const Blob packed = own.packed();
    const auto blobs = exchange_->all_gather(packed);
    if (blobs[environment_.rank] != packed) {
      throw Error(
          ErrorCode::kBootstrap,
          formatted("rank {} got back other words of its own than it gave: another process has its rank, or rank "
                    "0 is broken",
                    environment_.rank));
    }
    for (std::uint32_t rank = 0; rank < environment_.size; ++rank) {
      cards_.push_back(Card::unpacked(blobs[rank], rank));
      const Card& card = cards_.back();
      if (card.host != host.identity) {
        several_hosts_ = true;
        continue;
      }
      if (household_.members.empty()) household_.nonce = card.nonce;
      if (rank == environment_.rank) household_.self = static_cast<std::uint32_t>(household_.members.size());
      household_.members.push_back({rank, card.pid});
    }
  }

  std::unique_ptr<shm::ShmPoe> memory(MemoryGiver* giver, const shm::CopyFrom& copy_from) {
    std::shared_ptr<shm::Segment> segment;
    if (household_.self == 0) {
      segment = make_segment(static_cast<std::uint32_t>(household_.members.size()), copy_from);
    } else {
      segment = take_memory(household_, deadline_);
    }
    auto host = std::make_unique<shm::ShmPoe>(segment, household_.self, environment_.kernel_copy != 0);
    if (household_.self == 0) show(environment_, *segment);
    if (giver != nullptr) giver->give(*segment, deadline_);
    return host;
  }

  NetworkMembers members_of(const std::vector<Blob>& said) const {
    NetworkMembers members;
    members.self = environment_.rank;
    const auto nonce = std::as_bytes(std::span(cards_[0].nonce));
    members.key = digest_of(exchange_->secret(), "unisono networks", {nonce});
    for (std::uint32_t rank = 0; rank < environment_.size; ++rank) {
      Unpacker unpacker(said[rank]);
      unpacker.take();
      const auto card = unpacker.take();
      members.cards.emplace_back(card.begin(), card.end());
      members.hosts.push_back(cards_[rank].host_name);
    }
    return members;
  }

  std::vector<Seat> seats() const {
    std::vector<Seat> seats;
    std::map<std::string, std::uint32_t> hosts;
    std::vector<std::uint32_t> members;
    for (const Card& card : cards_) {
      const auto host = hosts.emplace(card.host, static_cast<std::uint32_t>(hosts.size())).first->second;
      if (host == members.size()) members.push_back(0);
      seats.push_back({card.pid, host, members[host]++, card.host_name});
    }
    return seats;
  }

  /// Whether on any machine more members run than it has cores for, be they on one host there or on several.
  bool crowded() const {
    std::map<std::string, std::vector<const Card*>> machines;
    for (const Card& card : cards_) machines[card.machine].push_back(&card);
    return std::any_of(machines.begin(), machines.end(), [](const auto& machine) {
      std::vector<CoreSet> sets;
      std::uint32_t quota = ~std::uint32_t{0};
      for (const Card* card : machine.second) {
        sets.push_back(card->cores);
        quota = std::min(quota, card->quota);
      }
      return std::min(distinct_cores(sets), quota) < sets.size();
    });
  }

  std::vector<Blob> all_capabilities() {
    std::vector<Blob> all;
    for (Card& card : cards_) all.push_back(std::move(card.capabilities));
    return all;
  }

  JobEnvironment& environment_;
  std::span<const std::byte> capabilities_;
  const FindCopyFrom& find_;
  Deadline deadline_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<Card> cards_;  ///< by rank
  bool several_hosts_ = false;
  Household household_;
};

}  // namespace

JoinedJob join_job(const JobEnvironment& given, std::span<const std::byte> capabilities,
                   const FindCopyFrom& copy_from) {
  JobEnvironment environment = given;
  auto store = open_launcher(environment);
  check_request(environment, capabilities);
  if (environment.size == 1) {
    auto segment = make_segment(1, shm::CopyFrom::never());
    show(environment, *segment);
    return {std::make_unique<shm::ShmPoe>(std::move(segment), 0), {{capabilities.begin(), capabilities.end()}}};
  }
  return Joining(environment, capabilities, copy_from).run(std::move(store));
}

}  // namespace unisono
