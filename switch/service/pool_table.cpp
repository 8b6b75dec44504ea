#include "switch/service/pool_table.hpp"

#include <malloc.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <new>
#include <span>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/secret.hpp"

namespace unisono::slots {

namespace {

PoolAnswer refusal(std::string text, std::uint32_t possible = 0) {
  PoolAnswer answer;
  answer.refusal = std::move(text);
  answer.possible = possible;
  return answer;
}

TableAnswer answer_to(CallerId caller, std::uint32_t number, const PoolAnswer& answer) {
  return {caller, number, ControlKind::kMake, packed(answer)};
}

/// The allocator would keep what hundreds of pools had. One thread at a time: where another allocator serves the
/// process, as with sanitizers, this is the first that the system's own one hears.
void give_memory_back() {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  malloc_trim(0);
}

void add(PoolTraffic& sum, const PoolTraffic& more) {
  sum.frames_in += more.frames_in;
  sum.frames_out += more.frames_out;
  sum.bytes_in += more.bytes_in;
  sum.bytes_out += more.bytes_out;
}

}  // namespace

PoolTable::PoolTable(std::string name, std::string secret, std::uint32_t places,
                     std::vector<std::unique_ptr<Worker>>& workers, Parent* parent, ResultGroups groups)
    : name_(std::move(name)),
      secret_(std::move(secret)),
      workers_(workers),
      parent_(parent),
      groups_(std::move(groups)),
      places_(places) {}

std::vector<TableAnswer> PoolTable::make(CallerId caller, std::uint32_t number, const PoolRequest& request) {
  const auto known = pools_.find(request.id);
  if (known == pools_.end()) {
    const PoolAnswer refused = make_new(request);
    if (!refused.refusal.empty()) return {answer_to(caller, number, refused)};
  } else if (known->second.words != packed(request)) {
    return {answer_to(caller, number,
                      refusal(formatted("communicator {}: the switch {} has a pool with this id that was asked for "
                                        "otherwise; all members and switches must be given the same tree and shape",
                                        request.communicator, name_)))};
  }
  Entry& entry = pools_.at(request.id);
  entry.wanted_by.insert(caller);
  entry.until = join::Deadline::max();
  if (entry.pending) {
    entry.waiting.emplace_back(caller, number);
    return {};
  }
  return {answer_to(caller, number, answer_of(entry))};
}

/// Why a request cannot be met here, whatever room there is; empty: it can.
std::string PoolTable::fault_of(const PoolRequest& request) const {
  const auto say = [&](const std::string& what) {
    return formatted("communicator {}: {}", request.communicator, what);
  };
  const PoolNode* const node = request.node(name_);
  if (node == nullptr) return say(formatted("the switch {} is not in the tree that was asked for", name_));
  if (draining_) return say(formatted("the switch {} is being drained, and makes no more pools", name_));
  if (request.payload_bytes > kMostPayload) {
    return say(
        formatted("{} bytes of payload; the switch {} takes up to {}", request.payload_bytes, name_, kMostPayload));
  }
  if (numbers_.contains(number_of_pool(request.id))) {
    return say(formatted("another pool of the switch {} has the same number; ask again with another id", name_));
  }
  if (node->above.empty()) return {};
  if (parent_ == nullptr) {
    return say(formatted("the tree has {} above the switch {}, which has no uplink", node->above, name_));
  }
  const ParentState above = parent_->state();
  if (!above.name.empty() && above.name != node->above) {
    return say(
        formatted("the tree has {} above the switch {}, whose uplink leads to {}", node->above, name_, above.name));
  }
  return {};
}

/// Makes the entry; what it gives has a refusal if that cannot be.
PoolAnswer PoolTable::make_new(const PoolRequest& request) {
  if (std::string fault = fault_of(request); !fault.empty()) return refusal(std::move(fault));
  const auto members = static_cast<std::uint32_t>(request.node(name_)->below.size());
  const std::uint64_t places = places_of(request.slots, request.payload_bytes, members, request.keeps_order);
  bool taken = places_.take(request.job, places);
  if (!taken) {
    for (auto one = pools_.begin(); one != pools_.end();)
      one = one->second.wanted_by.empty() ? erase(one) : std::next(one);
    taken = places_.take(request.job, places);
  }
  if (!taken) {
    const std::uint64_t allowed = places_.allowed(request.job);
    return refusal(
        formatted("communicator {}: {} slots for {} members need {} places of {} bytes, and the switch {} has {} for "
                  "this job now, of {} in all; ask for fewer slots, or start it with more",
                  request.communicator, request.slots, members, places, kPlaceBytes, name_, allowed, places_.total()),
        possible_slots(request, members, allowed));
  }
  try {
    Entry entry;
    entry.request = request;
    entry.words = packed(request);
    entry.places = places;
    entry.serial = next_serial_++;
    entry.worker = &worker_of(number_of_pool(request.id));
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    // Grows over restarts, and within one, whatever the clock does.
    last_generation_ = std::max(static_cast<std::uint64_t>(nanoseconds), last_generation_ + 1);
    entry.pool = std::make_shared<HostedPool>(request, *request.node(name_), std::as_bytes(std::span(secret_)),
                                              entry.worker->datagrams(), last_generation_,
                                              parent_ == nullptr ? nullptr : &parent_->answers());
    entry.group = group_of(request);
    if (const auto group = tcp::parse_address(entry.group)) {
      entry.pool->use_group(entry.worker->datagrams().reachable(*group, 0), request.id,
                            std::as_bytes(std::span(secret_)));
    }
    Entry& kept = pools_.emplace(request.id, std::move(entry)).first->second;
    kept.node = kept.request.node(name_);
    kept.pending = !kept.node->above.empty();
    numbers_[kept.pool->number()] = request.id;
    Job& job = jobs_[request.job];
    if (job.pools++ == 0) job.name = request.job_name;
    kept.worker->add(kept.pool, request.job);
    if (kept.pending) parent_->make(kept.request, kept.serial);
    return {};
  } catch (const Error& error) {
    places_.give(request.job, places);
    return refusal(error.what());
  } catch (const std::bad_alloc&) {
    places_.give(request.job, places);
    return refusal(
        formatted("communicator {}: the host of the switch {} has no memory left", request.communicator, name_));
  }
}

/// A group of the loopback is for the first communicator of a job, which most calls use: ranks then listen to one more
/// place at most, and get nothing that is not theirs. It pays where each of them has a core and waits for the other
/// datagrams to be sent; where they share cores they wait for those, and one that wakes all of them at once costs more.
std::string PoolTable::group_of(const PoolRequest& request) const {
  if (groups_.at_loopback == 0) return groups_.of_all;
  if (request.node(name_)->below.size() >= groups_.cores) return {};
  if (const auto job = jobs_.find(request.job); job != jobs_.end() && job->second.pools != 0) return {};
  std::array<std::uint8_t, 2> drawn{};
  fill_random(std::as_writable_bytes(std::span(drawn)));
  return formatted("239.255.{}.{}:{}", drawn[0], drawn[1], groups_.at_loopback);
}

PoolAnswer PoolTable::answer_of(Entry& entry) const {
  PoolAnswer answer;
  answer.made = true;
  answer.port = entry.worker->port();
  if (entry.pool->has_group()) answer.group = entry.group;
  answer.generation = entry.worker->with_lock([&] { return entry.pool->pool().generation(); });
  return answer;
}

/// The same after a restart, so that members find it at the same port.
Worker& PoolTable::worker_of(std::uint64_t number) const { return *workers_[number % workers_.size()]; }

void PoolTable::free(CallerId caller, const PoolId& id) {
  const auto found = pools_.find(id);
  if (found == pools_.end() || found->second.wanted_by.erase(caller) == 0) return;
  if (found->second.wanted_by.empty()) unwanted(found);
}

void PoolTable::gone(CallerId caller) {
  for (auto one = pools_.begin(); one != pools_.end();) {
    const bool last = one->second.wanted_by.erase(caller) != 0 && one->second.wanted_by.empty();
    one = last ? unwanted(one) : std::next(one);
  }
}

PoolTable::Entries::iterator PoolTable::unwanted(Entries::iterator one) {
  if (one->second.pending) return erase(one);
  one->second.until = join::Clock::now() + kLonger;
  return std::next(one);
}

void PoolTable::free_unwanted(join::Deadline now) {
  for (auto one = pools_.begin(); one != pools_.end();) one = now >= one->second.until ? erase(one) : std::next(one);
}

join::Deadline PoolTable::deadline() const {
  join::Deadline next = join::Deadline::max();
  for (const auto& [id, entry] : pools_) next = std::min(next, entry.until);
  return next;
}

PoolTable::Entries::iterator PoolTable::erase(Entries::iterator one) {
  Entry& entry = one->second;
  entry.worker->remove(entry.pool->number());
  if (!entry.node->above.empty()) parent_->free(one->first);
  numbers_.erase(entry.pool->number());
  places_.give(entry.request.job, entry.places);
  const auto job = jobs_.find(entry.request.job);
  add(job->second.over, entry.pool->traffic());  // no worker has it any more
  if (--job->second.pools == 0) jobs_.erase(job);
  const auto next = pools_.erase(one);
  if (pools_.empty()) give_memory_back();
  return next;
}

std::vector<TableAnswer> PoolTable::parent_said(const ParentAnswer& said) {
  const auto found = pools_.find(said.id);
  if (found == pools_.end()) return {};
  if (said.func != Func::kNone) return parent_said_of_operator(found->second, said);
  if (found->second.serial != said.serial) return {};
  Entry& entry = found->second;
  std::vector<TableAnswer> answers;
  const auto waiting = std::exchange(entry.waiting, {});
  entry.pending = false;
  if (!said.answer.made) {
    for (const auto& [caller, number] : waiting) answers.push_back(answer_to(caller, number, said.answer));
    erase(found);
    return answers;
  }
  const unsigned scope = if_nametoindex(said.address.interface.c_str());
  const tcp::SystemAddress address = entry.worker->datagrams().reachable(said.address, scope);
  entry.worker->with_lock([&] { entry.pool->set_parent(address); });
  for (const auto& [caller, number] : waiting) answers.push_back(answer_to(caller, number, answer_of(entry)));
  return answers;
}

// ---- reports ----

std::uint64_t PoolTable::memory_bytes() {
  std::uint64_t bytes = 0;
  for (const auto& [id, entry] : pools_) bytes += entry.pool->pool().data_bytes();
  return bytes;
}

std::vector<JobReport> PoolTable::report_jobs() {
  std::map<PoolId, JobReport> reports;
  for (const auto& [id, job] : jobs_) reports[id] = {id, job.name, {}, places_.used_by(id), job.over};
  for (const auto& [id, entry] : pools_) {
    JobReport& job = reports[entry.request.job];
    job.communicators.push_back(entry.request.communicator);
    add(job.traffic, entry.worker->with_lock([&entry = entry] { return entry.pool->traffic(); }));
  }
  std::vector<JobReport> list;
  for (auto& [id, job] : reports) {
    std::sort(job.communicators.begin(), job.communicators.end());
    list.push_back(std::move(job));
  }
  return list;
}

std::vector<PoolReport> PoolTable::report_pools(std::uint32_t communicator) {
  std::vector<PoolReport> list;
  for (const auto& [id, entry] : pools_) {
    if (entry.request.communicator == communicator) list.push_back(report(entry));
  }
  return list;
}

PoolReport PoolTable::report(const Entry& entry) const {
  // Answers stay readable, and short enough to be looked at while the pool works.
  constexpr std::size_t kMostTurns = 8;
  constexpr std::size_t kMostMembers = 16;
  const PoolRequest& request = entry.request;
  PoolReport report;
  for (const auto& [number, op] : entry.operators) {
    if (!op.pending) report.operators.push_back(this->report(entry, op));
  }
  report.communicator = request.communicator;
  report.epoch = request.epoch;
  report.id = request.id;
  report.job = request.job;
  report.job_name = request.job_name;
  report.members = entry.node->below;
  report.above = entry.node->above;
  report.slots = request.slots;
  report.payload_bytes = request.payload_bytes;
  report.keeps_order = request.keeps_order;
  entry.worker->with_lock([&] {
    const Pool& pool = entry.pool->pool();
    report.state = pool.state();
    if (report.state == Pool::State::kRefused) report.refusal = sentence_of(pool.refusal());
    report.generation = pool.generation();
    report.memory_bytes = pool.data_bytes();
    report.counters = pool.counters();
    report.traffic = entry.pool->traffic();
    report.silent = pool.silent();
    const std::vector<std::uint64_t> turns = pool.gathering();
    report.waiting = turns.size();
    for (std::size_t i = 0; i < std::min(turns.size(), kMostTurns); ++i) {
      report.waits.push_back({turns[i], pool.missing(turns[i])});
    }
  });
  for (WaitReport& wait : report.waits) wait.missing.resize(std::min(wait.missing.size(), kMostMembers));
  report.silent.resize(std::min(report.silent.size(), kMostMembers));
  return report;
}

}  // namespace unisono::slots
