#include "engine/short_send.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "collectives/by_position.hpp"
#include "core/signature.hpp"
#include "engine/counters.hpp"
#include "engine/plan.hpp"
#include "engine/recorder.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// The signature of a send says its datatype, and nothing else.
constexpr auto kSignatures = [] {
  std::array<std::uint32_t, kAllDatatype.size()> signatures{};
  for (const Datatype dtype : kAllDatatype) {
    Call call;
    call.collective = Collective::kSend;
    call.dtype = dtype;
    signatures[static_cast<std::size_t>(dtype)] = signature_of(call, {});
  }
  return signatures;
}();

/// Of the only algorithm that sends have, for the record.
std::uint32_t algorithm_of_sends() {
  const std::span<const Algorithm> all = algorithms();
  const auto found =
      std::find_if(all.begin(), all.end(), [](const Algorithm& one) { return one.collective == Collective::kSend; });
  return LastNumber::of(&*found, false);
}

}  // namespace

bool try_short_send(const Blocks& blocks, Communicator& communicator, const CallRequest& request) {
  const std::uint32_t to = request.call.root;
  const auto dtype = static_cast<std::size_t>(request.call.dtype);
  if (communicator.hardware_peers || communicator.revoked || !communicator.calls.empty() || to >= communicator.size ||
      to == communicator.rank || dtype == 0 || dtype >= kSignatures.size() || request.tag > kMaxUserTag ||
      request.call.count > communicator.segment_bytes) {
    return false;
  }
  const std::uint64_t bytes = request.call.count * bytes_of(request.call.dtype);
  Peer& peer = communicator.peers[to];
  if (bytes > std::min(communicator.agreed.eager_limit, communicator.segment_bytes) || peer.credits == 0 ||
      peer.gone != 0 || request.src.bytes < bytes || (bytes != 0 && request.src.data == nullptr)) {
    return false;
  }
  Header header = blocks.tx->header(communicator, to, MessageType::kEager);
  header.point_to_point = true;
  header.sequence = peer.next_send;
  header.tag = request.tag;
  header.signature = kSignatures[dtype];
  header.dtype = request.call.dtype;
  header.first = header.last = true;
  header.segment_bytes = static_cast<std::uint32_t>(bytes);
  header.message_bytes = bytes;
  if (!blocks.tx->send(communicator, to, header, {request.src.data, bytes})) return false;
  --peer.credits;
  ++peer.next_send;
  blocks.counters->count(NativeCounter::kCallsQueued);
  static const std::uint32_t algorithm = algorithm_of_sends();
  Call call = request.call;
  call.func = Func::kNone;
  call.in_place = false;
  CallRecorder& recorder = *communicator.recorder;
  const RecordMark mark = recorder.begin(RecordEntry::of(call, request.tag, kRecordedPointToPoint), header.sequence);
  recorder.set_algorithm(mark, algorithm);
  recorder.end(mark, RecordedState::kEnded);
  return true;
}

}  // namespace unisono::cclo
