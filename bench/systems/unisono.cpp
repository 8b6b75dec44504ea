// Unisono, through its public C interface and nothing else.
#include <unisono/unisono.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/worker.h"

// Libraries of earlier states, with which this program may be run, know no registration.
#pragma weak unisono_register
#pragma weak unisono_deregister

namespace {

constexpr double kTimeoutSeconds = 60;

struct State {
  unisono_context* context = nullptr;
  unisono_communicator* world = nullptr;
  unisono_communicator* reversed = nullptr;  ///< all ranks, in the opposite order
  unisono_call arguments{};                  ///< of the calls of the block; only the root changes
  // Of v-collectives, a set behind the other, an entry for each rank; null in `arguments` where not used.
  std::vector<std::int64_t> send_counts;
  std::vector<std::int64_t> recv_counts;
  std::map<void*, unisono_registration*> registered;
};

State state;

void check(unisono_result result) {
  if (__builtin_expect(result != 0, 0)) bench_fail("%s", unisono_last_error());
}

bool registers() { return unisono_register != nullptr; }

unisono_collective collective_of(bench_op op) {
  switch (op) {
    case BENCH_BCAST:
      return UNISONO_BCAST;
    case BENCH_REDUCE:
      return UNISONO_REDUCE;
    case BENCH_ALLREDUCE:
      return UNISONO_ALLREDUCE;
    case BENCH_REDUCE_SCATTER:
      return UNISONO_REDUCE_SCATTER;
    case BENCH_SCAN:
      return UNISONO_SCAN;
    case BENCH_EXSCAN:
      return UNISONO_EXSCAN;
    case BENCH_GATHER:
      return UNISONO_GATHER;
    case BENCH_SCATTER:
      return UNISONO_SCATTER;
    case BENCH_ALLGATHER:
      return UNISONO_ALLGATHER;
    case BENCH_ALLTOALL:
      return UNISONO_ALLTOALL;
    case BENCH_GATHERV:
      return UNISONO_GATHERV;
    case BENCH_SCATTERV:
      return UNISONO_SCATTERV;
    case BENCH_ALLGATHERV:
      return UNISONO_ALLGATHERV;
    case BENCH_REDUCE_SCATTERV:
      return UNISONO_REDUCE_SCATTERV;
    case BENCH_ALLTOALLV:
      return UNISONO_ALLTOALLV;
    case BENCH_BARRIER:
      return UNISONO_BARRIER;
    case BENCH_PUT:
      return UNISONO_PUT;
    case BENCH_GET:
      return UNISONO_GET;
    case BENCH_INFLIGHT:
    case BENCH_WAITED:
      return UNISONO_ALLREDUCE;
    default:
      bench_fail("operation %d is not a collective", static_cast<int>(op));
  }
}

unisono_datatype datatype_of(bench_datatype datatype) {
  switch (datatype) {
    case BENCH_INT32:
      return UNISONO_INT32;
    case BENCH_INT64:
      return UNISONO_INT64;
    case BENCH_FP32:
      return UNISONO_FP32;
    default:
      return UNISONO_FP64;
  }
}

bool reduces(bench_op op) {
  return op == BENCH_REDUCE || op == BENCH_ALLREDUCE || op == BENCH_REDUCE_SCATTER || op == BENCH_REDUCE_SCATTERV ||
         op == BENCH_SCAN || op == BENCH_EXSCAN || op == BENCH_INFLIGHT || op == BENCH_WAITED;
}

// There and back again. The two calls differ in direction and buffer only.
void pingpong(const bench_call& call) {
  if (call.rank > 1) return;
  unisono_call& arguments = state.arguments;
  const auto send = [&] {
    arguments.collective = UNISONO_SEND;
    check(unisono_run(state.world, &arguments));
  };
  const auto receive = [&] {
    arguments.collective = UNISONO_RECV;
    check(unisono_run(state.world, &arguments));
  };
  if (call.rank == 0) {
    send();
    receive();
  } else {
    receive();
    send();
  }
}

// All blocks go to rank 1 at once; one element comes back.
void stream(const bench_call& call) {
  if (call.rank > 1) return;
  const std::size_t element = bench_element_bytes(call.datatype);
  unisono_call arguments = state.arguments;
  unisono_request* requests[BENCH_FLIGHTS];
  arguments.collective = call.rank == 0 ? UNISONO_SEND : UNISONO_RECV;
  for (std::size_t i = 0; i < BENCH_FLIGHTS; ++i) {
    arguments.src = static_cast<const char*>(call.src) + i * call.count * element;
    arguments.dst = static_cast<char*>(call.dst) + i * call.count * element;
    check(unisono_start(state.world, &arguments, &requests[i]));
  }
  int complete = 0;
  check(unisono_wait_all(requests, BENCH_FLIGHTS, UNISONO_NO_LIMIT, &complete, nullptr));
  for (unisono_request* const request : requests) unisono_request_free(request);
  arguments.collective = call.rank == 0 ? UNISONO_RECV : UNISONO_SEND;
  arguments.src = call.src;
  arguments.dst = call.dst;
  arguments.count = 1;
  arguments.src_bytes = arguments.dst_bytes = element;
  check(unisono_run(state.world, &arguments));
}

// The all-reduces of BENCH_INFLIGHT; or each is waited for before the next is started.
void in_flight(const bench_call& call, bool each) {
  const std::size_t block = call.count * bench_element_bytes(call.datatype);
  unisono_call& arguments = state.arguments;
  unisono_request* requests[BENCH_FLIGHTS];
  for (std::size_t i = 0; i < BENCH_FLIGHTS; ++i) {
    arguments.src = static_cast<const char*>(call.src) + i * block;
    arguments.dst = static_cast<char*>(call.dst) + i * block;
    check(unisono_start(state.world, &arguments, &requests[i]));
    if (each) {
      check(unisono_wait(requests[i]));
      unisono_request_free(requests[i]);
    }
  }
  if (each) return;
  int complete = 0;
  check(unisono_wait_all(requests, BENCH_FLIGHTS, UNISONO_NO_LIMIT, &complete, nullptr));
  for (unisono_request* const request : requests) unisono_request_free(request);
}

}  // namespace

std::uint32_t system_launched_rank() {
  const char* const rank = std::getenv("UNISONO_RANK");
  if (rank == nullptr) bench_fail("UNISONO_RANK is not set: what started this process?");
  return static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10));
}

void system_open(int*, char***, std::uint32_t* rank, std::uint32_t* size) {
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  settings.timeout_seconds = kTimeoutSeconds;
  check(unisono_init(&settings, &state.context));
  check(unisono_world(state.context, &state.world));
  check(unisono_communicator_rank(state.world, rank));
  check(unisono_communicator_size(state.world, size));
  check(unisono_split(state.world, 0, -static_cast<std::int64_t>(*rank), 0, &state.reversed));
}

void system_close() { check(unisono_finalize(state.context)); }

int system_offers(bench_kind kind) { return kind != BENCH_REGISTERED || registers() ? 1 : 0; }

void* system_allocate(std::size_t bytes, bench_kind kind) {
  void* memory = nullptr;
  if (kind != BENCH_ALLOCATED) {
    memory = bench_allocate_plain(bytes);
    if (kind == BENCH_REGISTERED) check(unisono_register(state.context, memory, bytes, &state.registered[memory]));
    return memory;
  }
  check(unisono_allocate(state.context, bytes, &memory));
  return memory;
}

void system_deallocate(void* memory, bench_kind kind) {
  if (kind != BENCH_ALLOCATED) {
    if (const auto known = state.registered.extract(memory)) check(unisono_deregister(known.mapped()));
    std::free(memory);
  } else {
    check(unisono_deallocate(state.context, memory));
  }
}

void* system_expose(std::size_t bytes, bench_kind kind) {
  void* const memory = system_allocate(bytes, kind);
  check(unisono_window(state.world, memory, bytes));
  return memory;
}

void system_withdraw(void* memory, bench_kind kind) {
  check(unisono_window(state.world, nullptr, 0));
  system_deallocate(memory, kind);
}

void system_prepare(const bench_call* call) {
  const std::uint64_t element = bench_element_bytes(call->datatype);
  unisono_call& arguments = state.arguments;
  arguments = {};
  arguments.struct_size = sizeof arguments;
  arguments.algorithm = call->algorithm;
  if (call->op == BENCH_PINGPONG || call->op == BENCH_STREAM) {
    if (call->algorithm != nullptr) bench_fail("send and recv have no algorithms to choose from");
    arguments.root = 1 - static_cast<std::int64_t>(call->rank);
  } else {
    arguments.collective = collective_of(call->op);
  }
  if (call->op == BENCH_BARRIER) return;
  arguments.datatype = datatype_of(call->datatype);
  arguments.op = reduces(call->op) ? UNISONO_SUM : 0;
  arguments.count = static_cast<std::int64_t>(call->count);
  arguments.src = call->src;
  arguments.src_bytes = element * bench_src_elements(call);
  arguments.dst = call->dst;
  arguments.dst_bytes = element * bench_dst_elements(call);
  // The other side of a put or get is the window.
  if (bench_has_window(call->op)) {
    if (call->algorithm != nullptr) bench_fail("put and get have no algorithms to choose from");
    arguments.root = bench_target(call);
    (call->op == BENCH_PUT ? arguments.dst_bytes : arguments.src_bytes) = 0;
    if (call->op == BENCH_PUT) arguments.dst = nullptr;
    if (call->op == BENCH_GET) arguments.src = nullptr;
  }
  if (call->op == BENCH_INFLIGHT || call->op == BENCH_WAITED || call->op == BENCH_STREAM) {
    arguments.src_bytes = element * call->count;
    arguments.dst_bytes = element * call->count;
  }
  if (call->counts == nullptr) return;
  state.send_counts.clear();
  state.recv_counts.clear();
  const bool all_to_all = call->op == BENCH_ALLTOALLV;
  for (std::uint32_t set = 0; set < call->sets; ++set) {
    for (std::uint32_t i = 0; i < call->size; ++i) {
      const auto own = static_cast<std::int64_t>(bench_count(call, set, all_to_all ? call->rank : 0, i));
      if (all_to_all || call->op == BENCH_SCATTERV) state.send_counts.push_back(own);
      const auto theirs = static_cast<std::int64_t>(all_to_all ? bench_count(call, set, i, call->rank) : own);
      if (call->op != BENCH_SCATTERV) state.recv_counts.push_back(theirs);
    }
  }
}

// The counts of a set; every call of the operation has one.
void give_counts(const bench_call& call, std::uint32_t set) {
  const std::size_t at = static_cast<std::size_t>(set) * call.size;
  state.arguments.send_counts = state.send_counts.empty() ? nullptr : &state.send_counts[at];
  state.arguments.recv_counts = state.recv_counts.empty() ? nullptr : &state.recv_counts[at];
}

void system_call(const bench_call* call, std::uint32_t turn, std::uint32_t set) {
  if (call->op == BENCH_PINGPONG) {
    pingpong(*call);
  } else if (call->op == BENCH_STREAM) {
    stream(*call);
  } else if (call->op == BENCH_SCAN || call->op == BENCH_EXSCAN) {
    check(unisono_run(turn == 0 ? state.world : state.reversed, &state.arguments));
  } else if (call->op == BENCH_INFLIGHT || call->op == BENCH_WAITED) {
    in_flight(*call, call->op == BENCH_WAITED);
  } else {
    if (call->turns > 1) state.arguments.root = turn;
    if (call->counts != nullptr) give_counts(*call, set);
    check(unisono_run(state.world, &state.arguments));
  }
}

void system_barrier() {
  unisono_call barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.collective = UNISONO_BARRIER;
  check(unisono_run(state.world, &barrier));
}

// A put has ended when its data stand at the target, and its rank came to the barrier after that.
void system_settle() { system_barrier(); }

const char* system_algorithm() {
  const char* name = nullptr;
  int automatic = 0;
  check(unisono_last_algorithm(state.world, &name, &automatic));
  return name;
}
