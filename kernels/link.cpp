#include "kernels/link.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/text.hpp"
#include "kernels/group.hpp"
#include "kernels/rank.hpp"

namespace unisono::kernels {

namespace {

constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

}  // namespace

const char* kind_name(std::uint32_t kind) {
  static constexpr const char* kNames[] = {"nothing", "send",   "receive",   "bcast",     "reduce",
                                           "scatter", "gather", "allreduce", "allgather", "alltoall"};
  return kind < std::size(kNames) ? kNames[kind] : "something unknown";
}

std::uint8_t common_kind(std::uint8_t kind) {
  return kind == UNISONO_SMI_RECEIVE ? std::uint8_t{UNISONO_SMI_SEND} : kind;
}

namespace {

ChunkHeader header_of(const Flight& flight) {
  ChunkHeader header{};
  std::memcpy(&header, flight.memory(), sizeof header);
  return header;
}

unsigned char* elements_of(const Flight& flight) {
  return reinterpret_cast<unsigned char*>(flight.memory() + sizeof(ChunkHeader));
}

}  // namespace

void Link::fail(ErrorCode code, const std::string& sentence) {
  if (failed()) return;
  code_ = code;
  failure_ = sentence;
  wake();
  if (leader_ != nullptr) leader_->fail(code, sentence);
}

void Link::check() const {
  if (failed()) throw Error(code_, failure_);
}

void Link::wake() {
  if (waiter_ == nullptr) return;
  Task* const task = waiter_;
  waiter_ = nullptr;
  group_.owner().wake(*task);
}

std::string Link::direction(bool sends) const {
  const std::uint32_t from = sends ? group_.rank() : peer_;
  const std::uint32_t to = sends ? peer_ : group_.rank();
  return formatted("port {} from rank {} to rank {}{}", port_, from, to, group_.suffix());
}

void Link::begin(const Use& use, const char* verb) {
  check();
  Task& me = group_.owner().here();
  if (active_) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{} {} channel of port {} with rank {}{} while {} still {} one of {} elements there; a port "
                          "{} for one channel at a time: give each a port of its own",
                          me.name, verb, port_, peer_, group_.suffix(), owner_ == nullptr ? "another" : owner_->name,
                          verb, use_.count, verb));
  }
  active_ = true;
  owner_ = &me;
  leader_ = nullptr;
  use_ = use;
  element_ = static_cast<std::uint32_t>(bytes_of(use.dtype));
  ++sequence_;
}

void Link::wait(Wait::Kind kind, std::uint64_t element) {
  Rank& rank = group_.owner();
  Task& me = rank.here();
  owner_ = &me;
  waiter_ = &me;
  Wait wait;
  wait.kind = kind;
  wait.communicator = group_.number();
  wait.port = port_;
  wait.peer = peer_;
  wait.element = element;
  wait.count = use_.count;
  try {
    rank.block(wait);
  } catch (...) {
    waiter_ = nullptr;
    throw;
  }
  waiter_ = nullptr;
  check();
}

void SendLink::open(const Use& use) {
  begin(use, "sends");
  if (group_.owner().node_ports() != nullptr) {
    begin_ = end.cursor = end.limit = nullptr;
    shipped_ = 0;
    open_timed(use);
    return;
  }
  capacity_ = kChunkBytes / element_;
  shipped_ = 0;
  popped_ = 0;
  exact_ = Rank::strict();
  const std::uint64_t buffers = capacity_ * kWindowChunks;
  if (exact_) {
    window_ = use.degree < 0 ? 0 : static_cast<std::uint64_t>(use.degree);
  } else {
    window_ = std::max<std::uint64_t>(buffers, use.degree < 0 ? 0 : 2 * static_cast<std::uint64_t>(use.degree));
    exact_ = false;
  }
  if (window_ >= use.count) window_ = kUnbounded;  // eager
  if (window_ != kUnbounded) listen();
  renew();
}

void SendLink::listen() {
  if (peer_ == group_.rank()) return;
  if (++awaited_ != 1) return;
  credit_ = group_.owner().flight(sizeof(Credit));
  credit_->receiver = this;
  group_.owner().receive(group_, peer_, group_.tag(port_, Group::Way::kCredit), credit_);
}

void SendLink::renew() {
  chunk_ = group_.owner().flight(kMessageBytes);
  begin_ = elements_of(*chunk_);
  end.cursor = begin_;
  limit();
}

/// The library is asked at the last element before something is to be done.
void SendLink::limit() {
  std::uint64_t room = std::min(capacity_, use_.count - shipped_);
  if (window_ != kUnbounded) {
    const std::uint64_t out = shipped_ - popped_;
    room = std::min(room, window_ > out ? window_ - out : 1);
  }
  end.limit = std::max(end.cursor, begin_ + (room == 0 ? 0 : (room - 1) * element_));
}

bool SendLink::room() const {
  if (window_ == kUnbounded) return true;
  const std::uint64_t out = pushed() - popped_;
  return exact_ ? out <= window_ : out < window_;
}

void SendLink::append(const void* elements, std::uint64_t count) {
  check();
  const auto* from = static_cast<const unsigned char*>(elements);
  if (count > use_.count - pushed()) {
    throw Error(ErrorCode::kInvalidCount, formatted("element {} is pushed to {}, whose channel was opened for {}",
                                                    use_.count + 1, direction(true), use_.count));
  }
  while (count != 0) {
    const std::uint64_t fill = static_cast<std::uint64_t>(end.cursor - begin_) / element_;
    const std::uint64_t now = std::min(count, capacity_ - fill);
    std::memcpy(end.cursor, from, now * element_);
    end.cursor += now * element_;
    from += now * element_;
    count -= now;
    if (fill + now == capacity_ || pushed() == use_.count) ship();
  }
  limit();
}

void SendLink::settle() {
  while (!room()) {
    ship();
    wait(Wait::Kind::kPush, pushed());
  }
  if (shipped_ == use_.count) {
    active_ = false;
    begin_ = end.cursor = end.limit = nullptr;
    if (chunk_ != nullptr) group_.owner().give_back(std::move(chunk_));
    chunk_ = nullptr;
    return;
  }
  limit();
}

void SendLink::ship() {
  if (!active_ || !dirty()) return;  // nor is it dirty where elements go to a node in hardware
  Rank& rank = group_.owner();
  const auto bytes = static_cast<std::uint64_t>(end.cursor - begin_);
  ChunkHeader header{};
  header.sequence = sequence_;
  header.dtype = static_cast<std::uint8_t>(use_.dtype);
  header.kind = common_kind(use_.kind);
  header.func = static_cast<std::uint8_t>(use_.func);
  header.count = use_.count;
  header.root = use_.root;
  header.credit_every = window_ == kUnbounded ? 0
                        : exact_              ? 1
                                              : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, window_ / 4));
  std::memcpy(chunk_->memory(), &header, sizeof header);
  chunk_->bytes = sizeof header + bytes;
  shipped_ += bytes / element_;
  std::shared_ptr<Flight> flight = std::move(chunk_);
  if (shipped_ == use_.count) {
    chunk_ = nullptr;
    begin_ = end.cursor = end.limit = nullptr;
  } else {
    renew();
  }
  if (peer_ == group_.rank()) {
    group_.receiver(port_, peer_).deliver(std::move(flight));
  } else {
    flight->receiver = this;
    rank.send(group_, peer_, group_.tag(port_, Group::Way::kData), flight);
  }
}

void SendLink::credited(const Credit& credit) {
  if (credit.sequence != sequence_) return;  // of a channel that has ended
  popped_ = std::max(popped_, credit.popped);
  wake();
}

void SendLink::landed(const std::shared_ptr<Flight>& flight) {
  if (flight->result.code != ErrorCode::kOk) {
    fail(flight->result.code, formatted("{}: {}", direction(true), flight->result.message));
    return;
  }
  if (flight->sends) {
    group_.owner().give_back(flight);
    return;
  }
  Credit credit{};
  std::memcpy(&credit, flight->memory(), sizeof credit);
  if (credit.last == 0 || --awaited_ != 0) {
    group_.owner().receive(group_, peer_, group_.tag(port_, Group::Way::kCredit), flight);
  } else {
    credit_ = nullptr;
  }
  credited(credit);
}

void ReceiveLink::open(const Use& use) {
  begin(use, "receives");
  before_ = told_ = 0;
  credit_every_ = 0;
  begin_ = end.cursor = end.limit = stop_ = nullptr;
  if (group_.owner().node_ports() != nullptr) {
    open_timed(use);
    return;
  }
  post();
}

// Never more than come for certain: what is still posted when a rank leaves, its peers would have to take for an error.
void ReceiveLink::post() {
  if (peer_ == group_.rank()) return;
  const std::uint64_t taken = static_cast<std::uint64_t>(stop_ - begin_) / element_;
  const std::uint64_t left = use_.count - before_ - taken;
  const std::uint64_t capacity = kChunkBytes / element_;
  const std::uint64_t certain = (left + capacity - 1) / capacity;
  while (posted_.size() < std::min<std::uint64_t>(kPostedChunks, certain)) {
    std::shared_ptr<Flight> flight = group_.owner().flight(kMessageBytes);
    flight->receiver = this;
    posted_.push_back(flight);
    group_.owner().receive(group_, peer_, group_.tag(port_, Group::Way::kData), flight);
  }
}

void ReceiveLink::deliver(std::shared_ptr<Flight> flight) {
  flight->complete = true;
  posted_.push_back(std::move(flight));
  if (posted_.size() == 1) wake();
}

void ReceiveLink::landed(const std::shared_ptr<Flight>& flight) {
  if (flight->result.code != ErrorCode::kOk) {
    fail(flight->result.code, formatted("{}: {}", direction(false), flight->result.message));
    return;
  }
  flight->bytes = flight->result.received_bytes;
  if (flight == posted_.front()) wake();
}

/// What of a chunk does not fit this end; empty if it fits.
std::string ReceiveLink::disagreement(const ChunkHeader& header) const {
  if (header.kind != common_kind(use_.kind)) {
    return formatted("rank {} sends for {}, rank {} receives for {}", peer_, kind_name(header.kind), group_.rank(),
                     kind_name(common_kind(use_.kind)));
  }
  if (header.dtype != static_cast<std::uint8_t>(use_.dtype)) {
    return formatted("rank {} sends {}, rank {} receives {}", peer_, name_of(static_cast<Datatype>(header.dtype)),
                     group_.rank(), name_of(use_.dtype));
  }
  if (header.count != use_.count) {
    return formatted("rank {} sends {} elements, rank {} receives {}", peer_, header.count, group_.rank(), use_.count);
  }
  if (header.root != use_.root && use_.kind != UNISONO_SMI_RECEIVE) {
    return formatted("rank {} has root {}, rank {} root {}", peer_, header.root, group_.rank(), use_.root);
  }
  if (header.func != static_cast<std::uint8_t>(use_.func)) {
    return formatted("rank {} reduces by {}, rank {} by {}", peer_, name_of(static_cast<Func>(header.func)),
                     group_.rank(), name_of(use_.func));
  }
  if (header.sequence != sequence_) {
    return formatted("it is channel {} of rank {} there, and {} of rank {}", header.sequence, peer_, sequence_,
                     group_.rank());
  }
  return {};
}

bool ReceiveLink::next() {
  check();
  if (posted_.empty() || !posted_.front()->complete) return false;
  chunk_ = std::move(posted_.front());
  posted_.pop_front();
  const ChunkHeader header = header_of(*chunk_);
  const std::uint64_t bytes = chunk_->bytes < sizeof header ? 0 : chunk_->bytes - sizeof header;
  std::string wrong = disagreement(header);
  if (wrong.empty() && (bytes == 0 || bytes % element_ != 0 || bytes / element_ > use_.count - before_)) {
    wrong = formatted("a chunk of {} bytes came at element {} of {}", bytes, before_ + 1, use_.count);
  }
  if (!wrong.empty()) {
    const std::string sentence = formatted("the ends of {} differ: {}", direction(false), wrong);
    fail(ErrorCode::kMismatchedCall, sentence);
    group_.tell_broken(port_, peer_, sentence);
    check();
  }
  credit_every_ = header.credit_every;
  begin_ = end.cursor = elements_of(*chunk_);
  stop_ = begin_ + bytes;
  // At the last element the library is asked, and at every one if the sender waits to hear of each.
  end.limit = credit_every_ == 1 ? end.cursor : stop_ - element_;
  post();
  return true;
}

std::uint64_t ReceiveLink::present() {
  if (end.cursor == stop_ && !next()) return 0;
  return static_cast<std::uint64_t>(stop_ - end.cursor) / element_;
}

std::uint64_t ReceiveLink::available() {
  for (;;) {
    if (const std::uint64_t here = present(); here != 0) return here;
    wait(Wait::Kind::kPop, popped() + 1);
  }
}

void ReceiveLink::consume(std::uint64_t count) {
  end.cursor += count * element_;
  if (credit_every_ == 1) end.limit = end.cursor;
  const bool ends = popped() == use_.count;
  if (end.cursor == stop_) release();
  if (credit_every_ != 0 && (popped() - told_ >= credit_every_ || ends)) tell(ends);
  if (ends) active_ = false;
}

/// The chunk is used up.
void ReceiveLink::release() {
  before_ += static_cast<std::uint64_t>(stop_ - begin_) / element_;
  begin_ = end.cursor = end.limit = stop_ = nullptr;
  group_.owner().give_back(std::move(chunk_));
  chunk_ = nullptr;
}

void ReceiveLink::tell(bool last) {
  told_ = popped();
  const Credit credit{sequence_, last ? 1U : 0U, told_};
  if (peer_ == group_.rank()) {
    group_.sender(port_, peer_).credited(credit);
    return;
  }
  std::shared_ptr<Flight> flight = group_.owner().flight(sizeof credit);
  std::memcpy(flight->memory(), &credit, sizeof credit);
  flight->bytes = sizeof credit;
  group_.owner().send(group_, peer_, group_.tag(port_, Group::Way::kCredit), flight);
}

}  // namespace unisono::kernels
