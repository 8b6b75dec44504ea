// The functions of unisono/smi.h.
#include "driver/interface.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "core/text.hpp"
#include "kernels/channel.hpp"
#include "kernels/group.hpp"
#include "kernels/node_ports.hpp"
#include "kernels/rank.hpp"
#include "unisono/smi.h"

namespace unisono::kernels {
namespace {

Group& group_of(SMI_Comm comm) {
  if (comm == nullptr) throw Error(ErrorCode::kInvalidArgument, "the SMI communicator is null");
  return *static_cast<Group*>(const_cast<unisono_smi_comm*>(comm));
}

/// Runs the body with the group of a communicator, as the driver of its rank.
template <class Body>
unisono_result driving(SMI_Comm comm, Body&& body) {
  return driver::guarded([&] {
    Group& group = group_of(comm);
    const Rank::Turn turn(group.owner());
    body(group);
  });
}

SMI_Comm comm_of(const std::shared_ptr<driver::Communicator>& communicator) {
  const std::shared_ptr<Rank> rank = Rank::of(communicator->context);
  const Rank::Turn turn(*rank);
  return &rank->group(communicator);
}

/// The job of the program, if it has asked for SMI_COMM_WORLD.
struct World {
  unisono_context* context = nullptr;
  unisono_communicator* communicator = nullptr;
  SMI_Comm comm = nullptr;
  int process = 0;
};

World& world() {
  static World of_process;
  return of_process;
}

// A program that returns from main leaves in order, one that fails does not.
void leave_world(int status, void* /*user*/) {
  World& job = world();
  if (job.context == nullptr || job.process != getpid()) return;
  const unisono_result result = status == 0 ? unisono_finalize(job.context) : unisono_abandon(job.context);
  job.context = nullptr;
  if (result != 0) std::fprintf(stderr, "unisono: error: %s\n", unisono_last_error());
}

[[noreturn]] void end_program() {
  const std::string sentence = unisono_last_error();
  const World& job = world();
  const std::string who = job.comm == nullptr ? "" : formatted("rank {}: ", job.comm->rank);
  std::fprintf(stderr, "unisono: error: %s%s\n", who.c_str(), sentence.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

void require(unisono_result result) {
  if (result != 0) end_program();
}

struct Launched {
  std::shared_ptr<Rank> rank;
  std::shared_ptr<Kernel> kernel;
};

}  // namespace
}  // namespace unisono::kernels

using namespace unisono;           // NOLINT(google-build-using-namespace)
using namespace unisono::kernels;  // NOLINT(google-build-using-namespace)

extern "C" {

SMI_Comm unisono_smi_world(void) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  World& job = world();
  if (job.comm != nullptr) return job.comm;
  job.process = getpid();
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  if (const char* const text = std::getenv("UNISONO_SMI_TIMEOUT_S");
      text != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    char* end = nullptr;
    settings.timeout_seconds = std::strtod(text, &end);
    if (end == text || *end != 0 || !(settings.timeout_seconds > 0)) {
      std::fprintf(stderr, "unisono: error: UNISONO_SMI_TIMEOUT_S is \"%s\"; give seconds, more than 0\n", text);
      std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  require(unisono_init(&settings, &job.context));
  require(unisono_world(job.context, &job.communicator));
  require(unisono_smi_comm_of(job.communicator, &job.comm));
  on_exit(leave_world, nullptr);
  return job.comm;
}

unisono_communicator* unisono_smi_world_communicator(void) {
  unisono_smi_world();
  return world().communicator;
}

unisono_result unisono_smi_comm_of(unisono_communicator* communicator, SMI_Comm* comm) {
  return driver::guarded(
      [&] { driver::output(comm, "SMI communicator") = comm_of(driver::communicator_of(communicator)); });
}

unisono_result unisono_smi_split(SMI_Comm parent, int colour, int key, SMI_Comm* comm) {
  return driver::guarded([&] {
    driver::output(comm, "SMI communicator") = nullptr;
    if (Rank::current() != nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "a communicator is made by the program, not by a kernel");
    }
    const auto made = driver::split(group_of(parent).communicator(), colour, key, {});
    if (made != nullptr) *comm = comm_of(made);
  });
}

unisono_smi_channel unisono_smi_open(int kind, long long count, SMI_Datatype type, SMI_Op op, int peer, int port,
                                     SMI_Comm comm, int degree) {
  unisono_smi_channel channel{};
  channel.end = closed_end();
  channel.comm = comm;
  channel.count = count;
  channel.kind = kind;
  channel.type = type;
  channel.op = op;
  channel.peer = peer;
  channel.port = port;
  channel.degree = degree;
  channel.element_bytes = bytes_of_type(type);
  return channel;
}

unisono_result unisono_smi_push(unisono_smi_channel* channel, const void* data, size_t elements) {
  return driving(channel->comm, [&](Group& group) { push(group, *channel, data, elements); });
}

unisono_result unisono_smi_flush(unisono_smi_channel* channel) {
  return driving(channel->comm, [&](Group& group) { flush(group, *channel); });
}

unisono_result unisono_smi_pop(unisono_smi_channel* channel, void* data, size_t elements) {
  return driving(channel->comm, [&](Group& group) { pop(group, *channel, data, elements); });
}

unisono_result unisono_smi_collective(unisono_smi_channel* channel, const void* send, void* receive, size_t calls) {
  return driving(channel->comm, [&](Group& group) { collective(group, *channel, send, receive, calls); });
}

unisono_result unisono_smi_barrier(SMI_Comm comm, int port) {
  return driving(comm, [&](Group& group) {
    unisono_smi_channel channel =
        unisono_smi_open(UNISONO_SMI_ALLREDUCE, 1, SMI_BYTE, SMI_OP_OF(UNISONO_BITWISE_OR), 0, port, comm, -1);
    char byte = 0;
    collective(group, channel, &byte, &byte, 1);
  });
}

unisono_result unisono_smi_finish(SMI_Comm comm) {
  return driving(comm, [](Group& group) { group.owner().finish(); });
}

void unisono_smi_set_strict(int strict) { Rank::set_strict(strict != 0); }

void unisono_smi_check(unisono_result result) {
  if (result == 0) return;
  if (Rank* const rank = Rank::current(); rank != nullptr) {
    rank->end_kernel(static_cast<ErrorCode>(result), unisono_last_error());
  }
  end_program();
}

unisono_result unisono_kernel_launch(SMI_Comm comm, const char* name, void (*function)(void* argument), void* argument,
                                     void (*release)(void* argument), int forever, unisono_kernel** kernel) {
  return driving(comm, [&](Group& group) {
    if (function == nullptr) throw Error(ErrorCode::kInvalidArgument, "the function of a kernel is null");
    std::shared_ptr<void> owned;
    if (release != nullptr) owned = std::shared_ptr<void>(argument, release);
    // A kernel that does not go on leaves its stack as it is, so nothing that is to be released lies there.
    auto launched = group.owner().launch(
        name == nullptr ? "?" : name, [function, argument] { function(argument); }, std::move(owned), forever != 0);
    if (kernel == nullptr) return;
    auto* const handle = new Launched{group.owner().shared_from_this(), std::move(launched)};
    *kernel = reinterpret_cast<unisono_kernel*>(handle);
  });
}

unisono_result unisono_kernel_wait(unisono_kernel* kernel) {
  auto* const handle = reinterpret_cast<Launched*>(kernel);
  const unisono_result result = driver::guarded([&] {
    if (handle == nullptr) throw Error(ErrorCode::kInvalidArgument, "the kernel is null");
    const Rank::Turn turn(*handle->rank);
    handle->rank->wait_for(*handle->kernel);
  });
  delete handle;
  return result;
}

void unisono_kernel_forget(unisono_kernel* kernel) { delete reinterpret_cast<Launched*>(kernel); }

void unisono_kernel_fail(unisono_result code, const char* sentence) {
  Kernel* const kernel = Rank::current_kernel();
  if (kernel == nullptr) return;
  kernel->code = static_cast<ErrorCode>(code);
  kernel->failure = sentence;
}

unisono_result unisono_kernel_wait_all(SMI_Comm comm) {
  return driving(comm, [](Group& group) { group.owner().wait_for_all(); });
}

int unisono_kernel_running(void) { return Rank::current() != nullptr ? 1 : 0; }

void unisono_kernel_yield(int polls) {
  if (Rank* const rank = Rank::current(); rank != nullptr) rank->yield(polls != 0);
}

void unisono_kernel_tick(uint64_t cycles) {
  Rank* const rank = Rank::current();
  if (rank == nullptr || cycles == 0) return;
  if (Kernel* const kernel = Rank::current_kernel(); kernel != nullptr) kernel->ticks += cycles;
  rank->tick(cycles);
}

uint64_t unisono_kernel_cycle(void) {
  Rank* const rank = Rank::current();
  if (rank != nullptr && rank->node_ports() != nullptr) return rank->node_ports()->now();
  const Kernel* const kernel = Rank::current_kernel();
  return kernel != nullptr ? kernel->ticks : 0;
}

uint64_t unisono_kernel_nanoseconds(SMI_Comm comm) {
  Rank& rank = group_of(comm).owner();
  if (rank.node_ports() == nullptr) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  const Rank::Turn turn(rank);
  return rank.node_ports()->now() * 1000000 / rank.node_ports()->clock_khz();
}

unisono_result unisono_smi_meet(SMI_Comm comm) {
  if (group_of(comm).owner().node_ports() != nullptr) {
    return driving(comm, [](Group& group) {
      if (Rank::current() != nullptr) {
        throw Error(ErrorCode::kInvalidArgument, "the hosts of a job meet, not its kernels");
      }
      group.owner().meet();
    });
  }
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_BARRIER;
  return unisono_run(unisono_smi_world_communicator(), &call);
}

int unisono_kernel_queue_turn(unisono_kernel_queue* queue, int writes, int waits) {
  Rank* const rank = Rank::current();
  if (rank != nullptr && rank->node_ports() != nullptr) {
    return rank->node_ports()->turn(*queue, writes != 0, waits != 0) ? 1 : 0;
  }
  return rank != nullptr ? -1 : 1;
}

void unisono_kernel_queue_wait(unisono_kernel_queue* queue, int writes) {
  Rank* const rank = Rank::current();
  if (rank == nullptr) {
    driver::failed(ErrorCode::kInvalidArgument,
                   formatted("queue {} is used outside of kernels, where nobody could wait", queue->name).c_str());
    unisono_smi_check(static_cast<unisono_result>(ErrorCode::kInvalidArgument));
    return;
  }
  Task& me = rank->here();
  (writes != 0 ? queue->writer : queue->reader) = &me;
  int& waits = writes != 0 ? queue->writer_waits : queue->reader_waits;
  const auto blocked = [&] {
    const unsigned long long held = queue->written - queue->read;
    return writes != 0 ? held >= queue->depth : held == 0;
  };
  while (blocked()) {
    waits = 1;
    Wait wait;
    wait.kind = writes != 0 ? Wait::Kind::kWrite : Wait::Kind::kRead;
    wait.name = queue->name;
    wait.towards = static_cast<Task*>(writes != 0 ? queue->reader : queue->writer);
    rank->block(wait);
  }
  waits = 0;
}

void unisono_kernel_queue_wake(unisono_kernel_queue* queue, int writes) {
  auto* const other = static_cast<Task*>(writes != 0 ? queue->writer : queue->reader);
  (writes != 0 ? queue->writer_waits : queue->reader_waits) = 0;
  Rank* const rank = Rank::current();
  if (rank == nullptr || other == nullptr) return;
  rank->node_ports() != nullptr ? rank->node_ports()->wake_next(*other) : rank->wake(*other);
}

}  // extern "C"
