#include "doors/shmem/server.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "doors/shmem/atomics.hpp"
#include "doors/shmem/copy.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/messages.hpp"
#include "doors/shmem/reach.hpp"

namespace unisono::shmem {

namespace {

constexpr const char* kOperation = "what serves other hosts";

/// This PE's own bytes at a place that came in a message.
std::byte* own_memory(const Request& request, std::uint64_t bytes) {
  if (request.region >= kRegions) fail(kOperation, "a request names a region that there is not");
  const Region& region = reach.regions[request.region];
  if (request.offset > region.bytes || bytes > region.bytes - request.offset) {
    fail(kOperation, "a request names bytes outside of symmetric memory");
  }
  return region.begin + request.offset;
}

}  // namespace

Server::Server(unisono_context* context, unisono_communicator* communicator)
    : context_(context), communicator_(communicator), packet_(sizeof(Request) + kInline) {
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  settings.offload = 1;
  shmem::check(kOperation, unisono_configure(context, &settings));
  listen();
}

bool Server::stop() {
  constexpr auto kPatience = std::chrono::seconds(10);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!stopped_.load(std::memory_order_acquire) || answers_.load(std::memory_order_acquire) != 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    unisono_progress(context_);
    std::this_thread::yield();
  }
  return true;
}

void Server::check(const char* operation) const {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  fail(operation, sentence_);
}

void Server::start(const unisono_call& call, unisono_completion then, void* context) {
  unisono_request* request = nullptr;
  shmem::check(kOperation, unisono_start(communicator_, &call, &request));
  shmem::check(kOperation, unisono_on_complete(request, then, context));
}

void Server::listen() {
  unisono_call call = message(UNISONO_RECV, UNISONO_ANY_SOURCE, kRequestTag, nullptr, packet_.data(), packet_.size());
  // Others may ask for nothing for as long as they like.
  constexpr double kYears = 1e8;
  call.timeout_seconds = kYears;
  start(call, on_request, this);
}

void Server::fail_with(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (sentence_.empty()) sentence_ = sentence;
  }
  failed_.store(true, std::memory_order_release);
  stopped_.store(true, std::memory_order_release);
}

bool Server::ended_well(unisono_request* request, unisono_result result) {
  if (result != 0) fail_with(std::string(kOperation) + ": " + unisono_last_error());
  unisono_request_free(request);
  return result == 0;
}

void Server::on_request(unisono_request* request, unisono_result result, void* self) {
  Server& server = *static_cast<Server*>(self);
  unisono_status status{};
  status.struct_size = sizeof status;
  const bool known = result != 0 || unisono_request_status(request, &status) == 0;
  if (!server.ended_well(request, result) || !known) return;
  try {
    server.serve(status);
  } catch (const std::exception& error) {
    server.fail_with(error.what());
  }
}

void Server::on_payload(unisono_request* request, unisono_result result, void* self) {
  Server& server = *static_cast<Server*>(self);
  if (!server.ended_well(request, result)) return;
  try {
    server.listen();
  } catch (const std::exception& error) {
    server.fail_with(error.what());
  }
}

void Server::on_bytes(unisono_request* request, unisono_result result, void* self) {
  Server& server = *static_cast<Server*>(self);
  server.ended_well(request, result);
  server.answers_.fetch_sub(1, std::memory_order_release);
}

void Server::on_word(unisono_request* request, unisono_result result, void* word) {
  const std::unique_ptr<Word> held(static_cast<Word*>(word));
  on_bytes(request, result, held->server);
}

void Server::serve(const unisono_status& status) {
  if (status.bytes < sizeof(Request)) {
    fail(kOperation, "a request has " + std::to_string(status.bytes) + " bytes");
  }
  Request request;
  std::memcpy(&request, packet_.data(), sizeof request);
  switch (request.asked) {
    case Asked::kPut:
      return put(request, status.source, std::span(packet_).subspan(sizeof request, status.bytes - sizeof request));
    case Asked::kGet: {
      const std::byte* const memory = own_memory(request, request.bytes);
      answers_.fetch_add(1, std::memory_order_relaxed);
      start(message(UNISONO_SEND, status.source, request.reply, memory, nullptr, request.bytes), on_bytes, this);
      break;
    }
    case Asked::kAtomic: {
      if ((request.width != 4 && request.width != 8) || request.offset % request.width != 0) {
        fail(kOperation, "a request for an atomic names no word");
      }
      const std::uint64_t before = apply(static_cast<Atomic>(request.operation), request.width,
                                         own_memory(request, request.width), request.operand, request.comparand);
      if (request.reply != 0) answer(status.source, request.reply, before);
      break;
    }
    case Asked::kFlush:
      answer(status.source, request.reply, 1);
      break;
    case Asked::kExit:
      std::fflush(nullptr);
      std::_Exit(static_cast<int>(request.operand));
    case Asked::kStop:
      stopped_.store(true, std::memory_order_release);
      return;
    default:
      fail(kOperation, "a request asks for something unknown");
  }
  listen();
}

void Server::put(const Request& request, std::int64_t source, std::span<const std::byte> inlined) {
  std::byte* const memory = own_memory(request, request.bytes);
  if (inlined.empty()) {
    // The next request is looked at when the payload has come: a flush must not overtake it.
    return start(message(UNISONO_RECV, source, kPayloadTag, nullptr, memory, request.bytes), on_payload, this);
  }
  if (inlined.size() != request.bytes) fail(kOperation, "a put has another length than its request says");
  copy(memory, inlined.data(), request.bytes);
  listen();
}

void Server::answer(std::int64_t source, std::uint32_t tag, std::uint64_t value) {
  auto word = std::make_unique<Word>(Word{this, value});
  answers_.fetch_add(1, std::memory_order_relaxed);
  const unisono_call call = message(UNISONO_SEND, source, tag, &word->value, nullptr, sizeof word->value);
  start(call, on_word, word.get());
  word.release();  // NOLINT(bugprone-unused-return-value): on_word has it
}

}  // namespace unisono::shmem
