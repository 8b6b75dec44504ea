#include "kernels/rank.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/per_process.hpp"
#include "core/text.hpp"
#include "driver/front_door.hpp"
#include "kernels/channel.hpp"
#include "kernels/group.hpp"
#include "kernels/named_run.hpp"
#include "kernels/node_ports.hpp"
#include "kernels/stuck.hpp"
#include "network/wait_hook.hpp"

namespace unisono::kernels {

namespace {

/// Receives stay posted for as long as there may be a message; deadlines are kept here, of everything together.
constexpr std::chrono::microseconds kForEver = std::chrono::hours(24 * 365);
/// How long the rank's own thread sleeps in the engine before it looks whether it is to end.
constexpr std::chrono::microseconds kNap{2000};
/// And who waits while others look again and again for what has not come.
constexpr std::chrono::microseconds kPolling{20};
/// How long one who leaves waits for the others to leave.
constexpr std::chrono::milliseconds kFarewell{100};
constexpr std::size_t kSpareFlights = 64;
/// How long a program may be busy elsewhere before its clock goes on without it: others may need its node.
constexpr std::chrono::milliseconds kGrace{5000};
/// How long nodes at the other ends of cables are waited for before anything else is looked at.
constexpr std::chrono::microseconds kNeighbours{2000};
/// Cycles after which the engine and the program's other threads are looked at.
constexpr int kCycles = 512;

struct Current {
  Rank* rank = nullptr;
  Kernel* kernel = nullptr;
};

// Kernels go on in other threads: no address of a thread's own may be kept over a switch, so it is asked for anew.
[[gnu::noinline]] Current& current_of_thread() {
  static constinit thread_local Current current;
  asm volatile("" ::: "memory");
  return current;
}

class Registry {
 public:
  static Registry& instance() { return PerProcess<Registry>::instance(); }

  std::mutex mutex;
  std::unordered_map<const driver::Context*, std::shared_ptr<Rank>> ranks;
};

std::atomic<int> strictness{-1};

}  // namespace

std::shared_ptr<Rank> Rank::of(const std::shared_ptr<driver::Context>& context) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  std::shared_ptr<Rank>& rank = registry.ranks[context.get()];
  if (rank == nullptr) {
    rank = std::make_shared<Rank>(context);
    context->before_close([key = context.get()](bool in_order) {
      std::shared_ptr<Rank> closing;
      {
        Registry& all = Registry::instance();
        const std::lock_guard inner(all.mutex);
        const auto found = all.ranks.find(key);
        if (found == all.ranks.end()) return;
        closing = std::move(found->second);
        all.ranks.erase(found);
      }
      closing->close(in_order);
    });
  }
  return rank;
}

Rank* Rank::current() { return current_of_thread().rank; }

Kernel* Rank::current_kernel() { return current_of_thread().kernel; }

Rank::Rank(const std::shared_ptr<driver::Context>& context)
    : context_(context), ports_(std::make_shared<PortsInUse>()), endpoint_(context->endpoint()) {
  world_rank_ = endpoint_->engine->rank(0);
  timeout_ = endpoint_->engine->state(0).timeout;
  node_ports_ = NodePorts::of_environment(*this, world_rank_, endpoint_->engine->size(0));
  // Its node passes on what is for others, whether kernels run here or not.
  if (node_ports_ != nullptr) thread_ = std::thread([this] { background(); });
  // Kernels at stream ports take turns with the others.
  driver::set_yield([] {
    Rank* const rank = current();
    if (rank != nullptr) rank->yield(true);
    return rank != nullptr;
  });
}

Rank::~Rank() = default;

bool Rank::strict() {
  int now = strictness.load(std::memory_order_relaxed);
  if (now < 0) {
    const char* const text = std::getenv("UNISONO_SMI");  // NOLINT(concurrency-mt-unsafe)
    now = text != nullptr && std::string_view(text) == "strict" ? 1 : 0;
    strictness.store(now, std::memory_order_relaxed);
  }
  return now != 0;
}

void Rank::set_strict(bool strict) { strictness.store(strict ? 1 : 0, std::memory_order_relaxed); }

Rank::Turn::Turn(Rank& rank) : rank_(rank), taken_(Rank::current() == nullptr) {
  if (Rank::current() != nullptr && Rank::current() != &rank) {
    throw Error(ErrorCode::kInvalidArgument, "a kernel uses a channel or a kernel of another rank");
  }
  if (!taken_) return;
  rank_.take_role();
  if (!rank_.closed_) return;
  rank_.leave_role();
  throw Error(ErrorCode::kWrongProcess, "the context was closed; create a new one");
}

Rank::Turn::~Turn() {
  if (taken_) rank_.leave_role();
}

void Rank::take_role() {
  std::unique_lock lock(role_mutex_);
  ++wanted_;
  role_.wait(lock, [&] { return !driven_; });
  --wanted_;
  driven_ = true;
}

void Rank::leave_role() {
  {
    const std::lock_guard lock(role_mutex_);
    driven_ = false;
    if (thread_.get_id() != std::this_thread::get_id()) driven_until_ = Clock::now();
  }
  role_.notify_all();
}

Task& Rank::here() {
  if (Kernel* const kernel = current_kernel(); kernel != nullptr) return kernel->task;
  std::unique_ptr<Task>& task = threads_[std::this_thread::get_id()];
  if (task == nullptr) {
    task = std::make_unique<Task>();
    task->name = threads_.size() == 1 ? "the program" : formatted("thread {} of the program", threads_.size());
  }
  return *task;
}

std::vector<const Task*> Rank::threads() const {
  std::vector<const Task*> all;
  for (const auto& [id, task] : threads_) {
    if (!task->ready.load()) all.push_back(task.get());
  }
  return all;
}

void Rank::block(const Wait& wait) {
  Task& me = here();
  me.wait = wait;
  me.ready.store(false, std::memory_order_relaxed);
  if (node_ports_ != nullptr && wait.kind != Wait::Kind::kNone) node_ports_->waits(me);
  if (me.fibre != nullptr) {
    me.fibre->suspend();
  } else {
    run_until(me);
  }
  me.wait = {};
}

void Rank::wake(Task& task) {
  if (task.ready.load(std::memory_order_relaxed)) return;
  task.ready.store(true, std::memory_order_release);
  moved_ = true;
  if (task.fibre != nullptr) ready_.push_back(&task);
}

void Rank::yield(bool polls) {
  Task& me = here();
  if (me.fibre == nullptr) {
    if (!step()) idle(kPolling);
    return;
  }
  if (node_ports_ != nullptr) {
    node_ports_->wait_until(node_ports_->now() + 1);
    return;
  }
  me.ready.store(true, std::memory_order_relaxed);
  if (polls) {
    polling_.push_back(&me);
  } else {
    ready_.push_back(&me);
  }
  me.fibre->suspend();
  if (const auto& named = current_kernel()->named; named != nullptr && named->left()) {
    end_kernel(ErrorCode::kTimeout, "its call has ended before it");
  }
}

void Rank::tick(std::uint64_t cycles) {
  if (cycles == 0) return;
  if (node_ports_ == nullptr || here().fibre == nullptr) {
    yield(false);
    return;
  }
  node_ports_->waits(here());
  node_ports_->wait_until(node_ports_->now() + cycles);
  node_ports_->node().moved();
}

void Rank::run(Task& task) {
  Current& current = current_of_thread();
  auto* const kernel = reinterpret_cast<Kernel*>(&task);  // its first member
  current = {this, kernel};
  task.fibre->resume();
  current = {};
  if (task.fibre->ended() || kernel->ended) end(*kernel);
}

bool Rank::step() {
  const bool came = drain();
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Task* const task = ready_.front();
    ready_.pop_front();
    run(*task);
  }
  return came || count != 0;
}

bool Rank::drain() {
  if (!inbox_->any()) return false;
  landed_.clear();
  inbox_->take(landed_);
  std::vector<std::shared_ptr<Flight>> landed;
  landed.swap(landed_);
  for (const std::shared_ptr<Flight>& flight : landed) {
    to_forget_.push_back(flight->id);
    if (flight->sends) --sends_;
    in_flight_[flight->position] = in_flight_.back();
    in_flight_[flight->position]->position = flight->position;
    in_flight_.pop_back();
    flight->complete = true;
    if (flight->receiver != nullptr) {
      try {
        flight->receiver->landed(flight);
      } catch (const Error&) {  // the communicator was revoked or freed: what waits there hears of it by its own calls
      }
    } else {
      give_back(flight);
    }
  }
  landed.clear();
  landed_.swap(landed);
  moved_ = true;
  forget();
  return true;
}

/// Calls that a thread sleeps on must be known to the engine.
void Rank::forget() {
  if (sleepers_ != 0) return;
  for (const CallId id : to_forget_) {
    try {
      endpoint_->engine->forget(id);
    } catch (const Error&) {  // its communicator was freed
    }
  }
  to_forget_.clear();
}

/// Lets the clock go on until a task can, and a while at most. Whether anything came.
bool Rank::clocks(std::chrono::microseconds at_most) {
  if (drain() || !ready_.empty()) return true;
  moved_ = false;
  bool stands = false;
  for (int i = 0; i < kCycles && !moved_; ++i) {
    if (node_ports_->cycle(std::min(at_most, kNeighbours))) continue;
    stands = true;
    break;
  }
  if (moved_ && !stands) return true;
  endpoint_->engine->progress();
  leave_role();
  take_role();
  return drain() || moved_;
}

bool Rank::idle(std::chrono::microseconds at_most) {
  if (node_ports_ != nullptr) return clocks(at_most);
  ship();
  if (drain()) return true;
  if (!ready_.empty()) return true;
  if (!polling_.empty()) {
    ready_.assign(polling_.begin(), polling_.end());
    polling_.clear();
    at_most = std::min(at_most, kPolling);
  }
  std::vector<CallId> ids;
  ids.reserve(in_flight_.size());
  for (const auto& flight : in_flight_) ids.push_back(flight->id);
  ++sleepers_;
  leave_role();
  if (ids.empty()) {
    std::unique_lock lock(role_mutex_);
    role_.wait_for(lock, at_most, [&] { return inbox_->any() || wanted_ != 0 || closed_; });
  } else {
    try {
      endpoint_->engine->wait_any(ids, at_most);
    } catch (const Error&) {  // the communicator was freed
    }
  }
  take_role();
  --sleepers_;
  if (!to_forget_.empty()) forget();
  return drain();
}

void Rank::run_until(Task& me) {
  auto last = Clock::now();
  moved_ = false;
  std::uint64_t moves = 0;
  while (!me.ready.load(std::memory_order_acquire)) {
    if (step()) {
      bool others = false;
      {
        const std::lock_guard lock(role_mutex_);
        others = wanted_ != 0;
      }
      if (!others) continue;
      leave_role();
      std::this_thread::yield();
      take_role();
      continue;
    }
    if (node_ports_ != nullptr) {
      // Others that go on may end this wait, however long they take for it.
      const std::uint64_t now = node_ports_->node().moves();
      if (moves != now) last = Clock::now();
      moves = now;
    } else if (moved_) {
      last = Clock::now();
    }
    moved_ = false;
    const auto left = timeout_ - std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - last);
    if (left.count() <= 0) {
      const std::string sentence = stuck(*this, timeout_);
      if (me.ready.load()) return;
      me.ready.store(true);
      throw Error(ErrorCode::kTimeout, sentence);
    }
    idle(std::min<std::chrono::microseconds>(left, std::chrono::milliseconds(50)));
  }
}

std::shared_ptr<Kernel> Rank::launch(std::string name, std::function<void()> body, std::shared_ptr<void> owned,
                                     bool forever) {
  auto kernel = std::make_shared<Kernel>();
  kernel->owned = std::move(owned);
  kernel->task.name = std::move(name);
  kernel->forever = forever;
  kernel->fibre = std::make_unique<Fibre>([this, raw = kernel.get(), body = std::move(body)] {
    try {
      body();
    } catch (const Error& error) {
      raw->code = error.code();
      raw->failure = error.what();
    } catch (const std::exception& error) {
      raw->code = ErrorCode::kInternal;
      raw->failure = error.what();
    } catch (...) {
      raw->code = ErrorCode::kInternal;
      raw->failure = "an exception that is none of std::exception";
    }
  });
  kernel->task.fibre = kernel->fibre.get();
  kernels_.push_back(kernel);
  ready_.push_back(&kernel->task);
  moved_ = true;
  if (node_ports_ != nullptr) node_ports_->kernel_begins();
  if (!thread_.joinable()) thread_ = std::thread([this] { background(); });
  return kernel;
}

void Rank::run_named(const std::shared_ptr<NamedRun>& run) {
  const Turn turn(*this);
  const auto kernel = launch(
      run->name(),
      [this, run] {
        std::string sentence;
        const ErrorCode code = run->run(*this, *endpoint_->engine, sentence);
        if (code == ErrorCode::kOk) return;
        Kernel& own = *current_kernel();
        own.code = code;
        own.failure = std::move(sentence);
      },
      run, false);
  kernel->named = run;
}

void Rank::end_kernel(ErrorCode code, std::string sentence) {
  Kernel& kernel = *current_kernel();
  kernel.code = code;
  kernel.failure = std::move(sentence);
  kernel.ended = true;
  kernel.task.failed = true;
  kernel.fibre->suspend();
  std::abort();  // nobody resumes it
}

void Rank::end(Kernel& kernel) {
  kernel.ended = true;
  moved_ = true;
  if (node_ports_ != nullptr) node_ports_->kernel_ends();
  for (const auto& [number, group] : groups_) {
    const std::string left = group->leave(kernel.task);
    if (left.empty() || kernel.code != ErrorCode::kOk) continue;
    kernel.code = ErrorCode::kMismatchedCall;
    kernel.failure = left;
  }
  if (kernel.named != nullptr) kernel.named->finish(kernel.code, kernel.failure);
  for (Task* const waiter : kernel.waiters) wake(*waiter);
  kernel.waiters.clear();
  // Its stack is still in use if it has failed, and dropped here.
  kernel.fibre.reset();
  kernel.owned.reset();
  kernel.task.fibre = nullptr;
  const auto found =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& other) { return other.get() == &kernel; });
  const bool named = kernel.named != nullptr;  // its call tells of its failure
  if (found != kernels_.end() && (kernel.code == ErrorCode::kOk || kernel.forever || named)) kernels_.erase(found);
  if (named && endpoint_ != nullptr) endpoint_->engine->progress();  // who waits for that call hears of its end
}

void Rank::wait_for(Kernel& kernel) {
  while (!kernel.ended) {
    kernel.waiters.push_back(&here());
    Wait wait;
    wait.kind = Wait::Kind::kKernel;
    wait.name = kernel.task.name.c_str();
    wait.towards = &kernel.task;
    try {
      block(wait);
    } catch (...) {
      std::erase(kernel.waiters, &here());
      throw;
    }
  }
  std::erase_if(kernels_, [&](const auto& other) { return other.get() == &kernel; });
  if (kernel.code == ErrorCode::kOk || kernel.told) return;
  kernel.told = true;
  throw Error(kernel.code, formatted("kernel {} (rank {}): {}", kernel.task.name, world_rank_, kernel.failure));
}

void Rank::wait_for_all() {
  std::exception_ptr first;
  for (;;) {
    const auto next =
        std::find_if(kernels_.begin(), kernels_.end(), [](const auto& kernel) { return !kernel->forever; });
    if (next == kernels_.end()) break;
    const std::shared_ptr<Kernel> kernel = *next;
    try {
      wait_for(*kernel);
    } catch (const Error& error) {
      if (!first) first = std::current_exception();
      if (error.code() == ErrorCode::kTimeout && !kernel->ended) break;  // nothing goes on: nor would the others
    }
  }
  if (first) std::rethrow_exception(first);
}

Group& Rank::group(const std::shared_ptr<driver::Communicator>& communicator) {
  std::unique_ptr<Group>& group = groups_[communicator->number];
  if (group == nullptr) group = std::make_unique<Group>(*this, communicator);
  return *group;
}

std::vector<Group*> Rank::groups() {
  std::vector<Group*> all;
  for (const auto& [number, group] : groups_) all.push_back(group.get());
  return all;
}

void Rank::ship() {
  const Task* const me = current_kernel() == nullptr ? &here() : nullptr;
  for (const auto& [number, group] : groups_) group->ship(me);
}

std::shared_ptr<Flight> Rank::flight(std::size_t capacity) {
  if (!spare_.empty() && spare_.back()->capacity() >= capacity && capacity > spare_.back()->capacity() / 2) {
    std::shared_ptr<Flight> flight = std::move(spare_.back());
    spare_.pop_back();
    flight->complete = false;
    flight->receiver = nullptr;
    flight->id = 0;
    return flight;
  }
  return std::make_shared<Flight>(capacity);
}

void Rank::give_back(std::shared_ptr<Flight> flight) {
  constexpr std::size_t kLarge = 4096;
  if (flight->capacity() >= kLarge && spare_.size() < kSpareFlights) spare_.push_back(std::move(flight));
}

void Rank::start(CallRequest& request, const std::shared_ptr<Flight>& flight) {
  request.call.dtype = Datatype::kByte;
  request.reserved_tag = true;
  request.timeout = kForEver;
  flight->complete = false;
  flight->position = in_flight_.size();
  flight->id = endpoint_->engine->submit(request);
  if (flight->sends) ++sends_;
  in_flight_.push_back(flight);
  endpoint_->engine->when_complete(flight->id,
                                   [inbox = inbox_, flight](const CallResult& result) { inbox->put(flight, result); });
}

void Rank::send(const Group& group, std::uint32_t peer, std::uint32_t tag, const std::shared_ptr<Flight>& flight) {
  CallRequest request;
  request.communicator = group.number();
  request.tag = tag;
  request.call.collective = Collective::kSend;
  request.call.root = peer;
  request.call.count = flight->bytes;
  request.src = {flight->memory(), flight->bytes};
  flight->sends = true;
  start(request, flight);
}

void Rank::receive(const Group& group, std::uint32_t peer, std::uint32_t tag, const std::shared_ptr<Flight>& flight) {
  CallRequest request;
  request.communicator = group.number();
  request.tag = tag;
  request.call.collective = Collective::kRecv;
  request.any_source = peer == kAnyRank;
  request.call.root = peer == kAnyRank ? 0 : peer;
  request.call.count = flight->capacity();
  request.dst = {flight->memory(), flight->capacity()};
  flight->sends = false;
  start(request, flight);
}

void Rank::meet() {
  SmiNode& node = node_ports_->node();
  node.come();
  auto last = Clock::now();
  std::uint64_t moves = 0;
  for (;;) {
    if (const auto when = node.meeting(); when && node.now() >= *when) return;
    if (step()) continue;
    if (const std::uint64_t now = node.moves() + (node.meeting() ? node.now() : 0); now != moves) {
      moves = now;
      last = Clock::now();
    }
    if (Clock::now() - last > timeout_) {
      throw Error(ErrorCode::kTimeout,
                  formatted("rank {}: nothing has gone on for {} s, and not all ranks have come to "
                            "the barrier of the hosts",
                            world_rank_, static_cast<double>(timeout_.count()) / 1e6));
    }
    // Cycle by cycle, for nobody goes beyond that in which all go on.
    moved_ = false;
    if (!node_ports_->cycle(kNeighbours)) {
      endpoint_->engine->progress();
      drain();
    }
  }
}

/// Others need this rank's node to pass on what is theirs.
void Rank::clock_until_all_leave() {
  SmiNode& node = node_ports_->node();
  node.leave();
  auto last = Clock::now();
  std::uint64_t seen = node.now();
  while (!node.all_left() && Clock::now() - last < timeout_) {
    for (int i = 0; i < kCycles && node_ports_->cycle(kNeighbours); ++i) {
    }
    if (node.now() != seen) last = Clock::now();
    seen = node.now();
    endpoint_->engine->progress();
    drain();
  }
}

void Rank::finish() {
  auto last = Clock::now();
  std::uint64_t moves = 0;
  for (;;) {
    while (step()) moved_ = true;
    ship();
    const bool awaits =
        std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) { return entry.second->awaits(); });
    const bool gone = node_ports_ == nullptr || node_ports_->all_gone();
    if (sends_ == 0 && !awaits && gone) return;
    if (node_ports_ != nullptr) {
      const std::uint64_t now = node_ports_->node().moves();
      moved_ = moves != now;
      moves = now;
    }
    if (moved_) {
      moved_ = false;
      last = Clock::now();
    }
    if (Clock::now() - last > timeout_) {
      throw Error(ErrorCode::kTimeout,
                  formatted("rank {} has pushed elements that nobody takes: {} messages of channels still wait",
                            world_rank_, sends_));
    }
    idle(std::chrono::milliseconds(50));
  }
}

void Rank::close(bool in_order) {
  if (in_order) {
    try {
      const Turn turn(*this);
      finish();
      if (node_ports_ != nullptr) clock_until_all_leave();
      for (const auto& [number, group] : groups_) group->leave_all();
      finish();
      // Kernels elsewhere may have receives posted that this rank's leaving would end with an error, and all calls of
      // the communicator with them: so ranks that leave at about the same time leave together.
      const auto until = Clock::now() + kFarewell;
      const auto all = [&] {
        return std::all_of(groups_.begin(), groups_.end(), [](const auto& entry) { return entry.second->all_left(); });
      };
      while (!all() && Clock::now() < until) {
        if (!step()) idle(kNap);
      }
    } catch (const Error&) {  // peers see that this rank has left
    }
  }
  take_role();
  {
    const std::lock_guard lock(role_mutex_);
    closed_ = true;
  }
  leave_role();
  if (thread_.joinable()) {
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
  ready_.clear();
  polling_.clear();
  for (const auto& kernel : kernels_) {
    kernel->fibre.reset();
    kernel->owned.reset();
  }
  endpoint_.reset();
}

// Drives while no thread of the program does.
void Rank::background() {
  const WaitHook::Quiet quiet;  // the program's hook is for the program's threads
  std::unique_lock lock(role_mutex_);
  while (!closed_) {
    // Where nothing can go on by itself, the engine is left to the program's threads.
    const auto lives = [](const auto& kernel) { return !kernel->ended; };
    if (node_ports_ != nullptr) {
      if (driven_ || wanted_ != 0 || Clock::now() - driven_until_ < kGrace) {
        role_.wait_for(lock, kNap);
        continue;
      }
    } else if (driven_ || wanted_ != 0 || (sends_ == 0 && std::none_of(kernels_.begin(), kernels_.end(), lives))) {
      role_.wait_for(lock, kNap);
      continue;
    }
    driven_ = true;
    lock.unlock();
    bool moved = true;
    while (moved) {
      moved = step();
      const std::lock_guard inner(role_mutex_);
      if (wanted_ != 0 || closed_) break;
    }
    if (!moved) idle(kNap);
    leave_role();
    lock.lock();
  }
}

}  // namespace unisono::kernels
