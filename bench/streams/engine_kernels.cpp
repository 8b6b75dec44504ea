// Kernels beside simulated engines that measure them: what goes from stream to stream and from memory to memory, in
// cycles of the cluster's clock. Run by engine.py.
//
// Kernels begin at multiples of `round`, so in the same cycle on all ranks, and once in each round; the first times
// find nothing in the engines' caches. Elements differ on every rank and in every place, and each one that comes is
// looked at: `wrong` counts those that are others.
#include <algorithm>
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>

using namespace unisono::kernel;

namespace {

constexpr std::uint32_t kLanes = 16;
constexpr std::uint32_t kMostSums = 512;  ///< words of an all-reduce, which stand between its two calls
using Times = std::span<std::int64_t>;
using Wrong = std::span<std::int64_t>;

std::int32_t element(std::uint32_t rank, std::uint64_t index) {
  return static_cast<std::int32_t>(index * 7 + rank * 1'000'003ULL + 11);
}
Word word_of(std::uint32_t rank, std::uint64_t word) {
  Word made;
  for (unsigned lane = 0; lane < kLanes; ++lane) made.set(lane, element(rank, word * kLanes + lane));
  return made;
}
std::int64_t now() { return static_cast<std::int64_t>(cycle()); }
void begin_round(std::uint64_t round) { tick((cycle() / round + 1) * round - cycle()); }

}  // namespace

/// `lead` cycles after the round began its call is given, or if `open`, its first word, when the call has been open for
/// so long. times: call or word.
int send_stream(std::uint32_t to, std::uint64_t words, std::uint64_t round, std::uint32_t lead, bool open, Times times,
                Comm comm, CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo) {
  Data data(to_cclo, {});
  for (std::int64_t& time : times) {
    begin_round(round);
    Command command(commands, status, comm);
    if (open) command.send(UNISONO_INT32, words * kLanes, to);
    if (!open) data.push(word_of(comm.rank, 0));  // it stands in the port when the call comes
    tick(lead);
    time = now();
    if (open) data.push(word_of(comm.rank, 0));
    if (!open) command.send(UNISONO_INT32, words * kLanes, to);
    for (std::uint64_t word = 1; word < words; ++word) data.push(word_of(comm.rank, word));
    if (const unisono_result code = command.finalize(); code != 0) return code;
  }
  return 0;
}
const Export<send_stream> kSendStream{"send_stream"};

/// Its call is given as the round begins. times: first word, last word, of each round.
int receive_stream(std::uint32_t from, std::uint64_t words, std::uint64_t round, Times times, Wrong wrong, Comm comm,
                   CommandStream& commands, StatusStream& status, FromCclo<0> from_cclo) {
  Data data({}, from_cclo);
  for (std::size_t turn = 0; turn < times.size(); turn += 2) {
    begin_round(round);
    Command command(commands, status, comm);
    command.recv(UNISONO_INT32, words * kLanes, from);
    for (std::uint64_t word = 0; word < words; ++word) {
      const Word come = data.pull();
      if (word == 0) times[turn] = now();
      times[turn + 1] = now();
      if (come.data != word_of(from, word).data) ++wrong[0];
    }
    if (const unisono_result code = command.finalize(); code != 0) return code;
  }
  return 0;
}
const Export<receive_stream> kReceiveStream{"receive_stream"};

/// The same between memories: one call, and its end. times: call, end.
int move_buffer(std::uint32_t peer, bool sends, std::span<std::int32_t> buffer, std::uint64_t round, std::uint32_t lead,
                Times times, Wrong wrong, Comm comm, CommandStream& commands, StatusStream& status) {
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = sends ? element(comm.rank, i) : -1;
  for (std::size_t turn = 0; turn < times.size(); turn += 2) {
    begin_round(round);
    if (sends) tick(lead);
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = sends ? UNISONO_SEND : UNISONO_RECV;
    call.datatype = UNISONO_INT32;
    call.count = static_cast<std::int64_t>(buffer.size());
    call.root = peer;
    call.src = sends ? buffer.data() : nullptr;
    call.dst = sends ? nullptr : buffer.data();
    call.src_bytes = call.dst_bytes = buffer.size_bytes();
    Command command(commands, status, comm);
    times[turn] = now();
    command.start(call);
    if (const unisono_result code = command.finalize(); code != 0) return code;
    times[turn + 1] = now();
    for (std::size_t i = 0; i < buffer.size() && !sends; ++i) {
      if (std::exchange(buffer[i], -1) != element(peer, i)) ++wrong[0];
    }
  }
  return 0;
}
const Export<move_buffer> kMoveBuffer{"move_buffer"};

/// A call that does nothing, from the request to its answer. times: both.
int empty_call(std::uint64_t round, Times times, Comm comm, CommandStream& commands, StatusStream& status,
               ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  static_cast<void>(to_cclo);
  static_cast<void>(from_cclo);
  for (std::size_t turn = 0; turn < times.size(); turn += 2) {
    begin_round(round);
    Command command(commands, status, comm);
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = UNISONO_COPY;
    call.datatype = UNISONO_INT32;
    times[turn] = now();
    command.start(call);
    if (const unisono_result code = command.finalize(); code != 0) return code;
    times[turn + 1] = now();
  }
  return 0;
}
const Export<empty_call> kEmptyCall{"empty_call"};

/// Collectives from stream to stream (EasyNet), as one call of the engine each; or `linear`, as sends and receives of
/// the kernels: the root serves one rank after the other, and adds what it takes. `words` are those of a rank's vector,
/// or of its block. times: begin, last word; -1 for one that a rank has nothing to give or to take of.
enum class Kind : std::uint32_t { kBcast, kScatter, kGather, kReduce, kAllreduce, kAllgather };

namespace {

/// What a rank gives and takes while its calls go on: words by functions of their number, one in each cycle.
template <class Give, class Take>
void move(Data& data, std::uint64_t gives, std::uint64_t takes, Give&& give, Take&& take) {
  std::uint64_t given = 0, taken = 0;
  std::array<Word, 1> out;
  bool full = false;
  std::array<std::byte, 128> in;
  std::uint64_t bytes = 0;
  while (given != gives || taken != takes) {
    if (!full && given != gives) full = give(given, out[0]);
    if (full && data.push_some(out[0].data.data(), Word::kBytes) != 0) {
      full = false;
      ++given;
    }
    const std::uint64_t room = std::min<std::uint64_t>(sizeof in, (takes - taken) * Word::kBytes) - bytes;
    if (taken != takes && room != 0) bytes += data.pull_some(in.data() + bytes, room);
    if (bytes >= Word::kBytes) {
      Word come;
      std::copy_n(in.begin(), Word::kBytes, come.data.begin());
      std::copy(in.begin() + Word::kBytes, in.end(), in.begin());
      bytes -= Word::kBytes;
      take(taken++, come);
    }
    tick();
  }
}

}  // namespace

int collective(std::uint32_t kind, bool linear, std::uint64_t words, std::uint64_t round, Times times, Wrong wrong,
               Comm comm, CommandStream& commands, StatusStream& status, ToCclo<0> to_cclo, FromCclo<0> from_cclo) {
  Data data(to_cclo, from_cclo);
  const std::uint64_t count = words * kLanes;
  const std::uint32_t size = comm.size, others = size - 1;
  const bool root = comm.rank == 0;
  const auto own = [&](std::uint64_t word, Word& out) {
    out = word_of(comm.rank, word % words);
    return true;
  };
  Word sum;
  const auto summed = [&](std::uint64_t word) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      std::uint32_t total = 0;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        total += static_cast<std::uint32_t>(element(rank, word * kLanes + lane));
      }
      sum.set(lane, static_cast<std::int32_t>(total));
    }
    return sum;
  };
  const auto expect = [&](const Word& come, const Word& right) {
    if (come.data != right.data) ++wrong[0];
  };
  const auto blocks_of_root = [&](std::uint64_t word, Word& out) {  // of a scatter: a block for each rank
    out = word_of(0, word);
    return true;
  };
  std::array<Word, kMostSums> sums;
  for (std::size_t turn = 0; turn < times.size(); turn += 2) {
    begin_round(round);
    times[turn] = now();
    Command command(commands, status, comm);
    const auto send_to_all = [&] {
      for (std::uint32_t to = 1; to < size; ++to) command.send(UNISONO_INT32, count, to);
    };
    const auto receive_from_all = [&] {
      for (std::uint32_t from = 1; from < size; ++from) command.recv(UNISONO_INT32, count, from);
    };
    const auto add = [&](std::uint64_t word, const Word& come) {  // to what the root has of its own
      Word& here = sums[word % words];
      if (word < words) here = word_of(0, word);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        here.set(lane, static_cast<std::int32_t>(here.get<std::uint32_t>(lane) + come.get<std::uint32_t>(lane)));
      }
      if (word >= (others - 1) * words) expect(here, summed(word % words));
    };
    switch (static_cast<Kind>(kind)) {
      case Kind::kBcast:
        if (!linear) command.bcast(UNISONO_INT32, count, 0);
        if (linear && root) send_to_all();
        if (linear && !root) command.recv(UNISONO_INT32, count, 0);
        move(data, root ? words * (linear ? others : 1) : 0, root ? 0 : words, own,
             [&](std::uint64_t word, const Word& come) { expect(come, word_of(0, word)); });
        break;
      case Kind::kScatter:
        if (!linear) command.scatter(UNISONO_INT32, count, 0);
        if (linear && root) send_to_all();
        if (linear && !root) command.recv(UNISONO_INT32, count, 0);
        move(data, root ? words * (linear ? others : size) : 0, root && linear ? 0 : words, blocks_of_root,
             [&](std::uint64_t word, const Word& come) {
               expect(come, word_of(0, (comm.rank - (linear ? 1 : 0)) * words + word));
             });
        break;
      case Kind::kGather:
        if (!linear) command.gather(UNISONO_INT32, count, 0);
        if (linear && root) receive_from_all();
        if (linear && !root) command.send(UNISONO_INT32, count, 0);
        move(data, root && linear ? 0 : words, root ? words * (linear ? others : size) : 0, own,
             [&](std::uint64_t word, const Word& come) {
               expect(come, word_of(static_cast<std::uint32_t>((linear ? 1 : 0) + word / words), word % words));
             });
        break;
      case Kind::kReduce:
        if (!linear) command.reduce(UNISONO_INT32, count, UNISONO_SUM, 0);
        if (linear && root) receive_from_all();
        if (linear && !root) command.send(UNISONO_INT32, count, 0);
        move(data, root && linear ? 0 : words, root ? words * (linear ? others : 1) : 0, own,
             [&](std::uint64_t word, const Word& come) { linear ? add(word, come) : expect(come, summed(word)); });
        break;
      case Kind::kAllreduce: {
        if (!linear) command.allreduce(UNISONO_INT32, count, UNISONO_SUM);
        if (linear && root) receive_from_all();
        if (linear && root) send_to_all();
        if (linear && !root) command.send(UNISONO_INT32, count, 0);
        if (linear && !root) command.recv(UNISONO_INT32, count, 0);
        const bool sums_up = linear && root;
        std::uint64_t come_so_far = 0;
        move(
            data, sums_up ? words * others : words, sums_up ? words * others : words,
            [&](std::uint64_t word, Word& out) {
              if (!sums_up) return own(word, out);
              if (come_so_far <= (others - 1) * words + word % words) return false;  // a sum that lacks operands
              out = sums[word % words];
              return true;
            },
            [&](std::uint64_t word, const Word& come) {
              sums_up ? add(word, come) : expect(come, summed(word));
              come_so_far = word + 1;
            });
        break;
      }
      case Kind::kAllgather:
        if (!linear) command.allgather(UNISONO_INT32, count);
        for (std::uint32_t step = 1; linear && step < size; ++step) {  // to the right, and from the left, step by step
          command.send(UNISONO_INT32, count, (comm.rank + step) % size);
          command.recv(UNISONO_INT32, count, (comm.rank + size - step) % size);
        }
        move(data, words * (linear ? others : 1), words * (linear ? others : size), own,
             [&](std::uint64_t word, const Word& come) {
               const auto block = static_cast<std::uint32_t>(word / words);
               expect(come, word_of(linear ? (comm.rank + others - block) % size : block, word % words));
             });
        break;
    }
    times[turn + 1] = now();
    if (const unisono_result code = command.finalize(); code != 0) return code;
  }
  return 0;
}
const Export<collective> kCollective{"collective"};
