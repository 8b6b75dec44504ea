// What comes where TLS is spoken: from one who has got as far as the verdict and sends what he likes, and from one on
// the way who alters what two members say to each other.
#include <array>
#include <vector>

#include "core/error.hpp"
#include "network/tcp/tls.hpp"
#include "tests/cpp/network/wire.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::tcp;  // NOLINT(google-build-using-namespace)
using fuzz::claim;
using Progress = Tls::Progress;

namespace {

constexpr Digest kSecret{std::byte{1}, std::byte{2}};
constexpr std::size_t kMostMemory = 100'000;

/// Takes the input as the other end's words, in pieces.
void listen_to(TlsEnd end, fuzz::Input& input) {
  test::Wire wire;
  Tls tls(end, kSecret, wire.end(0));
  Progress progress = tls.shake_hands();
  while (progress == Progress::kUnderWay && !input.empty()) {
    const auto piece = std::as_bytes(input.take_bytes(std::size_t{1} + input.take<std::uint8_t>()));
    wire.from(1).waiting.assign(piece.begin(), piece.end());
    wire.pump();
    progress = tls.shake_hands();
    claim(progress != Progress::kDone, "nobody gets beyond the handshake without the secret");
    claim(tls.memory() <= kMostMemory, "it costs no more memory than agreed");
  }
  claim((progress == Progress::kFailed) == !tls.fault().empty(), "who is refused is told why");
}

std::byte byte_of(std::size_t from, std::size_t i) {
  return static_cast<std::byte>((i * 2'654'435'761U) >> (16 + from));
}

/// Alters what has come from an end, as the input says; false if not at all.
bool alter(fuzz::Input& input, std::vector<std::byte>& fresh) {
  const auto how = input.take<std::uint8_t>();
  if (how < 200 || fresh.empty()) return false;
  const auto at = static_cast<std::ptrdiff_t>(input.take<std::uint16_t>() % fresh.size());
  const auto bytes = static_cast<std::ptrdiff_t>(std::min<std::size_t>(input.take<std::uint8_t>(), fresh.size() - at));
  const std::vector<std::byte> piece(fresh.begin() + at, fresh.begin() + at + bytes);
  switch (how % 4) {
    case 0:
      fresh[at] ^= static_cast<std::byte>(1U << (how / 4 % 8));
      return true;
    case 1:
      fresh.erase(fresh.begin() + at, fresh.begin() + at + bytes);
      return bytes != 0;
    case 2:
      fresh.insert(fresh.begin() + at, piece.begin(), piece.end());
      return bytes != 0;
    default: {
      const auto strange = std::as_bytes(input.take_bytes(bytes));
      fresh.insert(fresh.begin() + at, strange.begin(), strange.end());
      return !strange.empty();
    }
  }
}

/// Two members, and the input between them.
void stand_between(fuzz::Input& input) {
  test::Wire wire;
  std::array<Tls, 2> tls{Tls(TlsEnd::kClient, kSecret, wire.end(0), 3), Tls(TlsEnd::kServer, kSecret, wire.end(1), 3)};
  std::array<Progress, 2> progress{Progress::kUnderWay, Progress::kUnderWay};
  std::array<std::size_t, 2> sent{};
  std::array<std::size_t, 2> received{};
  bool altered = false;
  for (const std::size_t i : {0U, 1U}) {
    wire.from(i).alter = [&](std::vector<std::byte>& fresh, std::size_t) { altered = alter(input, fresh) || altered; };
  }
  const std::size_t rounds = 6 + input.take<std::uint8_t>() % 20;
  std::vector<std::byte> memory(40'000);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const std::size_t i : {0U, 1U}) {
      if (progress[i] == Progress::kUnderWay) progress[i] = tls[i].shake_hands();
      if (progress[i] != Progress::kDone) continue;
      tls[i].flush();
      const std::size_t bytes = input.take<std::uint16_t>() % memory.size();
      for (std::size_t k = 0; k < bytes; ++k) memory[k] = byte_of(i, sent[i] + k);
      const std::size_t first = bytes / 3;
      const std::array<iovec, 2> pieces{{{memory.data(), first}, {memory.data() + first, bytes - first}}};
      sent[i] += tls[i].send(pieces);
      const ssize_t got = tls[i].receive(std::span(memory).first(100), std::span(memory).subspan(100));
      for (ssize_t k = 0; k < got; ++k) {
        claim(memory[k] == byte_of(1 - i, received[i]++), "what comes is what was sent, in order");
      }
      claim(received[i] <= sent[1 - i], "no more comes than was sent");
      claim(tls[i].memory() <= kMostMemory, "it costs no more memory than agreed");
    }
    wire.pump();
  }
  if (altered) return;
  claim(progress[0] == Progress::kDone && progress[1] == Progress::kDone, "members agree if nobody disturbs them");
  claim(tls[0].fault().empty() && tls[1].fault().empty(), "nothing is wrong if nobody disturbs them");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.take<std::uint8_t>() % 3) {
    case 0:
      listen_to(TlsEnd::kServer, input);
      break;
    case 1:
      listen_to(TlsEnd::kClient, input);
      break;
    default:
      stand_between(input);
      break;
  }
  return 0;
}
