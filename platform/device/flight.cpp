#include "platform/device/flight.hpp"

#include "core/text.hpp"
#include "engine/call_queue.hpp"
#include "engine/flight_report.hpp"

namespace unisono {

void DeviceFlight::open(cclo::Communicator& communicator) const {
  CommunicatorRecord* records = job_ == nullptr || !writes_ ? nullptr : job_->records(job_->self());
  communicator.recorder = std::make_shared<cclo::CallRecorder>(records, communicator.number, communicator.epoch,
                                                               communicator.rank, communicator.size);
}

void DeviceFlight::begin(cclo::CallState& call) { cclo::CallQueue::begin_record(call); }

void DeviceFlight::end(cclo::CallState& call, bool well) {
  cclo::CallRecorder& recorder = *call.communicator->recorder;
  recorder.waits_no_more(call.mark);
  recorder.end(call.mark, well ? RecordedState::kEnded : RecordedState::kFailed);
}

void DeviceFlight::revoked(cclo::Communicator& communicator) { communicator.recorder->revoked(); }

void DeviceFlight::waits(const cclo::CallState& call, bool with_device, bool stands_still,
                         std::chrono::steady_clock::time_point since) const {
  if (!writes_ || job_ == nullptr) return;
  const char* phase = "not called there yet";
  std::vector<std::uint32_t> awaited = not_arrived(call);
  if (awaited.empty() && stands_still) {
    phase = "which computes, and simulated time stands still meanwhile";
    awaited = computing(*call.communicator);
  }
  if (awaited.empty()) {
    phase = with_device ? "its device is at it" : "in its host, for earlier calls or for room in the device";
    if (call.space == cclo::CallState::Space::kPointToPoint) awaited.push_back(call.call.root);
  }
  call.communicator->recorder->wait(call.mark, since, phase, awaited);
}

std::vector<std::uint32_t> DeviceFlight::not_arrived(const cclo::CallState& call) const {
  std::vector<std::uint32_t> ranks;
  if (job_ == nullptr || call.space != cclo::CallState::Space::kCollective) return ranks;
  const cclo::Communicator& communicator = *call.communicator;
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank == communicator.rank) continue;
    if (!cclo::has_begun(*job_, communicator.peers.endpoint(rank), communicator.number, communicator.epoch,
                         call.sequence)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<std::uint32_t> DeviceFlight::computing(const cclo::Communicator& communicator) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank != communicator.rank && !cclo::is_in_call(*job_, communicator.peers.endpoint(rank))) ranks.push_back(rank);
  }
  return ranks;
}

std::string DeviceFlight::absent(const cclo::CallState& call) const {
  constexpr std::size_t kMost = 4;
  const std::vector<std::uint32_t> ranks = not_arrived(call);
  if (ranks.empty()) return {};
  std::string text = ". Not arrived: rank ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += formatted("{}{}", i == 0 ? "" : ", ", ranks[i]);
  const cclo::Communicator& communicator = *call.communicator;
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i) {
    const std::uint32_t endpoint = communicator.peers.endpoint(ranks[i]);
    const std::string what = cclo::doings(*job_, endpoint, communicator.number, communicator.epoch);
    if (!what.empty()) text += formatted(". Rank {}, {}: {}", ranks[i], job_->describe(endpoint), what);
  }
  return text;
}

}  // namespace unisono
