#include "doors/shmem/job.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "doors/shmem/failure.hpp"
#include "doors/shmem/statics.hpp"

namespace unisono::shmem {

namespace {

constexpr std::uint64_t kPage = 4096;
/// Of addresses in the heap. Each PE has so much address space before its heap.
constexpr std::uint64_t kMostAlignment = std::uint64_t{64} << 20U;
constexpr const char* kInit = "shmem_init";
constexpr const char* kFinalize = "shmem_finalize";
/// In the sentence with which all calls end then; the status follows.
constexpr std::string_view kByGlobalExit = " has ended the job by shmem_global_exit(";

std::mutex of_the_job;  // of beginning and end

const char* environment(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe)

/// What every PE says of a region.
struct Shown {
  std::uint64_t place;
  std::uint64_t bytes;
  std::uint64_t signature;
};

template <class T>
std::vector<T> gather(unisono_communicator* world, int size, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(size));
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLGATHER;
  call.datatype = UNISONO_BYTE;
  call.count = sizeof own;
  call.src = &own;
  call.src_bytes = sizeof own;
  call.dst = all.data();
  call.dst_bytes = all.size() * sizeof own;
  check(kInit, unisono_run(world, &call));
  return all;
}

/// A program that returns from main without shmem_finalize leaves in order, one that fails does not.
void at_exit(int status, void* /*user*/) {
  if (Job::if_any() == nullptr) return;
  if (status != 0) return Job::abandon();
  try {
    Job::finish();
  } catch (const std::exception& error) {
    Job::die(error.what());
  }
}

}  // namespace

std::atomic<Job*> Job::current_{nullptr};

std::uint64_t parse_size(const std::string& variable, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  int shift = -1;
  if (unit.size() <= 1) {
    constexpr const char* kUnits = "KMGT";
    const char* const found =
        unit.empty() ? nullptr : std::char_traits<char>::find(kUnits, 4, static_cast<char>(std::toupper(unit[0])));
    if (unit.empty()) shift = 0;
    if (found != nullptr) shift = 10 * static_cast<int>(found - kUnits + 1);
  }
  const double bytes = shift < 0 ? -1 : number * static_cast<double>(std::uint64_t{1} << static_cast<unsigned>(shift));
  constexpr double kMost = static_cast<double>(std::uint64_t{1} << 47U);
  if (end == text.c_str() || !(bytes >= 1 && bytes <= kMost)) {
    fail(kInit, variable + " is \"" + text + "\"; give bytes, as 1048576, or with K, M, G or T, as 512M");
  }
  return static_cast<std::uint64_t>(bytes);
}

void Job::start(std::uint64_t heap_bytes, bool statics, bool keeps_heap) {
  const std::lock_guard lock(of_the_job);
  if (if_any() != nullptr) return;
  if (heap_bytes == 0) {
    const char* const text = environment("SHMEM_SYMMETRIC_SIZE");
    constexpr std::uint64_t kDefault = std::uint64_t{256} << 20U;
    heap_bytes = text == nullptr ? kDefault : parse_size("SHMEM_SYMMETRIC_SIZE", text);
  }
  std::unique_ptr<Job> job(new Job);
  job->keeps_heap_ = keeps_heap;
  job->join();
  try {
    job->make_heap(heap_bytes);
    if (statics) {
      job->make_statics();
    } else {
      job->show(kStaticsRegion, {}, nullptr);
    }
    std::vector<int> near;
    for (int pe = 0; pe < reach.size; ++pe) {
      if (reach.regions[kHeapRegion].peers[static_cast<std::size_t>(pe)] != nullptr) near.push_back(pe);
    }
    job->teams_ = std::make_unique<Teams>(job->world_, reach.rank, reach.size, near);
    if (near.size() != static_cast<std::size_t>(reach.size)) {
      job->remote_ = std::make_unique<Remote>(job->context_, job->world_, reach.rank, reach.size);
    }
  } catch (...) {
    unisono_abort(job->context_, "shmem_init has failed on a PE");
    job->leave();
    unisono_abandon(job->context_);
    throw;
  }
  current_.store(job.release(), std::memory_order_release);
  static const bool registered = ::on_exit(at_exit, nullptr) == 0;
  (void)registered;
}

void Job::join() {
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  constexpr double kDefault = 300;
  settings.timeout_seconds = kDefault;
  if (const char* const text = environment("UNISONO_SHMEM_TIMEOUT_S"); text != nullptr) {
    char* end = nullptr;
    settings.timeout_seconds = std::strtod(text, &end);
    if (end == text || *end != 0 || !(settings.timeout_seconds > 0)) {
      fail(kInit, std::string("UNISONO_SHMEM_TIMEOUT_S is \"") + text + "\"; give seconds, more than 0");
    }
  }
  check(kInit, unisono_init(&settings, &context_));
  check(kInit, unisono_world(context_, &world_));
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  unisono_communicator_rank(world_, &rank);
  unisono_communicator_size(world_, &size);
  unisono_settings now{};
  now.struct_size = sizeof now;
  check(kInit, unisono_settings_now(context_, &now));
  timeout_ = now.deadlines == UNISONO_DEADLINE_OFF ? 0 : now.timeout_seconds;
  deadline_warns_ = now.deadlines == UNISONO_DEADLINE_WARNS;
  reach.rank = static_cast<int>(rank);
  reach.size = static_cast<int>(size);
}

void Job::show(std::uint32_t number, std::span<std::byte> memory, std::byte* shared) {
  Region& region = reach.regions[number];
  Shown own{};
  own.bytes = memory.size();
  if (shared != nullptr) check(kInit, unisono_place_of(context_, shared, memory.size(), &own.place));
  const std::vector<Shown> all = gather(world_, reach.size, own);
  region.peers.assign(all.size(), nullptr);
  for (std::uint32_t pe = 0; pe < all.size(); ++pe) {
    if (all[pe].bytes != own.bytes) {
      fail(kInit, "the symmetric memory of PE " + std::to_string(pe) + " has " + std::to_string(all[pe].bytes) +
                      " bytes, that of PE " + std::to_string(reach.rank) + " " + std::to_string(own.bytes) +
                      "; give all PEs the same SHMEM_SYMMETRIC_SIZE");
    }
    if (own.bytes == 0 || all[pe].place == 0) continue;
    void* there = nullptr;
    check(kInit, unisono_peer_memory(world_, pe, all[pe].place, all[pe].bytes, &there));
    region.peers[pe] = static_cast<std::byte*>(there);
  }
  region.begin = memory.data();
  region.bytes = memory.size();
  // This PE's own bytes are where the program has them, however else they may be mapped.
  if (own.bytes != 0) region.peers[static_cast<std::size_t>(reach.rank)] = region.begin;
}

void Job::make_heap(std::uint64_t bytes) {
  const std::uint64_t whole = (bytes + 2 * kPage - 1) / kPage * kPage;  // and a page for Control
  // PEs have equal offsets, not equal addresses. So the heap begins at a multiple of the largest alignment that it
  // gives; nobody touches what lies before.
  heap_alignment_ = std::min(std::bit_floor(whole), kMostAlignment);
  check(kInit, unisono_allocate(context_, whole + heap_alignment_ - kPage, &heap_pages_));
  const auto begin = reinterpret_cast<std::uintptr_t>(heap_pages_);
  heap_memory_ = static_cast<std::byte*>(heap_pages_) + (heap_alignment_ - begin % heap_alignment_) % heap_alignment_;
  heap_ = std::make_unique<Heap>(kPage, whole);
  show(kHeapRegion, {heap_memory_, whole}, heap_memory_);
}

void Job::make_statics() {
  const ProgramData data = program_data();
  const Shown own{0, data.pages.size(), data.signature};
  bool same = own.bytes != 0;
  for (const Shown& other : gather(world_, reach.size, own)) {
    same = same && other.bytes == own.bytes && other.signature == own.signature;
  }
  std::uint32_t shared = 0;
  if (same) {
    void* memory = nullptr;
    check(kInit, unisono_allocate(context_, data.pages.size(), &memory));
    statics_memory_ = static_cast<std::byte*>(memory);
    shared = share(data.pages, statics_memory_) ? 1 : 0;
  }
  bool all_share = same;
  for (const std::uint32_t other : gather(world_, reach.size, shared)) all_share = all_share && other == 1;
  if (shared == 1) statics_pages_ = data.pages;
  if (all_share) {
    show(kStaticsRegion, data.pages, statics_memory_);
  } else {
    show(kStaticsRegion, {}, nullptr);
  }
}

void Job::leave() {
  remote_.reset();
  teams_.reset();
  // Private again, so that functions at exit find them, and nobody else does.
  const bool own = statics_pages_.empty() || unshare(statics_pages_);
  for (Region& region : reach.regions) region = Region{};
  reach.size = 0;
  if (statics_memory_ != nullptr && own) unisono_deallocate(context_, statics_memory_);
  if (heap_pages_ != nullptr && !keeps_heap_) unisono_deallocate(context_, heap_pages_);
}

void Job::finish() {
  Job* const current = if_any();
  if (current == nullptr) return;
  current->barrier(kFinalize);
  const std::lock_guard lock(of_the_job);
  const std::unique_ptr<Job> job(current_.exchange(nullptr));
  if (job == nullptr) return;
  job->leave();
  check(kFinalize, unisono_finalize(job->context_));
}

void Job::abandon() {
  Job* const job = current_.exchange(nullptr);
  if (job != nullptr) unisono_abandon(job->context_);  // the server may use the rest, which ends with the process
}

void Job::barrier(const char* operation) {
  quiet(operation);
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_BARRIER;
  check(operation, unisono_run(world_, &call));
}

void* Job::allocate(const char* operation, std::uint64_t bytes, std::uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    fail(operation, "an alignment of " + std::to_string(alignment) + " was given; allowed are powers of two");
  }
  const std::lock_guard lock(heap_mutex_);
  // Nobody may use the memory of another PE before that PE has it, and who asks for something else must not go on.
  const std::int64_t asked = static_cast<std::int64_t>(std::min(bytes, ~std::uint64_t{0} >> 1U));
  const auto aligned = static_cast<std::int64_t>(alignment);
  const std::int64_t own[] = {asked, -asked, aligned, -aligned};
  std::int64_t most[4] = {};
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_INT64;
  call.op = UNISONO_MAX;
  call.count = 4;
  call.src = own;
  call.src_bytes = sizeof own;
  call.dst = most;
  call.dst_bytes = sizeof most;
  check(operation, unisono_run(world_, &call));
  if (most[0] != -most[1] || most[2] != -most[3]) {
    fail(operation, "the PEs ask for different memory: " + std::to_string(-most[1]) + " to " + std::to_string(most[0]) +
                        " bytes, this one for " + std::to_string(asked) + ", aligned to " + std::to_string(-most[3]) +
                        " to " + std::to_string(most[2]) + "; all PEs call it with the same arguments");
  }
  if (alignment > heap_alignment_) return nullptr;
  const auto offset = heap_->allocate(bytes, alignment);
  return offset ? heap_memory_ + *offset : nullptr;
}

std::uint64_t Job::size_of(const char* operation, const void* memory) {
  const std::lock_guard lock(heap_mutex_);
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - heap_memory_);
  const auto bytes = heap_->size_of(offset);
  if (!bytes) fail(operation, "the address is not the begin of memory that shmem_malloc gave, or it was freed before");
  return *bytes;
}

void Job::release(const char* operation, void* memory) {
  size_of(operation, memory);
  barrier(operation);
  const std::lock_guard lock(heap_mutex_);
  heap_->release(static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - heap_memory_));
}

void Job::look_after_peers(const char* operation) {
  if (const std::uint64_t word = control_of(heap_memory_).exit.load(std::memory_order_acquire); word != 0) {
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(word & (kExits - 1)));
  }
  if (remote_ != nullptr) remote_->check(operation);
  std::uint32_t gone = 0;
  std::size_t count = 0;
  check(operation, unisono_failed(world_, &gone, 1, &count));
  if (count == 0) return;
  fail(operation,
       "PE " + std::to_string(gone) + " has died or left the job" +
           (count == 1 ? "" : ", and " + std::to_string(count - 1) + " more") +
           ", so what this PE waits for may never come; the job ends",
       "peer_dead");
}

void Job::exit(int status) {
  const auto code = static_cast<std::uint32_t>(status) & 0xffU;
  for (std::byte* const heap : reach.regions[kHeapRegion].peers) {
    if (heap != nullptr) control_of(heap).exit.store(kExits | code, std::memory_order_release);
  }
  if (remote_ != nullptr) remote_->exit(static_cast<int>(code));
  const std::string why =
      "PE " + std::to_string(reach.rank) + std::string(kByGlobalExit) + std::to_string(status) + ")";
  unisono_abort(context_, why.c_str());
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(code));
}

void Job::die(const std::string& sentence) {
  Job* const job = if_any();
  if (job != nullptr) {
    if (const std::uint64_t word = job->control_of(job->heap_memory_).exit.load(std::memory_order_acquire); word != 0) {
      std::fflush(nullptr);
      std::_Exit(static_cast<int>(word & (kExits - 1)));
    }
  }
  // A call that waited may hear that the job has ended before this PE is told the status (PEs of other hosts).
  if (const std::size_t at = sentence.find(kByGlobalExit); at != std::string::npos) {
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(std::strtoul(sentence.c_str() + at + kByGlobalExit.size(), nullptr, 10) & 0xffU));
  }
  std::fflush(nullptr);
  const std::string who = reach.rank < 0 ? "" : " (PE " + std::to_string(reach.rank) + ")";
  std::fprintf(stderr, "unisono shmem%s: %s\n", who.c_str(), sentence.c_str());
  if (job != nullptr) unisono_abort(job->context_, ("PE " + std::to_string(reach.rank) + " ends: " + sentence).c_str());
  std::_Exit(1);
}

}  // namespace unisono::shmem
