#include "engine/stream_ports.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unisono::cclo {

std::byte* StreamQueue::back(std::uint64_t bytes) {
  if (memory_ == nullptr) memory_ = std::make_unique<std::byte[]>(kMemory);
  if (kMemory - end_ < bytes) {
    std::memmove(memory_.get(), memory_.get() + begin_, here());
    end_ -= begin_;
    begin_ = 0;
  }
  return memory_.get() + end_;
}

void StreamPorts::leave(StreamSide side, std::uint32_t port, std::uint64_t call) {
  std::vector<std::uint64_t>& line = at(side, port).line;
  line.erase(std::remove(line.begin(), line.end(), call), line.end());
}

std::optional<StreamPorts::Failure> StreamPorts::take_failure(std::uint32_t port) {
  return std::exchange(at(StreamSide::kToKernel, port).failure, std::nullopt);
}

void check_port(std::int64_t port, const std::string& operation) {
  if (port >= 0 && port < static_cast<std::int64_t>(StreamPorts::kPorts)) return;
  throw Error(ErrorCode::kInvalidArgument, operation + ": stream port " + std::to_string(port) +
                                               " was given; an engine has ports 0 to " +
                                               std::to_string(StreamPorts::kPorts - 1) + " in each direction");
}

CallStreams::Use& CallStreams::use(StreamSide side, std::uint32_t port) {
  for (Use& each : uses) {
    if (each.side == side && each.port == port) return each;
  }
  return uses.emplace_back(Use{side, static_cast<std::uint8_t>(port)});
}

}  // namespace unisono::cclo
