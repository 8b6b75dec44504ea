// What TLS costs between two endpoints of TCP on the loopback: one pair with it and one without, in one thread, in
// turn. Counted is the processor time of both ends together, so that others on the machine matter little. Medians of
// the rounds and the median of their ratios are printed.
//
//   bench_tls [rounds]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/tcp/tcp_network.hpp"

namespace {

using unisono::Header;
using unisono::Incoming;
using unisono::Lane;
using unisono::Sent;
using unisono::tcp::TcpNetwork;
using unisono::tcp::TcpSettings;

constexpr std::uint32_t kSegment = 32 * 1024;

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Header header_of(std::uint32_t number, std::uint32_t bytes) {
  Header header;
  header.type = unisono::MessageType::kEager;
  header.dtype = unisono::Datatype::kByte;
  header.first = header.last = true;
  header.sequence = number;
  header.segment_bytes = bytes;
  header.message_bytes = bytes;
  return header;
}

/// Takes long messages where they belong, as the engine does.
class Place final : public unisono::Landings {
 public:
  std::byte* landing(std::uint32_t /*peer*/, const Header& header) override {
    return header.segment_bytes < kSegment ? nullptr : memory_.data() + std::size_t{header.sequence % 16} * kSegment;
  }

 private:
  std::vector<std::byte> memory_{std::size_t{16} * kSegment};
};

class Pair {
 public:
  explicit Pair(bool tls) : ends_{TcpNetwork(settings(tls)), TcpNetwork(settings(tls))} {
    for (std::uint32_t i = 0; i < 2; ++i) {
      ends_[i].meet({i, {}, {ends_[0].card(), ends_[1].card()}, {"a", "b"}});
      ends_[i].land_in(&place_);
    }
    ping_pong(1, 8);
  }
  void ping_pong(std::uint32_t rounds, std::uint32_t bytes) {
    const std::vector<std::byte> payload(bytes);
    for (std::uint32_t n = 0; n < 2 * rounds; ++n) {
      const std::uint32_t from = n % 2;
      while (!ends_[from].send(1 - from, Lane::kData, header_of(n, bytes), payload)) poll();
      take(1 - from);
    }
  }
  /// Eight segments at a time, from one end to the other, in memory that is lent.
  void stream(std::uint32_t times) {
    std::array<Header, 8> headers;
    for (std::uint32_t n = 0; n < times; ++n) {
      for (std::uint32_t i = 0; i < headers.size(); ++i) headers[i] = header_of(8 * n + i, kSegment);
      while (ends_[0].lends(1) || ends_[0].lend(1, headers, memory_.data()) == Sent::kNo) poll();
      for (std::size_t i = 0; i < headers.size(); ++i) take(1);
    }
  }

 private:
  static TcpSettings settings(bool tls) {
    TcpSettings settings;
    settings.interfaces = "lo";
    settings.tls = tls;
    return settings;
  }
  void poll() {
    for (TcpNetwork& end : ends_) end.poll();
  }
  void take(std::uint32_t at) {
    Incoming incoming;
    for (long turns = 0; !ends_[at].peek(1 - at, Lane::kData, incoming); ++turns) {
      if (turns > 100'000'000 || ends_[at].liveness(1 - at) != unisono::Poe::Liveness::kAlive) {
        throw std::runtime_error("a message has not come: " + ends_[at].condition(1 - at));
      }
      poll();
    }
    ends_[at].release(1 - at, Lane::kData);
  }

  Place place_;
  std::array<TcpNetwork, 2> ends_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(std::size_t{8} * kSegment, std::byte{0x5a});
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// `work(pair)` for both pairs in turn, of which each time does `amount`.
template <class Work>
void compare(const char* what, const char* unit, double amount, bool per_second, std::array<Pair, 2>& pairs,
             std::size_t rounds, Work&& work) {
  std::array<std::vector<double>, 2> found;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < rounds + 1; ++round) {
    std::array<double, 2> times{};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t which = (i + round) % 2;
      const double begin = processor_time();
      work(pairs[which]);
      times[which] = processor_time() - begin;
    }
    if (round == 0) continue;  // to get warm
    for (std::size_t i = 0; i < 2; ++i) found[i].push_back(per_second ? amount / times[i] : times[i] / amount);
    ratios.push_back(times[1] / times[0]);
  }
  std::printf("%-22s tcp %8.2f %s   tcp+TLS %8.2f %s   time ratio %.2f\n", what, median(found[0]), unit,
              median(found[1]), unit, median(ratios));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 15;
  std::array<Pair, 2> pairs{Pair(false), Pair(true)};
  for (const std::uint32_t bytes : {8U, 4096U}) {
    constexpr std::uint32_t kTimes = 1000;
    const std::string what = "ping-pong, " + std::to_string(bytes) + " B";
    compare(what.c_str(), "us", kTimes * 1e-6, false, pairs, rounds,
            [&](Pair& pair) { pair.ping_pong(kTimes, bytes); });
  }
  constexpr std::uint32_t kTimes = 400;
  compare("stream of 256 KiB", "GB/s", kTimes * 8.0 * kSegment * 1e-9, true, pairs, rounds,
          [&](Pair& pair) { pair.stream(kTimes); });
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_tls: %s\n", error.what());
  return 1;
}
