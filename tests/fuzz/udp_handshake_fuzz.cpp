// What a stranger's datagrams say at the begin of a session of UDP, to either end; and what impairments may be named.
#include <vector>

#include "core/error.hpp"
#include "network/udp/caller.hpp"
#include "network/udp/handshake.hpp"
#include "network/udp/impairment.hpp"
#include "network/udp/tagger.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::udp;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr JobKey kKey{std::byte{1}, std::byte{2}};
  fuzz::Input input(data, size);
  const auto kind = input.take<std::uint8_t>();
  const auto rest = std::as_bytes(input.rest());
  // Of its own length, so that a byte beyond it is noticed.
  const std::vector<std::byte> datagram(rest.begin(), rest.end());
  switch (kind % 5) {
    case 0:
      if (const auto hello = frame_in<HelloFrame>(datagram, Kind::kHello)) {
        claim(!fault_of(kKey, *hello, 1, 4).empty(), "nobody says hello without the key");
      }
      break;
    case 1:
      if (const auto proof = frame_in<ProofFrame>(datagram, Kind::kProof)) {
        const Nonce given = nonce_for(Digest{std::byte{3}}, hello_of(*proof), {});
        claim(!fault_of(kKey, *proof, given, 1, 4).empty(), "nobody proves himself without the key");
        claim(!fault_of(kKey, *proof, proof->nonce, 1, 4).empty(), "not even with the right nonce");
      }
      break;
    case 2:
      if (const auto challenge = frame_in<ChallengeFrame>(datagram, Kind::kChallenge)) {
        Caller caller(kKey, {0, 1, 4}, {{}, {}}, Time{});
        claim(!caller.challenged(*challenge, Time{}) && !caller.answered(), "nobody challenges without the key");
      }
      break;
    case 3:
      if (const auto frame = frame_in<DataFrame>(datagram, Kind::kData)) {
        static const Tagger tagger(Digest{std::byte{5}}, "udp data");
        const auto piece = std::span(datagram).subspan(sizeof(DataFrame));
        if (piece.size() % 32 != 0 || piece.size() > 64 * 1024) break;
        claim(!tagger.verify(frame->tag, frame->number, datagram, piece), "nobody guesses a tag");
      }
      break;
    default:
      try {
        const ImpairmentSettings settings =
            impairment_of({reinterpret_cast<const char*>(datagram.data()), datagram.size()});
        claim(settings.loss >= 0 && settings.loss <= 1, "a chance");
      } catch (const Error& error) {
        claim(error.code() == ErrorCode::kBootstrap, "a text that is refused");
      }
  }
  return 0;
}
