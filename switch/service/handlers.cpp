#include "switch/service/handlers.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/text.hpp"
#include "platform/join/hexadecimal.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/operator.hpp"
#include "switch/handler/sentence.hpp"

namespace unisono::slots {

namespace {

using handler::Function;
using handler::Info;
using handler::Outcome;
using handler::Stop;

/// Instructions after which another caller has its turn: about a millisecond of the interpreter.
constexpr std::uint64_t kTurn = std::uint64_t{1} << 20U;
/// Bytes of outputs after which a request is answered; the function that runs then may add its own.
constexpr std::uint64_t kMostOutputsAtOnce = std::uint64_t{1} << 20U;
/// Requests of one caller that wait.
constexpr std::size_t kMostTasks = 4;

/// What a handler takes of the switch's memory: its own, and its instructions, as they are read and as they are run,
/// beside the binary's bytes.
std::uint64_t bytes_taken(const handler::Program& program, std::size_t binary) {
  return program.memory_bytes + std::uint64_t{4} * binary;
}

std::vector<std::byte> memory_of(const handler::Program& program) {
  std::vector<std::byte> memory(program.memory_bytes);
  std::transform(program.data.begin(), program.data.end(), memory.begin(),
                 [](std::uint8_t byte) { return std::byte{byte}; });
  return memory;
}

}  // namespace

Handlers::Handlers(HandlerLimits limits, std::function<void()> ring)
    : limits_(limits), ring_(std::move(ring)), output_(handler::kMostOutputBytes) {}

Handlers::~Handlers() { stop(); }

void Handlers::start() {
  thread_ = std::thread([this] { work(); });
}

void Handlers::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  something_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---- loading ----

/// Why a handler that takes so many bytes is not loaded; empty: it is. `there` is what it would replace.
std::string Handlers::fault_of(const LoadRequest& request, std::uint64_t bytes,
                               const std::shared_ptr<Loaded>& there) const {
  const std::string& name = request.which.name;
  if (there != nullptr && there->hash != request.hash && !request.anew) {
    return formatted("another handler {} is loaded, {}; unload it first, take another name, or load this one anew",
                     name, join::hexadecimal_of(there->hash).substr(0, 16));
  }
  const bool owned = request.which.owner != HandlerOwner{};
  std::uint64_t count = 0;
  std::uint64_t used = 0;
  for (const auto& [which, one] : loaded_) {
    if (one == there || (owned && which.owner != request.which.owner)) continue;
    ++count;
    used += one->bytes;
  }
  const std::uint64_t part = owned ? kPartOfAJob : 1;
  const std::uint64_t most = std::max<std::uint64_t>(limits_.most / part, 1);
  if (count >= most) {
    return formatted("{} handlers are loaded{}, which is the most; unload one", count, owned ? " for this job" : "");
  }
  if (used + bytes > limits_.memory_bytes / part) {
    return formatted(
        "{} takes {} bytes, and {} of {} for handlers{} are free; unload one, or give the switch more by "
        "--handlers-memory",
        name, bytes, limits_.memory_bytes / part - std::min(used, limits_.memory_bytes / part),
        limits_.memory_bytes / part, owned ? " of one job" : "");
  }
  // What it replaces takes its bytes until requests that use it have ended.
  const bool goes = there != nullptr && there.use_count() == 1;
  const std::uint64_t all = bytes_ - (goes ? there->bytes : 0);
  if (loaded_.size() - (there != nullptr ? 1 : 0) >= limits_.most || all + bytes > limits_.memory_bytes) {
    return formatted("{} handlers with {} of {} bytes are loaded, and {} needs {}; unload one", loaded_.size(), all,
                     limits_.memory_bytes, name, bytes);
  }
  return "";
}

LoadAnswer Handlers::load(CallerId caller, const LoadRequest& request) {
  if (limits_.most == 0) return {"this switch takes no handlers; start it with --handlers N", false};
  const Digest hash = sha256_of(request.binary);
  if (hash != request.hash) {
    return {formatted("the binary of {} has the hash {}, and the caller says {}; load what was compiled",
                      request.which.name, join::hexadecimal_of(hash).substr(0, 16),
                      join::hexadecimal_of(request.hash).substr(0, 16)),
            false};
  }
  auto made = std::make_shared<Loaded>(bytes_);
  try {
    made->program = handler::parse_binary(request.binary);
    made->code.emplace(made->program);
    const std::lock_guard lock(mutex_);
    const auto found = loaded_.find(request.which);
    const std::shared_ptr<Loaded> none;
    const std::shared_ptr<Loaded>& there = found == loaded_.end() ? none : found->second;
    if (there != nullptr && there->hash == hash && !request.anew) {
      if (request.stays) {
        there->stays = true;
      } else {
        there->wanted_by.insert(caller);
      }
      return {"", false};
    }
    const std::uint64_t bytes = bytes_taken(made->program, request.binary.size());
    std::string fault = fault_of(request, bytes, there);
    if (!fault.empty()) return {std::move(fault), false};
    made->memory = memory_of(made->program);
    made->hash = hash;
    made->stays = request.stays;
    // Callers who loaded the same binary before keep it loaded; only its memory begins again.
    if (there != nullptr && there->hash == hash) made->wanted_by = there->wanted_by;
    if (!request.stays) made->wanted_by.insert(caller);
    HandlerReport& report = made->report;
    report.which = request.which;
    report.hash = hash;
    report.source = made->program.source;
    report.words = static_cast<std::uint32_t>(made->program.words.size());
    report.memory_bytes = made->program.memory_bytes;
    if (const auto shape = handler::operator_shape(made->program)) {
      report.element_bytes = shape->element_bytes;
      made->binary = request.binary;
    }
    for (std::uint32_t i = 0; i < handler::kFunctions; ++i) {
      report.most_executed[i] = handler::most_executed(made->program, static_cast<Function>(i));
    }
    made->number = ++last_loaded_;
    made->bytes = bytes;
    bytes_ += bytes;
    loaded_[request.which] = std::move(made);
    return {"", true};
  } catch (const std::exception& error) {
    return {formatted("{}: {}", request.which.name, error.what()), false};
  }
}

std::string Handlers::unload(const HandlerName& which) {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(which);
  if (found == loaded_.end()) {
    return formatted("there is no handler {} that this caller may unload; `unisono switch stat` lists them",
                     which.name);
  }
  loaded_.erase(found);  // requests that wait for it keep it until then
  return "";
}

// ---- running ----

void Handlers::run(CallerId caller, std::uint32_t number, RunRequest request) {
  const auto refuse = [&](std::string sentence) {
    RunAnswer answer;
    answer.state = RunAnswer::State::kRefused;
    answer.sentence = std::move(sentence);
    answers_.push_back({caller, number, std::move(answer)});
    ring_();
  };
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(request.which);
  if (found == loaded_.end()) {
    return refuse(formatted("there is no handler {} that this caller may run; load it first", request.which.name));
  }
  Caller& one = callers_[caller];
  if (one.tasks.size() >= kMostTasks) {
    return refuse(formatted("{} requests of this caller wait already; take their answers first", kMostTasks));
  }
  Task task;
  task.number = number;
  task.budget = request.budget == 0 ? limits_.budget : std::min(request.budget, limits_.budget);
  task.request = std::move(request);
  task.loaded = found->second;
  one.tasks.push_back(std::move(task));
  something_.notify_one();
}

std::vector<HandlerAnswer> Handlers::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

std::optional<join::Blob> Handlers::operator_binary(const Digest& hash) {
  const std::lock_guard lock(mutex_);
  for (const auto& [which, loaded] : loaded_) {
    if (which.owner == HandlerOwner{} && loaded->hash == hash && !loaded->binary.empty()) return loaded->binary;
  }
  return std::nullopt;
}

void Handlers::gone(CallerId caller) {
  const std::lock_guard lock(mutex_);
  callers_.erase(caller);
  for (auto one = loaded_.begin(); one != loaded_.end();) {
    const auto next = std::next(one);
    if (one->second->wanted_by.erase(caller) != 0 && !one->second->stays && one->second->wanted_by.empty()) {
      loaded_.erase(one);
    }
    one = next;
  }
}

void Handlers::work() {
  std::unique_lock lock(mutex_);
  const auto waits = [](const auto& one) { return !one.second.tasks.empty(); };
  for (;;) {
    if (stopped_) return;
    // The next one behind the caller whose turn it was.
    auto one = std::find_if(callers_.upper_bound(last_), callers_.end(), waits);
    if (one == callers_.end()) one = std::find_if(callers_.begin(), callers_.end(), waits);
    if (one == callers_.end()) {
      something_.wait(lock);
      continue;
    }
    const CallerId id = one->first;
    last_ = id;
    Task task = std::move(one->second.tasks.front());
    one->second.tasks.pop_front();
    Message message = one->second.message;
    lock.unlock();
    const bool done = take_turn(task, message);
    lock.lock();
    // It may have gone meanwhile. What its functions have left in memory stays, as if the message had ended there.
    one = callers_.find(id);
    if (one == callers_.end()) continue;
    one->second.message = message;
    if (!done) {
      one->second.tasks.push_front(std::move(task));
      continue;
    }
    answers_.push_back({id, task.number, std::move(task.answer)});
    ring_();
  }
}

/// Whether a request may run: packet 0 begins a message, and others go on with it.
bool Handlers::begin(Task& task, Message& message) {
  const RunRequest& request = task.request;
  task.begun = true;
  if (request.first == 0) {
    message = {task.loaded->number, 0};
    const std::lock_guard lock(mutex_);
    ++task.loaded->report.messages;
    return true;
  }
  if (message.loaded == task.loaded->number && message.next == request.first) return true;
  task.answer.state = RunAnswer::State::kRefused;
  task.answer.sentence =
      message.loaded == 0 ? formatted("packet {} of a message that has not begun; begin with packet 0", request.first)
      : message.loaded != task.loaded->number
          ? formatted("the handler {} was loaded anew in the middle of the message; begin with packet 0",
                      request.which.name)
          : formatted("packet {} is sent, and packet {} is the next; send packets in their order", request.first,
                      message.next);
  message = {};
  return false;
}

/// Runs packets of a request until it is done, and says so, or another caller should have its turn.
bool Handlers::take_turn(Task& task, Message& message) {
  const RunRequest& request = task.request;
  RunAnswer& answer = task.answer;
  const std::uint64_t before = answer.executed;
  const auto over = [&] {
    message = {};
    return true;
  };
  if (!task.begun) {
    if (!begin(task, message)) return true;
    if (request.first == 0 && !run_one(task, Function::kHeader, 0)) return over();
  }
  while (answer.taken < request.payloads.size()) {
    const bool goes_on = run_one(task, Function::kPayload, request.first + answer.taken);
    ++answer.taken;
    if (!goes_on) return over();
    message.next = request.first + answer.taken;
    if (message.next == request.packets) break;
    if (task.output_bytes >= kMostOutputsAtOnce) return true;
    if (answer.executed - before >= kTurn) return false;
  }
  if (request.first + answer.taken != request.packets) return true;
  run_one(task, Function::kCompletion, request.packets == 0 ? 0 : request.packets - 1);
  return over();
}

/// False if the message is over by that.
bool Handlers::run_one(Task& task, Function function, std::uint32_t packet) {
  Loaded& loaded = *task.loaded;
  if (loaded.program.entries[static_cast<std::size_t>(function)] == handler::kNoFunction) return true;
  const RunRequest& request = task.request;
  RunAnswer& answer = task.answer;
  handler::Surroundings around;
  if (function == Function::kPayload) around.payload = request.payloads[packet - request.first];
  const auto set = [&](Info info, std::uint32_t value) { around.info[static_cast<std::size_t>(info)] = value; };
  set(Info::kLength, static_cast<std::uint32_t>(around.payload.size()));
  set(Info::kPacket, packet);
  set(Info::kPackets, request.packets);
  set(Info::kSource, request.source);
  set(Info::kRanks, request.ranks);
  set(Info::kTag, request.tag);
  around.memory = loaded.memory;
  around.output = output_;
  const Outcome outcome = loaded.code->run(function, around, task.budget);
  answer.executed += outcome.executed;
  const std::string sentence = handler::sentence_of(loaded.program, function, around, outcome);
  note(task, function, outcome, sentence);
  if (!sentence.empty()) {
    answer.state = RunAnswer::State::kStopped;
    answer.sentence = sentence;
    return false;
  }
  if (outcome.output_bytes != 0) {
    const auto end = output_.begin() + static_cast<std::ptrdiff_t>(outcome.output_bytes);
    answer.outputs.emplace_back(output_.begin(), end);
    task.output_bytes += outcome.output_bytes;
  }
  if (outcome.verdict == handler::kGoOn) return true;
  answer.state = RunAnswer::State::kDropped;
  return false;
}

// ---- what people are told ----

void Handlers::note(const Task& task, Function function, const Outcome& outcome, const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  HandlerReport& report = task.loaded->report;
  ++report.runs;
  report.instructions += outcome.executed;
  if (function == Function::kPayload) ++report.packets;
  if (sentence.empty()) {
    if (outcome.output_bytes != 0) ++report.outputs;
    return;
  }
  ++report.stops[outcome.stop == Stop::kNone ? "verdict" : name_of(outcome.stop)];
  report.last_stop = sentence;
}

HandlersReport Handlers::report(const std::string& name) {
  const std::lock_guard lock(mutex_);
  HandlersReport report;
  report.limits = limits_;
  report.memory_bytes = bytes_;
  for (const auto& [which, loaded] : loaded_) {
    if (name.empty() || which.name == name) report.handlers.push_back(loaded->report);
  }
  return report;
}

}  // namespace unisono::slots
