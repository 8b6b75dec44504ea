#include "doors/shmem/remote.hpp"

#include <array>
#include <cstring>
#include <string>

#include "doors/shmem/failure.hpp"
#include "doors/shmem/messages.hpp"

namespace unisono::shmem {

namespace {

unisono_communicator* copy_of(unisono_communicator* world) {
  unisono_communicator_settings settings{};
  settings.struct_size = sizeof settings;
  settings.name = "shmem";
  unisono_communicator* made = nullptr;
  shmem::check("shmem_init", unisono_dup(world, &settings, &made));
  return made;
}

}  // namespace

Remote::Remote(unisono_context* context, unisono_communicator* world, int rank, int size)
    : communicator_(copy_of(world)),
      rank_(rank),
      order_(std::make_unique<std::mutex[]>(static_cast<std::size_t>(size))),
      sent_(static_cast<std::size_t>(size)),
      done_(static_cast<std::size_t>(size)),
      server_(std::make_unique<Server>(context, communicator_)) {}

Remote::~Remote() {
  try {
    Request stop{};
    stop.asked = Asked::kStop;
    send("shmem_finalize", rank_, stop, nullptr, nullptr);
  } catch (const Failure&) {  // NOLINT(bugprone-empty-catch): then the server finds out by itself
  }
  if (!server_->stop()) {
    server_.release();  // NOLINT(bugprone-unused-return-value): calls in flight refer to it
    return;
  }
  unisono_communicator_free(communicator_);
}

void Remote::send(const char* operation, int pe, const Request& request, const void* inlined, const void* payload) {
  std::array<std::byte, sizeof(Request) + kInline> packet;
  std::memcpy(packet.data(), &request, sizeof request);
  std::uint64_t length = sizeof request;
  if (inlined != nullptr) {
    std::memcpy(packet.data() + length, inlined, request.bytes);
    length += request.bytes;
  }
  const std::lock_guard lock(order_[static_cast<std::size_t>(pe)]);
  const unisono_call first = message(UNISONO_SEND, pe, kRequestTag, packet.data(), nullptr, length);
  shmem::check(operation, unisono_run(communicator_, &first));
  if (payload == nullptr) return;
  const unisono_call second = message(UNISONO_SEND, pe, kPayloadTag, payload, nullptr, request.bytes);
  shmem::check(operation, unisono_run(communicator_, &second));
}

void Remote::receive(const char* operation, int pe, std::uint32_t tag, void* into, std::uint64_t bytes) {
  const unisono_call call = message(UNISONO_RECV, pe, tag, nullptr, into, bytes);
  shmem::check(operation, unisono_run(communicator_, &call));
}

void Remote::put(const char* operation, const Target& target, int pe, const void* source, std::uint64_t bytes) {
  if (bytes == 0) return;
  Request request{};
  request.asked = Asked::kPut;
  request.region = target.region;
  request.offset = target.offset;
  request.bytes = bytes;
  const bool small = bytes <= kInline;
  send(operation, pe, request, small ? source : nullptr, small ? nullptr : source);
  sent_[static_cast<std::size_t>(pe)].fetch_add(1, std::memory_order_relaxed);
}

void Remote::get(const char* operation, const Target& target, int pe, void* dest, std::uint64_t bytes) {
  if (bytes == 0) return;
  Request request{};
  request.asked = Asked::kGet;
  request.region = target.region;
  request.offset = target.offset;
  request.bytes = bytes;
  request.reply = next_reply();
  send(operation, pe, request, nullptr, nullptr);
  receive(operation, pe, request.reply, dest, bytes);
}

std::uint64_t Remote::atomic(const char* operation, Atomic what, std::uint32_t width, const Target& target, int pe,
                             std::uint64_t operand, std::uint64_t comparand, bool fetches) {
  Request request{};
  request.asked = Asked::kAtomic;
  request.region = target.region;
  request.offset = target.offset;
  request.operand = operand;
  request.comparand = comparand;
  request.operation = static_cast<std::uint32_t>(what);
  request.width = width;
  request.reply = fetches ? next_reply() : 0;
  send(operation, pe, request, nullptr, nullptr);
  if (!fetches) sent_[static_cast<std::size_t>(pe)].fetch_add(1, std::memory_order_relaxed);
  std::uint64_t before = 0;
  if (fetches) receive(operation, pe, request.reply, &before, sizeof before);
  return before;
}

void Remote::quiet(const char* operation) {
  struct Flush {
    int pe;
    std::uint32_t tag;
    std::uint64_t sent;
  };
  std::vector<Flush> asked;
  for (std::size_t pe = 0; pe < sent_.size(); ++pe) {
    const std::uint64_t sent = sent_[pe].load(std::memory_order_relaxed);
    // Another thread may have asked already, but has no answer yet: then both ask.
    if (done_[pe].load(std::memory_order_relaxed) >= sent) continue;
    Request request{};
    request.asked = Asked::kFlush;
    request.reply = next_reply();
    send(operation, static_cast<int>(pe), request, nullptr, nullptr);
    asked.push_back({static_cast<int>(pe), request.reply, sent});
  }
  std::uint64_t word = 0;
  for (const Flush& flush : asked) {
    receive(operation, flush.pe, flush.tag, &word, sizeof word);
    std::atomic<std::uint64_t>& done = done_[static_cast<std::size_t>(flush.pe)];
    std::uint64_t before = done.load(std::memory_order_relaxed);
    while (before < flush.sent && !done.compare_exchange_weak(before, flush.sent, std::memory_order_relaxed)) continue;
  }
}

void Remote::exit(int status) {
  Request request{};
  request.asked = Asked::kExit;
  request.operand = static_cast<std::uint32_t>(status);
  for (int pe = 0; pe < reach.size; ++pe) {
    if (reach.regions[kHeapRegion].peers[static_cast<std::size_t>(pe)] != nullptr) continue;
    try {
      send("shmem_global_exit", pe, request, nullptr, nullptr);
    } catch (const Failure&) {  // NOLINT(bugprone-empty-catch): it has ended already
    }
  }
}

}  // namespace unisono::shmem
