#include "sim/kernels/fibre_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/text.hpp"
#include "sim/kernels/current.hpp"
#include "sim/kernels/run.hpp"

namespace unisono::sim {
namespace {

constexpr std::size_t kWord = sizeof(KernelWord::data);

KernelWord word_of(std::span<const std::byte> bytes) {
  KernelWord word;
  word.valid = true;
  word.keep = bytes.size() == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes.size()) - 1;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(word.data.data()));
  return word;
}

}  // namespace

FibreKernels::FibreKernels(const kernels::Library& library, std::uint32_t node, std::uint64_t clock_khz,
                           const KernelMemory& memory)
    : library_(library), node_(node), clock_khz_(clock_khz), memory_(memory) {}

FibreKernels::~FibreKernels() = default;

void FibreKernels::check_ports(const unisono_kernel_entry& kernel) const {
  const std::uint32_t ports = kernel.ports_to_engine | kernel.ports_from_engine;
  if (ports >> kKernelStreams != 0) {
    throw Error(ErrorCode::kUnsupported, formatted("it uses stream port {}; a simulated engine has ports 0 to {}",
                                                   31 - __builtin_clz(ports), kKernelStreams - 1));
  }
  for (const auto& run : runs_) {
    const std::uint32_t gives = run->kernel->ports_to_engine & kernel.ports_to_engine;
    const std::uint32_t takes = run->kernel->ports_from_engine & kernel.ports_from_engine;
    if (gives == 0 && takes == 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                formatted("stream port {} is used by kernel {}, which still runs; wait for it first, or give them "
                          "ports of their own",
                          __builtin_ctz(gives != 0 ? gives : takes), run->kernel->name));
  }
}

void FibreKernels::start(std::uint32_t number, const device::KernelStart& start, std::uint64_t cycles) {
  cycle_ = cycles;
  try {
    const unisono_kernel_entry& kernel = library_.find(start.name);
    check_ports(kernel);
    if (start.values.size() != kernel.parameters_count) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("{} arguments were given for {}: host and cluster have different libraries",
                            start.values.size(), kernels::words_of(kernel)));
    }
    begin(kernel, number, start);
  } catch (const Error& error) {
    ended_.push_back({number, error.code(), error.what()});
  }
}

void FibreKernels::begin(const unisono_kernel_entry& kernel, std::uint32_t number, const device::KernelStart& start) {
  auto run = std::make_unique<Run>();
  run->owner = this;
  run->number = number;
  run->kernel = &kernel;
  run->timeout_us = start.timeout_us;
  run->deadline = cycle_ + (start.timeout_us * clock_khz_ + 999) / 1000;
  run->members = start.members;
  for (device::KernelStart::Member& member : run->members) {
    run->handles.push_back(reinterpret_cast<unisono_communicator*>(&member));
  }
  std::list<Request> prepared;
  for (const CallDescriptor& call : start.calls) {
    Request& made = prepared.emplace_back();
    made.name = name_of(call.collective);
    made.run = run.get();
    made.answered = true;
    made.prepared = call;
    run->calls.push_back(reinterpret_cast<unisono_request*>(&made));
  }
  for (std::size_t i = 0; i < start.values.size(); ++i) {
    unisono_kernel_value value{start.values[i].bits, start.values[i].bytes};
    if (kernel.parameters[i].kind == UNISONO_KERNEL_MEMORY && value.bytes != 0) {
      if (value.bits < memory_.address || value.bytes > memory_.bytes ||
          value.bits - memory_.address > memory_.bytes - value.bytes) {
        throw Error(ErrorCode::kInvalidArgument, formatted("argument {} lies outside of device memory", i));
      }
      value.bits = reinterpret_cast<std::uintptr_t>(memory_.data + (value.bits - memory_.address));
    }
    run->values.push_back(value);
  }
  Run* const raw = run.get();
  run->fibre = std::make_unique<kernels::Fibre>([raw] {
    unisono_kernel_run given{};
    given.struct_size = sizeof given;
    given.values = raw->values.data();
    given.values_count = static_cast<std::uint32_t>(raw->values.size());
    given.context = reinterpret_cast<unisono_context*>(raw->owner);
    given.communicators = raw->handles.data();
    given.communicators_count = static_cast<std::uint32_t>(raw->handles.size());
    given.sentence = raw->sentence;
    given.sentence_bytes = sizeof raw->sentence;
    given.calls = raw->calls.data();
    given.calls_count = static_cast<std::uint32_t>(raw->calls.size());
    raw->code = raw->kernel->run(&given);
  });
  requests_.splice(requests_.end(), prepared);
  runs_.push_back(std::move(run));
}

std::vector<FibreKernels::Ended> FibreKernels::take_ended() { return std::exchange(ended_, {}); }

bool FibreKernels::idle() const {
  if (!runs_.empty() || !calls_.empty()) return false;
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if (word_[port].valid || !packed_[port].empty()) return false;
  }
  return true;
}

ToEngine FibreKernels::evaluate(const FromEngine& engine) {
  seen_ = engine;
  driven_ = {};
  if (!calls_.empty()) driven_.call = calls_.front();
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    driven_.in[port] = word_[port];
    driven_.out_ready[port] = taken_[port].size() < want_[port];
  }
  return driven_;
}

void FibreKernels::take_words() {
  if (driven_.call.valid && seen_.call_ready) calls_.pop_front();
  if (seen_.answer_valid) {
    const auto id = static_cast<std::uint32_t>(seen_.answer);
    for (Request& request : requests_) {
      if (request.id != id) continue;
      request.answered = true;
      request.code = static_cast<std::uint16_t>(seen_.answer >> 32U);
    }
    requests_.remove_if([](const Request& request) { return request.answered && request.forgotten; });
  }
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if (word_[port].valid && seen_.in_ready[port]) word_[port] = {};
    const KernelWord& out = seen_.out[port];
    if (!out.valid || !driven_.out_ready[port]) continue;
    const auto* const first = reinterpret_cast<const std::byte*>(out.data.data());
    taken_[port].insert(taken_[port].end(), first, first + __builtin_popcountll(out.keep));
    if (taken_[port].size() >= want_[port]) want_[port] = 0;
  }
}

/// Offers the next word, if it is whole and the one before has gone.
void FibreKernels::load_word(unsigned port) {
  if (word_[port].valid || packed_[port].size() != kWord) return;
  word_[port] = word_of(packed_[port]);
  packed_[port].clear();
}

void FibreKernels::resume(Run& run) {
  CurrentRun::set(&run);
  run.fibre->resume();
  CurrentRun::set(nullptr);
}

/// What stands in a port, is not full, and whose kernel waits for something else.
void FibreKernels::flush() {
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if (word_[port].valid || packed_[port].empty()) continue;
    const bool computes = std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) {
      return (run->kernel->ports_to_engine >> port & 1U) != 0 && run->wait == Run::Wait::kTicks;
    });
    // A whole word goes whatever its kernel does.
    if (computes && packed_[port].size() != kWord) continue;
    word_[port] = word_of(packed_[port]);
    packed_[port].clear();
  }
}

void FibreKernels::edge() {
  take_words();
  ++cycle_;
  for (auto at = runs_.begin(); at != runs_.end();) {
    Run& run = **at;
    resume(run);
    if (run.fibre->ended()) {
      end(run, static_cast<ErrorCode>(run.code), run.code == 0 ? "" : run.sentence);
    } else if (cycle_ >= run.deadline) {
      end(run, ErrorCode::kTimeout,
          formatted("timed out after {} us of the device's time: {}", run.timeout_us, waits(run)));
    } else {
      ++at;
      continue;
    }
    at = runs_.erase(at);
  }
  flush();
}

void FibreKernels::end(Run& run, ErrorCode code, std::string sentence) {
  ended_.push_back({run.number, code, std::move(sentence)});
  for (Request& request : requests_) {
    if (request.run == &run) request.forgotten = true;
  }
  requests_.remove_if([](const Request& request) { return request.answered && request.forgotten; });
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if ((run.kernel->ports_from_engine >> port & 1U) != 0) want_[port] = 0;
  }
}

std::string FibreKernels::waits(const Run& run) const {
  switch (run.wait) {
    case Run::Wait::kGive:
      return formatted("it gives words at stream port {}, and no call takes them", run.port);
    case Run::Wait::kTake:
      return formatted("it takes words at stream port {}, and no call has given any", run.port);
    case Run::Wait::kCall:
      return "it gives a command, which the engine does not take";
    case Run::Wait::kAnswer:
    case Run::Wait::kPoll: {
      for (const Request& request : requests_) {
        if (request.id == run.request && !request.answered) return "it waits for the end of its " + request.name;
      }
      return "it looks again and again for what has not come";
    }
    default:
      return "the kernel has not ended";
  }
}

std::uint64_t FibreKernels::address_of(const void* pointer, std::uint64_t bytes, const char* what) const {
  if (pointer == nullptr || bytes == 0) return 0;
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.data);
  if (at < first || bytes > memory_.bytes || at - first > memory_.bytes - bytes) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted("{} lies outside of device memory; the engine reaches what the host has given as an argument, "
                  "and no variable of the kernel",
                  what));
  }
  return memory_.address + (at - first);
}

std::uint64_t FibreKernels::scratch_for(std::uint64_t bytes) {
  constexpr std::uint64_t kLine = 64;
  if (bytes == 0) return 0;
  // All of it is free again when no call has any.
  const bool used = std::any_of(requests_.begin(), requests_.end(),
                                [](const Request& request) { return request.scratch != 0 && !request.answered; });
  if (!used) scratch_used_ = 0;
  const std::uint64_t rounded = (bytes + kLine - 1) / kLine * kLine;
  if (rounded > memory_.scratch - scratch_used_) {
    throw Error(ErrorCode::kOutOfMemory,
                formatted("its {} bytes of scratch find no room; kernels' calls have {} bytes on a node", bytes,
                          memory_.scratch));
  }
  const std::uint64_t address = memory_.address + memory_.bytes + scratch_used_;
  scratch_used_ += rounded;
  return address;
}

}  // namespace unisono::sim
