#include "doors/shmem/server.hpp"

#include <pthread.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "doors/shmem/atomics.hpp"
#include "doors/shmem/copy.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/messages.hpp"
#include "doors/shmem/reach.hpp"

namespace unisono::shmem {

namespace {

constexpr const char* kOperation = "the helper that serves other hosts";

/// This PE's own bytes at a place that came in a message.
std::byte* own_memory(const Request& request, std::uint64_t bytes) {
  if (request.region >= kRegions) fail(kOperation, "a request names a region that there is not");
  const Region& region = reach.regions[request.region];
  if (request.offset > region.bytes || bytes > region.bytes - request.offset) {
    fail(kOperation, "a request names bytes outside of symmetric memory");
  }
  return region.begin + request.offset;
}

/// A thread that no signal goes to: they are the program's.
template <class Work>
std::thread start(Work work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

}  // namespace

Server::Server(unisono_communicator* communicator) : communicator_(communicator), thread_(start([this] { work(); })) {
  ::pthread_setname_np(thread_.native_handle(), "unisono-shmem");
}

Server::~Server() { join(); }

void Server::join() {
  if (thread_.joinable()) thread_.join();
}

void Server::check(const char* operation) const {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  fail(operation, sentence_);
}

void Server::work() noexcept {
  try {
    unisono_status status{};
    status.struct_size = sizeof status;
    for (;;) {
      // Others may ask for nothing for as long as they like: a probe that ends by its deadline has taken nothing.
      constexpr double kLook = 60;
      const unisono_result result = unisono_probe(communicator_, UNISONO_ANY_SOURCE, kRequestTag, kLook, &status);
      if (result != 0 && result == code_named("timeout")) continue;
      shmem::check(kOperation, result);
      if (!serve(status)) return;
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    sentence_ = error.what();
    failed_.store(true, std::memory_order_release);
  }
}

bool Server::serve(const unisono_status& status) {
  std::array<std::byte, sizeof(Request) + kInline> packet;
  if (status.bytes < sizeof(Request) || status.bytes > packet.size()) {
    fail(kOperation, "a request has " + std::to_string(status.bytes) + " bytes");
  }
  const unisono_call call = message(UNISONO_RECV, status.source, kRequestTag, nullptr, packet.data(), status.bytes);
  shmem::check(kOperation, unisono_run(communicator_, &call));
  Request request;
  std::memcpy(&request, packet.data(), sizeof request);
  if (request.asked == Asked::kStop) return false;
  carry_out(request, status.source, std::span(packet).subspan(sizeof request, status.bytes - sizeof request));
  return true;
}

void Server::carry_out(const Request& request, std::int64_t source, std::span<const std::byte> inlined) {
  switch (request.asked) {
    case Asked::kPut: {
      std::byte* const memory = own_memory(request, request.bytes);
      if (!inlined.empty()) {
        if (inlined.size() != request.bytes) fail(kOperation, "a put has another length than its request says");
        copy(memory, inlined.data(), request.bytes);
        return;
      }
      const unisono_call call = message(UNISONO_RECV, source, kPayloadTag, nullptr, memory, request.bytes);
      return shmem::check(kOperation, unisono_run(communicator_, &call));
    }
    case Asked::kGet:
      return answer(source, request.reply, own_memory(request, request.bytes), request.bytes);
    case Asked::kAtomic: {
      if ((request.width != 4 && request.width != 8) || request.offset % request.width != 0) {
        fail(kOperation, "a request for an atomic names no word");
      }
      const std::uint64_t before = apply(static_cast<Atomic>(request.operation), request.width,
                                         own_memory(request, request.width), request.operand, request.comparand);
      if (request.reply != 0) answer(source, request.reply, &before, sizeof before);
      return;
    }
    case Asked::kFlush: {
      const std::uint64_t done = 1;
      return answer(source, request.reply, &done, sizeof done);
    }
    case Asked::kExit:
      std::fflush(nullptr);
      std::_Exit(static_cast<int>(request.operand));
    case Asked::kStop:
      break;
  }
  fail(kOperation, "a request asks for something unknown");
}

void Server::answer(std::int64_t source, std::uint32_t tag, const void* bytes, std::uint64_t count) {
  const unisono_call call = message(UNISONO_SEND, source, tag, bytes, nullptr, count);
  shmem::check(kOperation, unisono_run(communicator_, &call));
}

}  // namespace unisono::shmem
