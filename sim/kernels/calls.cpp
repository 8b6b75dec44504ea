// What kernels of a library ask for where they run beside a simulated engine.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/algorithm.hpp"
#include "collectives/tuning.hpp"
#include "core/facts.hpp"
#include "core/generated/spec.hpp"
#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "sim/kernels/current.hpp"

namespace unisono::sim {
namespace {

using Run = FibreKernels::Run;

// Not inlined, for no address of a thread's own may be kept over a switch.
[[gnu::noinline]] Run*& current_of_thread() {
  static constinit thread_local Run* current = nullptr;
  asm volatile("" ::: "memory");
  return current;
}

template <class Body>
unisono_result guarded(Run& run, Body&& body) {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    run.error = error.what();
    return static_cast<unisono_result>(error.code());
  }
}

device::KernelStart::Member& member_of(const unisono_communicator* communicator) {
  return *reinterpret_cast<device::KernelStart::Member*>(const_cast<unisono_communicator*>(communicator));
}

void check_port(const Run& run, std::uint32_t port, bool gives) {
  const std::uint32_t ports = gives ? run.kernel->ports_to_engine : run.kernel->ports_from_engine;
  if (port < kKernelStreams && (ports >> port & 1U) != 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              formatted("stream port {} is none that kernel {} {} words at: its arguments have no {}<{}>", port,
                        run.kernel->name, gives ? "gives" : "takes", gives ? "ToCclo" : "FromCclo", port));
}

}  // namespace

Run* CurrentRun::get() { return current_of_thread(); }
void CurrentRun::set(Run* run) { current_of_thread() = run; }

/// The functions of the table. Each runs in the fibre of its kernel.
struct KernelCalls {
  using Wait = Run::Wait;

  static unisono_result start(unisono_communicator* communicator, const unisono_call* given,
                              unisono_request** request) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      FibreKernels& owner = *run.owner;
      const device::KernelStart::Member& member = member_of(communicator);
      const CallDescriptor descriptor = described(run, member, *given);
      while (!owner.calls_.empty()) run.suspend(Wait::kCall);
      auto& made = owner.requests_.emplace_back();
      made.run = &run;
      made.name = name_of(descriptor.collective);
      made.scratch = descriptor.scratch_address;
      give(owner, made, descriptor);
      *request = reinterpret_cast<unisono_request*>(&made);
    });
  }

  /// A call that the host has prepared.
  static unisono_result request_start(unisono_request* request) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      FibreKernels::Request& prepared = of(request);
      if (!prepared.prepared) {
        throw Error(ErrorCode::kInvalidArgument, prepared.name + ": the call runs once; a prepared one starts again");
      }
      if (!prepared.answered) {
        throw Error(ErrorCode::kInvalidArgument,
                    prepared.name + ": the prepared call is in flight; wait for it before it is started again");
      }
      FibreKernels& owner = *run.owner;
      while (!owner.calls_.empty()) run.suspend(Wait::kCall);
      prepared.answered = false;
      prepared.code = 0;
      give(owner, prepared, *prepared.prepared);
    });
  }

  /// Puts a call on the node's call stream, under a number that no other one has.
  static void give(FibreKernels& owner, FibreKernels::Request& request, CallDescriptor descriptor) {
    do {
      if (++owner.last_id_ == 0) owner.last_id_ = 1;
    } while (std::any_of(owner.requests_.begin(), owner.requests_.end(),
                         [&](const auto& other) { return other.id == owner.last_id_; }));
    request.id = owner.last_id_;
    descriptor.call_id = request.id;
    const auto words = encode(descriptor);
    for (unsigned beat = 0; beat < 2; ++beat) {
      KernelWord word;
      word.valid = true;
      word.last = beat == 1;
      word.keep = ~std::uint64_t{0};
      std::memcpy(word.data.data(), &words[std::size_t{8} * beat], sizeof word.data);
      owner.calls_.push_back(word);
    }
  }

  static CallDescriptor described(const Run& run, const device::KernelStart::Member& member,
                                  const unisono_call& given) {
    const auto collective = static_cast<Collective>(given.collective);
    const auto refuse = [&](ErrorCode code, const std::string& what) {
      throw Error(code, std::string(is_known(collective) ? name_of(collective) : "a call") + ": " + what);
    };
    if (given.collective < 0 || !is_known(collective)) {
      refuse(ErrorCode::kInvalidArgument, formatted("there is no collective {}", given.collective));
    }
    const CollectiveFacts facts = facts_of(collective);
    if (facts.vectors || collective == Collective::kProgram || collective == Collective::kNop ||
        given.graph != nullptr) {
      refuse(ErrorCode::kUnsupported,
             "beside a simulated engine the host prepares such a call, and gives it to the kernel (kernel::Prepared)");
    }
    const bool from_stream = (given.streams & UNISONO_SRC_STREAM) != 0;
    const bool to_stream = (given.streams & UNISONO_DST_STREAM) != 0;
    if (from_stream && given.src_port >= kKernelStreams) {
      refuse(ErrorCode::kInvalidArgument,
             formatted("stream port {}; the engine has ports 0 to {}", given.src_port, kKernelStreams - 1));
    }
    // Of a send, the port is the peer's.
    const bool to_peer = collective == Collective::kSend && to_stream;
    if (to_stream && given.dst_port >= kKernelStreams) {
      refuse(ErrorCode::kInvalidArgument, formatted("stream port {}{}; the engine{} has ports 0 to {}", given.dst_port,
                                                    to_peer ? formatted(" of rank {}", given.root) : "",
                                                    to_peer ? " there" : "", kKernelStreams - 1));
    }
    if (given.count < 0) refuse(ErrorCode::kInvalidCount, formatted("{} elements", given.count));
    if ((facts.rooted || facts.point_to_point) && (given.root < 0 || given.root >= member.size)) {
      refuse(ErrorCode::kInvalidRoot, formatted("{} {} was given; the communicator has ranks 0 to {}",
                                                facts.point_to_point ? "peer" : "root", given.root, member.size - 1));
    }
    Call call;
    call.collective = collective;
    call.rank = member.rank;
    call.size = member.size;
    call.dtype = facts.data ? static_cast<Datatype>(given.datatype) : Datatype::kNone;
    call.func = static_cast<Func>(given.op);
    call.count = static_cast<std::uint64_t>(given.count);
    call.root = static_cast<std::uint32_t>(given.root);
    call.in_place = given.in_place != 0;
    int position = -1;
    if (given.algorithm != nullptr) {
      position = find_algorithm(collective, given.algorithm);
      if (position < 0) refuse(ErrorCode::kUnknownAlgorithm, formatted("there is no algorithm {}", given.algorithm));
    } else if (facts.kind == CallKind::kCollective) {
      // As communicators of streams choose, so that members with and without kernels choose alike.
      const Choice choice = choose(call, {stream_rules()});
      position = choice.position;
      call.radix = choice.radix;
    }
    CallDescriptor descriptor;
    descriptor.collective = collective;
    descriptor.algorithm = static_cast<std::uint8_t>(position + 1);
    descriptor.func = call.func;
    descriptor.dtype = call.dtype;
    descriptor.in_place = call.in_place;
    descriptor.radix = call.radix;
    descriptor.communicator = member.position;
    descriptor.root = call.root;
    const bool session = (given.streams & UNISONO_SESSION) != 0;
    if (session && (given.tag < 0 || given.tag >= kSessions)) {
      refuse(ErrorCode::kInvalidArgument, formatted("session {}; there are 0 to {}", given.tag, kSessions - 1));
    }
    descriptor.tag = !facts.point_to_point ? 0
                     : to_peer             ? stream_tag(given.dst_port)
                     : session             ? session_tag(static_cast<std::uint32_t>(given.tag))
                                           : static_cast<std::uint32_t>(given.tag);
    descriptor.count = call.count;
    descriptor.window_offset = given.window_offset;
    const double seconds = given.timeout_seconds;
    descriptor.deadline_us = static_cast<std::uint32_t>(
        std::clamp(seconds > 0 ? std::ceil(seconds * 1e6) : double(run.timeout_us), 1.0, 4e9));
    descriptor.src_stream = from_stream;
    descriptor.dst_stream = to_stream && !to_peer;
    const FibreKernels& owner = *run.owner;
    descriptor.src_address = from_stream ? given.src_port : owner.address_of(given.src, given.src_bytes, "src");
    descriptor.dst_address = to_peer     ? 0
                             : to_stream ? given.dst_port
                                         : owner.address_of(given.dst, given.dst_bytes, "dst");
    descriptor.src_bytes = from_stream || descriptor.src_address == 0 ? 0 : given.src_bytes;
    descriptor.dst_bytes = to_stream || descriptor.dst_address == 0 ? 0 : given.dst_bytes;
    if (given.wait_for_count > 2) refuse(ErrorCode::kUnsupported, "it waits for more than two calls");
    const auto id_of = [&](std::size_t which) {
      return which < given.wait_for_count ? reinterpret_cast<FibreKernels::Request*>(given.wait_for[which])->id : 0U;
    };
    descriptor.wait_for0 = id_of(0);
    descriptor.wait_for1 = id_of(1);
    if (position >= 0) {
      const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(position)];
      if (algorithm.scratch_bytes != nullptr) descriptor.scratch_bytes = algorithm.scratch_bytes(call);
      if (descriptor.scratch_bytes != 0) {
        descriptor.scratch_address = run.owner->scratch_for(descriptor.scratch_bytes);
      }
    }
    return descriptor;
  }

  static FibreKernels::Request& of(unisono_request* request) {
    return *reinterpret_cast<FibreKernels::Request*>(request);
  }

  static void check(Run& run, const FibreKernels::Request& request) {
    if (request.code == 0) return;
    const auto code = static_cast<ErrorCode>(request.code);
    const bool known = name_of(code)[0] != '?';
    throw Error(
        known ? code : ErrorCode::kInternal,
        formatted("{}, a command of kernel {}: the engine has ended it with {} ({})", request.name, run.kernel->name,
                  known ? name_of(code) : "a code that is not known", known ? meaning_of(code) : ""));
  }

  static unisono_result wait(unisono_request* request) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      run.request = of(request).id;
      while (!of(request).answered) run.suspend(Wait::kAnswer);
      check(run, of(request));
    });
  }

  static unisono_result test(unisono_request* request, int* complete) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      run.request = of(request).id;
      *complete = of(request).answered ? 1 : 0;
      if (of(request).answered) check(run, of(request));
    });
  }

  static void request_free(unisono_request* request) {
    if (request == nullptr || of(request).prepared) return;  // what the host has prepared is its own
    of(request).forgotten = true;
    CurrentRun::get()->owner->requests_.remove_if(
        [](const FibreKernels::Request& one) { return one.answered && one.forgotten; });
  }

  static unisono_result rank(const unisono_communicator* communicator, std::uint32_t* rank) {
    *rank = member_of(communicator).rank;
    return 0;
  }
  static unisono_result size(const unisono_communicator* communicator, std::uint32_t* size) {
    *size = member_of(communicator).size;
    return 0;
  }

  static unisono_result stream_write(unisono_context* /*context*/, std::uint32_t port, const void* data,
                                     std::uint64_t bytes, double seconds, std::uint64_t* done) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      *done = 0;
      check_port(run, port, true);
      FibreKernels& owner = *run.owner;
      auto& packed = owner.packed_[port];
      const auto* from = static_cast<const std::byte*>(data);
      constexpr std::uint64_t kWord = sizeof(KernelWord::data);
      while (*done != bytes) {
        if (packed.size() == kWord) {
          if (seconds == 0) return;
          run.port = port;
          run.suspend(Wait::kGive);
        }
        owner.load_word(port);
        const std::uint64_t piece = std::min(kWord - packed.size(), bytes - *done);
        packed.insert(packed.end(), from + *done, from + *done + piece);
        *done += piece;
        owner.load_word(port);
      }
      // A port takes a word in a cycle: what would be the second one waits.
      while (seconds != 0 && packed.size() == kWord) {
        run.port = port;
        run.suspend(Wait::kGive);
        owner.load_word(port);
      }
    });
  }

  static unisono_result stream_read(unisono_context* /*context*/, std::uint32_t port, void* data, std::uint64_t bytes,
                                    double seconds, std::uint64_t* done) {
    Run& run = *CurrentRun::get();
    return guarded(run, [&] {
      *done = 0;
      check_port(run, port, false);
      FibreKernels& owner = *run.owner;
      auto& taken = owner.taken_[port];
      auto* const to = static_cast<std::byte*>(data);
      for (;;) {
        const std::uint64_t piece = std::min<std::uint64_t>(taken.size(), bytes - *done);
        std::copy_n(taken.begin(), piece, to + *done);
        taken.erase(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(piece));
        *done += piece;
        if (*done == bytes) return;
        owner.want_[port] = std::min<std::uint64_t>(bytes - *done, sizeof(KernelWord::data));
        if (seconds == 0) return;
        run.port = port;
        run.suspend(Wait::kTake);
      }
    });
  }

  static const char* last_error() { return CurrentRun::get()->error.c_str(); }
  static const char* result_name(unisono_result result) {
    const auto code = static_cast<ErrorCode>(result);
    return name_of(code);
  }
  static int running() { return 1; }

  static void pass(std::uint64_t cycles, Wait kind) {
    Run& run = *CurrentRun::get();
    for (const std::uint64_t until = run.owner->cycle_ + cycles; run.owner->cycle_ < until;) run.suspend(kind);
  }
  static void yield(int /*polls*/) { pass(1, Wait::kPoll); }
  static void tick(std::uint64_t cycles) { pass(cycles, Wait::kTicks); }
  static std::uint64_t cycle() { return CurrentRun::get()->owner->cycle_; }
};

const unisono_kernel_services& kernel_services() {
  static const unisono_kernel_services services{
      sizeof(unisono_kernel_services),
      UNISONO_KERNEL_LIBRARY_VERSION,
      KernelCalls::start,
      KernelCalls::wait,
      KernelCalls::test,
      KernelCalls::request_free,
      KernelCalls::rank,
      KernelCalls::size,
      KernelCalls::stream_write,
      KernelCalls::stream_read,
      KernelCalls::last_error,
      KernelCalls::result_name,
      KernelCalls::running,
      KernelCalls::yield,
      KernelCalls::tick,
      KernelCalls::cycle,
      KernelCalls::request_start,
  };
  return services;
}

}  // namespace unisono::sim
