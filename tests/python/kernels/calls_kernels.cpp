// Kernels that send to ports of others, start calls that the host has prepared, and talk through sessions: on every
// engine, with other data on every rank.
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>

using namespace unisono::kernel;

/// Sends messages of `length`, `length` + 1 ... elements to port 1 of rank `to`; each begins with the sender's rank.
/// Then takes `taken` such messages at its own port 1, from whichever ranks, and keeps what each has brought.
int to_port(std::int32_t length, std::int32_t messages, std::uint32_t to, std::uint32_t port, std::int32_t taken,
            std::span<std::int32_t> got, Comm comm, CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo,
            FromCclo<1> from_cclo) {
  Command cclo(commands, status, comm);
  Data data(to_cclo, from_cclo);
  for (std::int32_t m = 0; m < messages; ++m) {
    cclo.stream_put(UNISONO_INT32, static_cast<std::size_t>(length), to, port);
    for (std::int32_t i = 0; i < length; ++i) {
      const std::int32_t element =
          i == 0 ? static_cast<std::int32_t>(comm.rank) : 1000 * static_cast<std::int32_t>(comm.rank) + 100 * m + i;
      data.push(&element, sizeof element);
    }
  }
  data.pull(got.data(), static_cast<std::uint64_t>(taken) * static_cast<std::uint64_t>(length) * sizeof(std::int32_t));
  const int code = cclo.finalize();
  if (code != 0) throw unisono::Error(code, cclo.error());
  return code;
}
const Export<to_port> kToPort{"to_port"};

/// Starts two calls of the host's, one after the other, `times` times; before each round the kernel changes what the
/// first one sends.
int starts(Prepared first, Prepared second, std::span<float> sent, std::int32_t times, Comm comm,
           CommandStream& commands, StatusStream& status) {
  Command cclo(commands, status, comm);
  for (std::int32_t i = 0; i < times; ++i) {
    for (float& element : sent) element += 1;
    cclo.start(first);
    if (const int code = cclo.finalize(); code != 0) return code;
    cclo.start(second);
    if (const int code = cclo.finalize(); code != 0) return code;
  }
  return 0;
}
const Export<starts> kStarts{"starts"};

/// The side of a session that asks: bytes in pieces of `piece`; what comes back is kept.
void asks(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> back, std::uint64_t piece, std::uint32_t peer,
          std::uint32_t number, Comm comm, CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo,
          FromCclo<0> from_cclo) {
  Session session(commands, status, comm, peer, to_cclo, from_cclo, number);
  for (std::uint64_t at = 0; at < bytes.size(); at += piece) {
    const std::uint64_t now = std::min<std::uint64_t>(piece, bytes.size() - at);
    session.send(&bytes[at], now);
    if (session.receive(&back[at], now) != now) throw unisono::Error(4, "the answer is short");
  }
  session.close();
  std::uint8_t more = 0;
  if (session.receive(&more, 1) != 0 || !session.ended()) throw unisono::Error(4, "something more came");
}
const Export<asks> kAsks{"asks"};

/// The side that answers: each byte plus this rank's number, `piece` at once, until the other side closes.
void answers(std::uint64_t piece, std::uint32_t peer, std::uint32_t number, std::span<std::uint64_t> counted, Comm comm,
             CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Session session(commands, status, comm, peer, to_cclo, from_cclo, number);
  std::array<std::uint8_t, 4096> bytes;
  for (;;) {
    const std::uint64_t now = session.receive(bytes.data(), piece);
    for (std::uint64_t i = 0; i < now; ++i) bytes[i] = static_cast<std::uint8_t>(bytes[i] + comm.rank);
    session.send(bytes.data(), now);
    counted[0] += now;
    if (now != piece) break;
  }
  session.close();
}
const Export<answers> kAnswers{"answers"};

/// A stream of bytes in one direction, cut otherwise on both sides: pieces of 1, 2, 3 ... bytes, and of 4096 at last.
void pours(std::span<const std::uint8_t> bytes, std::uint32_t peer, Comm comm, CommandStream& commands,
           StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Session session(commands, status, comm, peer, to_cclo, from_cclo, 255);
  for (std::uint64_t at = 0, piece = 1; at<bytes.size(); at += piece, piece = at> 3000 ? 4096 : piece + 7) {
    session.send(&bytes[at], std::min<std::uint64_t>(piece, bytes.size() - at));
  }
  session.close();
}
const Export<pours> kPours{"pours"};

void drinks(std::span<std::uint8_t> bytes, std::uint64_t piece, std::uint32_t peer, Comm comm, CommandStream& commands,
            StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Session session(commands, status, comm, peer, to_cclo, from_cclo, 255);
  for (std::uint64_t at = 0; at < bytes.size(); at += piece) {
    const std::uint64_t now = std::min<std::uint64_t>(piece, bytes.size() - at);
    if (session.receive(&bytes[at], now) != now) throw unisono::Error(4, "it has closed too early");
  }
  if (session.receive().bytes != 0) throw unisono::Error(4, "something more came");
}
const Export<drinks> kDrinks{"drinks"};

/// What is wrong with a session shows at its first use.
void opens(std::uint32_t peer, std::uint32_t number, Comm comm, CommandStream& commands, StatusStream& status,
           ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Session session(commands, status, comm, peer, to_cclo, from_cclo, number);
  session.send(Word{});
}
const Export<opens> kOpens{"opens"};

/// EasyNet's six collectives as one call each, from port to port; `which` names one.
void collective(std::int32_t which, std::uint32_t root, std::span<const std::int32_t> mine, std::span<std::int32_t> got,
                Comm comm, CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Command cclo(commands, status, comm);
  Data data(to_cclo, from_cclo);
  const bool is_root = comm.rank == root;
  const std::size_t in = mine.size(), out = got.size();
  switch (which) {
    case 0:
      cclo.bcast(UNISONO_INT32, is_root ? in : out, root);
      break;
    case 1:
      cclo.scatter(UNISONO_INT32, out, root);
      break;
    case 2:
      cclo.gather(UNISONO_INT32, in, root);
      break;
    case 3:
      cclo.reduce(UNISONO_INT32, in, UNISONO_SUM, root);
      break;
    case 4:
      cclo.allreduce(UNISONO_INT32, in, UNISONO_SUM);
      break;
    default:
      cclo.allgather(UNISONO_INT32, in);
      break;
  }
  // In turns, for a port holds no more than 16 KiB.
  const auto* from = reinterpret_cast<const std::byte*>(mine.data());
  auto* to = reinterpret_cast<std::byte*>(got.data());
  std::uint64_t given = 0, taken = 0;
  while (given != mine.size_bytes() || taken != got.size_bytes()) {
    if (given != mine.size_bytes()) given += data.push_some(from + given, mine.size_bytes() - given);
    if (taken != got.size_bytes()) taken += data.pull_some(to + taken, got.size_bytes() - taken);
    poll();
  }
  if (const int code = cclo.finalize(); code != 0) throw unisono::Error(code, cclo.error());
}
const Export<collective> kCollective{"collective"};
