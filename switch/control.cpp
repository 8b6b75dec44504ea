#include "switch/control.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/socket.hpp"
#include "switch/buffering.hpp"

namespace unisono::slots {

namespace {

using join::Blob;
using join::FrameKind;
using join::FrameReader;
using join::Packer;
using join::Unpacker;

Blob packed(const PoolNode& node) {
  Packer packer;
  packer.add(node.name).add(node.above).add_value(node.position);
  for (const PoolNode::Below& below : node.below) {
    packer.add(below.name).add_value(below.child.first).add_value(below.child.ranks);
  }
  return packer.take();
}

std::optional<PoolNode> node_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  PoolNode node;
  node.name = unpacker.take_text();
  node.above = unpacker.take_text();
  node.position = unpacker.take_value<std::uint32_t>();
  while (!unpacker.empty()) {
    PoolNode::Below below;
    below.name = unpacker.take_text();
    below.child.first = unpacker.take_value<std::uint32_t>();
    below.child.ranks = unpacker.take_value<std::uint32_t>();
    node.below.push_back(std::move(below));
  }
  const bool sound =
      unpacker.whole() && is_switch_name(node.name) && (node.above.empty() || is_switch_name(node.above));
  return sound ? std::optional(std::move(node)) : std::nullopt;
}

/// Whether the nodes are a tree with all ranks, once each, in order.
bool is_tree(const PoolRequest& request) {
  std::map<std::string, const PoolNode*> by_name;
  for (const PoolNode& node : request.nodes) {
    if (!by_name.emplace(node.name, &node).second) return false;
  }
  const PoolNode* top = nullptr;
  std::set<std::string> below_some;
  for (const PoolNode& node : request.nodes) {
    if (node.above.empty()) {
      if (top != nullptr) return false;
      top = &node;
    }
    std::uint64_t next = node.below.empty() ? 0 : node.below.front().child.first;
    if (node.below.empty()) return false;
    for (std::size_t i = 0; i < node.below.size(); ++i) {
      const PoolNode::Below& below = node.below[i];
      if (below.child.first != next || below.child.ranks == 0) return false;
      next += below.child.ranks;
      if (next > request.ranks) return false;
      if (below.name.empty()) {
        if (below.child.ranks != 1) return false;
        continue;
      }
      const auto found = by_name.find(below.name);
      if (found == by_name.end() || !below_some.insert(below.name).second) return false;
      const PoolNode& child = *found->second;
      if (child.above != node.name || child.position != i || child.below.empty()) return false;
      const Child& last = child.below.back().child;
      const std::uint64_t end = std::uint64_t{last.first} + last.ranks;
      if (child.below.front().child.first != below.child.first || end != next) return false;
    }
  }
  // All but the top hang below one, each with a part of its parent's ranks, so there are no circles.
  if (top == nullptr || below_some.size() + 1 != request.nodes.size() || below_some.contains(top->name)) return false;
  const Child& last = top->below.back().child;
  return top->below.front().child.first == 0 && std::uint64_t{last.first} + last.ranks == request.ranks;
}

}  // namespace

bool is_switch_name(const std::string& name) {
  return !name.empty() && name.size() <= kMostSwitchName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
}

const PoolNode* PoolRequest::node(const std::string& name) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const PoolNode& node) { return node.name == name; });
  return found == nodes.end() ? nullptr : &*found;
}

Blob packed(const PoolRequest& request) {
  Packer packer;
  packer.add(std::span<const std::byte>(request.id))
      .add(std::span<const std::byte>(request.job))
      .add(request.job_name)
      .add_value(request.communicator)
      .add_value(request.epoch)
      .add_value(request.ranks)
      .add_value(request.slots)
      .add_value(request.payload_bytes)
      .add_value(static_cast<std::uint8_t>(request.keeps_order));
  for (const PoolNode& node : request.nodes) packer.add(packed(node));
  return packer.take();
}

std::optional<PoolRequest> pool_request_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  PoolRequest request;
  request.id = unpacker.take_value<PoolId>();
  request.job = unpacker.take_value<PoolId>();
  request.job_name = unpacker.take_text();
  request.communicator = unpacker.take_value<std::uint32_t>();
  request.epoch = unpacker.take_value<std::uint16_t>();
  request.ranks = unpacker.take_value<std::uint32_t>();
  request.slots = unpacker.take_value<std::uint32_t>();
  request.payload_bytes = unpacker.take_value<std::uint16_t>();
  const auto keeps = unpacker.take_value<std::uint8_t>();
  request.keeps_order = keeps != 0;
  while (!unpacker.empty()) {
    std::optional<PoolNode> node = node_in(unpacker.take());
    if (!node) return std::nullopt;
    request.nodes.push_back(*std::move(node));
  }
  const bool sound = unpacker.whole() && keeps <= 1 && std::has_single_bit(request.slots) &&
                     request.slots <= kMaxSlots && request.payload_bytes != 0 && request.payload_bytes % 16 == 0 &&
                     request.ranks != 0 && request.job_name.size() <= 256;
  if (!sound || !is_tree(request)) return std::nullopt;
  for (char& c : request.job_name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return request;
}

Blob packed(const PoolAnswer& answer) {
  return Packer()
      .add_value(static_cast<std::uint8_t>(answer.made))
      .add(answer.refusal)
      .add_value(answer.possible)
      .add_value(answer.port)
      .add_value(answer.generation)
      .add(answer.group)
      .take();
}

std::optional<PoolAnswer> pool_answer_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  PoolAnswer answer;
  answer.made = unpacker.take_value<std::uint8_t>() == 1;
  answer.refusal = unpacker.take_text();
  answer.possible = unpacker.take_value<std::uint32_t>();
  answer.port = unpacker.take_value<std::uint16_t>();
  answer.generation = unpacker.take_value<std::uint64_t>();
  answer.group = unpacker.take_text();
  return unpacker.whole() ? std::optional(std::move(answer)) : std::nullopt;
}

Blob packed(const Welcome& welcome) {
  Packer packer;
  packer.add_value(welcome.version)
      .add(welcome.name)
      .add_value(welcome.capability)
      .add_value(welcome.up_to_bytes)
      .add_value(welcome.slots)
      .add_value(welcome.room_bytes)
      .add_value(static_cast<std::uint8_t>(welcome.draining));
  for (const std::string& name : welcome.above) packer.add(name);
  return packer.take();
}

std::optional<Welcome> welcome_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  Welcome welcome;
  welcome.version = unpacker.take_value<std::uint32_t>();
  welcome.name = unpacker.take_text();
  welcome.capability = unpacker.take_value<std::uint64_t>();
  welcome.up_to_bytes = unpacker.take_value<std::uint64_t>();
  welcome.slots = unpacker.take_value<std::uint32_t>();
  welcome.room_bytes = unpacker.take_value<std::uint64_t>();
  welcome.draining = unpacker.take_value<std::uint8_t>() != 0;
  while (!unpacker.empty()) {
    welcome.above.push_back(unpacker.take_text());
    if (!is_switch_name(welcome.above.back())) return std::nullopt;
  }
  return unpacker.whole() && is_switch_name(welcome.name) ? std::optional(std::move(welcome)) : std::nullopt;
}

Blob packed(const ControlFrame& frame) {
  return Packer().add_value(static_cast<std::uint32_t>(frame.kind)).add_value(frame.number).add(frame.body).take();
}

std::optional<ControlFrame> control_frame_in(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  ControlFrame frame;
  const auto kind = unpacker.take_value<std::uint32_t>();
  frame.kind = static_cast<ControlKind>(kind);
  frame.number = unpacker.take_value<std::uint32_t>();
  const auto body = unpacker.take();
  frame.body.assign(body.begin(), body.end());
  const bool known = kind >= 1 && kind <= static_cast<std::uint32_t>(ControlKind::kOperator);
  return unpacker.whole() && known ? std::optional(std::move(frame)) : std::nullopt;
}

Digest proof_of_switch(std::span<const std::byte> secret, const join::Hello& hello, const Nonce& nonce) {
  return digest_of(secret, "unisono switch", {std::as_bytes(std::span(&hello, 1)), nonce});
}

Digest proof_of_caller(std::span<const std::byte> secret, const join::Hello& hello, const Nonce& nonce) {
  return digest_of(secret, "unisono switch's caller", {std::as_bytes(std::span(&hello, 1)), nonce});
}

Digest pool_secret(std::span<const std::byte> secret, const PoolId& id) {
  return digest_of(secret, "unisono switch pool", {id});
}

std::string secret_in_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kBootstrap, formatted("the switch's secret in {}: {}", path, why));
  };
  struct stat what {};
  if (stat(path.c_str(), &what) != 0) refuse(tcp::text_of_error(errno));
  if (!S_ISREG(what.st_mode)) refuse("it is no file");
  if ((what.st_mode & 077U) != 0) refuse(formatted("others than its owner may read it; chmod 600 {}", path));
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) refuse("there is no line in it, or it cannot be read");
  constexpr std::size_t kLeast = 16;
  if (line.size() < kLeast || line.size() > join::kMaxSecret) {
    refuse(formatted("its first line has {} characters; allowed are {} to {} (openssl rand -hex 32)", line.size(),
                     kLeast, join::kMaxSecret));
  }
  return line;
}

// ---- the caller's end ----

void ControlConnection::fail(const std::string& text) const {
  throw Error(ErrorCode::kBootstrap, formatted("the switch at {}: {}", where_, text));
}

ControlConnection::ControlConnection(const std::string& where, std::span<const std::byte> secret,
                                     join::Deadline deadline)
    : where_(where) {
  const std::optional<join::HostPort> place = join::parse_host_port(where);
  if (!place) fail("that is no HOST:PORT");
  join::NoConnection failure;
  connection_ = join::try_connect(*place, deadline, failure);
  if (!connection_.valid()) fail(failure.reason.empty() ? "nobody answers" : failure.reason);

  join::Hello hello{};
  hello.size = kControlVersion;
  hello.pid = static_cast<std::uint32_t>(getpid());
  fill_random(hello.nonce);
  if (!join::send_frame(connection_, FrameKind::kHello, std::as_bytes(std::span(&hello, 1)), deadline)) {
    fail("it has closed the connection");
  }
  const auto next = [&](FrameKind wanted) {
    reader_.restart();
    switch (reader_.read_until(connection_, deadline)) {
      case FrameReader::Progress::kMore:
        fail("it does not answer");
      case FrameReader::Progress::kClosed:
        fail("it has closed the connection");
      case FrameReader::Progress::kForeign:
        fail("that is no switch of Unisono: " + reader_.fault());
      case FrameReader::Progress::kComplete:
        break;
    }
    if (reader_.kind() == FrameKind::kRefused) fail(reader_.body_text());
    if (reader_.kind() != wanted) fail("that is no switch of Unisono");
  };
  next(FrameKind::kChallenge);
  join::Challenge challenge{};
  if (!reader_.body_as(FrameKind::kChallenge, challenge)) fail("that is no switch of Unisono");
  if (!equal(challenge.proof, proof_of_switch(secret, hello, challenge.nonce))) {
    fail("it has another secret than this caller, or is no switch of Unisono; give both the same secret file");
  }
  const Digest proof = proof_of_caller(secret, hello, challenge.nonce);
  if (!join::send_frame(connection_, FrameKind::kProof, proof, deadline)) fail("it has closed the connection");
  next(FrameKind::kAll);
  const std::optional<Welcome> welcome = welcome_in(reader_.body());
  if (!welcome) fail("it says something else than expected; use one version of Unisono");
  welcome_ = *welcome;
  reader_.restart();
}

Blob ControlConnection::ask(ControlKind kind, std::span<const std::byte> body, join::Deadline deadline) {
  if (!connection_.valid()) fail("the connection was closed, for the switch had not taken a question in time");
  ControlFrame frame{kind, ++number_, Blob(body.begin(), body.end())};
  if (!join::send_frame(connection_, FrameKind::kGive, packed(frame), deadline)) {
    // A part of it may have gone, and the switch would take what is said next for the rest.
    connection_.reset();
    fail(join::Clock::now() < deadline ? "it has closed the connection" : "it has not taken a question in time");
  }
  for (;;) {
    switch (reader_.read_until(connection_, deadline)) {
      case FrameReader::Progress::kMore:
        // What has come of the answer stays in the reader, and the next question begins with the rest.
        fail("it has not answered in time");
      case FrameReader::Progress::kClosed:
        fail("it has closed the connection");
      case FrameReader::Progress::kForeign:
        fail(reader_.fault());
      case FrameReader::Progress::kComplete:
        break;
    }
    if (reader_.kind() == FrameKind::kRefused) fail(reader_.body_text());
    const std::optional<ControlFrame> answer = control_frame_in(reader_.body());
    if (reader_.kind() != FrameKind::kAll || !answer) fail("it says something else than expected");
    reader_.restart();
    if (answer->number == frame.number) return answer->body;  // else to a question that was given up
  }
}

PoolAnswer ControlConnection::make(const PoolRequest& request, join::Deadline deadline) {
  const std::optional<PoolAnswer> answer = pool_answer_in(ask(ControlKind::kMake, packed(request), deadline));
  if (!answer) fail("it says something else than expected");
  return *answer;
}

void ControlConnection::free(const PoolId& id) noexcept {
  if (!connection_.valid()) return;
  try {
    const ControlFrame frame{ControlKind::kFree, ++number_, Blob(id.begin(), id.end())};
    const join::Deadline deadline = join::Clock::now() + std::chrono::milliseconds(100);
    if (!join::send_frame(connection_, FrameKind::kGive, packed(frame), deadline)) connection_.reset();
  } catch (const std::exception&) {
    // The switch frees what belongs to a connection when that ends.
  }
}

bool ControlConnection::ended() {
  if (!connection_.valid()) return true;
  for (;;) {
    // Late answers are of no use.
    switch (reader_.read(connection_)) {
      case FrameReader::Progress::kMore:
        return false;
      case FrameReader::Progress::kComplete:
        reader_.restart();
        break;
      default:
        return true;
    }
  }
}

}  // namespace unisono::slots
