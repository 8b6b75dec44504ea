// What datagrams that come do to a network.
#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "network/udp/udp_network.hpp"

namespace unisono::udp {

namespace {

constexpr std::size_t kControlRing = std::size_t{64} * 1024;

std::span<const std::byte> bytes_of_address(const tcp::SystemAddress& address) {
  return {reinterpret_cast<const std::byte*>(&address.storage), address.bytes};
}

}  // namespace

void UdpNetwork::take(const Came& came) {
  if (came.to) {
    tcp::Address here = *came.to;
    here.port = 0;
    const bool ours = std::any_of(own_chosen_.begin(), own_chosen_.end(), [&](const tcp::Address& own) {
      return own.six == here.six && own.bytes == here.bytes;
    });
    if (!ours) {
      refusals_.add(came.from,
                    formatted("came to {}, which is not of the interfaces to use", tcp::text_without_port(here)));
      return;
    }
  }
  switch (came.bytes.empty() ? Kind{} : static_cast<Kind>(came.bytes[0])) {
    case Kind::kData:
      return take_data(came);
    case Kind::kAck:
      return take_ack(came);
    case Kind::kHello:
      return take_hello(came);
    case Kind::kChallenge:
      return take_challenge(came);
    case Kind::kProof:
      return take_proof(came);
  }
  refusals_.add(came.from, "is none of this network");
}

void UdpNetwork::take_data(const Came& came) {
  const auto frame = frame_in<DataFrame>(came.bytes, Kind::kData);
  if (!frame || came.bytes.size() != sizeof(DataFrame) + frame->bytes || frame->bytes % kWord != 0) {
    return refusals_.add(came.from, "is of no right length");
  }
  Incomings* const session = frame->source < incoming_.size() ? incoming_[frame->source].get() : nullptr;
  // A session that has ended here may not have ended there.
  if (session != nullptr && session->over) return;
  const auto piece = came.bytes.subspan(sizeof(DataFrame));
  if (session == nullptr || !session->data.verify(frame->tag, frame->number, came.bytes, piece)) {
    return refusals_.add(came.from, "has no right tag");
  }
  news_ = session->receiver.take(*frame, piece, now_) || news_;
}

void UdpNetwork::take_ack(const Came& came) {
  const auto frame = frame_in<AckFrame>(came.bytes, Kind::kAck);
  if (!frame || came.bytes.size() != sizeof(AckFrame)) return refusals_.add(came.from, "is of no right length");
  Outgoing* const session = known(frame->source);
  if (session != nullptr && session->over) return;
  const bool asked = session != nullptr && session->caller->answered();
  if (!asked || !session->acks.verify(frame->tag, frame->number, came.bytes, bytes_of(frame->before))) {
    return refusals_.add(came.from, "has no right tag");
  }
  if (!session->open) open(*session);
  news_ = session->sender.acknowledged(*frame, now_) || news_;
}

void UdpNetwork::open(Outgoing& session) {
  session.open = true;
  session.place = session.caller->place();
  session.to = port_.reachable(session.place.address, session.place.scope);
  std::size_t longest = Port::longest_to(session.place.address, session.place.scope);
  if (settings_.largest_datagram != 0) longest = std::min(longest, settings_.largest_datagram);
  session.sender.begin((longest - sizeof(DataFrame)) / kWord * kWord);
  news_ = true;
}

void UdpNetwork::take_hello(const Came& came) {
  const auto hello = frame_in<HelloFrame>(came.bytes, Kind::kHello);
  if (!hello || came.bytes.size() != sizeof(HelloFrame)) return refusals_.add(came.from, "is of no right length");
  const auto size = static_cast<std::uint32_t>(members_.cards.size());
  if (std::string fault = fault_of(members_.key, *hello, members_.self, size); !fault.empty()) {
    return refusals_.add(came.from, fault);
  }
  const Nonce nonce = nonce_for(nonce_secret_, *hello, bytes_of_address(came.from));
  const ChallengeFrame challenge = make_challenge(members_.key, *hello, nonce);
  port_.send(came.from, bytes_of(challenge));
}

void UdpNetwork::take_challenge(const Came& came) {
  const auto challenge = frame_in<ChallengeFrame>(came.bytes, Kind::kChallenge);
  if (!challenge || came.bytes.size() != sizeof(ChallengeFrame)) {
    return refusals_.add(came.from, "is of no right length");
  }
  Outgoing* const session = known(challenge->from);
  if (session == nullptr || session->over) return refusals_.add(came.from, "answers no hello");
  // Late ones, to a hello that was sent again.
  if (session->caller->answered()) return;
  if (!session->caller->challenged(*challenge, now_)) return refusals_.add(came.from, "answers no hello");
  if (!session->caller->fault().empty()) {
    return break_off(*session, formatted("on {} {}", members_.hosts[session->peer], session->caller->fault()));
  }
  const Digest secret = session->caller->secret();
  session->data = Tagger(secret, "udp data");
  session->acks = Tagger(secret, "udp acks");
  news_ = true;
  call(*session);
}

void UdpNetwork::take_proof(const Came& came) {
  const auto proof = frame_in<ProofFrame>(came.bytes, Kind::kProof);
  if (!proof || came.bytes.size() != sizeof(ProofFrame)) return refusals_.add(came.from, "is of no right length");
  const HelloFrame hello = hello_of(*proof);
  const Nonce given = nonce_for(nonce_secret_, hello, bytes_of_address(came.from));
  const auto size = static_cast<std::uint32_t>(members_.cards.size());
  if (std::string fault = fault_of(members_.key, *proof, given, members_.self, size); !fault.empty()) {
    return refusals_.add(came.from, fault);
  }
  const Digest secret = session_secret(members_.key, hello, proof->nonce);
  auto& place = incoming_[hello.from];
  if (place == nullptr) {
    place =
        std::make_unique<Incomings>(Incomings{hello.from, secret, Tagger(secret, "udp data"),
                                              Tagger(secret, "udp acks"), came.from, Receiver(room(), kControlRing)});
    called_.push_back(place.get());
    news_ = true;
  } else if (!equal(place->secret, secret)) {
    // There never is a second session: this one is over, or the proof an old one.
    return refusals_.add(came.from, "wants a session that there is already");
  }
  if (place->over) return;
  place->receiver.ask();
  say(*place);
}

}  // namespace unisono::udp
