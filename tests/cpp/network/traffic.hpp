// Messages with checkable contents, and sending and receiving them with a deadline.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/poe.hpp"

namespace unisono::test {

using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::seconds kPatience{60};

/// Byte i of message `number` from one endpoint to another: different for each.
inline std::byte pattern(std::uint32_t from, std::uint32_t to, std::uint32_t number, std::size_t i) {
  return static_cast<std::byte>(from * 131 + to * 31 + number * 17 + i * 7 + (i >> 8));
}

/// Header of such a message.
inline Header header_for(std::uint32_t from, std::uint32_t to, std::uint32_t number, std::uint32_t bytes) {
  Header header;
  header.type = MessageType::kEager;
  header.dtype = Datatype::kByte;
  header.first = header.last = true;
  header.source = from;
  header.destination = to;
  header.sequence = number;
  header.segment_bytes = bytes;
  header.message_bytes = bytes;
  return header;
}

/// Sends message `number` if there is space.
inline bool try_send(Poe& poe, std::uint32_t to, Lane lane, std::uint32_t number, std::uint32_t bytes) {
  std::byte* place = poe.reserve(to, lane, bytes);
  if (place == nullptr) return false;
  for (std::uint32_t i = 0; i < bytes; ++i) place[i] = pattern(poe.self(), to, number, i);
  poe.commit(to, lane, header_for(poe.self(), to, number, bytes));
  return true;
}

/// Receives message `number` of `bytes` bytes if one is there; throws if it is another or differs.
inline bool try_receive(Poe& poe, std::uint32_t from, Lane lane, std::uint32_t number, std::uint32_t bytes) {
  Incoming incoming;
  if (!poe.peek(from, lane, incoming)) return false;
  const std::string which = "message " + std::to_string(number) + " from " + std::to_string(from);
  if (incoming.header.sequence != number || incoming.header.source != from || incoming.payload.size() != bytes) {
    throw std::runtime_error(which + " of " + std::to_string(bytes) + " bytes: got message " +
                             std::to_string(incoming.header.sequence) + " of " +
                             std::to_string(incoming.payload.size()) + " bytes");
  }
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (incoming.payload[i] != pattern(from, poe.self(), number, i)) {
      throw std::runtime_error(which + " differs at byte " + std::to_string(i));
    }
  }
  poe.release(from, lane);
  return true;
}

/// Repeats `attempt`, which does all it can without blocking, until it is true, sleeping in between as an
/// engine does; throws after `patience`.
template <typename Attempt>
void until(Poe& poe, Attempt attempt, std::chrono::milliseconds patience = kPatience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const std::uint32_t seen = poe.activity();
    if (attempt()) return;
    if (Clock::now() > deadline) throw std::runtime_error("nothing came in time to " + poe.describe(poe.self()));
    poe.wait(seen, std::chrono::milliseconds(20'000));
  }
}

/// Of message `number`: all that lies at an edge, and anything.
inline std::uint32_t size_of_message(std::uint32_t number, std::uint32_t largest) {
  std::minstd_rand random(number + 1);
  random();
  const std::uint32_t any = static_cast<std::uint32_t>(random()) % (largest + 1);
  const std::uint32_t sizes[] = {0, 1, 63, 64, 65, 1023, 1024, 1025, 4000, largest - 1, largest, any, any, any};
  return std::min(sizes[number % std::size(sizes)], largest);
}

/// Every endpoint sends to every other one on both lanes, and takes what comes.
inline void exchange_with_all(Poe& poe, std::uint32_t messages) {
  constexpr Lane kLanes[] = {Lane::kData, Lane::kControl};
  std::vector<std::uint32_t> sent(2 * poe.size());
  std::vector<std::uint32_t> received(2 * poe.size());
  until(poe, [&] {
    bool done = true;
    for (std::uint32_t peer = 0; peer < poe.size(); ++peer) {
      if (peer == poe.self()) continue;
      for (std::uint32_t i = 0; i < 2; ++i) {
        const Lane lane = kLanes[i];
        const auto bytes = [&](std::uint32_t n) { return size_of_message(n, poe.max_payload(lane)); };
        std::uint32_t& out = sent[2 * peer + i];
        std::uint32_t& in = received[2 * peer + i];
        while (out < messages && try_send(poe, peer, lane, out, bytes(out))) ++out;
        while (in < messages && try_receive(poe, peer, lane, in, bytes(in))) ++in;
        done = done && out == messages && in == messages;
        if (in != messages && poe.liveness(peer) == Poe::Liveness::kDead) {
          throw std::runtime_error("endpoint " + std::to_string(peer) + " " + poe.condition(peer));
        }
      }
    }
    return done;
  });
}

}  // namespace unisono::test
