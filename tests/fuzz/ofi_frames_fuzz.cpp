// What strangers, and a member that has gone mad, may send to an endpoint of libfabric; and what a card may hold.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "network/ofi/card.hpp"
#include "network/ofi/ofi_network.hpp"
#include "tests/cpp/network/memory_endpoint.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::ofi;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr JobKey kKey{std::byte{1}, std::byte{2}};

/// Endpoint 0 is a network; endpoint 1 is a member of the job that does what the input says; nobody is endpoint 2,
/// whoever says so.
struct Play {
  Play() {
    const test::Manners manners{0, 0, test::Manners::Writes::kOrdered, true};
    auto made = std::make_unique<test::MemoryEndpoint>(wires, manners);
    endpoint = made.get();
    member = std::make_unique<test::MemoryEndpoint>(wires, manners);
    nobody = std::make_unique<test::MemoryEndpoint>(wires, manners);
    network = std::make_unique<OfiNetwork>(std::move(made), std::chrono::milliseconds(0), std::chrono::milliseconds(0));
    NetworkMembers members{0, kKey, {}, {"zero", "one", "two"}};
    for (const Endpoint* each : {static_cast<const Endpoint*>(endpoint), static_cast<const Endpoint*>(member.get()),
                                 static_cast<const Endpoint*>(nobody.get())}) {
      members.cards.push_back(encode_card(each->card()));
    }
    network->meet(std::move(members));
  }

  void put(std::span<const std::byte> bytes) {
    endpoint->put(bytes);
    network->poll();
  }
  template <class T>
  void put_value(const T& value) {
    put(std::as_bytes(std::span(&value, 1)));
  }

  /// The member proves itself, as long as it has not.
  void prove() {
    if (handshake.confirmed()) return;
    put_value(handshake.hello());
    for (int turns = 0; turns < 8; ++turns) {
      network->poll();
      for (auto heard = member->take(); !heard.empty(); heard = member->take()) {
        if (const auto hello = read_hello(heard)) handshake.got(*hello);
        if (const auto proof = read_proof(heard)) handshake.got(*proof);
      }
      if (!handshake.owes_proof()) continue;
      put_value(handshake.proof());
      handshake.proof_sent();
    }
  }

  /// A frame of the member's that is sound but for what the input says, or sound frames would hardly ever come.
  void say(fuzz::Input& input, std::uint8_t kind) {
    if (!handshake.proven()) return;
    std::vector<std::byte> frame(sizeof(Prefix));
    const auto which = static_cast<FrameKind>((kind & 8U) != 0 ? 1 + input.take<std::uint8_t>() % 7 : 1);
    std::array<std::uint32_t, kLanes> released{};
    if ((kind & 16U) != 0) released = {input.take<std::uint8_t>(), input.take<std::uint8_t>()};
    write_prefix(frame.data(), which, 1, handshake.token_out(), released);
    if (which == FrameKind::kMessage) {
      const std::size_t lane = (kind & 4U) != 0 ? 1 : 0;
      Header header{};
      header.type = MessageType::kEager;
      header.dtype = Datatype::kByte;
      header.segment_bytes = input.take<std::uint16_t>() % (lane == 0 ? 70'000U : 1100U);
      header.message_bytes = header.segment_bytes;
      header.first = header.last = true;
      const std::uint32_t number = sent[lane]++ + ((kind & 32U) != 0 ? input.take<std::uint8_t>() % 70 : 0);
      HeaderWords words = seal(header, lane, number);
      if ((kind & 64U) != 0) words[input.take<std::uint8_t>() % words.size()] ^= input.take<std::uint64_t>();
      frame.resize(kFrameHead + header.segment_bytes);
      std::memcpy(frame.data() + sizeof(Prefix), words.data(), sizeof words);
    } else if (which == FrameKind::kBye) {
      frame.resize(frame.size() + sizeof(Totals));
      const Totals totals{sent[0], sent[1] + (kind & 1U)};
      std::memcpy(frame.data() + sizeof(Prefix), totals.data(), sizeof totals);
    } else if (which == FrameKind::kStop || which == FrameKind::kStopped) {
      // A key that there is, or another one.
      const std::uint64_t key = (kind & 64U) != 0 || !reach ? input.take<std::uint8_t>() : reach->key;
      frame.resize(frame.size() + sizeof key);
      std::memcpy(frame.data() + sizeof(Prefix), &key, sizeof key);
    }
    put(frame);
  }

  /// Shows memory to the member, hides it, or writes to the member's.
  void reach_out(std::uint8_t kind) {
    if (!network->takes_writes(1)) return;
    if ((kind & 16U) != 0) {
      Header done{};
      done.type = MessageType::kDone;
      done.dtype = Datatype::kByte;
      Ticket ticket = 0;
      const bool begun = network->write(1, {0, std::uint64_t{kind} >> 6U, sizeof memory}, 0, done, memory, ticket);
      if (begun && (kind & 32U) != 0) network->withdraw(1, ticket);
    } else if (!reach) {
      reach = network->show(1, memory);
      claim(reach.has_value(), "memory can be shown");
    } else {
      network->hide(1, *reach, (kind & 32U) != 0);
      if ((kind & 64U) != 0) network->settle();
      reach.reset();
    }
    network->poll();
  }

  void read(std::uint8_t kind) {
    const std::size_t lane = (kind & 4U) != 0 ? 1 : 0;
    const Lane which = lane == 0 ? Lane::kData : Lane::kControl;
    Incoming incoming;
    claim(!network->peek(2, which, incoming), "nothing is read from who has not proven himself");
    try {
      for (std::uint32_t turns = kind >> 4U; turns > 0 && network->peek(1, which, incoming); --turns) {
        claim(incoming.header.segment_bytes == incoming.payload.size(), "the header says the payload's length");
        claim(incoming.payload.size() <= most_payload(lane), "no longer than agreed");
        claim(incoming.header.session_sequence == taken[lane]++, "each lane's messages come in order, each once");
        const std::vector<std::byte> copy(incoming.payload.begin(), incoming.payload.end());
        claim(copy.size() == incoming.payload.size(), "all of it can be read");
        network->release(1, which);
      }
    } catch (const Error& error) {
      claim(error.code() == ErrorCode::kCorruptMessage && !network->condition(1).empty(),
            "nonsense is its sender's end");
    }
  }

  std::array<std::byte, 300> memory{};
  std::optional<Reach> reach;
  test::Wires wires;
  test::MemoryEndpoint* endpoint = nullptr;
  std::unique_ptr<test::MemoryEndpoint> member;
  std::unique_ptr<test::MemoryEndpoint> nobody;
  std::unique_ptr<OfiNetwork> network;
  Handshake handshake{kKey, {1, 0, 3}, Nonce{std::byte{7}}};
  std::uint32_t sent[kLanes]{};
  std::uint32_t taken[kLanes]{};
};

/// A greeting with what the input says in it, and the right beginning.
template <class T>
T greeting(fuzz::Input& input, const std::array<char, 8>& magic) {
  T value = input.take<T>();
  value.head.magic = magic;
  value.head.from %= 4;
  value.head.to %= 2;
  value.head.size = 3;
  return value;
}

void read_card(fuzz::Input& input) {
  const auto rest = input.rest();
  // Of its own length, so that a byte beyond it is noticed.
  const std::vector<std::uint8_t> copy(rest.begin(), rest.end());
  try {
    const auto bytes = encode_card(decode_card(std::as_bytes(std::span(copy))));
    claim(bytes.size() == copy.size() && std::memcmp(bytes.data(), copy.data(), copy.size()) == 0,
          "a card that is read is written as it was");
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap, "a card that is refused");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  if (input.take<std::uint8_t>() % 8 == 0) {
    read_card(input);
    return 0;
  }
  Play play;
  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>();
    switch (kind & 3U) {
      case 0:
        if ((kind & 4U) == 0) {
          play.put(std::as_bytes(input.take_bytes(input.take<std::uint8_t>())));
        } else if ((kind & 8U) == 0) {
          play.put_value(greeting<Hello>(input, play.handshake.hello().head.magic));
        } else {
          play.put_value(greeting<Proof>(input, play.handshake.proof().head.magic));
        }
        play.reach_out(kind);
        break;
      case 1:
        play.prove();
        break;
      case 2:
        play.say(input, kind);
        break;
      default:
        play.read(kind);
        if ((kind & 8U) != 0 && play.network->reserve(1, Lane::kData, kind) != nullptr) {
          Header header{};
          header.type = MessageType::kEager;
          header.dtype = Datatype::kByte;
          header.segment_bytes = kind;
          play.network->commit(1, Lane::kData, header);
        }
    }
  }
  claim(play.network->liveness(2) == Poe::Liveness::kAlive, "what strangers say harms nobody whose name they use");
  return 0;
}
