// A pool with what ties it to the network: keys, addresses of its members, and the socket through which it sends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/tcp/address.hpp"
#include "switch/control.hpp"
#include "switch/datagrams.hpp"
#include "switch/envelope.hpp"
#include "switch/path_time.hpp"
#include "switch/slots.hpp"

namespace unisono::slots {

/// Bytes of a payload at most: what fits a jumbo frame of Ethernet.
inline constexpr std::uint32_t kMostPayload = 8848;

/// What has gone through a pool.
struct PoolTraffic {
  std::uint64_t frames_in = 0;  ///< that its members, or the switch above, have made
  std::uint64_t frames_out = 0;
  std::uint64_t bytes_in = 0;  ///< of datagrams
  std::uint64_t bytes_out = 0;
};

/// Memory is allocated at construction only. Not thread-safe: the worker that it belongs to, or who holds the worker's
/// lock.
class HostedPool final : public Outlet {
 public:
  /// `node` is this switch's in the request. `secret` is the switch's. `datagrams` must outlive the pool, and so must
  /// `above_answers`: whether the switch above does; null if there is none. Throws Error(kInvalidArgument) if the shape
  /// is not allowed.
  HostedPool(const PoolRequest& request, const PoolNode& node, std::span<const std::byte> secret, Datagrams& datagrams,
             std::uint64_t generation, const std::atomic<bool>* above_answers);

  /// Names the pool in datagrams.
  std::uint64_t number() const { return number_; }
  const Pool& pool() const { return pool_; }
  void set_operator(Func func, PoolOperator op) { pool_.set_operator(func, std::move(op)); }
  const PoolTraffic& traffic() const { return traffic_; }
  /// Where the switch above takes frames of this pool.
  void set_parent(const tcp::SystemAddress& address);
  /// From now on what is for all members goes to a group, once, if all of them are ranks. `secret` is the switch's.
  void use_group(const tcp::SystemAddress& group, const PoolId& id, std::span<const std::byte> secret);
  bool has_group() const { return group_ != nullptr; }
  /// Takes a datagram that names this pool; behind it there is slack. False if neither a member nor the switch above
  /// has made it.
  bool take(std::span<std::byte> datagram, const Labels& labels, const tcp::SystemAddress& from);

  void down(const SlotFrame& head, std::span<const std::byte> payload) override;
  void down_all(const SlotFrame& head, std::span<const std::byte> payload) override;
  void up(const SlotFrame& head, std::span<const std::byte> payload) override;

 private:
  /// Both directions between this switch and one node.
  struct Link {
    Envelope in;
    Envelope out;
    tcp::SystemAddress address;  ///< no bytes: not known yet
    std::uint64_t number = 0;    ///< the largest that has come
    StampEcho echo{};
  };
  static PoolShape shape_of(const PoolRequest& request, const PoolNode& node, std::uint64_t generation);
  bool take_from_child(std::span<std::byte> datagram, const Labels& labels, const tcp::SystemAddress& from);
  bool take_from_parent(std::span<std::byte> datagram, const Labels& labels);
  void send(Link& link, const SlotFrame& head, std::span<const std::byte> payload);

  std::uint64_t number_;
  Datagrams& datagrams_;
  std::vector<Link> children_;
  std::unique_ptr<Link> parent_;  ///< null: there is no switch above
  std::unique_ptr<Link> group_;   ///< null: there is none, or members do not get what goes there
  bool ranks_only_ = true;
  std::uint32_t results_ = 0;    ///< that have gone to the group
  std::uint32_t asked_for_ = 0;  ///< and that members have asked for again
  bool gave_result_ = false;     ///< to a member by itself, since a frame is looked at
  std::uint32_t position_;       ///< at the switch above
  std::string name_;             ///< of this switch
  const std::atomic<bool>* above_answers_;
  PoolTraffic traffic_;
  Span beyond_{};  ///< the way to the switch above and back, at last
  Pool pool_;
};

}  // namespace unisono::slots
