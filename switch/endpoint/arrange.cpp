#include "switch/endpoint/arrange.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/udp/port.hpp"
#include "switch/envelope.hpp"

namespace unisono::slots {

namespace {

/// Most and least bytes of data in a datagram.
constexpr std::size_t kMostPayload = 8192;
constexpr std::size_t kLeastPayload = 256;
constexpr std::uint32_t kMostSlots = 64;
/// Bytes that a member has on their way at most: what a link of 10 Gb/s holds in 50 us. Members and switches keep a few
/// times as much for each communicator.
constexpr std::size_t kMostOnTheWay = std::size_t{64} * 1024;
constexpr std::uint32_t kLeastSlots = 2;
/// What systems count beside each datagram that they keep for a socket.
constexpr std::size_t kBesideDatagram = 768;
/// What a switch in software should carry, if nobody says otherwise: it takes in all that the ranks have, by one port.
constexpr std::uint64_t kUpTo = std::uint64_t{32} * 1024;

std::span<const std::uint8_t> bytes_of(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    return {reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr), 4};
  }
  if (address->sa_family == AF_INET6) {
    return {reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr), 16};
  }
  return {};
}

/// Whether an address is of a network that an interface of this host is in.
bool in_own_network(const tcp::Address& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const auto own = bytes_of(one->ifa_addr);
    const auto mask = bytes_of(one->ifa_netmask);
    if (own.size() != address.length() || mask.size() != own.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < own.size(); ++i) same = same && ((own[i] ^ address.bytes[i]) & mask[i]) == 0;
    if (same) return true;
  }
  return false;
}

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kUnsupported, why); }

/// A switch of the tree while it is being made.
struct Node {
  std::string name;
  std::string above;
  std::vector<std::uint32_t> ranks;  ///< right below it
  std::vector<std::string> switches;
};

class Arrangement {
 public:
  Arrangement(const AggregationSettings& settings, Keeper& keeper, const Wanted& wanted,
              std::span<const MemberCard> cards, join::Deadline deadline)
      : settings_(settings), keeper_(keeper), wanted_(wanted), cards_(cards), deadline_(deadline) {}

  Plan run() {
    check_cards();
    ask_switches();
    Plan plan;
    plan.job = wanted_.job;
    plan.up_to_bytes = kUpTo;
    plan.stable = std::any_of(cards_.begin(), cards_.end(), [](const MemberCard& card) { return card.stable != 0; });
    plan.capability = welcomes_.begin()->second.capability;
    for (const auto& [address, welcome] : welcomes_) {
      plan.capability &= welcome.capability;
      if (welcome.up_to_bytes != 0) plan.up_to_bytes = welcome.up_to_bytes;
    }
    try {
      if (is_tree()) {
        plan.pools.push_back(make_tree());
      } else {
        for (const auto& [address, welcome] : welcomes_) {
          plan.pools.push_back(make_flat(address, welcome));
          if (plan.pools.size() == kMostPools) break;
        }
      }
    } catch (const Error&) {
      for (const PoolId& id : made_) keeper_.free(id);
      throw;
    }
    if (settings_.up_to_bytes != 0) plan.up_to_bytes = settings_.up_to_bytes;
    return plan;
  }

 private:
  void check_cards() {
    longest_ = cards_[0].longest;
    for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
      const MemberCard& card = cards_[rank];
      if (card.able == 0) refuse(formatted("rank {} cannot have calls carried; its log says why", rank));
      if (card.addresses != cards_[0].addresses || card.up_to_bytes != cards_[0].up_to_bytes) {
        refuse(formatted("rank {} has another UNISONO_AGGREGATE or UNISONO_AGGREGATE_UP_TO than rank 0", rank));
      }
      longest_ = std::min(longest_, card.longest);
    }
  }

  static bool is_near(const MemberCard& card, std::uint32_t address) {
    return address < 64 && (card.near >> address & 1U) != 0;
  }

  /// The switch that a rank hangs below in a tree.
  std::uint32_t leaf_for(std::uint32_t rank) const {
    std::vector<std::uint32_t> choice;
    for (const bool any : {false, true}) {
      for (const auto& [address, welcome] : welcomes_) {
        if (any || is_near(cards_[rank], address)) choice.push_back(address);
      }
      if (!choice.empty()) break;
    }
    return choice[static_cast<std::size_t>(std::uint64_t{rank} * choice.size() / cards_.size())];
  }

  void ask_switches() {
    std::string failure;
    for (std::uint32_t i = 0; i < settings_.addresses.size(); ++i) {
      try {
        Welcome welcome = keeper_.welcome(i, deadline_);
        if (welcome.draining) refuse(formatted("the switch at {} is being drained", settings_.addresses[i]));
        welcomes_.emplace(i, std::move(welcome));
      } catch (const Error& error) {
        failure = error.what();
        const bool wanted =
            std::any_of(cards_.begin(), cards_.end(), [&](const auto& card) { return is_near(card, i); });
        if (wanted && settings_.addresses.size() > 1) throw;
      }
    }
    if (welcomes_.empty()) refuse(failure);
  }

  /// Whether some switch is above another one, or two have one above them in common.
  bool is_tree() const {
    std::map<std::string, int> seen;
    for (const auto& [address, welcome] : welcomes_) {
      ++seen[welcome.name];
      for (const std::string& name : welcome.above) ++seen[name];
    }
    return welcomes_.size() > 1 &&
           std::any_of(seen.begin(), seen.end(), [](const auto& one) { return one.second > 1; });
  }

  /// So many slots that what is on its way to the switch with `children` has room before it.
  std::uint32_t slots_for(std::size_t children, std::size_t payload) const {
    std::size_t room = ~std::size_t{0};
    for (const auto& [address, welcome] : welcomes_) room = std::min<std::size_t>(room, welcome.room_bytes);
    const std::size_t most =
        std::min(room / (children * (datagram_bytes(payload) + kBesideDatagram)), kMostOnTheWay / payload);
    return std::clamp(static_cast<std::uint32_t>(std::bit_floor(std::max<std::size_t>(most, 1))), kLeastSlots,
                      kMostSlots);
  }

  std::uint16_t payload() const {
    const std::size_t headers = datagram_bytes(16) - 16;
    const std::size_t room = longest_ > headers ? (longest_ - headers) / 16 * 16 : 0;
    if (room < kLeastPayload) refuse(formatted("datagrams on the way to a switch may have {} bytes only", longest_));
    return static_cast<std::uint16_t>(std::min(room, kMostPayload));
  }

  PoolRequest request() const {
    PoolRequest request;
    fill_random(request.id);
    request.job = wanted_.job;
    request.job_name = wanted_.job_name;
    request.communicator = wanted_.communicator;
    request.epoch = wanted_.epoch;
    request.ranks = static_cast<std::uint32_t>(cards_.size());
    request.payload_bytes = payload();
    return request;
  }

  PlannedPool planned(const PoolRequest& request) const {
    PlannedPool pool;
    pool.id = request.id;
    pool.secret = pool_secret(bytes_of_text(settings_.secret), request.id);
    pool.slots = request.slots;
    pool.payload_bytes = request.payload_bytes;
    pool.places.resize(cards_.size());
    return pool;
  }

  /// Asks all switches that ranks hang below; with fewer slots if one has no room for so many.
  void make(PoolRequest& request, const std::vector<std::uint32_t>& addresses, PlannedPool& pool) {
    made_.push_back(request.id);
    for (;;) {
      std::uint32_t possible = request.slots;
      std::string refusal;
      pool.leaves.clear();
      for (const std::uint32_t address : addresses) {
        const PoolAnswer answer = keeper_.make(address, request, deadline_);
        if (!answer.made) {
          possible = std::min(possible, answer.possible);
          refusal = formatted("the switch at {}: {}", settings_.addresses[address], answer.refusal);
          break;
        }
        pool.leaves.push_back({address, welcomes_.at(address).name, answer.port, answer.generation, answer.group});
      }
      pool.slots = request.slots;
      pool.id = request.id;
      if (refusal.empty()) return;
      keeper_.free(request.id);
      if (possible < kLeastSlots || possible >= request.slots) refuse(refusal);
      request.slots = std::bit_floor(possible);
      fill_random(request.id);  // what some of them may still free is another pool
      made_.back() = request.id;
      pool.secret = pool_secret(bytes_of_text(settings_.secret), request.id);
    }
  }

  PlannedPool make_flat(std::uint32_t address, const Welcome& welcome) {
    PoolRequest asked = request();
    asked.slots = slots_for(cards_.size(), asked.payload_bytes);
    PoolNode node;
    node.name = welcome.name;
    std::string tree = "(";
    for (std::uint32_t rank = 0; rank < cards_.size(); ++rank) {
      node.below.push_back({"", {rank, 1}});
      tree += (rank == 0 ? "" : " ") + std::to_string(rank);
    }
    asked.nodes.push_back(std::move(node));
    PlannedPool pool = planned(asked);
    for (std::uint32_t rank = 0; rank < cards_.size(); ++rank) pool.places[rank] = {0, rank, rank};
    pool.tree = tree + ")";
    make(asked, {address}, pool);
    return pool;
  }

  PlannedPool make_tree() {
    std::map<std::string, Node> nodes;
    std::vector<std::uint32_t> leaf_of(cards_.size());
    std::map<std::uint32_t, std::vector<std::string>> paths;  // of the leaves in use, upwards
    for (std::uint32_t rank = 0; rank < cards_.size(); ++rank) {
      leaf_of[rank] = leaf_for(rank);
      std::vector<std::string>& path = paths[leaf_of[rank]];
      if (!path.empty()) continue;
      const Welcome& welcome = welcomes_.at(leaf_of[rank]);
      path = welcome.above;
      path.insert(path.begin(), welcome.name);
    }
    const std::string top = common_top(paths);
    for (auto& [leaf, path] : paths) {
      for (std::size_t i = 0; i < path.size(); ++i) {
        Node& node = nodes[path[i]];
        node.name = path[i];
        if (path[i] == top) break;
        node.above = path[i + 1];
        Node& above = nodes[path[i + 1]];
        if (std::find(above.switches.begin(), above.switches.end(), path[i]) == above.switches.end()) {
          above.switches.push_back(path[i]);
        }
      }
    }
    for (std::uint32_t rank = 0; rank < cards_.size(); ++rank) nodes[paths[leaf_of[rank]][0]].ranks.push_back(rank);

    PoolRequest asked = request();
    PlannedPool pool = planned(asked);
    std::vector<std::uint32_t> addresses;
    addresses.reserve(paths.size());
    for (const auto& [leaf, path] : paths) addresses.push_back(leaf);
    std::size_t widest = 1;
    std::uint32_t order = 0;
    // The lowest rank below a switch decides its place among its siblings, so ranks stay in order where they can.
    const std::function<std::uint32_t(const std::string&)> lowest = [&](const std::string& name) {
      const Node& node = nodes.at(name);
      std::uint32_t least = node.ranks.empty() ? ~0U : node.ranks.front();
      for (const std::string& child : node.switches) least = std::min(least, lowest(child));
      return least;
    };
    const std::function<Child(const std::string&, std::uint32_t)> lay_out = [&](const std::string& name,
                                                                                std::uint32_t position) {
      const Node& node = nodes.at(name);
      std::vector<std::pair<std::uint32_t, std::string>> below;
      for (const std::uint32_t rank : node.ranks) below.emplace_back(rank, "");
      for (const std::string& child : node.switches) below.emplace_back(lowest(child), child);
      std::sort(below.begin(), below.end());
      widest = std::max(widest, below.size());
      PoolNode made{name, name == top ? "" : node.above, position, {}};
      Child all{order, 0};
      pool.tree += "(";
      for (std::uint32_t i = 0; i < below.size(); ++i) {
        if (i != 0) pool.tree += " ";
        Child child{order, 1};
        if (below[i].second.empty()) {
          const std::uint32_t rank = below[i].first;
          const auto leaf = std::find(addresses.begin(), addresses.end(), leaf_of[rank]) - addresses.begin();
          pool.places[rank] = {static_cast<std::uint32_t>(leaf), i, order++};
          pool.tree += std::to_string(rank);
        } else {
          child = lay_out(below[i].second, i);
        }
        made.below.push_back({below[i].second, child});
        all.ranks += child.ranks;
      }
      pool.tree += ")";
      asked.nodes.push_back(std::move(made));
      return all;
    };
    lay_out(top, 0);
    asked.slots = slots_for(widest, asked.payload_bytes);
    make(asked, addresses, pool);
    return pool;
  }

  /// The lowest switch that all paths go through.
  static std::string common_top(const std::map<std::uint32_t, std::vector<std::string>>& paths) {
    for (const std::string& name : paths.begin()->second) {
      if (std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
            return std::find(path.second.begin(), path.second.end(), name) != path.second.end();
          })) {
        return name;
      }
    }
    refuse(
        "the switches that its hosts hang below have none above them in common; start them with --uplink, or name "
        "one of them");
  }

  const AggregationSettings& settings_;
  Keeper& keeper_;
  const Wanted& wanted_;
  std::span<const MemberCard> cards_;
  join::Deadline deadline_;
  std::map<std::uint32_t, Welcome> welcomes_;  ///< by position of the address
  std::vector<PoolId> made_;
  std::uint32_t longest_ = 0;
};

}  // namespace

MemberCard card_of(const AggregationSettings& settings, std::span<const SwitchPlace> places) {
  MemberCard card;
  card.able = 1;
  std::string all;
  for (const std::string& address : settings.addresses) all += address + ",";
  const Digest digest = digest_of({}, "unisono switches", {std::as_bytes(std::span(all.data(), all.size()))});
  std::memcpy(&card.addresses, digest.data(), sizeof card.addresses);
  card.up_to_bytes = settings.up_to_bytes;
  card.stable = settings.stable ? 1 : 0;
  card.longest = 65'000;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t longest = udp::Port::longest_to(places[i].address, places[i].scope);
    card.longest = std::min(card.longest, static_cast<std::uint32_t>(longest));
    if (i < 64 && in_own_network(places[i].address)) card.near |= std::uint64_t{1} << i;
  }
  return card;
}

Plan arrange(const AggregationSettings& settings, Keeper& keeper, const Wanted& wanted,
             std::span<const MemberCard> cards, join::Deadline deadline) {
  try {
    return Arrangement(settings, keeper, wanted, cards, deadline).run();
  } catch (const std::exception& error) {
    Plan plan;
    plan.job = wanted.job;
    plan.refusal = error.what();
    return plan;
  }
}

}  // namespace unisono::slots
