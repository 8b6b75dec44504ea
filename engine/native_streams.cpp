// What kernels do at the stream ports of the native engine.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/reserved_tags.hpp"
#include "engine/interrupt.hpp"
#include "engine/native_engine.hpp"
#include "engine/native_waiting.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is part of the blocks' outer shell

bool NativeEngine::Impl::receive_for_kernels() {
  bool any = false;
  for (std::uint32_t port = 0; port < StreamPorts::kPorts; ++port) {
    if (streams.readers[port] == 0 || streams.used(StreamSide::kToKernel, port)) continue;
    std::optional<CallRequest> receive;
    communicators.for_each([&](Communicator& communicator) {
      if (receive || communicator.revoked) return;
      const std::uint32_t tag = stream_tag(port);
      const std::optional<MessageStatus> found = CallQueue::look_for(communicator, {0, tag, true, false});
      if (!found) return;
      receive.emplace();
      receive->communicator = communicator.number;
      receive->tag = tag;
      receive->reserved_tag = true;
      receive->call.collective = Collective::kRecv;
      receive->call.dtype = found->dtype;
      receive->call.root = found->source;
      receive->call.count = found->bytes / std::max<std::uint64_t>(1, bytes_of(found->dtype));
      receive->dst_port = static_cast<std::int8_t>(port);
    });
    if (!receive) continue;
    CallState& call = admitted(*receive);
    if (is_transfer(call)) call.transfer = transfer_of(call);
    set_deadline(call, {});
    calls.submit(call);
    // Nobody has asked for it; whoever reads at the port hears of its failure there.
    calls.when_complete(call.id, [this, id = call.id](const CallResult&) {
      const std::lock_guard lock(mutex);
      calls.forget(id);
    });
    any = true;
  }
  return any;
}

bool NativeEngine::Impl::send_to_ports() {
  const std::vector<std::shared_ptr<PortMessage>> messages = std::exchange(streams.to_peers, {});
  for (const std::shared_ptr<PortMessage>& message : messages) {
    try {
      CallRequest send;
      send.communicator = message->communicator;
      send.call.collective = Collective::kSend;
      send.call.dtype = message->dtype;
      send.call.root = message->peer;
      send.call.count = message->elements.size() / bytes_of(message->dtype);
      send.src = {message->elements.data(), message->elements.size()};
      send.dst_port = static_cast<std::int8_t>(message->port);
      send.timeout = message->timeout;
      CallState& call = admitted(send);
      if (is_transfer(call)) call.transfer = transfer_of(call);
      set_deadline(call, send.timeout);
      calls.submit(call);
      calls.when_complete(call.id, [this, message, id = call.id](const CallResult& result) {
        const std::lock_guard lock(mutex);
        message->ended = true;
        message->code = result.code;
        message->text = result.message;
        calls.forget(id);
      });
    } catch (const Error& error) {
      message->ended = true;
      message->code = error.code();
      message->text = error.what();
    }
  }
  return !messages.empty();
}

template <class Step>
void NativeEngine::Impl::serve_kernel(std::chrono::microseconds at_most, Step&& step) {
  const auto begin = Clock::now();
  bool done = false;
  {
    const Turn turn(*this);
    done = step();
    // Calls that wait for these elements, or for the room, go on at once; and messages to the port may have come.
    if (!calls.idle() || (!done && streams.reading != 0)) progress();
    done = done || step();
    if (driven) wake_waiting();
  }
  while (!done) {
    const auto left = at_most - std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    if (left.count() <= 0) return;
    if (Interrupt::current().pending()) throw Error(ErrorCode::kRevoked, kInterrupted);
    wait_until([&] { return done = step(); }, std::min<std::chrono::microseconds>(left, Interrupt::kInterval),
               Manner::kForeground);
  }
  leave_to_others();
}

std::uint64_t NativeEngine::write_stream(std::uint32_t port, std::span<const std::byte> bytes,
                                         std::chrono::microseconds at_most) {
  check_port(port, "write to a stream");
  std::uint64_t done = 0;
  impl_->serve_kernel(at_most, [&] {
    StreamQueue& queue = impl_->streams.queue(StreamSide::kToEngine, port);
    const std::uint64_t piece = std::min<std::uint64_t>(queue.room(), bytes.size() - done);
    if (piece != 0) std::copy_n(bytes.data() + done, piece, queue.back(piece));
    queue.put(piece);
    done += piece;
    return done == bytes.size();
  });
  return done;
}

std::uint64_t NativeEngine::read_stream(std::uint32_t port, std::span<std::byte> bytes,
                                        std::chrono::microseconds at_most) {
  check_port(port, "read from a stream");
  std::uint64_t done = 0;
  std::optional<StreamPorts::Failure> failure;
  struct Reader {
    explicit Reader(Impl& of, std::uint32_t at) : engine(of), port(at) { count(1); }
    ~Reader() { count(-1); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    void count(int by) const {
      const std::lock_guard lock(engine.mutex);
      engine.streams.readers[port] += by;
      engine.streams.reading += by;
    }
    Impl& engine;
    std::uint32_t port;
  };
  const Reader reader(*impl_, port);
  impl_->serve_kernel(at_most, [&] {
    StreamQueue& queue = impl_->streams.queue(StreamSide::kToKernel, port);
    const std::uint64_t piece = std::min<std::uint64_t>(queue.here(), bytes.size() - done);
    if (piece != 0) std::copy_n(queue.front(), piece, bytes.data() + done);
    queue.taken(piece);
    done += piece;
    if (done == bytes.size()) return true;
    // What came before the failure is given first, and counted.
    if (done == 0) failure = impl_->streams.take_failure(port);
    return failure.has_value() || (done != 0 && impl_->streams.has_failure(port));
  });
  if (failure) {
    throw Error(failure->code, "stream port " + std::to_string(port) + " brings no more: " + failure->text);
  }
  return done;
}

}  // namespace unisono
