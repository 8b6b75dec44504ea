#include "sim/cluster/server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/generated/spec.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "platform/device/kernel_start.hpp"
#include "platform/device/registers.hpp"

namespace unisono::sim {

using device::Greeting;
using device::Reply;
using device::Request;
using device::RequestKind;

/// One host: what it has asked for, and how far that is.
class Server::Attached {
 public:
  Attached(Cluster& cluster, const PlatformModel& model, std::uint32_t node, int socket)
      : cluster_(cluster), model_(model), node_(node), socket_(socket) {}
  ~Attached() { leave(); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  bool gone() const { return socket_ < 0; }
  bool running() const { return socket_ >= 0 && !waits_; }
  bool waits() const { return socket_ >= 0 && waits_; }
  int socket() const { return socket_; }

  /// Reads what is there. A request that has come whole waits from now on, or has been answered.
  void receive();
  /// Starts what its request asks for; once, when no host runs.
  void begin();
  /// After each cycle: answers if the request has been carried out.
  void advance();
  /// The cycle that it waits for, if it does so; else a cycle that has passed.
  std::uint64_t due() const { return waits() && begun_ ? due_ : 0; }
  /// Whether it has come to meet the others, what it tells them, and their answer.
  bool meets() const { return waits() && begun_ && request_.kind == RequestKind::kMeet; }
  const std::vector<std::byte>& told() const { return payload_; }
  void meet(std::span<const std::byte> all) { reply(0, all); }
  /// Notes sessions of this node that have broken.
  void hear_of_broken();
  /// A host that waits may have ended meanwhile.
  void look_whether_gone();

 private:
  void leave();
  void complain(const std::string& what);
  void reply(std::uint64_t value, std::span<const std::byte> payload = {}, ErrorCode code = ErrorCode::kOk);
  void take_request();
  /// Between host and device memory, at once; the reply may go later.
  void copy();
  void give_stream(AnyNode& node);
  void take_stream(AnyNode& node);
  void start_kernel(AnyNode& node);
  void tell_kernel_ends(AnyNode& node);
  void join_tree();
  void tell_what_switches_wait_for();
  static constexpr unsigned kPortBits = 8;
  unsigned stream_port() const { return static_cast<unsigned>(request_.argument & ((1U << kPortBits) - 1)); }
  std::uint64_t cycles_of(std::uint64_t nanoseconds) const {
    return (nanoseconds * cluster_.clock_khz() + 999'999) / 1'000'000;
  }
  std::uint64_t copy_cycles(std::uint64_t bytes) const {
    const std::uint64_t rate = model_.copy_mbps == 0 ? 0 : bytes * 8'000 / model_.copy_mbps;
    return cycles_of(model_.copy_ns + rate);
  }

  Cluster& cluster_;
  const PlatformModel& model_;
  const std::uint32_t node_;
  int socket_;
  bool waits_ = false, begun_ = false;
  Request request_;
  std::vector<std::byte> input_;  ///< received and not used
  std::vector<std::byte> payload_;
  std::deque<RegisterAccess> accesses_;
  std::vector<device::BrokenSession> broken_;  ///< not told yet
  std::size_t heard_ = 0;                      ///< of the network's
  bool in_access_ = false, refused_ = false;
  unsigned streams_ = 0;     ///< ports that its host was told of
  std::uint64_t moved_ = 0;  ///< bytes of a stream
  std::uint64_t due_ = 0;    ///< cycle before which the reply does not go, or in which a wait ends
};

void Server::Attached::leave() {
  if (socket_ < 0) return;
  ::close(socket_);
  socket_ = -1;
  if (cluster_.aggregation() != nullptr) cluster_.aggregation()->leave_all(node_);
}

void Server::Attached::complain(const std::string& what) {
  log(LogLevel::kError, formatted("the host of node {} {}; it is detached", node_, what), "unisono-cluster");
  leave();
}

void Server::Attached::reply(std::uint64_t value, std::span<const std::byte> payload, ErrorCode code) {
  Reply head;
  head.code = static_cast<std::uint32_t>(code);
  head.value = value;
  head.nanoseconds = cluster_.cycle() * 1'000'000 / cluster_.clock_khz();
  head.length = payload.size();
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof head + payload.size());
  const auto head_bytes = std::as_bytes(std::span(&head, 1));
  bytes.insert(bytes.end(), head_bytes.begin(), head_bytes.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  waits_ = begun_ = false;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t done = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      leave();
      return;
    }
    sent += static_cast<std::size_t>(done);
  }
}

void Server::Attached::receive() {
  std::byte buffer[65536];
  const ssize_t done = ::recv(socket_, buffer, sizeof buffer, 0);
  if (done < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (done <= 0) {
    leave();
    return;
  }
  input_.insert(input_.end(), buffer, buffer + done);
  take_request();
}

void Server::Attached::take_request() {
  if (input_.size() < sizeof(Request)) return;
  std::memcpy(&request_, input_.data(), sizeof request_);
  const bool sends = request_.kind == RequestKind::kWrite || request_.kind == RequestKind::kStore ||
                     request_.kind == RequestKind::kMeet || request_.kind == RequestKind::kGive ||
                     request_.kind == RequestKind::kKernel || request_.kind == RequestKind::kJoinTree;
  if (request_.magic != device::kProtocolMagic) return complain("does not speak the protocol of this cluster");
  if (request_.length > device::kMostPayload) {
    return complain(formatted("asks for {} bytes at once, of {} at most", request_.length, device::kMostPayload));
  }
  const std::size_t bytes = sizeof request_ + (sends ? request_.length : 0);
  if (input_.size() < bytes) return;
  payload_.assign(input_.begin() + sizeof request_, input_.begin() + static_cast<std::ptrdiff_t>(bytes));
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(bytes));
  waits_ = true;
  begun_ = false;
  AnyNode& node = cluster_.any_node(node_);
  switch (request_.kind) {
    case RequestKind::kHello: {
      Greeting greeting;
      greeting.node = node_;
      greeting.nodes = cluster_.nodes();
      greeting.clock_mhz = static_cast<std::uint32_t>(cluster_.clock_khz() / 1000);
      greeting.memory_address = Node::kMemoryAddress;
      greeting.memory_bytes = node.memory_bytes();
      streams_ = node.streams();
      greeting.features = device::kHostsMeet | (node.kernels() != nullptr ? device::kRunsKernels : 0) |
                          (cluster_.aggregation() != nullptr ? device::kHasSwitches : 0) |
                          std::uint64_t{node.streams()} << device::kStreamsShift |
                          (cluster_.has_firmware() || cluster_.is_native(node_) ? device::kHasFirmware : 0);
      reply(0, std::as_bytes(std::span(&greeting, 1)));
      break;
    }
    case RequestKind::kStore:
    case RequestKind::kLoad:
      copy();
      break;
    case RequestKind::kBroken: {
      hear_of_broken();
      const std::vector<device::BrokenSession> told = std::exchange(broken_, {});
      reply(0, std::as_bytes(std::span(told)));
      break;
    }
    case RequestKind::kWrite:
      if (request_.length == 0 || request_.length % 4 != 0) reply(0, {}, ErrorCode::kInvalidArgument);
      break;
    case RequestKind::kGive:
    case RequestKind::kTake:
      // Those of a node whose kernels run take nothing from its host, and give it nothing.
      if (stream_port() >= streams_) reply(0, {}, ErrorCode::kInvalidArgument);
      break;
    case RequestKind::kKernelEnds:
      tell_kernel_ends(node);
      break;
    case RequestKind::kTreeWaits:
      tell_what_switches_wait_for();
      break;
    case RequestKind::kJoinTree:
    case RequestKind::kLeaveTree:
      if (cluster_.aggregation() == nullptr) reply(0, {}, ErrorCode::kInvalidArgument);
      break;
    case RequestKind::kKernel:
      if (node.kernels() == nullptr) reply(0, {}, ErrorCode::kInvalidArgument);
      break;
    case RequestKind::kRead:
    case RequestKind::kWait:
    case RequestKind::kMeet:
      break;
    default:
      complain("asks for what the protocol has not");
  }
}

void Server::Attached::copy() {
  AnyNode& node = cluster_.any_node(node_);
  const bool loads = request_.kind == RequestKind::kLoad;
  try {
    if (loads) {
      payload_.resize(request_.length);
      node.load(request_.argument, payload_);
    } else {
      node.store(request_.argument, payload_);
    }
  } catch (const Error&) {
    return reply(0, {}, ErrorCode::kInvalidArgument);  // beyond its memory
  }
  if (copy_cycles(request_.length) == 0)
    reply(0, loads ? std::span<const std::byte>(payload_) : std::span<const std::byte>());
}

void Server::Attached::begin() {
  if (begun_) return;
  begun_ = true;
  refused_ = false;
  due_ = cluster_.cycle();
  const auto offset = static_cast<std::uint32_t>(request_.argument);
  switch (request_.kind) {
    case RequestKind::kRead:
      accesses_.push_back({false, offset, 0});
      break;
    case RequestKind::kWrite:
      for (std::size_t at = 0; at < payload_.size(); at += 4) {
        std::uint32_t value = 0;
        std::memcpy(&value, &payload_[at], 4);
        accesses_.push_back({true, offset + static_cast<std::uint32_t>(at), value});
        if (accesses_.back().offset == exchange::kDoorbell) due_ += cycles_of(model_.invocation_ns);
      }
      break;
    case RequestKind::kWait:
      due_ += cycles_of(request_.argument);
      break;
    case RequestKind::kMeet:
      break;
    case RequestKind::kKernel:
      start_kernel(cluster_.any_node(node_));
      break;
    case RequestKind::kJoinTree:
      // Here, in the order of the nodes: who gets the last place of a switch depends on no host's speed.
      join_tree();
      break;
    case RequestKind::kLeaveTree:
      cluster_.aggregation()->leave(node_, offset, static_cast<std::uint16_t>(request_.argument >> 32U));
      break;
    case RequestKind::kGive:
      due_ += cycles_of(request_.argument >> kPortBits);
      moved_ = 0;
      if (HostKernel* kernel = cluster_.any_node(node_).host_kernel()) kernel->offer(stream_port(), payload_);
      break;
    case RequestKind::kTake:
      due_ += cycles_of(request_.argument >> kPortBits);
      if (HostKernel* kernel = cluster_.any_node(node_).host_kernel()) kernel->want(stream_port(), request_.length);
      break;
    default:
      due_ += copy_cycles(request_.length);
      break;
  }
}

void Server::Attached::advance() {
  AnyNode& node = cluster_.any_node(node_);
  switch (request_.kind) {
    case RequestKind::kRead:
    case RequestKind::kWrite:
      if (node.busy()) return;
      if (in_access_) refused_ = refused_ || !node.accepted();
      in_access_ = false;
      // What a call costs its host has passed before the call is given.
      if (cluster_.cycle() < due_) return;
      if (accesses_.empty()) {
        reply(node.value(), {}, refused_ ? ErrorCode::kInvalidArgument : ErrorCode::kOk);
      } else {
        node.begin(accesses_.front());
        accesses_.pop_front();
        in_access_ = true;
      }
      break;
    case RequestKind::kMeet:
      break;  // the server answers all
    case RequestKind::kGive:
      give_stream(node);
      break;
    case RequestKind::kTake:
      take_stream(node);
      break;
    case RequestKind::kWait: {
      hear_of_broken();
      node.leave_kernels();
      const bool kernels = node.kernels() != nullptr && node.kernels()->has_ended();
      if (node.interrupt() || !broken_.empty() || kernels || cluster_.cycle() >= due_) {
        reply((node.interrupt() ? registers::kStatusCompletion : 0) | (broken_.empty() ? 0 : device::kHasBroken) |
              (kernels ? device::kHasKernelEnd : 0));
      }
      break;
    }
    case RequestKind::kJoinTree:
      reply(0, payload_);
      break;
    case RequestKind::kLeaveTree:
      reply(0);
      break;
    default:
      if (cluster_.cycle() >= due_) {
        reply(0, request_.kind == RequestKind::kLoad ? std::span<const std::byte>(payload_)
                                                     : std::span<const std::byte>());
      }
  }
}

void Server::Attached::give_stream(AnyNode& node) {
  HostKernel* const kernel = node.host_kernel();
  if (kernel == nullptr) {
    moved_ += node.give(stream_port(), std::span(payload_).subspan(moved_));
  } else {
    moved_ = request_.length - kernel->offered(stream_port());
  }
  if (moved_ != request_.length && cluster_.cycle() < due_) return;
  if (kernel != nullptr) kernel->withdraw(stream_port());
  reply(moved_);
  node.leave_streams();
}

void Server::Attached::take_stream(AnyNode& node) {
  // The host gets what has come when the port has given no word for so many cycles.
  constexpr std::uint64_t kSilentCycles = 32;
  const unsigned port = stream_port();
  HostKernel* const kernel = node.host_kernel();
  payload_.resize(request_.length);
  std::size_t there = 0;
  if (kernel != nullptr) {
    there = kernel->there(port);
    const bool enough = there >= request_.length || (there != 0 && kernel->silence(port) >= kSilentCycles);
    if (!enough && cluster_.cycle() < due_) return;
    there = kernel->take(port, payload_);
  } else {
    there = node.take(port, payload_);
    if (there == 0 && cluster_.cycle() < due_) return;
  }
  payload_.resize(there);
  reply(there, payload_);
  node.leave_streams();
}

void Server::Attached::start_kernel(AnyNode& node) {
  const auto number = static_cast<std::uint32_t>(request_.argument);
  try {
    node.start_kernel(number, device::unpack_kernel_start(payload_));
  } catch (const Error& error) {
    node.kernels()->refuse(number, error.what());
  }
}

void Server::Attached::tell_kernel_ends(AnyNode& node) {
  std::vector<std::byte> bytes;
  if (node.kernels() != nullptr) {
    for (const FibreKernels::Ended& one : node.kernels()->take_ended()) {
      const device::KernelEnd head{one.number, static_cast<std::uint32_t>(one.code),
                                   static_cast<std::uint32_t>(one.sentence.size())};
      const auto head_bytes = std::as_bytes(std::span(&head, 1));
      const auto text = std::as_bytes(std::span(one.sentence));
      bytes.insert(bytes.end(), head_bytes.begin(), head_bytes.end());
      bytes.insert(bytes.end(), text.begin(), text.end());
    }
  }
  reply(0, bytes);
}

/// Leaves the answer in `payload_`.
void Server::Attached::join_tree() {
  device::TreeQuestion head;
  Aggregation::Question question;
  Aggregation::Answer answer;
  if (payload_.size() >= sizeof head) std::memcpy(&head, payload_.data(), sizeof head);
  if (payload_.size() != sizeof head + 4 * std::size_t{head.nodes} || head.nodes == 0) {
    answer.text = "what its host asks is not what the protocol has";
  } else {
    question = {head.communicator, static_cast<std::uint16_t>(head.epoch), head.eager_limit, head.segment_bytes,
                head.rx_buffers,   std::vector<std::uint32_t>(head.nodes)};
    std::memcpy(question.nodes.data(), payload_.data() + sizeof head, 4 * std::size_t{head.nodes});
    const bool known = std::all_of(question.nodes.begin(), question.nodes.end(),
                                   [&](std::uint32_t node) { return node < cluster_.nodes(); });
    if (known) {
      answer = cluster_.aggregation()->join(node_, question);
      if (!answer.addresses.empty()) {
        cluster_.any_node(node_).set_tree(question.communicator, question.epoch, parse_tree(answer.text, false),
                                          answer.addresses);
      }
    } else {
      answer.text = formatted("it names a node that is none of the {} of this cluster", cluster_.nodes());
    }
  }
  const device::TreeAnswer lengths{static_cast<std::uint32_t>(answer.text.size()),
                                   static_cast<std::uint32_t>(answer.addresses.size())};
  const auto parts = {std::as_bytes(std::span(&lengths, 1)), std::as_bytes(std::span(answer.text)),
                      std::as_bytes(std::span(answer.addresses))};
  payload_.clear();
  for (const std::span<const std::byte> part : parts) payload_.insert(payload_.end(), part.begin(), part.end());
}

void Server::Attached::tell_what_switches_wait_for() {
  std::string text;
  if (cluster_.aggregation() != nullptr) {
    text = cluster_.aggregation()->waiting(node_, static_cast<std::uint32_t>(request_.argument),
                                           static_cast<std::uint16_t>(request_.argument >> 32U));
  }
  reply(0, std::as_bytes(std::span(text)));
}

void Server::Attached::hear_of_broken() {
  const std::vector<BrokenSession>& all = cluster_.carrier().broken_sessions();
  for (; heard_ < all.size(); ++heard_) {
    const BrokenSession& one = all[heard_];
    if (one.source != node_ && one.destination != node_) continue;
    broken_.push_back(
        {one.source, one.destination, one.port != 0 ? 1U : 0U, one.missing, one.until, one.nothing_came ? 1U : 0U});
  }
}

void Server::Attached::look_whether_gone() {
  std::byte byte;
  if (::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) leave();
}

Server::Server(Cluster& cluster, const PlatformModel& model, std::span<const int> sockets)
    : cluster_(cluster), model_(model) {
  for (std::size_t node = 0; node < sockets.size(); ++node) {
    hosts_.push_back(std::make_unique<Attached>(cluster_, model_, static_cast<std::uint32_t>(node), sockets[node]));
  }
}

Server::~Server() = default;

bool Server::meet() {
  bool any = false;
  for (const auto& host : hosts_) {
    if (!host->gone() && !host->meets()) return false;
    any = any || host->meets();
  }
  if (!any) return false;
  std::vector<std::byte> all;
  for (const auto& host : hosts_) {
    const auto length = static_cast<std::uint32_t>(host->gone() ? 0 : host->told().size());
    const auto length_bytes = std::as_bytes(std::span(&length, 1));
    all.insert(all.end(), length_bytes.begin(), length_bytes.end());
    if (length != 0) all.insert(all.end(), host->told().begin(), host->told().end());
  }
  for (const auto& host : hosts_) {
    if (host->meets()) host->meet(all);
  }
  return true;
}

bool Server::wait_for_hosts() {
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Attached*> hosts;
    bool any = false;
    for (const auto& host : hosts_) {
      any = any || !host->gone();
      if (!host->running()) continue;
      waiting.push_back({host->socket(), POLLIN, 0});
      hosts.push_back(host.get());
    }
    if (!any) return false;
    if (waiting.empty()) return true;
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
      throw Error(ErrorCode::kInternal, std::string("poll: ") + std::strerror(errno));
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) hosts[i]->receive();
    }
  }
}

void Server::run() {
  constexpr std::uint64_t kLookForGone = 8192;  // cycles
  while (wait_for_hosts()) {
    for (const auto& host : hosts_) {
      if (host->waits()) host->begin();
    }
    const auto begin = std::chrono::steady_clock::now();
    for (bool answered = false; !answered;) {
      for (const auto& host : hosts_) {
        if (host->waits()) host->advance();
        answered = answered || host->running();
      }
      if (answered || meet()) break;
      if (cluster_.cycle() % kLookForGone == 0) {
        bool any = false;
        for (const auto& host : hosts_) {
          if (host->waits()) host->look_whether_gone();
          any = any || !host->gone();
        }
        if (!any) return;
      }
      std::uint64_t most = kLookForGone - cluster_.cycle() % kLookForGone;
      for (const auto& host : hosts_) {
        if (host->due() > cluster_.cycle()) most = std::min(most, host->due() - cluster_.cycle());
      }
      cluster_.advance(most);
    }
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
}

}  // namespace unisono::sim
