// The C interface: handles, versions and errors; the work is done by the objects.
#include "unisono/unisono.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/lasting.hpp"
#include "core/log.hpp"
#include "core/quoted.hpp"
#include "core/user_op.hpp"
#include "driver/callbacks.hpp"
#include "driver/front_door.hpp"
#include "driver/group.hpp"
#include "driver/housekeeping.hpp"
#include "driver/interface.hpp"
#include "driver/joining.hpp"
#include "driver/neighbours.hpp"
#include "driver/objects.hpp"
#include "driver/observe.hpp"
#include "driver/platform.hpp"
#include "engine/interrupt.hpp"
#include "network/shm/arena.hpp"
#include "network/wait_hook.hpp"

namespace unisono::driver {

namespace {

/// Bytes of a user's reason that errors of other ranks contain.
constexpr std::size_t kMostReason = 1000;

static_assert(UNISONO_ABI_VERSION == kAbiVersion);
static_assert(
    UNISONO_BYTE == static_cast<int>(Datatype::kByte) && UNISONO_INT32 == static_cast<int>(Datatype::kInt32) &&
    UNISONO_INT64 == static_cast<int>(Datatype::kInt64) && UNISONO_FP16 == static_cast<int>(Datatype::kFp16) &&
    UNISONO_BF16 == static_cast<int>(Datatype::kBf16) && UNISONO_FP32 == static_cast<int>(Datatype::kFp32) &&
    UNISONO_FP64 == static_cast<int>(Datatype::kFp64) && UNISONO_COMPLEX64 == static_cast<int>(Datatype::kComplex64) &&
    UNISONO_COMPLEX128 == static_cast<int>(Datatype::kComplex128) &&
    UNISONO_INT8 == static_cast<int>(Datatype::kInt8) && UNISONO_UINT8 == static_cast<int>(Datatype::kUint8) &&
    UNISONO_INT16 == static_cast<int>(Datatype::kInt16) && UNISONO_UINT16 == static_cast<int>(Datatype::kUint16) &&
    UNISONO_UINT32 == static_cast<int>(Datatype::kUint32) && UNISONO_UINT64 == static_cast<int>(Datatype::kUint64) &&
    UNISONO_BOOL == static_cast<int>(Datatype::kBool) && UNISONO_FP32_INT32 == static_cast<int>(Datatype::kFp32Int32) &&
    UNISONO_FP64_INT32 == static_cast<int>(Datatype::kFp64Int32) &&
    UNISONO_INT32_INT32 == static_cast<int>(Datatype::kInt32Int32) &&
    UNISONO_INT64_INT64 == static_cast<int>(Datatype::kInt64Int64));
static_assert(UNISONO_SUM == static_cast<int>(Func::kSum) && UNISONO_PROD == static_cast<int>(Func::kProd) &&
              UNISONO_MIN == static_cast<int>(Func::kMin) && UNISONO_MAX == static_cast<int>(Func::kMax) &&
              UNISONO_LOGICAL_AND == static_cast<int>(Func::kLogicalAnd) &&
              UNISONO_LOGICAL_OR == static_cast<int>(Func::kLogicalOr) &&
              UNISONO_LOGICAL_XOR == static_cast<int>(Func::kLogicalXor) &&
              UNISONO_BITWISE_AND == static_cast<int>(Func::kBitwiseAnd) &&
              UNISONO_BITWISE_OR == static_cast<int>(Func::kBitwiseOr) &&
              UNISONO_BITWISE_XOR == static_cast<int>(Func::kBitwiseXor) &&
              UNISONO_MINLOC == static_cast<int>(Func::kMinloc) && UNISONO_MAXLOC == static_cast<int>(Func::kMaxloc) &&
              UNISONO_AVG == static_cast<int>(Func::kAvg));
Observation observation_of(int what) {
  if (what < UNISONO_DUMP_NOW || what > UNISONO_DUMP_COUNTERS) {
    throw Error(ErrorCode::kInvalidArgument, "dump: what is " + std::to_string(what) + "; allowed are 0 to 3");
  }
  return static_cast<Observation>(what);
}

/// Keeps a text for the thread that asked for it.
const char* keep_dump(std::string text) {
  auto& kept = lasting<std::string, struct Dump>();
  kept = std::move(text);
  return kept.c_str();
}

/// Whether the settings or the environment ask for an offload thread.
bool offload_of(const unisono_settings& given) {
  if (given.offload != 0) return given.offload > 0;
  const char* const value = std::getenv("UNISONO_OFFLOAD");
  const std::string_view text = value == nullptr ? "" : value;
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  throw Error(ErrorCode::kBootstrap,
              "environment variable UNISONO_OFFLOAD is " + in_quotes(text) + ", but should be 0 or 1");
}

/// A user's settings, ready for a context to begin with.
struct Beginning {
  explicit Beginning(const unisono_settings* from) : platform(platform_of_process()) {
    const unisono_settings given = import_settings(from);
    offloads = offload_of(given);
    engine = default_settings(platform);
    apply(given, engine, choice);
  }
  Platform platform;
  EngineSettings engine;
  RuleChoice choice;
  bool offloads = false;
};

unisono_context* publish(const std::shared_ptr<Context>& context, const Beginning& beginning) {
  context->begin_with(beginning.choice);
  context->offload_all(beginning.offloads);
  auto world = std::make_shared<Communicator>();
  const std::shared_ptr<Endpoint> endpoint = context->endpoint();
  world->context = context;
  world->rank = endpoint->engine->rank(0);
  world->size = endpoint->engine->size(0);
  world->fast_path = endpoint->engine->fast_path(0);
  for (std::uint32_t rank = 0; rank < world->size; ++rank) world->endpoints.push_back(rank);
  world->grouping = hosts_of(*endpoint->poe, world->endpoints);
  context->world_handle = Communicators::instance().add(world, true);
  if (logs(LogLevel::kInfo)) {
    log(LogLevel::kInfo, "rank " + std::to_string(world->rank) + " of " + std::to_string(world->size) + " (process " +
                             std::to_string(getpid()) + ") has joined its job on platform " +
                             name_of(beginning.platform));
  }
  return handle_of<unisono_context>(Contexts::instance().add(context));
}

std::string read_file(const char* path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, std::string("the program file ") + path + " cannot be read: " + why);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(std::generic_category().message(errno));
  try {
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure& failure) {
    refuse(failure.code().message());  // a folder, say
  }
  return {};
}

/// A blocking call that must be checked first. By itself, so that the way of all others is short.
[[gnu::noinline]] void run_checked(const unisono_communicator* communicator, const unisono_call* call) {
  Callbacks::refuse("a function that blocks (unisono_run)");
  const auto own = communicator_of(communicator);
  if (Group::of_this_thread(*own)) {
    throw Error(ErrorCode::kInvalidArgument,
                "a call that blocks was made while a group of this communicator is open on this thread; start it, "
                "and wait for it after the group's end (unisono_group_end)");
  }
  const unisono_call given = import_struct(&output(call, "call"), "unisono_call");
  CheckedCall checked;
  prepare(*own, given, checked);
  resolve_before(checked);
  run_to_end(*own, checked.request);
}

}  // namespace

void prepare(const Communicator& communicator, const unisono_call& given, CheckedCall& checked) {
  check_call(communicator, given, checked);
  Call& call = checked.request.call;
  if (call.collective != Collective::kAlltoallv || !call.in_place || call.count != 0) return;
  Callbacks::refuse("an in-place alltoallv whose count is 0");
  Group::refuse(communicator, "an in-place alltoallv whose count is 0");
  // An in-place exchange needs a bound of all blocks that is equal on all ranks.
  std::int64_t largest = 0;
  for (const std::uint64_t count : checked.recv_counts) largest = std::max(largest, static_cast<std::int64_t>(count));
  CallRequest agreement;
  agreement.communicator = communicator.number;
  agreement.call.collective = Collective::kAllreduce;
  agreement.call.func = Func::kMax;
  agreement.call.dtype = Datatype::kInt64;
  agreement.call.in_place = true;
  agreement.call.count = 1;
  agreement.dst = {reinterpret_cast<std::byte*>(&largest), sizeof largest};
  agreement.timeout = checked.request.timeout;
  run_to_end(communicator, agreement);
  call.count = static_cast<std::uint64_t>(largest);
}

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

uint32_t unisono_abi_version(void) { return UNISONO_ABI_VERSION; }

const char* unisono_version(void) { return UNISONO_VERSION; }

const char* unisono_last_error(void) { return last_error().c_str(); }

int unisono_last_error_still_written(void) { return last_still_written() ? 1 : 0; }

const char* unisono_result_name(unisono_result result) {
  return result < 0 || result > 0xffff ? "?" : name_of(static_cast<ErrorCode>(result));
}

unisono_result unisono_init(const unisono_settings* given, unisono_context** context) {
  return guarded([&] {
    unisono_context*& result = output(context, "context");
    Callbacks::refuse("unisono_init");
    const Beginning beginning(given);
    result = publish(join_as_process(beginning.platform, beginning.engine), beginning);
  });
}

unisono_result unisono_join(const unisono_join_functions* functions, const unisono_settings* given,
                            unisono_context** context) {
  return guarded([&] {
    unisono_context*& result = output(context, "context");
    Callbacks::refuse("unisono_join");
    const JobEnvironment environment = job_of(import_struct(&output(functions, "functions"), "unisono_join_functions"));
    const Beginning beginning(given);
    result = publish(join_as_process(beginning.platform, beginning.engine, environment), beginning);
  });
}

unisono_result unisono_thread_job_create(uint32_t size, unisono_thread_job** job) {
  return guarded([&] {
    unisono_thread_job*& result = output(job, "thread job");
    result = handle_of<unisono_thread_job>(ThreadJobs::instance().add(std::make_shared<SharedJob>(size)));
  });
}

unisono_result unisono_thread_job_create_on(uint32_t size, const char* network, unisono_thread_job** job) {
  return guarded([&] {
    unisono_thread_job*& result = output(job, "thread job");
    const std::string_view name = network == nullptr ? "shm" : network;
    if (name != "shm" && name != "loop") {
      throw Error(ErrorCode::kInvalidArgument,
                  "a thread job on network " + in_quotes(name) + " was asked for; allowed are shm and loop");
    }
    const auto carrier = name == "loop" ? SharedJob::Carrier::kLoop : SharedJob::Carrier::kShm;
    result = handle_of<unisono_thread_job>(ThreadJobs::instance().add(std::make_shared<SharedJob>(size, carrier)));
  });
}

void unisono_thread_job_free(unisono_thread_job* job) {
  if (job == nullptr) return;
  guarded([&] { ThreadJobs::instance().take(number_of(job), "thread job", ErrorCode::kInvalidArgument); });
}

unisono_result unisono_thread_context(unisono_thread_job* job, uint32_t rank, const unisono_settings* given,
                                      unisono_context** context) {
  return guarded([&] {
    unisono_context*& result = output(context, "context");
    Callbacks::refuse("unisono_thread_context");
    const Beginning beginning(given);
    const auto shared = ThreadJobs::instance().get(number_of(job), "thread job", ErrorCode::kInvalidArgument);
    result = publish(join_as_thread(beginning.platform, beginning.engine, *shared, rank), beginning);
  });
}

namespace {

unisono_result leave(unisono_context* context, const char* function, Context::Leaving how) {
  return guarded([&] {
    Callbacks::refuse(function);
    const auto leaving = Contexts::instance().take(number_of(context), "context", ErrorCode::kWrongProcess);
    const auto forget_communicators = [&] {
      const auto world =
          Communicators::instance().take(leaving->world_handle, "communicator", ErrorCode::kFreedCommunicator);
      Group::abandon(*world, Error(ErrorCode::kWrongProcess, "the context was closed before its group ended"));
      for (const std::uint64_t handle : leaving->take_handles()) leave_remains(handle);
    };
    try {
      leaving->close(how);
    } catch (...) {
      forget_communicators();
      throw;
    }
    forget_communicators();
  });
}

}  // namespace

unisono_result unisono_finalize(unisono_context* context) {
  return leave(context, "unisono_finalize", Context::Leaving::kCompared);
}

unisono_result unisono_abandon(unisono_context* context) {
  return leave(context, "unisono_abandon", Context::Leaving::kAfterError);
}

unisono_result unisono_progress(unisono_context* context) {
  return guarded([&] { context_of(context)->endpoint()->engine->progress(); });
}

unisono_result unisono_descriptor(unisono_context* context, int* descriptor) {
  return guarded([&] {
    int& result = output(descriptor, "descriptor");
    result = -1;
    result = context_of(context)->descriptor();
  });
}

unisono_result unisono_arm(unisono_context* context, int* ready) {
  return guarded([&] {
    int& result = output(ready, "answer");
    result = 1;
    result = context_of(context)->arm() ? 1 : 0;
  });
}

unisono_result unisono_abort(unisono_context* context, const char* reason) {
  return guarded([&] {
    const auto own = context_of(context);
    const auto endpoint = own->endpoint();
    const std::string text =
        "this rank ended all calls" + (reason == nullptr ? std::string() : ": " + shortened(reason, kMostReason));
    for (const std::uint32_t number : own->numbers()) {
      try {
        endpoint->engine->revoke(number, text);
      } catch (const Error& error) {
        // Another thread has freed it meanwhile, or is at making it; then its agreement ends with the parent.
        if (error.code() != ErrorCode::kFreedCommunicator && error.code() != ErrorCode::kInvalidArgument) throw;
      }
    }
  });
}

unisono_result unisono_world(unisono_context* context, unisono_communicator** communicator) {
  return guarded([&] {
    output(communicator, "communicator") = handle_of<unisono_communicator>(context_of(context)->world_handle);
  });
}

unisono_result unisono_graph_create(unisono_communicator* communicator, size_t sources_count, const int64_t* sources,
                                    size_t destinations_count, const int64_t* destinations, unisono_graph** graph) {
  return guarded([&] {
    unisono_graph*& result = output(graph, "graph");
    Callbacks::refuse("unisono_graph_create");
    const auto of = communicator_of(communicator);
    Group::refuse(*of, "unisono_graph_create");
    if ((sources == nullptr && sources_count != 0) || (destinations == nullptr && destinations_count != 0)) {
      throw Error(ErrorCode::kInvalidArgument,
                  std::string("graph: ") + (sources == nullptr && sources_count != 0 ? "sources" : "destinations") +
                      " is null, and its number is not 0");
    }
    const auto made = make_graph(of, std::span(sources, sources_count), std::span(destinations, destinations_count));
    result = handle_of<unisono_graph>(Graphs::instance().add(made));
  });
}

void unisono_graph_free(unisono_graph* graph) {
  if (graph == nullptr) return;
  guarded([&] { Graphs::instance().take(number_of(graph), "graph", ErrorCode::kInvalidArgument); });
}

unisono_result unisono_communicator_free(unisono_communicator* communicator) {
  return guarded([&] {
    const auto freed = communicator_of(communicator);
    if (number_of(communicator) == freed->context->world_handle) {
      throw Error(
          ErrorCode::kInvalidArgument,
          "the communicator of all ranks belongs to its context, and is freed when that is closed (unisono_finalize)");
    }
    Communicators::instance().take(number_of(communicator), "communicator", ErrorCode::kFreedCommunicator);
    freed->context->drop_handle(number_of(communicator));
    Group::abandon(*freed, Error(ErrorCode::kFreedCommunicator, "the communicator was freed before its group ended"));
    std::shared_ptr<Endpoint> endpoint;
    try {
      endpoint = freed->context->endpoint();
    } catch (const Error&) {
      return;  // the context was closed, and its communicators with it
    }
    drop_shrinking(*freed, *endpoint->engine);
    if (!freed->context->release_number(freed->number)) return;  // a reset has freed it
    give_up(*endpoint->engine, freed->number);
  });
}

unisono_result unisono_communicator_rank(const unisono_communicator* communicator, uint32_t* rank) {
  return guarded([&] { output(rank, "rank") = communicator_of(communicator)->rank; });
}

unisono_result unisono_communicator_size(const unisono_communicator* communicator, uint32_t* size) {
  return guarded([&] { output(size, "size") = communicator_of(communicator)->size; });
}

unisono_result unisono_communicator_set_timeout(unisono_communicator* communicator, double seconds) {
  return guarded([&] {
    const auto own = communicator_of(communicator);
    const auto timeout = duration_of(seconds, "timeout");
    if (timeout.count() == 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  "timeout is 0 s; no call could meet it. Allowed are more than 0 s, up to 10 years");
    }
    own->context->endpoint()->engine->set_timeout(own->number, timeout);
    own->timeout_us.store(static_cast<std::uint64_t>(timeout.count()), std::memory_order_relaxed);
  });
}

unisono_result unisono_communicator_revoke(unisono_communicator* communicator, const char* reason) {
  return guarded([&] {
    const auto own = communicator_of(communicator);
    own->context->endpoint()->engine->revoke(
        own->number, reason == nullptr ? "no reason was given" : shortened(reason, kMostReason));
  });
}

unisono_result unisono_shrink(unisono_communicator* communicator, unisono_communicator** shrunk) {
  return guarded([&] {
    Callbacks::refuse("unisono_shrink");
    unisono_communicator*& result = output(shrunk, "communicator");
    result = nullptr;
    const auto own = communicator_of(communicator);
    Group::refuse(*own, "unisono_shrink");
    const auto made = shrink(own, {});
    result = publish(made);
  });
}

unisono_result unisono_agree(unisono_communicator* communicator, uint64_t* value) {
  return guarded([&] {
    Callbacks::refuse("unisono_agree");
    uint64_t& bits = output(value, "value");
    const auto own = communicator_of(communicator);
    Group::refuse(*own, "unisono_agree");
    bits = agree(*own, bits, {});
  });
}

unisono_result unisono_failed(unisono_communicator* communicator, uint32_t* ranks, size_t capacity, size_t* count) {
  return guarded([&] {
    size_t& number = output(count, "count");
    const auto failed = failed_ranks(*communicator_of(communicator));
    if (capacity != 0) std::copy_n(failed.begin(), std::min(capacity, failed.size()), &output(ranks, "ranks"));
    number = failed.size();
  });
}

unisono_result unisono_last_algorithm(const unisono_communicator* communicator, const char** name, int* automatic) {
  return guarded([&] {
    const char*& text = output(name, "name");
    int& chosen = output(automatic, "answer");
    const auto own = communicator_of(communicator);
    const LastAlgorithm last = own->context->endpoint()->engine->last_algorithm(own->number);
    text = last.algorithm == nullptr ? nullptr : last.algorithm->name;
    chosen = last.automatic ? 1 : 0;
  });
}

unisono_result unisono_dump(const unisono_context* context, int what, const char** text) {
  return guarded([&] {
    const char*& result = output(text, "text");
    const auto endpoint = context_of(context)->endpoint();
    result = keep_dump(observe(*endpoint->poe, observation_of(what)));
  });
}

unisono_result unisono_dump_process(uint32_t pid, int what, const char** text) {
  return guarded([&] { output(text, "text") = keep_dump(observe_process(pid, observation_of(what))); });
}

unisono_result unisono_window(unisono_communicator* communicator, void* base, uint64_t bytes) {
  return guarded([&] {
    Callbacks::refuse("unisono_window");
    const auto own = communicator_of(communicator);
    Group::refuse(*own, "unisono_window");
    if (base == nullptr && bytes != 0) {
      throw Error(ErrorCode::kInvalidArgument, "window: base is null, but bytes is " + std::to_string(bytes));
    }
    CallRequest barrier;
    barrier.communicator = own->number;
    barrier.call.collective = Collective::kBarrier;
    const auto endpoint = own->context->endpoint();
    // Nobody's access of the old window comes after the first barrier, nobody's of the new one before
    // the second.
    as_part_of("window", [&] { return run_to_end(*own, barrier); });
    endpoint->engine->bind_window(own->number, {static_cast<std::byte*>(base), base == nullptr ? 0 : bytes});
    as_part_of("window", [&] { return run_to_end(*own, barrier); });
  });
}

unisono_result unisono_allocate(unisono_context* context, uint64_t bytes, void** memory) {
  return guarded([&] {
    void*& result = output(memory, "memory");
    result = nullptr;
    Allocation made = context_of(context)->allocate(bytes);
    std::byte* const begin = made.memory;
    try {
      Allocations::instance().add(number_of(context), made);
    } catch (...) {
      made.give_back();
      throw;
    }
    result = begin;
  });
}

unisono_result unisono_deallocate(unisono_context* context, void* memory) {
  return guarded([&] {
    if (memory == nullptr) return;
    Contexts::recognise(number_of(context), "context");
    Allocations::instance().release(number_of(context), memory);
  });
}

unisono_result unisono_op_create(const char* name, unisono_op_function function, void* context, int commutative,
                                 unisono_op* op) {
  return guarded([&] {
    if (name == nullptr || function == nullptr || op == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, std::string("op create: ") +
                                                   (name == nullptr       ? "name"
                                                    : function == nullptr ? "function"
                                                                          : "op") +
                                                   " is null");
    }
    *op = static_cast<int>(add_user_op({name, function, context, commutative != 0}));
  });
}

unisono_result unisono_op_free(unisono_op op) {
  return guarded([&] {
    if (op < 0 || op > 255) throw_no_user_op(op);
    remove_user_op(static_cast<Func>(op));
  });
}

int unisono_op_failed(const char* why) {
  explain_failure(why == nullptr ? "" : why);
  return 1;
}

unisono_result unisono_start(unisono_communicator* communicator, const unisono_call* call, unisono_request** request) {
  return guarded([&] {
    unisono_request*& result = output(request, "request");
    result = nullptr;
    const auto own = communicator_of(communicator);
    auto made = start_at_once(own, output(call, "call"));
    if (!made) {
      made = make_request(own, *call, false);
      made->start();
    }
    result = handle_of<unisono_request>(Requests::instance().add(made));
  });
}

void unisono_set_interrupt(int (*wants_to_stop)(void* context), void* context) {
  cclo::Interrupt::current().wants_to_stop = wants_to_stop;
  cclo::Interrupt::current().context = context;
}

void unisono_set_wait_hook(void (*function)(void* context), void* context) {
  WaitHook::install(function, context, &Callbacks::run_hook);
}

unisono_result unisono_run(unisono_communicator* communicator, const unisono_call* call) {
  return guarded([&] {
    std::uint64_t received = 0;
    if (run_at_once(communicator, call, received)) [[likely]]
      return;
    run_checked(communicator, call);
  });
}

unisono_result unisono_test(unisono_request* request, int* complete) {
  return guarded([&] {
    int& done = output(complete, "answer");
    done = 0;
    const auto result = request_of(request)->flight()->test();
    if (!result) return;
    done = 1;
    throw_if_failed(*result);
  });
}

unisono_result unisono_wait(unisono_request* request) {
  return guarded([&] {
    const auto flight = request_of(request)->flight();
    if (Callbacks::running() && !flight->known()) Callbacks::refuse("unisono_wait");
    throw_if_failed(flight->wait());
  });
}

unisono_result unisono_wait_at_most(unisono_request* request, double seconds, int* complete) {
  return guarded([&] {
    int& done = output(complete, "answer");
    done = 0;
    const auto at_most = duration_of(seconds, "seconds", "only look");
    const auto flight = request_of(request)->flight();
    if (Callbacks::running() && at_most.count() != 0 && !flight->known()) Callbacks::refuse("unisono_wait_at_most");
    const auto result = flight->wait_at_most(at_most);
    if (!result) return;
    done = 1;
    throw_if_failed(*result);
  });
}

unisono_result unisono_request_count(unisono_request* request, int64_t* count) {
  return guarded([&] { output(count, "count") = request_of(request)->received(); });
}

void unisono_request_free(unisono_request* request) {
  if (request == nullptr) return;
  guarded([&] {
    const auto done = [](const driver::Request& held) { return held.done(); };
    if (Requests::instance().take_if(number_of(request), "request", done)) return;
    const auto own = request_of(request);
    own->leave_group();
    try {
      const auto flight = own->flight();
      if (Callbacks::running() && !flight->test()) Callbacks::refuse("unisono_request_free of a call in flight");
      flight->wait();
    } catch (const Error&) {
      if (Callbacks::running() && !own->idle()) throw;
      last_error().clear();  // cancelled by closing the context, or never started: there is no result to wait for
    }
    if (!Callbacks::running()) own->await_callbacks();
    Requests::instance().take(number_of(request), "request", ErrorCode::kInvalidArgument);
  });
}

unisono_result unisono_program_parse(const void* bytes, size_t size, unisono_program** program) {
  return guarded([&] {
    unisono_program*& result = output(program, "program");
    if (bytes == nullptr) throw Error(ErrorCode::kInvalidArgument, "the bytes of the program are null");
    result = handle_of<unisono_program>(Programs::instance().add(
        std::make_shared<ProgramSet>(parse_programs({static_cast<const std::byte*>(bytes), size}))));
  });
}

unisono_result unisono_program_load(const char* path, unisono_program** program) {
  return guarded([&] {
    unisono_program*& result = output(program, "program");
    if (path == nullptr) throw Error(ErrorCode::kInvalidArgument, "the path of the program file is null");
    const std::string text = read_file(path);
    try {
      result = handle_of<unisono_program>(Programs::instance().add(
          std::make_shared<ProgramSet>(parse_programs(std::as_bytes(std::span(text.data(), text.size()))))));
    } catch (const Error& error) {
      throw Error(error.code(), std::string(path) + ": " + error.what());
    }
  });
}

void unisono_program_free(unisono_program* program) {
  if (program == nullptr) return;
  guarded([&] { Programs::instance().take(number_of(program), "program", ErrorCode::kInvalidArgument); });
}

unisono_result unisono_program_size(const unisono_program* program, uint32_t* ranks) {
  return guarded([&] {
    output(ranks, "number of ranks") = static_cast<std::uint32_t>(
        Programs::instance().get(number_of(program), "program", ErrorCode::kInvalidArgument)->ranks.size());
  });
}

size_t unisono_algorithms(size_t index, unisono_algorithm_info* info) {
  const auto table = algorithms();
  if (info != nullptr && index < table.size()) {
    const Algorithm& entry = table[index];
    *info = {static_cast<int>(entry.collective),
             entry.name,
             entry.source,
             entry.restriction,
             entry.cost,
             entry.summary,
             entry.ordered ? 1 : 0};
  }
  return table.size();
}

uint32_t unisono_algorithm_radix(size_t index) {
  const auto table = algorithms();
  return index < table.size() ? table[index].default_radix : 0;
}

}  // extern "C"
