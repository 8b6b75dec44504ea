// What a stranger says at the begin of a TCP connection, to either end, and what a card may hold.
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "network/network.hpp"
#include "network/tcp/card.hpp"
#include "network/tcp/handshake.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::tcp;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr JobKey kKey{std::byte{1}, std::byte{2}};

/// Gives `end` bytes in pieces that the input chooses.
template <class End>
void talk_to(End& end, fuzz::Input& input, std::size_t most) {
  std::size_t given = 0;
  while (!input.empty() && !end.wanted().empty()) {
    const auto wanted = end.wanted();
    const auto piece = input.take_bytes(std::min<std::size_t>(1 + input.take<std::uint8_t>(), wanted.size()));
    std::memcpy(wanted.data(), piece.data(), piece.size());
    end.got(piece.size());
    given += piece.size();
    claim(given <= most, "nobody makes an end take more than the handshake");
  }
}

void read_card(fuzz::Input& input) {
  const auto rest = input.rest();
  // Of its own length, so that a byte beyond it is noticed.
  const std::vector<std::uint8_t> copy(rest.begin(), rest.end());
  try {
    const Card card = decode_card(std::as_bytes(std::span(copy)));
    claim(card.port != 0 && !card.addresses.empty() && card.addresses.size() <= kMostAddresses, "a card within bounds");
    const auto bytes = encode_card(card);
    claim(bytes.size() == copy.size() && std::memcmp(bytes.data(), copy.data(), copy.size()) == 0,
          "a card that is read is written as it was");
    for (const Address& address : card.addresses) {
      claim(parse_address(text_of(address)) == address, "an address is read as it is written");
    }
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap, "a card that is refused");
  }
}

void read_address(fuzz::Input& input) {
  const auto rest = input.rest();
  const std::string text(rest.begin(), rest.end());
  const auto address = parse_address(text);
  if (address) claim(parse_address(text_of(*address)) == address, "an address is read as it is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto kind = input.take<std::uint8_t>();
  switch (kind % 4) {
    case 0: {
      // With one of the others there is a session already.
      const SessionKeys sessions = [](std::uint32_t peer) { return peer == 2 ? std::optional(kKey) : std::nullopt; };
      Acceptor acceptor(kKey, {1, 0, 4}, input.take<Nonce>(), &sessions);
      talk_to(acceptor, input, sizeof(Hello) + sizeof(Proof));
      claim(acceptor.state() != Acceptor::State::kProven, "nobody proves himself without the key");
      claim((acceptor.state() == Acceptor::State::kRefused) == !acceptor.fault().empty(), "who is refused is told why");
      claim(acceptor.output().size() <= sizeof(Challenge), "no more is said than a challenge");
      break;
    }
    case 1: {
      Connector connector(kKey, {0, 1, 4}, input.take<Nonce>());
      connector.sent(sizeof(Hello));
      if ((kind & 8U) != 0) {
        // A member's challenge, which the input may alter: then comes a verdict.
        Acceptor acceptor(kKey, {1, 0, 4}, {});
        Connector same(kKey, {0, 1, 4}, {});
        std::memcpy(acceptor.wanted().data(), same.output().data(), sizeof(Hello));
        acceptor.got(sizeof(Hello));
        std::memcpy(same.wanted().data(), acceptor.output().data(), sizeof(Challenge));
        if ((kind & 16U) != 0) same.wanted()[input.take<std::uint8_t>() % sizeof(Challenge)] ^= std::byte{4};
        same.got(sizeof(Challenge));
        claim((same.state() == Connector::State::kChallenged) == ((kind & 16U) == 0),
              "an altered challenge is noticed");
        if (same.state() == Connector::State::kChallenged) {
          same.prove();
          talk_to(same, input, sizeof(Verdict));
        }
        break;
      }
      talk_to(connector, input, sizeof(Challenge));
      claim(connector.state() != Connector::State::kChallenged, "nobody challenges without the key");
      claim(connector.output().empty(), "nothing is said to a stranger");
      break;
    }
    case 2:
      read_card(input);
      break;
    default:
      read_address(input);
  }
  return 0;
}
