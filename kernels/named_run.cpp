#include "kernels/named_run.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "kernels/rank.hpp"
#include "platform/device/kernel_start.hpp"

namespace unisono::kernels {

std::string PortsInUse::take(const unisono_kernel_entry& kernel) {
  const std::lock_guard lock(mutex_);
  for (const unisono_kernel_entry* const other : running_) {
    const std::uint32_t gives = other->ports_to_engine & kernel.ports_to_engine;
    const std::uint32_t takes = other->ports_from_engine & kernel.ports_from_engine;
    if (gives == 0 && takes == 0) continue;
    return formatted(
        "stream port {} is used by kernel {}, which still runs; wait for it first, or give them ports of "
        "their own",
        __builtin_ctz(gives != 0 ? gives : takes), other->name);
  }
  running_.push_back(&kernel);
  return {};
}

void PortsInUse::give_back(const unisono_kernel_entry& kernel) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(running_.begin(), running_.end(), &kernel);
  if (found != running_.end()) running_.erase(found);
}

NamedRun::NamedRun(const unisono_kernel_entry& kernel, Arguments arguments, unisono_context* context,
                   std::shared_ptr<PortsInUse> ports)
    : kernel_(kernel), arguments_(std::move(arguments)), context_(context), ports_(std::move(ports)) {}

ErrorCode NamedRun::run(Rank& rank, Engine& engine, std::string& sentence) {
  while (state_.load() == State::kMade) {
    rank.yield(true);
    engine.progress();  // what it follows may need nobody else
  }
  if (state_.load() != State::kBegun) return ErrorCode::kOk;
  char text[1024] = {};
  unisono_kernel_run run{};
  run.struct_size = sizeof run;
  run.values = arguments_.values.data();
  run.values_count = static_cast<std::uint32_t>(arguments_.values.size());
  run.context = context_;
  run.communicators = arguments_.handles.data();
  run.communicators_count = static_cast<std::uint32_t>(arguments_.handles.size());
  run.sentence = text;
  run.sentence_bytes = sizeof text;
  run.calls = arguments_.call_handles.data();
  run.calls_count = static_cast<std::uint32_t>(arguments_.call_handles.size());
  const auto code = static_cast<ErrorCode>(kernel_.run(&run));
  sentence = text;
  return code;
}

void NamedRun::finish(ErrorCode code, const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(has_ports_, false)) ports_->give_back(kernel_);
  if (state_.load() != State::kBegun) return;
  code_ = code;
  sentence_ = sentence;
  state_.store(State::kEnded);
}

void NamedRun::begin() {
  const std::lock_guard lock(mutex_);
  if (state_.load() != State::kMade) return;
  sentence_ = ports_->take(kernel_);
  has_ports_ = sentence_.empty();
  if (!has_ports_) code_ = ErrorCode::kInvalidArgument;
  state_.store(has_ports_ ? State::kBegun : State::kEnded);
}

bool NamedRun::ended(ErrorCode& code, std::string& sentence) {
  if (state_.load() != State::kEnded) return false;
  const std::lock_guard lock(mutex_);
  code = code_;
  sentence = sentence_;
  return true;
}

std::string NamedRun::waits() const {
  const std::uint32_t now = at_.load();
  switch (static_cast<At>(now & 0xffU)) {
    case At::kGives:
      return formatted("it gives words at stream port {}, and no call takes them", now >> 8U);
    case At::kTakes:
      return formatted("it takes words at stream port {}, and no call has given any", now >> 8U);
    case At::kCommand:
      return "it waits for the end of its commands";
    default:
      return {};
  }
}

void NamedRun::leave() {
  const std::lock_guard lock(mutex_);
  // One that was never begun, or goes on, ends itself when it looks next.
  if (state_.load() == State::kEnded && !has_ports_) return;
  state_.store(State::kLeft);
}

std::vector<std::uint32_t> NamedRun::communicators() const {
  std::vector<std::uint32_t> numbers;
  for (const auto& each : arguments_.communicators) numbers.push_back(each->number);
  return numbers;
}

std::vector<const CallRequest*> NamedRun::calls() const {
  std::vector<const CallRequest*> requests;
  for (const auto& each : arguments_.calls) requests.push_back(&each->call().request);
  return requests;
}

std::vector<std::byte> NamedRun::packed(std::span<const std::uint64_t> addresses, std::span<const Place> places,
                                        std::span<const CallDescriptor> calls, std::uint64_t timeout_us) const {
  device::KernelStart start;
  start.name = kernel_.name;
  start.timeout_us = timeout_us;
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments_.values.size(); ++i) {
    const bool memory = kernel_.parameters[i].kind == UNISONO_KERNEL_MEMORY;
    start.values.push_back({memory ? addresses[next++] : arguments_.values[i].bits, arguments_.values[i].bytes});
  }
  for (const Place& place : places) start.members.push_back({place.position, place.rank, place.size, 0});
  start.calls.assign(calls.begin(), calls.end());
  return device::pack(start);
}

}  // namespace unisono::kernels
