#include "platform/device/hosts.hpp"

#include <algorithm>
#include <cstring>

#include "core/text.hpp"

namespace unisono {

namespace {

/// In the tag of a control message.
enum class Word : std::uint32_t { kRevoked = 1, kGiven = 2 };

}  // namespace

bool Hosts::send(std::uint32_t endpoint, const Header& header, std::span<const std::byte> payload) {
  std::byte* space = network_.reserve(endpoint, Lane::kControl, static_cast<std::uint32_t>(payload.size()));
  if (space == nullptr) return false;
  std::copy(payload.begin(), payload.end(), space);
  Header whole = header;
  whole.type = MessageType::kControl;
  whole.first = whole.last = true;
  whole.segment_bytes = static_cast<std::uint32_t>(payload.size());
  network_.commit(endpoint, Lane::kControl, whole);
  return true;
}

void Hosts::listen() {
  for (std::uint32_t endpoint = 0; endpoint < network_.size(); ++endpoint) {
    Incoming incoming;
    while (network_.peek(endpoint, Lane::kControl, incoming)) {
      const Header& header = incoming.header;
      const auto bytes = incoming.payload;
      if (header.tag == static_cast<std::uint32_t>(Word::kGiven)) {
        given_[{header.sequence, endpoint}].assign(bytes.begin(), bytes.end());
      } else if (header.tag == static_cast<std::uint32_t>(Word::kRevoked)) {
        const auto code = static_cast<ErrorCode>(header.token_generation);
        revocations_.push_back({endpoint, header.communicator, header.epoch,
                                name_of(code)[0] == '?' ? ErrorCode::kRevoked : code,
                                std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
      }
      network_.release(endpoint, Lane::kControl);
    }
  }
}

std::vector<std::vector<std::byte>> Hosts::exchange(std::span<const std::byte> own, std::chrono::milliseconds patience,
                                                    const std::function<void()>& meanwhile) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  const std::uint32_t round = round_++;
  std::vector<bool> told(network_.size(), false);
  std::vector<std::vector<std::byte>> all(network_.size());
  all[network_.self()].assign(own.begin(), own.end());
  std::vector<bool> heard(network_.size(), false);
  told[network_.self()] = heard[network_.self()] = true;
  std::vector<bool> gone(network_.size(), false);
  for (;;) {
    Header header;
    header.tag = static_cast<std::uint32_t>(Word::kGiven);
    header.sequence = round;
    bool complete = true;
    listen();
    for (std::uint32_t endpoint = 0; endpoint < network_.size(); ++endpoint) {
      if (!told[endpoint]) told[endpoint] = send(endpoint, header, own);
      const auto found = given_.find({round, endpoint});
      if (found != given_.end()) {
        all[endpoint] = std::move(found->second);
        given_.erase(found);
        heard[endpoint] = true;
      }
      complete = complete && told[endpoint] && heard[endpoint];
    }
    if (complete) return all;
    std::string missing;
    for (std::uint32_t endpoint = 0; endpoint < network_.size(); ++endpoint) {
      if (heard[endpoint]) continue;
      missing += formatted("{}{}", missing.empty() ? "" : ", ", endpoint);
      const bool lives = network_.liveness(endpoint) == Poe::Liveness::kAlive;
      // What it sent before it went may have come since the last look.
      if (!lives && gone[endpoint]) {
        throw Error(ErrorCode::kBootstrap, network_.describe(endpoint) +
                                               " went while the devices of the job were brought up; see its own "
                                               "message");
      }
      gone[endpoint] = !lives;
    }
    if (Clock::now() >= end) {
      throw Error(ErrorCode::kBootstrap, formatted("these ranks have not brought up their devices within {} s: {}",
                                                   patience.count() / 1000, missing));
    }
    meanwhile();
  }
}

void Hosts::tell(std::uint32_t endpoint, const Revocation& revocation) {
  Header header;
  header.tag = static_cast<std::uint32_t>(Word::kRevoked);
  header.communicator = revocation.communicator;
  header.epoch = revocation.epoch;
  header.token_generation = static_cast<std::uint16_t>(revocation.code);
  const auto bytes = std::as_bytes(std::span(revocation.reason));
  send(endpoint, header, bytes.first(std::min<std::size_t>(bytes.size(), network_.max_payload(Lane::kControl))));
}

std::vector<Hosts::Revocation> Hosts::heard() {
  listen();
  std::vector<Revocation> all;
  all.swap(revocations_);
  return all;
}

}  // namespace unisono
