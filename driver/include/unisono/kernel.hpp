// Kernels and their collective engine, as ACCL+ has it (OSDI '24, 4.1): a kernel gives commands, moves words of 64
// bytes through streams while they are carried out, and waits for their end. Listing 2 of the paper, on the native
// engine:
//
//   unisono::kernel::Engine engine(context, {world});
//   cclo_hls::Command cclo(engine.commands(), engine.status(), 0);
//   cclo_hls::Data data(engine.to_cclo(0), engine.from_cclo(0));
//   cclo.send(UNISONO_FP32, 16 * n, 1);
//   for (int i = 0; i < n; i++) data.push(word(i));
//   cclo.finalize();
//
// A kernel is a function that runs in a thread, or as a fibre (unisono/smi.hpp, launch): what waits here then lets the
// other kernels of the rank go on. A Command and a Data are used by one kernel at a time.
#ifndef UNISONO_KERNEL_HPP
#define UNISONO_KERNEL_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "unisono/smi.h"
#include "unisono/unisono.hpp"

namespace unisono {
inline namespace api {
namespace kernel {

/// Beside a simulated engine, so many cycles of its clock pass, in which the kernel computes; all else that a kernel
/// does takes no time, but for words, of which a port moves one in a cycle. Elsewhere it lets other kernels go on.
inline void tick(std::uint64_t cycles = 1) { unisono_kernel_tick(cycles); }
/// The cycle of the simulated clock, the same on all nodes. Elsewhere how many cycles this kernel has let pass by
/// `tick`.
inline std::uint64_t cycle() { return unisono_kernel_cycle(); }
/// A cycle in which the kernel has nothing to do but to look whether others have done something.
inline void poll() { unisono_kernel_yield(1); }

/// What moves in a cycle: 64 bytes, of which `bytes` are there, from the first one on.
struct Word {
  static constexpr unsigned kBytes = 64;
  std::array<std::byte, kBytes> data{};
  unsigned bytes = kBytes;

  /// Element `i`, of type T.
  template <class T>
  void set(unsigned i, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&data[i * sizeof(T)], &value, sizeof(T));
  }
  template <class T>
  T get(unsigned i) const {
    T value;
    std::memcpy(&value, &data[i * sizeof(T)], sizeof(T));
    return value;
  }
};

/// Where commands go: the engine of a rank, and its communicators by number.
struct CommandStream {
  std::vector<unisono_communicator*> communicators;
};
/// Where codes come from. Here each command keeps its own; in hardware it is a stream.
struct StatusStream {};
/// One direction of a stream port.
struct DataStream {
  unisono_context* context = nullptr;
  std::uint32_t port = 0;
};

/// A call that the host has prepared and given to the kernel, which starts it, as often as it wants, one at a time.
struct Prepared {
  unisono_request* request = nullptr;
};

/// The streams of a kernel: what hardware connects to its ports. The context must outlive it.
class Engine {
 public:
  Engine(const Context& context, const std::vector<const Communicator*>& communicators) : context_(context.handle()) {
    for (const Communicator* each : communicators) commands_.communicators.push_back(each->handle());
  }
  CommandStream& commands() { return commands_; }
  StatusStream& status() { return status_; }
  DataStream to_cclo(std::uint32_t port) const { return {context_, port}; }
  DataStream from_cclo(std::uint32_t port) const { return {context_, port}; }

 private:
  unisono_context* context_;
  CommandStream commands_;
  StatusStream status_;
};

/// Gives commands. Each names a datatype (UNISONO_FP32 ...) and a count of elements; operands come from `source`, the
/// number of a port, and results go to `destination`. A command begins at once, and those before it go on.
/// Throws Error for what is wrong with it; what it fails with later, `finalize` returns.
class Command {
 public:
  /// `communicator`: its place among those of the command stream. Both ports are 0 if nothing is said.
  Command(CommandStream& commands, StatusStream& /*status*/, std::uint32_t communicator, std::uint32_t source = 0,
          std::uint32_t destination = 0)
      : communicator_(commands.communicators.at(communicator)), source_(source), destination_(destination) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  /// Waits for what goes on.
  ~Command() { finalize(); }

  void send(unisono_datatype type, std::size_t count, std::uint32_t to, std::int64_t tag = 0) {
    unisono_call call = from_stream(UNISONO_SEND, type, count);
    call.root = to;
    call.tag = tag;
    start(call);
  }
  void recv(unisono_datatype type, std::size_t count, std::uint32_t from, std::int64_t tag = 0) {
    unisono_call call = to_stream(UNISONO_RECV, type, count);
    call.root = from;
    call.tag = tag;
    start(call);
  }
  /// To port `port` of a peer, where a kernel reads it; no command is given there.
  void stream_put(unisono_datatype type, std::size_t count, std::uint32_t to, std::uint32_t port) {
    unisono_call call = from_stream(UNISONO_SEND, type, count);
    call.root = to;
    call.streams |= UNISONO_DST_STREAM;
    call.dst_port = port;
    start(call);
  }
  /// From memory into the stream, and from the stream into memory.
  void load(unisono_datatype type, std::size_t count, const void* memory, std::uint64_t bytes) {
    unisono_call call = to_stream(UNISONO_COPY, type, count);
    call.src = memory;
    call.src_bytes = bytes;
    start(call);
  }
  void store(unisono_datatype type, std::size_t count, void* memory, std::uint64_t bytes) {
    unisono_call call = from_stream(UNISONO_COPY, type, count);
    call.dst = memory;
    call.dst_bytes = bytes;
    start(call);
  }
  /// The root gives the elements, all others get them.
  void bcast(unisono_datatype type, std::size_t count, std::uint32_t root) {
    std::uint32_t rank = 0;
    detail::check(unisono_communicator_rank(communicator_, &rank));
    unisono_call call = to_stream(UNISONO_BCAST, type, count);
    if (rank == root) call.dst_port = source_;
    call.root = root;
    start(call);
  }
  void reduce(unisono_datatype type, std::size_t count, unisono_op op, std::uint32_t root) {
    rooted(UNISONO_REDUCE, type, count, op, root);
  }
  void allreduce(unisono_datatype type, std::size_t count, unisono_op op) {
    rooted(UNISONO_ALLREDUCE, type, count, op, 0);
  }
  void scan(unisono_datatype type, std::size_t count, unisono_op op) { rooted(UNISONO_SCAN, type, count, op, 0); }
  /// Of these, `count` is that of one rank's block.
  void gather(unisono_datatype type, std::size_t count, std::uint32_t root) {
    rooted(UNISONO_GATHER, type, count, 0, root);
  }
  void scatter(unisono_datatype type, std::size_t count, std::uint32_t root) {
    rooted(UNISONO_SCATTER, type, count, 0, root);
  }
  void allgather(unisono_datatype type, std::size_t count) { rooted(UNISONO_ALLGATHER, type, count, 0, 0); }
  void alltoall(unisono_datatype type, std::size_t count) { rooted(UNISONO_ALLTOALL, type, count, 0, 0); }
  void reduce_scatter(unisono_datatype type, std::size_t count, unisono_op op) {
    rooted(UNISONO_REDUCE_SCATTER, type, count, op, 0);
  }
  void barrier() { start(of(UNISONO_BARRIER, 0, 0)); }
  /// Any other call; its streams and buffers are the caller's to fill in.
  void start(const unisono_call& call) {
    unisono_request* request = nullptr;
    detail::check(unisono_start(communicator_, &call, &request));
    requests_.push_back({request, true});
  }
  /// A call of the host's: with counts by rank, to neighbours, or of a program. It names its communicator itself.
  void start(const Prepared& call) {
    detail::check(unisono_request_start(call.request));
    requests_.push_back({call.request, false});
  }

  /// Waits until all commands have ended; the error code of the first that failed, 0 if none did. `error` says why.
  unisono_result finalize() noexcept {
    unisono_result first = 0;
    for (const auto& [request, own] : std::exchange(requests_, {})) {
      unisono_result result = 0;
      if (unisono_kernel_running() != 0) {
        for (int complete = 0; complete == 0 && result == 0;) {
          result = unisono_test(request, &complete);
          if (complete == 0 && result == 0) unisono_kernel_yield(1);
        }
      } else {
        result = unisono_wait(request);
      }
      if (result != 0 && first == 0) {
        first = result;
        error_ = unisono_last_error();
      }
      if (own) unisono_request_free(request);
    }
    return first;
  }
  /// The sentence of the last command that failed.
  const std::string& error() const { return error_; }

 private:
  static unisono_call of(unisono_collective collective, unisono_datatype type, std::size_t count) {
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = collective;
    call.datatype = type;
    call.count = static_cast<std::int64_t>(count);
    return call;
  }
  unisono_call from_stream(unisono_collective collective, unisono_datatype type, std::size_t count) const {
    unisono_call call = of(collective, type, count);
    call.streams = UNISONO_SRC_STREAM;
    call.src_port = source_;
    return call;
  }
  unisono_call to_stream(unisono_collective collective, unisono_datatype type, std::size_t count) const {
    unisono_call call = of(collective, type, count);
    call.streams = UNISONO_DST_STREAM;
    call.dst_port = destination_;
    return call;
  }
  void rooted(unisono_collective collective, unisono_datatype type, std::size_t count, unisono_op op,
              std::uint32_t root) {
    unisono_call call = from_stream(collective, type, count);
    call.streams |= UNISONO_DST_STREAM;
    call.dst_port = destination_;
    call.op = op;
    call.root = root;
    start(call);
  }

  unisono_communicator* communicator_;
  std::uint32_t source_;
  std::uint32_t destination_;
  /// Of a command, and whether it is this object's own.
  struct Given {
    unisono_request* request = nullptr;
    bool own = true;
  };
  std::vector<Given> requests_;
  std::string error_;
};

/// Moves words between a kernel and the calls of its ports. Throws Error, timeout too: see unisono_stream_write.
class Data {
 public:
  Data(DataStream to_cclo, DataStream from_cclo) : to_(to_cclo), from_(from_cclo) {}

  /// Waits until the port has taken the word.
  void push(const Word& word) { push(word.data.data(), word.bytes); }
  void push(const void* elements, std::uint64_t bytes) {
    std::uint64_t done = 0;
    detail::check(unisono_stream_write(to_.context, to_.port, elements, bytes, UNISONO_WHOLE, &done));
  }
  /// What the port takes at once; bytes that have gone. Of whole words, whole words go.
  std::uint64_t push_some(const void* elements, std::uint64_t bytes) {
    std::uint64_t done = 0;
    detail::check(unisono_stream_write(to_.context, to_.port, elements, bytes, 0, &done));
    return done;
  }
  /// What has come, up to so many bytes. Beside a simulated engine, asks for the next word, too: looked at in each
  /// cycle, with room for two, one comes in each.
  std::uint64_t pull_some(void* elements, std::uint64_t bytes) {
    std::uint64_t done = 0;
    detail::check(unisono_stream_read(from_.context, from_.port, elements, bytes, 0, &done));
    return done;
  }
  /// The next `bytes` of the port, up to 64.
  Word pull(unsigned bytes = Word::kBytes) {
    Word word;
    word.bytes = bytes;
    pull(word.data.data(), bytes);
    return word;
  }
  void pull(void* elements, std::uint64_t bytes) {
    if (bytes == 0) return;
    std::uint64_t done = 0;
    detail::check(unisono_stream_read(from_.context, from_.port, elements, bytes, UNISONO_WHOLE, &done));
  }

 private:
  DataStream to_;
  DataStream from_;
};

}  // namespace kernel
}  // namespace api
}  // namespace unisono

/// As the paper calls them.
namespace cclo_hls {
using Command = unisono::kernel::Command;
using Data = unisono::kernel::Data;
using Word = unisono::kernel::Word;
}  // namespace cclo_hls

#include "unisono/kernel_session.hpp"  // Session: raw sends and receives between two kernels

#endif
