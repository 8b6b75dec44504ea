// From the C interface into the engine, for calls that say no more than a Request has words for: what they need is
// translated field for field, on the stack, and handed on. Nothing is checked here but that it can be said; whether it
// is allowed is the engine's to know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/callbacks.hpp"
#include "driver/objects.hpp"
#include "engine/engine.hpp"
#include "engine/fast_path.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// False if the call asks for something that a Request has no words for, or has values that no enumeration has. What
/// barriers and broadcasts do not look at is left out, as in what the engine keeps of them.
inline bool translate(const unisono_call& given, unisono::Request& request) {
  // Programs that were compiled when the structure ended earlier go this way as well.
  if (given.struct_size == sizeof(unisono_call)) [[likely]] {
    const auto factors = reinterpret_cast<std::uintptr_t>(given.pre_scale) |  // as words, for one comparison
                         reinterpret_cast<std::uintptr_t>(given.post_scale);
    if ((given.element_bytes | static_cast<unsigned>(given.streams) | factors) != 0) return false;
  } else if (given.struct_size == offsetof(unisono_call, pre_scale)) {
    if ((given.element_bytes | static_cast<unsigned>(given.streams)) != 0) return false;
  } else if (given.struct_size == offsetof(unisono_call, streams)) {
    if (given.element_bytes != 0) return false;
  } else if (given.struct_size != offsetof(unisono_call, element_bytes)) {
    return false;
  }
  if (given.algorithm != nullptr || given.wait_for_count != 0 || given.timeout_seconds != 0 || given.graph != nullptr ||
      given.wire_datatype != 0) {
    return false;
  }
  constexpr unsigned kEnumerators = 256;
  const auto enumerators =
      static_cast<unsigned>(given.collective) | static_cast<unsigned>(given.op) | static_cast<unsigned>(given.datatype);
  if (enumerators >= kEnumerators || given.root >> 32U != 0 || given.tag >> 32U != 0) return false;
  Call& call = request.call;
  call.collective = static_cast<Collective>(given.collective);
  const bool data = call.collective != Collective::kBarrier;
  call.func = static_cast<Func>(given.op);
  call.dtype = data ? static_cast<Datatype>(given.datatype) : Datatype::kNone;
  call.in_place = given.in_place != 0 && call.collective != Collective::kBcast;
  call.root = static_cast<std::uint32_t>(given.root);
  call.count = data ? static_cast<std::uint64_t>(given.count) : 0;
  request.tag = static_cast<std::uint32_t>(given.tag);
  request.window_offset = given.window_offset;
  // A program never writes what is bound to src.
  request.src = {const_cast<std::byte*>(static_cast<const std::byte*>(given.src)),  // NOLINT(*-const-cast)
                 given.src_bytes};
  request.dst = {static_cast<std::byte*>(given.dst), given.dst_bytes};
  return true;
}

/// A call with counts by rank, read where they stand: a negative one is a number that no count can be. By itself, so
/// that the way of all others is short.
[[gnu::noinline]] inline bool run_counted(cclo::FastPath& fast_path, const unisono_call& given,
                                          const unisono::Request& request) {
  const auto words = [](const std::int64_t* numbers) { return reinterpret_cast<const std::uint64_t*>(numbers); };
  const VectorArguments counts{words(given.send_counts), words(given.send_displacements), words(given.recv_counts),
                               words(given.recv_displacements), static_cast<std::uint64_t>(given.count)};
  return fast_path.try_vectors(request, counts);
}

/// Hands a blocking call to its communicator's way into the engine; see FastPath::try_run. False, having done nothing,
/// if it must be checked first: whatever is wrong with it, or with the handle, is found there.
inline bool run_at_once(const unisono_communicator* handle, const unisono_call* given, std::uint64_t& received) {
  unisono::Request request;
  if (handle == nullptr || given == nullptr || !translate(*given, request)) return false;
  if (Callbacks::running()) return false;  // which is refused, in words
  const Communicator& communicator = Communicators::instance().get_again(reinterpret_cast<std::uintptr_t>(handle),
                                                                         "communicator", ErrorCode::kFreedCommunicator);
  if (communicator.fast_path == nullptr || communicator.open_groups.load(std::memory_order_relaxed) != 0) return false;
  if (given->send_counts != nullptr || given->recv_counts != nullptr) [[unlikely]] {
    // With a datatype for each peer, counts and displacements are of something else than `datatype`.
    if (given->send_datatypes != nullptr || given->recv_datatypes != nullptr) return false;
    return run_counted(*communicator.fast_path, *given, request);
  }
  if (communicator.fast_path->try_run(request, received)) [[likely]]
    return true;
  return counts_at_root(request.call.collective) && run_counted(*communicator.fast_path, *given, request);
}

/// A send or receive that is over when it has been started; null if it is not.
inline std::shared_ptr<Request> message_at_once(const std::shared_ptr<Communicator>& communicator,
                                                const unisono::Request& request) {
  CallResult result;
  if (!communicator->fast_path->try_start(request, result.received_bytes)) return nullptr;
  result.complete = true;
  const Call& call = request.call;
  result.status = {call.root, request.tag, result.received_bytes, call.dtype};
  return std::make_shared<Request>(communicator, std::make_shared<Flight>(std::move(result)), call.collective,
                                   bytes_of(call.dtype));
}

/// Starts a call in the same manner; see Engine::submit_at_once. Null, having done nothing, if it must be checked
/// first.
inline std::shared_ptr<Request> start_at_once(const std::shared_ptr<Communicator>& communicator,
                                              const unisono_call& given) {
  unisono::Request request;
  if (communicator->fast_path == nullptr || given.send_counts != nullptr || given.recv_counts != nullptr ||
      communicator->open_groups.load(std::memory_order_relaxed) != 0 || !translate(given, request)) {
    return nullptr;
  }
  const Collective collective = request.call.collective;
  if (collective == Collective::kSend || collective == Collective::kRecv) {
    return message_at_once(communicator, request);
  }
  request.communicator = communicator->number;
  const CallId id = communicator->context->endpoint()->engine->submit_at_once(request);
  if (id == 0) return nullptr;
  communicator->context->call_started();
  return std::make_shared<Request>(communicator, std::make_shared<Flight>(communicator->context, id), collective, 1);
}

}  // namespace unisono::driver
