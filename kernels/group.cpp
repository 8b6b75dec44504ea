#include "kernels/group.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "kernels/channel.hpp"
#include "kernels/rank.hpp"
#include "kernels/stuck.hpp"

namespace unisono::kernels {

namespace {

std::uint64_t key_of(std::uint32_t port, std::uint32_t peer) { return std::uint64_t{port} << 32U | peer; }

constexpr std::size_t kControlBytes = 8192;

}  // namespace

/// A message beside elements.
struct Group::Control {
  enum class Kind : std::uint32_t {
    kBroken = 1,    ///< by a receiver: the ends of a channel differ
    kLeft = 2,      ///< by a sender: its kernel has ended before its channel
    kAskWaits = 3,  ///< what is waited for here; and there?
    kWaits = 4,
    kBye = 5  ///< nothing comes from there any more
  };
  Kind kind;
  std::uint32_t port = 0;
  std::uint32_t from = 0;
  std::uint32_t length = 0;
  char text[kControlBytes - 16] = {};

  Control(Kind of, std::uint32_t at, std::uint32_t sender, const std::string& sentence)
      : kind(of), port(at), from(sender), length(static_cast<std::uint32_t>(std::min(sentence.size(), sizeof text))) {
    std::memcpy(text, sentence.data(), length);
  }
};

Group::Group(Rank& owner, std::shared_ptr<driver::Communicator> communicator)
    : unisono_smi_comm{static_cast<int>(communicator->rank), static_cast<int>(communicator->size)},
      owner_(owner),
      communicator_(std::move(communicator)),
      left_(communicator_->size),
      waits_(communicator_->size) {}

Group::~Group() = default;

AnyCollective& Group::keep(std::unique_ptr<AnyCollective> collective) {
  collectives_.push_back(std::move(collective));
  return *collectives_.back();
}

void Group::drop(const AnyCollective& collective) {
  std::erase_if(collectives_, [&](const auto& kept) { return kept.get() == &collective; });
}

std::string Group::suffix() const { return number() == 0 ? "" : formatted(" of communicator {}", number()); }

std::uint32_t Group::tag(std::uint32_t port, Way way) {
  return kFirstChannelTag | port << 2U | static_cast<std::uint32_t>(way);
}

SendLink& Group::sender(std::uint32_t port, std::uint32_t peer) {
  std::unique_ptr<SendLink>& link = senders_[key_of(port, peer)];
  if (link == nullptr) {
    link = std::make_unique<SendLink>(*this, port, peer);
    list_.push_back(link.get());
  }
  return *link;
}

ReceiveLink& Group::receiver(std::uint32_t port, std::uint32_t peer) {
  std::unique_ptr<ReceiveLink>& link = receivers_[key_of(port, peer)];
  if (link == nullptr) link = std::make_unique<ReceiveLink>(*this, port, peer);
  return *link;
}

void Group::ship(const Task* me) {
  for (SendLink* const link : list_) {
    // What another thread of the program pushes, it may be pushing now.
    if (!link->active() || link->owner() == nullptr) continue;
    if (link->owner()->fibre == nullptr && link->owner() != me) continue;
    try {
      link->ship();
    } catch (const Error& error) {
      link->fail(error.code(), error.what());
    }
  }
}

std::string Group::leave(const Task& kernel) {
  std::string left;
  for (SendLink* const link : list_) {
    if (link->owner() != &kernel) continue;
    if (!link->active() || link->failed()) {
      link->abandon();
      continue;
    }
    try {
      link->ship();
    } catch (const Error&) {  // the communicator has ended
      link->abandon();
      continue;
    }
    const std::string sentence = formatted(
        "kernel {} of rank {} has ended after {} of {} elements that it sends from port {} to rank {}{}", kernel.name,
        owner_.number_in_world(), link->pushed(), link->use().count, link->port(), link->peer(), suffix());
    link->fail(ErrorCode::kMismatchedCall, sentence);
    tell(link->peer(), Control(Control::Kind::kLeft, link->port(), rank(), sentence));
    link->abandon();
    left = sentence;
  }
  for (const auto& [key, link] : receivers_) {
    if (link->owner() != &kernel) continue;
    if (!link->active() || link->failed()) {
      link->abandon();
      continue;
    }
    const std::string sentence = formatted(
        "kernel {} of rank {} has ended after {} of {} elements that it receives at port {} from rank {}{}",
        kernel.name, owner_.number_in_world(), link->popped(), link->use().count, link->port(), link->peer(), suffix());
    link->fail(ErrorCode::kMismatchedCall, sentence);
    tell(link->peer(), Control(Control::Kind::kBroken, link->port(), rank(), sentence));
    link->abandon();
    left = sentence;
  }
  return left;
}

void Group::listen() {
  if (listens_ || size() == 1) return;
  listens_ = true;
  std::shared_ptr<Flight> flight = owner_.flight(sizeof(Control));
  flight->receiver = this;
  owner_.receive(*this, Rank::kAnyRank, tag(0, Way::kControl), flight);
}

void Group::tell(std::uint32_t peer, const Control& control) {
  if (peer >= size()) return;
  if (peer == rank()) {
    const std::string sentence(control.text, control.length);
    if (control.kind == Control::Kind::kBroken) sender(control.port, peer).fail(ErrorCode::kMismatchedCall, sentence);
    if (control.kind == Control::Kind::kLeft) receiver(control.port, peer).fail(ErrorCode::kMismatchedCall, sentence);
    return;
  }
  std::shared_ptr<Flight> flight = owner_.flight(sizeof control);
  flight->bytes = sizeof control - sizeof control.text + control.length;
  std::memcpy(flight->memory(), &control, flight->bytes);
  try {
    owner_.send(*this, peer, tag(0, Way::kControl), flight);
  } catch (const Error&) {  // there is nobody to be told
  }
}

void Group::tell_broken(std::uint32_t port, std::uint32_t peer, const std::string& sentence) {
  tell(peer, Control(Control::Kind::kBroken, port, rank(), sentence));
}

void Group::tell_left(std::uint32_t port, std::uint32_t peer, const std::string& sentence) {
  tell(peer, Control(Control::Kind::kLeft, port, rank(), sentence));
}

void Group::tell_waits(const std::string& waits) {
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (peer != rank()) tell(peer, Control(Control::Kind::kAskWaits, 0, rank(), waits));
  }
}

bool Group::awaits() const {
  return std::any_of(list_.begin(), list_.end(), [](const SendLink* link) { return link->awaits(); });
}

bool Group::all_left() const {
  return !listens_ || static_cast<std::uint32_t>(std::count(left_.begin(), left_.end(), true)) + 1 >= size();
}

void Group::leave_all() {
  if (!listens_) return;
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (peer != rank() && !left_[peer]) tell(peer, Control(Control::Kind::kBye, 0, rank(), {}));
  }
}

void Group::landed(const std::shared_ptr<Flight>& flight) {
  if (flight->result.code != ErrorCode::kOk) {  // nobody is left, or the communicator has ended: links hear of it
    left_.assign(size(), true);
    return;
  }
  Control control(Control::Kind::kBroken, 0, 0, {});
  std::memcpy(&control, flight->memory(), std::min<std::size_t>(flight->result.received_bytes, sizeof control));
  if (control.from < size() && control.kind == Control::Kind::kBye) left_[control.from] = true;
  // Where nobody is left, a receive from anybody would be an error.
  if (!all_left()) {
    owner_.receive(*this, Rank::kAnyRank, tag(0, Way::kControl), flight);
  }
  if (control.from >= size() || control.length > sizeof control.text) return;
  const std::string sentence(control.text, control.length);
  switch (control.kind) {
    case Control::Kind::kBroken:
      sender(control.port, control.from).fail(ErrorCode::kMismatchedCall, sentence);
      break;
    case Control::Kind::kLeft:
      receiver(control.port, control.from).fail(ErrorCode::kMismatchedCall, sentence);
      break;
    case Control::Kind::kAskWaits:
      waits_[control.from] = sentence;
      tell(control.from, Control(Control::Kind::kWaits, 0, rank(), waits_of(owner_)));
      break;
    case Control::Kind::kWaits:
      waits_[control.from] = sentence;
      break;
    case Control::Kind::kBye:
      break;
  }
}

}  // namespace unisono::kernels
