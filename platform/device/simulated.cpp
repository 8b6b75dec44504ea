#include "platform/device/simulated.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/device/kernel_start.hpp"

namespace unisono {

using namespace device;  // NOLINT(google-build-using-namespace): the protocol that this file speaks
using std::chrono::milliseconds;

namespace {

/// How long a wait keeps its caller from looking at other things.
constexpr milliseconds kLook{50};
/// Bytes of a stream that are moved at once, and how many nanoseconds of its own time the device has for it.
constexpr std::size_t kStreamPiece = std::size_t{1} << 16U;
constexpr std::uint64_t kStreamPatience = 10'000;

std::string in_seconds(milliseconds time) {
  std::string text = std::to_string(time.count() % 1000 + 1000);  // thousandths, behind a 1
  text.replace(0, 1, formatted("{}.", time.count() / 1000));
  while (text.back() == '0' && text[text.size() - 2] != '.') text.pop_back();
  return text + " s";
}

}  // namespace

SimulatedDevice::SimulatedDevice(int descriptor, milliseconds patience) : descriptor_(descriptor), patience_(patience) {
  // Programs that this one starts are not hosts of the node: it would wait for them.
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  try {
    ask(RequestKind::kHello, 0, 0, {}, std::as_writable_bytes(std::span(&greeting_, 1)));
    if (greeting_.version != kProtocolVersion) {
      lose(formatted(
          "it speaks version {} of the protocol, this library version {}: use a cluster and a library of one release",
          greeting_.version, kProtocolVersion));
    }
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SimulatedDevice::~SimulatedDevice() { close(descriptor_); }

void SimulatedDevice::lose(const std::string& what) {
  if (lost_because_.empty()) {
    lost_because_ = "the simulated cluster cannot be used any more: " + what;
    shutdown(descriptor_, SHUT_RDWR);
  }
  throw Error(ErrorCode::kDeviceLost, lost_because_);
}

bool SimulatedDevice::readable(milliseconds at_most) {
  pollfd one{descriptor_, POLLIN, 0};
  const auto longest = std::clamp<std::int64_t>(at_most.count(), 0, 60'000);
  return poll(&one, 1, static_cast<int>(longest)) > 0;
}

void SimulatedDevice::send(std::span<const std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      lose("it has ended (" + std::string(std::strerror(errno)) + "); see its own message");
    }
    if (Clock::now() >= end) lose("it has read nothing for " + in_seconds(patience_));
    pollfd one{descriptor_, POLLOUT, 0};
    poll(&one, 1, static_cast<int>(kLook.count()));
  }
}

void SimulatedDevice::receive(std::span<std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t done = recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      continue;
    }
    if (done == 0) lose("it has ended; see its own message");
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      lose("reading from it failed (" + std::string(std::strerror(errno)) + ")");
    }
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      lose("it has not answered for " + in_seconds(patience_) +
           ". Simulated time stands still while a rank computes; if one takes longer than this, set "
           "UNISONO_DEVICE_TIMEOUT_S");
    }
    if (!readable(std::min(left, kLook)) && meanwhile_) meanwhile_();
  }
}

void SimulatedDevice::begin(RequestKind kind, std::uint64_t argument, std::uint64_t length,
                            std::span<const std::byte> payload) {
  if (!lost_because_.empty()) throw Error(ErrorCode::kDeviceLost, lost_because_);
  if (waiting_) finish(0, {});
  Request request;
  request.kind = kind;
  request.argument = argument;
  request.length = length;
  asked_ = Clock::now();
  send(std::as_bytes(std::span(&request, 1)), asked_ + patience_);
  send(payload, asked_ + patience_);
}

Reply SimulatedDevice::head(Clock::time_point end) {
  Reply reply;
  receive(std::as_writable_bytes(std::span(&reply, 1)), end);
  if (reply.magic != kProtocolMagic) lose("what it sent is no reply of the protocol");
  time_ = reply.nanoseconds;
  if (std::exchange(waiting_, false)) {
    breaks_ = breaks_ || (reply.value & kHasBroken) != 0;
    kernels_end_ = kernels_end_ || (reply.value & kHasKernelEnd) != 0;
  }
  return reply;
}

Reply SimulatedDevice::finish(std::uint64_t expected, std::span<std::byte> answer) {
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  const bool refused = reply.code != 0;
  if (reply.length != (refused ? 0 : expected)) {
    lose(formatted("it answered with {} bytes where {} were due", reply.length, refused ? 0 : expected));
  }
  if (reply.code == static_cast<std::uint32_t>(ErrorCode::kInvalidArgument)) {
    throw Error(ErrorCode::kInvalidArgument, "the device answered an access with an error");
  }
  if (refused) {
    lose(formatted("it answered with code {} ({})", reply.code,
                   name_of(static_cast<ErrorCode>(std::min(reply.code, 0xffffU)))));
  }
  receive(answer, end);
  return reply;
}

Reply SimulatedDevice::ask(RequestKind kind, std::uint64_t argument, std::uint64_t length,
                           std::span<const std::byte> payload, std::span<std::byte> answer) {
  begin(kind, argument, length, payload);
  return finish(answer.size(), answer);
}

std::vector<std::vector<std::byte>> SimulatedDevice::meet(std::span<const std::byte> own) {
  if ((greeting_.features & kHostsMeet) == 0) return {};
  begin(RequestKind::kMeet, 0, own.size(), own);
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  if (reply.code != 0 || reply.length > kMostPayload) lose("it does not let its hosts meet");
  std::vector<std::byte> bytes(reply.length);
  receive(bytes, end);
  std::vector<std::vector<std::byte>> all;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint32_t length = 0;
    if (bytes.size() - at < sizeof length) lose("what its hosts have told is cut off");
    std::memcpy(&length, &bytes[at], sizeof length);
    at += sizeof length;
    if (bytes.size() - at < length) lose("what its hosts have told is cut off");
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    all.emplace_back(first, first + length);
    at += length;
  }
  return all;
}

std::vector<Device::Broken> SimulatedDevice::broken() {
  if (!breaks_) return {};
  begin(RequestKind::kBroken, 0, 0, {});
  breaks_ = false;
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  if (reply.code != 0 || reply.length > kMostPayload || reply.length % sizeof(BrokenSession) != 0) {
    lose("what it tells of broken sessions is not what the protocol has");
  }
  std::vector<BrokenSession> told(reply.length / sizeof(BrokenSession));
  receive(std::as_writable_bytes(std::span(told)), end);
  std::vector<Broken> all;
  all.reserve(told.size());
  for (const BrokenSession& one : told) {
    all.push_back({one.source, one.destination, one.control != 0, one.missing, one.until, one.nothing_came != 0});
  }
  return all;
}

std::vector<std::byte> SimulatedDevice::told(const char* what) {
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  if (reply.code != 0 || reply.length > kMostPayload) lose(std::string("it does not tell ") + what);
  std::vector<std::byte> bytes(reply.length);
  receive(bytes, end);
  return bytes;
}

Device::Tree SimulatedDevice::join_tree(const TreeQuestion& question) {
  if ((greeting_.features & kHasSwitches) == 0) return {};
  const device::TreeQuestion head{question.communicator, question.epoch,
                                  question.eager_limit,  question.segment_bytes,
                                  question.rx_buffers,   static_cast<std::uint32_t>(question.nodes.size())};
  std::vector<std::byte> payload(sizeof head + question.nodes.size_bytes());
  std::memcpy(payload.data(), &head, sizeof head);
  const auto nodes = std::as_bytes(question.nodes);
  std::copy(nodes.begin(), nodes.end(), payload.begin() + sizeof head);
  begin(RequestKind::kJoinTree, 0, payload.size(), payload);
  const std::vector<std::byte> bytes = told("which switches serve a communicator");
  TreeAnswer answer;
  if (bytes.size() < sizeof answer) lose("what it tells of switches is cut off");
  std::memcpy(&answer, bytes.data(), sizeof answer);
  if (bytes.size() != sizeof answer + answer.text + 4 * std::size_t{answer.addresses}) {
    lose("what it tells of switches is not what the protocol has");
  }
  Tree tree;
  std::string text(reinterpret_cast<const char*>(bytes.data()) + sizeof answer, answer.text);
  tree.switches.resize(answer.addresses);
  if (answer.addresses != 0)
    std::memcpy(tree.switches.data(), bytes.data() + sizeof answer + answer.text, 4 * std::size_t{answer.addresses});
  (answer.addresses == 0 ? tree.reason : tree.text) = std::move(text);
  return tree;
}

void SimulatedDevice::leave_tree(std::uint32_t communicator, std::uint16_t epoch) {
  ask(RequestKind::kLeaveTree, communicator | std::uint64_t{epoch} << 32U, 0, {}, {});
}

std::string SimulatedDevice::tree_waits(std::uint32_t communicator, std::uint16_t epoch) {
  begin(RequestKind::kTreeWaits, communicator | std::uint64_t{epoch} << 32U, 0, {});
  const std::vector<std::byte> bytes = told("what switches wait for");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void SimulatedDevice::start_kernel(std::uint32_t number, std::span<const std::byte> start) {
  ask(RequestKind::kKernel, number, start.size(), start, {});
}

std::vector<Device::EndedKernel> SimulatedDevice::ended_kernels() {
  if (!kernels_end_) return {};
  begin(RequestKind::kKernelEnds, 0, 0, {});
  kernels_end_ = false;
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  if (reply.code != 0 || reply.length > kMostPayload) lose("it does not tell which kernels have ended");
  std::vector<std::byte> bytes(reply.length);
  receive(bytes, end);
  std::vector<EndedKernel> all;
  for (std::size_t at = 0; at < bytes.size();) {
    KernelEnd one;
    if (bytes.size() - at < sizeof one) lose("what it tells of ended kernels is cut off");
    std::memcpy(&one, &bytes[at], sizeof one);
    at += sizeof one;
    if (bytes.size() - at < one.length) lose("what it tells of ended kernels is cut off");
    all.push_back({static_cast<std::uint32_t>(one.number), static_cast<ErrorCode>(one.code),
                   std::string(reinterpret_cast<const char*>(bytes.data() + at), one.length)});
    at += one.length;
  }
  return all;
}

std::uint32_t SimulatedDevice::read(std::uint32_t offset) {
  return static_cast<std::uint32_t>(ask(RequestKind::kRead, offset, 0, {}, {}).value);
}

void SimulatedDevice::write(std::uint32_t offset, std::uint32_t value) { write(offset, {&value, 1}); }

void SimulatedDevice::write(std::uint32_t offset, std::span<const std::uint32_t> values) {
  const auto bytes = std::as_bytes(values);
  ask(RequestKind::kWrite, offset, bytes.size(), bytes, {});
}

void SimulatedDevice::store(std::uint64_t address, std::span<const std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.subspan(done, std::min<std::size_t>(bytes.size() - done, kMostPayload));
    ask(RequestKind::kStore, address + done, part.size(), part, {});
    done += part.size();
  }
}

void SimulatedDevice::load(std::uint64_t address, std::span<std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.subspan(done, std::min<std::size_t>(bytes.size() - done, kMostPayload));
    ask(RequestKind::kLoad, address + done, part.size(), {}, part);
    done += part.size();
  }
}

std::size_t SimulatedDevice::give(std::uint32_t port, std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), kStreamPiece));
  const Reply reply = ask(RequestKind::kGive, port | kStreamPatience << 8U, bytes.size(), bytes, {});
  if (reply.value > bytes.size()) lose("it has taken more than it was given");
  return reply.value;
}

std::size_t SimulatedDevice::take(std::uint32_t port, std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), kStreamPiece));
  begin(RequestKind::kTake, port | kStreamPatience << 8U, bytes.size(), {});
  const auto end = asked_ + patience_;
  const Reply reply = head(end);
  if (reply.code != 0 || reply.length > bytes.size()) lose("what it gives of a stream is not what the protocol has");
  receive(bytes.first(reply.length), end);
  return reply.length;
}

bool SimulatedDevice::wait(std::chrono::microseconds at_most) {
  if (!waiting_) {
    const auto longest = static_cast<std::uint64_t>(std::max<std::int64_t>(at_most.count(), 0)) * 1000;
    begin(RequestKind::kWait, longest, 0, {});
    waiting_ = true;
  }
  if (!readable(kLook) && Clock::now() < asked_ + patience_) return false;
  finish(0, {});
  return true;
}

}  // namespace unisono
