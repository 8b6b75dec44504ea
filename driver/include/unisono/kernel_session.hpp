// Raw sessions between kernels, as EasyNet has them (FPL '21): a connection between two ranks, through which bytes go
// in order, in both directions, however either side cuts them.
//
//   unisono::kernel::Session session(commands, status, comm, peer, to_cclo, from_cclo);
//   session.send(request, sizeof request);
//   session.receive(answer, sizeof answer);
//   session.close();
//
// A send goes as a message of a word of 64 bytes, which says how long it is and holds its first bytes, and of one with
// the others. So a receive needs not know how its peer has cut the bytes, and learns that it has closed. What nobody
// receives waits as that of any message does: up to the eager limit in receive buffers of the peer, as far as its
// credit goes; then the sender waits. Two kernels that both send more than that before they receive wait for each other
// until their deadline.
#ifndef UNISONO_KERNEL_SESSION_HPP
#define UNISONO_KERNEL_SESSION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "unisono/kernel.hpp"

namespace unisono {
inline namespace api {
namespace kernel {

/// One end of a session. It has its ports for itself, in both directions, from its first send or receive until it is
/// closed. Of one kernel. Errors name session, peer and what was wanted: Error, with the code of what has failed.
class Session {
 public:
  static constexpr std::uint32_t kMost = 255;
  static constexpr std::uint64_t kFirstBytes = Word::kBytes - sizeof(std::uint64_t);  ///< in the first word

  /// `communicator`: its place among those of the command stream. `number`, 0 to 255, tells the sessions of two ranks
  /// apart; both sides give the same. A peer that is not there is an error of the first send or receive.
  Session(CommandStream& commands, StatusStream& /*status*/, std::uint32_t communicator, std::uint32_t peer,
          DataStream to_cclo, DataStream from_cclo, std::uint32_t number = 0)
      : communicator_(commands.communicators.at(communicator)),
        peer_(peer),
        number_(number),
        to_(to_cclo),
        from_(from_cclo),
        data_(to_cclo, from_cclo) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Lets go of what has not ended; `close` tells the peer.
  ~Session() {
    for (unisono_request* const request : sends_) unisono_request_free(request);
    for (unisono_request* const request : receives_) unisono_request_free(request);
  }

  /// Sends bytes. Returns when all are on their way, and `from` may change.
  void send(const void* from, std::uint64_t bytes) {
    if (closed_) fail(kInvalidArgument, "send", "this side has closed it");
    if (bytes != 0) give(static_cast<const std::byte*>(from), bytes);
  }
  void send(const Word& word) { send(word.data.data(), word.bytes); }

  /// The next bytes: as many as were asked for, or fewer if the peer has closed the session behind them.
  std::uint64_t receive(void* to, std::uint64_t bytes) {
    auto* const into = static_cast<std::byte*>(to);
    std::uint64_t done = 0;
    while (done != bytes) {
      if (held_ != 0) {
        const std::uint64_t piece = std::min(held_, bytes - done);
        std::memcpy(into + done, &first_[held_at_], piece);
        held_at_ += piece;
        held_ -= piece;
        done += piece;
      } else if (under_way_ != 0) {
        const std::uint64_t piece = std::min(under_way_, bytes - done);
        take(into + done, piece);
        under_way_ -= piece;
        done += piece;
      } else if (ended_) {
        break;
      } else {
        begin_message();
      }
    }
    return done;
  }
  /// A word; `bytes` of it are fewer than 64 if the peer has closed the session behind them.
  Word receive() {
    Word word;
    word.bytes = static_cast<unsigned>(receive(word.data.data(), Word::kBytes));
    return word;
  }

  /// Whether the peer has closed the session, and all that it has sent was received.
  bool ended() const { return ended_ && held_ == 0 && under_way_ == 0; }

  /// Tells the peer that nothing more comes, and waits until all that was sent has left. Receiving goes on.
  void close() {
    if (closed_) return;
    give(nullptr, 0);
    closed_ = true;
    for (unisono_request*& request : sends_) await(request, "close");
  }

 private:
  static constexpr unisono_result kInvalidArgument = 4;
  static constexpr std::size_t kSends = 8;  ///< under way at once

  static unisono_call call_of(unisono_collective collective, std::uint32_t peer, std::uint32_t number,
                              std::uint64_t bytes) {
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = collective;
    call.datatype = UNISONO_BYTE;
    call.count = static_cast<std::int64_t>(bytes);
    call.root = peer;
    call.tag = number;
    call.streams = UNISONO_SESSION;
    return call;
  }

  [[noreturn]] void fail(unisono_result code, const char* operation, const std::string& why) const {
    throw Error(code, "session " + std::to_string(number_) + " with rank " + std::to_string(peer_) + ", stream port " +
                          std::to_string(to_.port) + ": " + operation + ": " + why);
  }
  void check(unisono_result code, const char* operation) const {
    if (code != 0) fail(code, operation, unisono_last_error());
  }

  /// Whether a request has ended; then it is freed.
  bool over(unisono_request*& request, const char* operation) {
    if (request == nullptr) return true;
    int complete = 0;
    const unisono_result code = unisono_test(request, &complete);
    if (code == 0 && complete == 0) return false;
    const std::string why = code == 0 ? std::string() : unisono_last_error();
    unisono_request_free(request);
    request = nullptr;
    if (code != 0) fail(code, operation, why);
    return true;
  }
  void await(unisono_request*& request, const char* operation) {
    while (!over(request, operation)) poll();
  }

  void start_send(std::uint64_t bytes) {
    // The oldest has its place again when it has ended.
    unisono_request*& place = sends_[next_send_];
    next_send_ = (next_send_ + 1) % kSends;
    await(place, "send");
    unisono_call call = call_of(UNISONO_SEND, peer_, number_, bytes);
    call.streams |= UNISONO_SRC_STREAM;
    call.src_port = to_.port;
    check(unisono_start(communicator_, &call, &place), "send");
  }
  unisono_request* start_receive(std::uint64_t bytes) {
    unisono_call call = call_of(UNISONO_RECV, peer_, number_, bytes);
    call.streams |= UNISONO_DST_STREAM;
    call.dst_port = from_.port;
    unisono_request* request = nullptr;
    check(unisono_start(communicator_, &call, &request), "receive");
    return request;
  }

  void give(const std::byte* from, std::uint64_t bytes) {
    const std::uint64_t first = std::min(bytes, kFirstBytes);
    Word word;
    word.set(0, bytes);
    if (first != 0) std::memcpy(&word.data[sizeof bytes], from, first);
    start_send(Word::kBytes);
    if (bytes != first) start_send(bytes - first);
    put(word.data.data(), Word::kBytes);
    if (bytes != first) put(from + first, bytes - first);
  }
  /// Gives bytes to the port; a send that fails meanwhile is an error.
  void put(const std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done != bytes;) {
      const std::uint64_t now = data_.push_some(from + done, bytes - done);
      done += now;
      if (done == bytes) break;
      for (unisono_request*& request : sends_) static_cast<void>(over(request, "send"));
      poll();
    }
  }

  /// Takes bytes of the port; a receive that fails meanwhile is an error.
  void take(std::byte* to, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done != bytes;) {
      done += data_.pull_some(to + done, bytes - done);
      if (done == bytes) break;
      for (unisono_request*& request : receives_) static_cast<void>(over(request, "receive"));
      poll();
    }
  }

  /// Receives the first word of what the peer sends next, and asks for the rest of it.
  void begin_message() {
    for (unisono_request*& request : receives_) await(request, "receive");
    receives_[0] = start_receive(Word::kBytes);
    std::array<std::byte, Word::kBytes> word;
    take(word.data(), word.size());
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, word.data(), sizeof bytes);
    std::memcpy(first_.data(), &word[sizeof bytes], first_.size());
    held_at_ = 0;
    held_ = std::min(bytes, kFirstBytes);
    under_way_ = bytes - held_;
    if (under_way_ != 0) receives_[1] = start_receive(under_way_);
    if (bytes == 0) ended_ = true;
  }

  unisono_communicator* communicator_;
  std::uint32_t peer_;
  std::uint32_t number_;
  DataStream to_;
  DataStream from_;
  Data data_;
  std::array<unisono_request*, kSends> sends_{};
  std::size_t next_send_ = 0;
  std::array<unisono_request*, 2> receives_{};  ///< of the first word, and of the rest
  std::array<std::byte, kFirstBytes> first_{};  ///< bytes of the first word:
  std::uint64_t held_at_ = 0, held_ = 0;        ///< those that were not received yet
  std::uint64_t under_way_ = 0;                 ///< bytes of the message that the port has, or gets
  bool closed_ = false, ended_ = false;
};

}  // namespace kernel
}  // namespace api
}  // namespace unisono

namespace cclo_hls {
using Session = unisono::kernel::Session;
}  // namespace cclo_hls

#endif
