// What the network over libfabric costs beyond libfabric itself: two processes, each with a bare endpoint and with a
// network of Unisono, over one provider. Rounds of both alternate; medians and the median of their ratios are printed.
//
//   bench_ofi [provider [rounds]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/bare_fabric.hpp"
#include "network/ofi/make.hpp"

namespace {

using unisono::Header;
using unisono::Incoming;
using unisono::Lane;
using unisono::Network;
using unisono::NetworkMembers;
using unisono::bench::BareFabric;
using unisono::ofi::OfiSettings;
using Clock = std::chrono::steady_clock;

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
  static constexpr std::size_t kMost = BareFabric::kMost;

  Bare(const OfiSettings& settings, const Pipes& pipes)
      : fabric_(settings, [&](BareFabric::Name& name) {
          pipes.tell(name.data(), name.size());
          pipes.hear(name.data(), name.size());
        }) {
    fabric_.know(in_);
    fabric_.know(out_);
    window_ = fabric_.show(in_);
    pipes.tell(&window_, sizeof window_);
    pipes.hear(&window_, sizeof window_);
    for (std::size_t i = 0; i < kMost; ++i) fabric_.receive(slot(in_, i));
  }
  void send(std::size_t bytes) { fabric_.send(slot(out_, next_out_++).first(bytes)); }
  void await(std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      fabric_.await(1);
      fabric_.receive(slot(in_, next_in_++));
    }
  }
  void flush() { fabric_.flush(); }
  /// Writes to the other end, one place after the other; nobody hears of it.
  void write(std::size_t bytes) {
    at_ = (at_ + bytes) % (out_.size() - bytes);
    fabric_.write(std::span(out_).subspan(at_, bytes), window_, at_);
  }
  /// Says that all is written, by a message behind it.
  void end_writes() { send(8); }
  void await_writes(std::uint64_t /*messages*/) { await(1); }

 private:
  static std::span<std::byte> slot(std::vector<std::byte>& memory, std::uint64_t number) {
    return std::span(memory).subspan(number % kMost * kLargest, kLargest);
  }

  std::uint64_t next_out_ = 0;
  std::uint64_t next_in_ = 0;  ///< receives are used in the order in which they were begun
  std::size_t at_ = 0;
  std::vector<std::byte> in_ = std::vector<std::byte>(kLargest * kMost);
  std::vector<std::byte> out_ = std::vector<std::byte>(kLargest * kMost);
  BareFabric::Window window_;  ///< of the other end
  BareFabric fabric_;
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
  std::array<unisono::Ticket, BareFabric::kMostWrites> tickets_{};
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
