// What the network over libfabric costs beyond libfabric itself: two processes, each with a bare endpoint and with a
// network of Unisono, over one provider. Rounds of both alternate; medians and the median of their ratios are printed.
//
//   bench_ofi [provider [rounds]]
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "network/ofi/fabric/fabric_endpoint.hpp"
#include "network/ofi/fabric/provider.hpp"
#include "network/ofi/make.hpp"

namespace {

using unisono::Header;
using unisono::Incoming;
using unisono::Lane;
using unisono::Network;
using unisono::NetworkMembers;
using unisono::ofi::Info;
using unisono::ofi::Library;
using unisono::ofi::OfiSettings;
using unisono::ofi::Opened;
using Clock = std::chrono::steady_clock;

void check(long result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + Library::instance().text_of(result));
}

/// The other process.
struct Pipes {
  int in = -1;
  int out = -1;
  void tell(const void* bytes, std::size_t count) const {
    if (write(out, bytes, count) != static_cast<ssize_t>(count)) throw std::runtime_error("the other process is gone");
  }
  void hear(void* bytes, std::size_t count) const {
    for (std::size_t had = 0; had < count;) {
      const ssize_t got = read(in, static_cast<char*>(bytes) + had, count - had);
      if (got <= 0) throw std::runtime_error("the other process is gone");
      had += static_cast<std::size_t>(got);
    }
  }
};

/// libfabric alone.
class Bare {
 public:
  static constexpr std::size_t kLargest = std::size_t{1} << 20U;
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kMostWrites = 8;

  Bare(const OfiSettings& settings, const Pipes& pipes) : info_(unisono::ofi::choose(settings)) {
    fid_fabric* fabric = nullptr;
    check(Library::instance().open_fabric(info_->fabric_attr, &fabric, nullptr), "fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    check(fi_domain(fabric, info_.get(), &domain, nullptr), "domain");
    domain_.reset(domain);
    fi_av_attr table{};
    table.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    check(fi_av_open(domain, &table, &addresses, nullptr), "addresses");
    addresses_.reset(addresses);
    fi_cq_attr kind{};
    kind.format = FI_CQ_FORMAT_MSG;
    kind.size = 1024;
    fid_cq* queue = nullptr;
    check(fi_cq_open(domain, &kind, &queue, nullptr), "queue");
    queue_.reset(queue);
    fid_ep* endpoint = nullptr;
    check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "endpoint");
    endpoint_.reset(endpoint);
    check(fi_ep_bind(endpoint, &addresses->fid, 0), "bind");
    check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "bind");
    check(fi_enable(endpoint), "enable");
    std::array<char, 256> name{};
    std::size_t bytes = name.size();
    check(fi_getname(&endpoint->fid, name.data(), &bytes), "name");
    pipes.tell(name.data(), name.size());
    pipes.hear(name.data(), name.size());
    if (fi_av_insert(addresses, name.data(), 1, &peer_, 0, nullptr) != 1) throw std::runtime_error("address");
    if ((static_cast<std::uint64_t>(info_->domain_attr->mr_mode) & FI_MR_LOCAL) != 0) {
      fid_mr* memory = nullptr;
      check(fi_mr_reg(domain, in_.data(), in_.size(), FI_RECV, 0, 1, 0, &memory, nullptr), "memory");
      memory_[0].reset(memory);
      check(fi_mr_reg(domain, out_.data(), out_.size(), FI_SEND, 0, 2, 0, &memory, nullptr), "memory");
      memory_[1].reset(memory);
    }
    fid_mr* memory = nullptr;
    check(fi_mr_reg(domain, in_.data(), in_.size(), FI_REMOTE_WRITE, 0, 3, 0, &memory, nullptr), "memory");
    memory_[2].reset(memory);
    if ((static_cast<std::uint64_t>(info_->domain_attr->mr_mode) & FI_MR_ENDPOINT) != 0) {
      check(fi_mr_bind(memory, &endpoint->fid, 0), "bind");
      check(fi_mr_enable(memory), "enable");
    }
    const bool by_address = (static_cast<std::uint64_t>(info_->domain_attr->mr_mode) & FI_MR_VIRT_ADDR) != 0;
    const std::uint64_t address = by_address ? reinterpret_cast<std::uintptr_t>(in_.data()) : 0;
    reach_ = {address, fi_mr_key(memory)};
    pipes.tell(reach_.data(), sizeof reach_);
    pipes.hear(reach_.data(), sizeof reach_);
  }

  /// All receives take the largest message, so that they serve every round.
  void begin() {
    for (std::size_t i = 0; i < kMost; ++i) receive(i);
    for (std::size_t i = 0; i < kMost; ++i) free_.push_back(i);
  }
  void send(std::size_t bytes) {
    while (free_.empty()) poll();
    const std::size_t i = free_.back();
    free_.pop_back();
    long result = 0;
    while ((result = fi_send(endpoint_.get(), out_.data() + i * kLargest, bytes, descriptor(1), peer_, &sends_[i])) ==
           -FI_EAGAIN) {
      poll();
    }
    check(result, "send");
  }
  /// Writes to the other end, one place after the other; nobody hears of it.
  void write(std::size_t bytes) {
    while (kMost - free_.size() >= kMostWrites) poll();
    const std::size_t i = free_.back();
    free_.pop_back();
    at_ = (at_ + bytes) % (in_.size() - bytes);
    long result = 0;
    while ((result = fi_write(endpoint_.get(), out_.data() + at_, bytes, descriptor(1), peer_, reach_[0] + at_,
                              reach_[1], &sends_[i])) == -FI_EAGAIN) {
      poll();
    }
    check(result, "write");
  }
  /// Says that all is written, by a message behind it.
  void end_writes() { send(8); }
  void await_writes(std::uint64_t /*messages*/) { await(1); }

  void await(std::uint64_t messages) {
    while (came_ < messages) poll();
    came_ -= messages;
  }
  void flush() {
    while (free_.size() != kMost) poll();
  }

 private:
  void* descriptor(std::size_t which) const {
    return memory_[which] == nullptr ? nullptr : fi_mr_desc(memory_[which].get());
  }
  void receive(std::size_t i) {
    long result = 0;
    while ((result = fi_recv(endpoint_.get(), in_.data() + i * kLargest, kLargest, descriptor(0), FI_ADDR_UNSPEC,
                             &receives_[i])) == -FI_EAGAIN) {
    }
    check(result, "receive");
  }
  void poll() {
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) {
      std::this_thread::yield();
      return;
    }
    check(count, "queue");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      auto* const context = static_cast<fi_context2*>(entries[i].op_context);
      if ((entries[i].flags & FI_RECV) != 0) {
        ++came_;
        receive(static_cast<std::size_t>(context - receives_.data()));
      } else {
        free_.push_back(static_cast<std::size_t>(context - sends_.data()));
      }
    }
  }

  std::uint64_t came_ = 0;
  std::vector<std::size_t> free_;
  std::array<fi_context2, kMost> sends_{};
  std::array<fi_context2, kMost> receives_{};
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  Info info_;
  std::vector<char> in_ = std::vector<char>(kLargest * kMost);
  std::vector<char> out_ = std::vector<char>(kLargest * kMost);
  Opened<fid_fabric> fabric_;
  Opened<fid_domain> domain_;
  Opened<fid_av> addresses_;
  Opened<fid_cq> queue_;
  std::array<Opened<fid_mr>, 3> memory_;
  std::array<std::uint64_t, 2> reach_{};  ///< of the other end's memory: address and key
  std::size_t at_ = 0;
  Opened<fid_ep> endpoint_;
};

/// The network of Unisono: messages longer than its own are sent in pieces, and copied out as a receiver would.
class Ours {
 public:
  Ours(const OfiSettings& settings, const Pipes& pipes, std::uint32_t self)
      : network_(unisono::ofi::make_network(settings)),
        self_(self),
        out_(Bare::kLargest * Bare::kMost),
        in_(Bare::kLargest * Bare::kMost) {
    std::array<std::byte, Network::kMostCardBytes + 1> theirs{};
    const auto card = network_->card();
    std::copy(card.begin(), card.end(), theirs.begin() + 1);
    theirs[0] = static_cast<std::byte>(card.size());
    pipes.tell(theirs.data(), theirs.size());
    pipes.hear(theirs.data(), theirs.size());
    const std::vector<std::byte> other(theirs.begin() + 1, theirs.begin() + 1 + static_cast<int>(theirs[0]));
    NetworkMembers members;
    members.self = self;
    members.cards = self == 0 ? std::vector{card, other} : std::vector{other, card};
    members.hosts = {"zero", "one"};
    network_->meet(members);
  }

  void send(std::size_t bytes) {
    const std::size_t most = network_->max_payload(Lane::kData);
    for (std::size_t at = 0; at == 0 || at < bytes; at += most) {
      const std::size_t part = std::min(most, bytes - at);
      Header header{};
      header.type = unisono::MessageType::kEager;
      header.dtype = unisono::Datatype::kByte;
      header.segment_bytes = static_cast<std::uint32_t>(part);
      header.message_bytes = bytes;
      header.offset = at;
      header.first = at == 0;
      header.last = at + part == bytes;
      while (!network_->send(1 - self_, Lane::kData, header, std::span(out_).subspan(at, part))) poll();
    }
  }
  /// Shows its memory to the other end, once the two know each other.
  void show(const Pipes& pipes) {
    while (!network_->takes_writes(1 - self_)) poll();
    reach_ = network_->show(1 - self_, in_).value();
    pipes.tell(&reach_, sizeof reach_);
    pipes.hear(&reach_, sizeof reach_);
  }
  /// As the engine does: each write with the word that it is done.
  void write(std::size_t bytes) {
    at_ = (at_ + bytes) % (in_.size() - bytes);
    for (unisono::Ticket& ticket : tickets_) {
      if (!network_->done(1 - self_, ticket)) continue;
      Header header{};
      header.type = unisono::MessageType::kDone;
      header.message_bytes = bytes;
      header.offset = bytes;
      header.first = header.last = true;
      while (!network_->write(1 - self_, reach_, at_, header, std::span(out_).subspan(at_, bytes), ticket)) poll();
      return;
    }
    poll();
    write(bytes);
  }
  void end_writes() {}
  void await_writes(std::uint64_t messages) { await(messages); }

  void await(std::uint64_t messages) {
    while (came_ < messages) {
      poll();
      take();
    }
    came_ -= messages;
  }
  void flush() {
    while (network_->has_output()) poll();
  }

 private:
  void poll() {
    if (!network_->poll()) std::this_thread::yield();
  }
  void take() {
    Incoming incoming;
    while (network_->peek(1 - self_, Lane::kData, incoming)) {
      if (incoming.header.type != unisono::MessageType::kDone) {
        std::memcpy(in_.data() + incoming.header.offset, incoming.payload.data(), incoming.payload.size());
      }
      if (incoming.header.last) ++came_;
      network_->release(1 - self_, Lane::kData);
    }
  }
  std::unique_ptr<Network> network_;
  std::uint32_t self_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::uint64_t came_ = 0;
  unisono::Reach reach_;  ///< of the other end's memory
  std::array<unisono::Ticket, Bare::kMostWrites> tickets_{};
  std::size_t at_ = 0;
};

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Messages there and back, one after the other: seconds one way.
template <class System>
double ping_pong(System& system, bool first, std::size_t bytes, int turns) {
  const auto begin = Clock::now();
  for (int i = 0; i < turns; ++i) {
    if (first) system.send(bytes);
    system.await(1);
    if (!first) system.send(bytes);
  }
  const double seconds = since(begin) / (2 * turns);
  system.flush();
  return seconds;
}

/// Messages one way, and an answer to the last one: seconds each.
template <class System>
double stream(System& system, bool first, std::size_t bytes, int messages) {
  const auto begin = Clock::now();
  if (first) {
    for (int i = 0; i < messages; ++i) system.send(bytes);
    system.await(1);
  } else {
    system.await(static_cast<std::uint64_t>(messages));
    system.send(8);
  }
  const double seconds = since(begin) / messages;
  system.flush();
  return seconds;
}

/// Writes one way, and an answer when all is there: seconds each.
template <class System>
double write_stream(System& system, bool first, std::size_t bytes, int messages) {
  const auto begin = Clock::now();
  if (first) {
    for (int i = 0; i < messages; ++i) system.write(bytes);
    system.end_writes();
    system.await(1);
  } else {
    system.await_writes(static_cast<std::uint64_t>(messages));
    system.send(8);
  }
  const double seconds = since(begin) / messages;
  system.flush();
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class Measure>
void compare(const char* name, bool first, int rounds, std::size_t bytes, bool bandwidth, Measure&& measure) {
  std::array<std::vector<double>, 3> seen;
  for (int round = 0; round < rounds; ++round) {
    const double bare = measure(false);
    const double ours = measure(true);
    if (round == 0) continue;  // connections are made in it
    seen[0].push_back(bare);
    seen[1].push_back(ours);
    seen[2].push_back(bandwidth ? bare / ours : ours / bare);
  }
  if (!first) return;
  const auto text = [&](double seconds) {
    return bandwidth ? 8e-9 * static_cast<double>(bytes) / seconds : 1e6 * seconds;
  };
  std::printf("%-10s %8zu B  bare %8.2f  ours %8.2f %s  ratio %.2f (%.2f to %.2f)\n", name, bytes,
              text(median(seen[0])), text(median(seen[1])), bandwidth ? "Gb/s" : "us", median(seen[2]),
              *std::min_element(seen[2].begin(), seen[2].end()), *std::max_element(seen[2].begin(), seen[2].end()));
  std::fflush(stdout);
}

void run(bool first, const Pipes& pipes, const OfiSettings& settings, int rounds) {
  Bare bare(settings, pipes);
  bare.begin();
  Ours ours(settings, pipes, first ? 0 : 1);
  // Writes first: they are what bulk data take.
  ping_pong(ours, first, 8, 1);
  ours.show(pipes);
  for (const std::size_t bytes : {65'536UL, 1'048'576UL, 4'194'304UL}) {
    const int messages = static_cast<int>((128UL << 20U) / bytes);
    compare("writes", first, rounds, bytes, true, [&](bool of_ours) {
      return of_ours ? write_stream(ours, first, bytes, messages) : write_stream(bare, first, bytes, messages);
    });
  }
  for (const std::size_t bytes : {8UL, 4096UL}) {
    compare("ping-pong", first, rounds, bytes, false, [&](bool of_ours) {
      return of_ours ? ping_pong(ours, first, bytes, 400) : ping_pong(bare, first, bytes, 400);
    });
  }
  for (const std::size_t bytes : {65'536UL, 1'048'576UL}) {
    const int messages = static_cast<int>((64UL << 20U) / bytes);
    compare("stream", first, rounds, bytes, true, [&](bool of_ours) {
      return of_ours ? stream(ours, first, bytes, messages) : stream(bare, first, bytes, messages);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const OfiSettings settings{argc > 1 ? argv[1] : "tcp;ofi_rxm", "127.0.0.1"};
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  if (pipe(there.data()) != 0 || pipe(back.data()) != 0) return 1;
  const pid_t child = fork();
  try {
    run(child != 0, child == 0 ? Pipes{there[0], back[1]} : Pipes{back[0], there[1]}, settings, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_ofi: %s\n", error.what());
    _exit(1);
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
