#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>

#include "core/log.hpp"
#include "core/text.hpp"
#include "cost/in_force.hpp"
#include "driver/housekeeping.hpp"
#include "driver/objects.hpp"
#include "network/shm/shm_poe.hpp"
#include "network/wait_hook.hpp"

namespace unisono::driver {

namespace {

constexpr std::uint32_t kCapabilitiesVersion = 3;

/// The bytes of capabilities: fixed order, little-endian as all of Unisono's hosts are.
struct PackedCapabilities {
  std::uint64_t capability;
  std::uint32_t version;
  std::uint32_t eager_limit;
  std::uint32_t segment_bytes;
  std::uint32_t rx_buffer_count;
  std::uint32_t algorithm_hash;
  std::uint32_t tuning_hash;
  std::uint32_t quota;
  std::uint8_t platform;
  std::uint8_t aggregates;
  std::uint16_t node;
  CoreMask cores;
};
static_assert(sizeof(PackedCapabilities) == kCapabilitiesBytes);

/// Bytes of memory and swap space; no limit if the system does not say.
std::uint64_t machine_memory() {
  struct sysinfo machine {};
  if (sysinfo(&machine) != 0) return ~std::uint64_t{0};
  return (std::uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
}

}  // namespace

const char* name_of(Platform platform) {
  switch (platform) {
    case Platform::kNative:
      return "native";
    case Platform::kFunctional:
      return "functional";
    case Platform::kRtl:
      return "rtl";
  }
  return "?";
}

std::vector<std::byte> pack_capabilities(const Agreement& capabilities, Platform platform, std::uint32_t node) {
  const PackedCapabilities packed{capabilities.capability,
                                  kCapabilitiesVersion,
                                  capabilities.eager_limit,
                                  capabilities.segment_bytes,
                                  capabilities.rx_buffer_count,
                                  capabilities.algorithm_hash,
                                  capabilities.tuning_hash,
                                  capabilities.quota,
                                  static_cast<std::uint8_t>(platform),
                                  static_cast<std::uint8_t>(capabilities.aggregates ? 1 : 0),
                                  static_cast<std::uint16_t>(node),
                                  capabilities.cores};
  std::vector<std::byte> bytes(sizeof packed);
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

std::vector<std::uint32_t> nodes_of(std::span<const std::vector<std::byte>> all_capabilities) {
  std::vector<std::uint32_t> nodes;
  for (const std::vector<std::byte>& capabilities : all_capabilities) {
    PackedCapabilities packed{};
    std::memcpy(&packed, capabilities.data(), std::min(capabilities.size(), sizeof packed));
    nodes.push_back(packed.node);
  }
  return nodes;
}

Agreement agree_on(std::span<const std::vector<std::byte>> all_capabilities, const MemberName& name) {
  std::vector<Agreement> all;
  std::optional<Platform> platform;
  for (std::size_t endpoint = 0; endpoint < all_capabilities.size(); ++endpoint) {
    PackedCapabilities packed{};
    if (all_capabilities[endpoint].size() == sizeof packed)
      std::memcpy(&packed, all_capabilities[endpoint].data(), sizeof packed);
    if (packed.version != kCapabilitiesVersion) {
      throw Error(ErrorCode::kBootstrap, "rank " + std::to_string(endpoint) + " sent an offer of " +
                                             std::to_string(all_capabilities[endpoint].size()) + " bytes, version " +
                                             std::to_string(packed.version) + "; this library takes " +
                                             std::to_string(sizeof packed) + " bytes, version " +
                                             std::to_string(kCapabilitiesVersion) +
                                             ": use one version of Unisono on all ranks");
    }
    const auto own = static_cast<Platform>(packed.platform);
    if (platform.value_or(own) != own) {
      throw Error(ErrorCode::kBootstrap, "rank " + std::to_string(endpoint) + " runs on platform " + name_of(own) +
                                             ", rank 0 on " + name_of(*platform) +
                                             ": set UNISONO_PLATFORM alike on all ranks");
    }
    platform = own;
    if (packed.segment_bytes < kLeastSegmentBytes || packed.rx_buffer_count == 0) {
      throw Error(ErrorCode::kBootstrap, "rank " + std::to_string(endpoint) + " offers segments of " +
                                             std::to_string(packed.segment_bytes) + " bytes and " +
                                             std::to_string(packed.rx_buffer_count) + " receive buffers; allowed are " +
                                             std::to_string(kLeastSegmentBytes) + " bytes and 1 buffer, or more");
    }
    all.push_back({packed.capability, packed.eager_limit, packed.segment_bytes, packed.rx_buffer_count,
                   packed.algorithm_hash, packed.tuning_hash, packed.quota, packed.cores, packed.aggregates != 0});
  }
  return agree(all, name);
}

Context::Context(std::unique_ptr<Poe> poe, const EngineSettings& settings,
                 std::span<const std::vector<std::byte>> all_capabilities) {
  Poe& network = *poe;
  const auto name = [&network](std::size_t member) {
    return formatted("rank {}, {},", member, network.describe(static_cast<std::uint32_t>(member)));
  };
  begin(std::move(poe), std::make_unique<NativeEngine>(network, settings), agree_on(all_capabilities, name));
}

Context::Context(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed) {
  begin(std::move(poe), std::move(engine), agreed);
}

void Context::begin(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed) {
  endpoint_ = std::make_shared<Endpoint>();
  endpoint_->poe = std::move(poe);
  endpoint_->engine = std::move(engine);
  std::vector<std::uint32_t> all(endpoint_->poe->size());
  std::iota(all.begin(), all.end(), 0U);
  endpoint_->engine->create_communicator(0, 0, all, agreed, hosts_of(*endpoint_->poe, all));
  background_->context = this;
  endpoint_->engine->set_background([background = background_](std::chrono::steady_clock::time_point due) {
    const std::lock_guard lock(background->mutex);
    if (background->context != nullptr) background->context->offload_if_possible(due);
  });
}

std::shared_ptr<Endpoint> Context::endpoint() const {
  const std::lock_guard lock(mutex_);
  if (!endpoint_) {
    throw Error(ErrorCode::kWrongProcess,
                "the context was closed; its communicators and requests can only be freed. Create a new context");
  }
  return endpoint_;
}

void Context::begin_with(RuleChoice choice) {
  {
    const std::lock_guard lock(mutex_);
    rule_choice_ = std::move(choice);
  }
  const std::shared_ptr<Endpoint> own = endpoint();
  auto* const native = dynamic_cast<NativeEngine*>(own->engine.get());
  if (native == nullptr || !native->settings().aggregates) return;
  const auto determinism = static_cast<cost::Determinism>(rule_choice().determinism);
  const bool stable =
      cost::rules_in_force(determinism, rule_choice().algorithms).determinism >= cost::Determinism::kSizeStable;
  own->aggregation = slots::Aggregation::make(*native, *own->poe, [stable] {
    slots::AggregationSettings settings = slots::aggregation_of_environment();
    settings.stable = stable;
    return settings;
  });
  std::vector<std::uint32_t> all(own->poe->size());
  std::iota(all.begin(), all.end(), 0U);
  arrange_carriers(0, all);
}

std::string Context::carrier_of(std::uint32_t communicator) const {
  const std::shared_ptr<Endpoint> own = endpoint();
  return own->aggregation == nullptr ? std::string() : own->aggregation->carrier_of(communicator);
}

void Context::arrange_carriers(std::uint32_t communicator, std::span<const std::uint32_t> endpoints) const {
  const std::shared_ptr<Endpoint> own = endpoint();
  if (own->aggregation == nullptr || !own->engine->state(communicator).agreed.aggregates) return;
  own->aggregation->arrange_for(communicator, 0, endpoints);
}

RuleChoice Context::rule_choice() const {
  const std::lock_guard lock(mutex_);
  return rule_choice_;
}

void Context::configure(const unisono_settings& given) {
  const std::shared_ptr<Endpoint> own = endpoint();
  {
    const std::lock_guard lock(mutex_);
    EngineSettings settings = own->engine->settings();
    RuleChoice choice = rule_choice_;
    apply(given, settings, choice);
    own->engine->configure(settings);
    rule_choice_ = std::move(choice);
  }
  if (given.offload != 0) offload_all(given.offload > 0);
}

void Context::offload_all(bool all) { offloads_all_.store(all, std::memory_order_relaxed); }

std::shared_ptr<Offload> Context::helper() {
  const std::lock_guard lock(mutex_);
  if (endpoint_ && !offload_) offload_ = std::make_shared<Offload>(*endpoint_->engine);
  return offload_;
}

void Context::offload(std::chrono::steady_clock::time_point due) {
  const std::shared_ptr<Offload> own = helper();
  if (own) own->wake(due);  // else the calls have been cancelled
}

int Context::descriptor() {
  const std::shared_ptr<Endpoint> held = endpoint();
  const std::shared_ptr<Offload> own = helper();
  if (own == nullptr) endpoint();  // closed meanwhile, which it says
  return own->descriptor();
}

bool Context::arm() {
  const std::shared_ptr<Endpoint> held = endpoint();
  const std::shared_ptr<Offload> own = helper();
  return own == nullptr || own->arm();
}

void Context::offload_if_possible(std::chrono::steady_clock::time_point due) noexcept {
  try {
    offload(due);
  } catch (const std::exception& failure) {
    offloads_all_.store(false, std::memory_order_relaxed);
    static std::once_flag once;
    std::call_once(once, [&] {
      log(LogLevel::kWarn, std::string(failure.what()) + "; calls make progress only while the program is in Unisono");
    });
  }
}

void give_up(Engine& engine, std::uint32_t communicator) {
  try {
    engine.conclude(communicator);
  } catch (...) {
    engine.free_communicator(communicator);
    throw;
  }
  engine.free_communicator(communicator);
}

Context::~Context() {
  const std::lock_guard lock(background_->mutex);
  background_->context = nullptr;
}

void Context::before_close(std::function<void(bool in_order)> function) {
  const std::lock_guard lock(mutex_);
  before_close_.push_back(std::move(function));
}

void Context::close(Leaving how) {
  std::vector<std::function<void(bool)>> first;
  {
    const std::lock_guard lock(mutex_);
    first.swap(before_close_);
  }
  for (const auto& function : first) function(how == Leaving::kCompared);
  std::shared_ptr<Endpoint> leaving = endpoint();
  {
    const std::lock_guard lock(background_->mutex);
    background_->context = nullptr;
  }
  std::set<std::uint32_t> numbers;
  std::shared_ptr<Offload> thread;
  {
    const std::lock_guard lock(mutex_);
    endpoint_.reset();
    numbers.swap(numbers_);
    thread.swap(offload_);
  }
  // Calls in flight fail, so threads that wait for them return and let go of the endpoint.
  std::optional<Error> mismatch;
  for (const std::uint32_t number : numbers) {
    try {
      if (how == Leaving::kCompared) {
        give_up(*leaving->engine, number);
      } else {
        leaving->engine->free_communicator(number);
      }
    } catch (const Error& error) {
      // Others say that it was claimed by a split that has not created it.
      if (error.code() == ErrorCode::kMismatchedCall && !mismatch) mismatch = error;
    }
  }
  thread.reset();  // ends while its engine is there
  if (mismatch) throw *mismatch;
}

std::uint32_t Context::propose_number(std::uint32_t reserve) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t proposal = next_number_;
  next_number_ += reserve;
  proposed_.insert(proposal);
  return proposal;
}

void Context::end_proposal(std::uint32_t proposed) noexcept {
  constexpr std::uint32_t kAtOnce = 64;  // the engine need not hear of each
  std::shared_ptr<Endpoint> told;
  std::uint32_t least = 0;
  {
    const std::lock_guard lock(mutex_);
    proposed_.erase(proposed);
    least = proposed_.empty() ? next_number_ : std::min(next_number_, *proposed_.begin());
    used_.erase(used_.begin(), used_.lower_bound(least));
    if (least < settled_ + kAtOnce) return;
    settled_ = least;
    told = endpoint_;
  }
  if (told != nullptr) told->engine->settle_numbers(least);
}

bool Context::claim_number(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  next_number_ = std::max(next_number_, number + 1);
  // One that another thread has taken and freed meanwhile has had its only epoch.
  if (endpoint_ == nullptr || !used_.insert(number).second) return false;
  numbers_.insert(number);
  return true;
}

bool Context::release_number(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  return numbers_.erase(number) != 0;
}

bool Context::keep_handle(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  if (endpoint_ == nullptr) return false;
  handles_.insert(handle);
  return true;
}

void Context::drop_handle(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  handles_.erase(handle);
}

std::set<std::uint64_t> Context::take_handles() {
  const std::lock_guard lock(mutex_);
  return std::exchange(handles_, {});
}

std::vector<std::uint32_t> Context::numbers() const {
  const std::lock_guard lock(mutex_);
  return {numbers_.begin(), numbers_.end()};
}

Allocation Context::allocate(std::uint64_t bytes) const {
  const std::shared_ptr<Endpoint> own = endpoint();
  shm::ShmPoe* shared = own->poe->shared_memory();
  if (shared == nullptr) throw Error(ErrorCode::kUnsupported, "allocate: the ranks of this job share no memory");
  // The address space would be there: a machine that cannot back it ends the process at some later store.
  if (const std::uint64_t most = machine_memory(); bytes > most) {
    throw Error(ErrorCode::kOutOfMemory, "allocate: " + std::to_string(bytes) + " bytes were asked for; this machine " +
                                             "has " + std::to_string(most) + " bytes of memory");
  }
  Allocation made = Allocation::make(shared->arena(), bytes);
  if (made.memory == nullptr) {
    throw Error(ErrorCode::kOutOfMemory,
                "allocate: " + std::to_string(bytes) + " bytes in one piece are not left of the " +
                    std::to_string(shared->segment()->geometry().arena_bytes) + " bytes that this rank can hand out (" +
                    std::to_string(shared->arena()->allocated()) + " are in use)");
  }
  return made;
}

SharedJob::SharedJob(std::uint32_t size, Carrier carrier) : size_(size) {
  const std::uint32_t most = carrier == Carrier::kLoop ? kMostOnLoop : kMostOnShm;
  if (size == 0 || size > most) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a thread job of {} ranks was asked for; allowed are 1 to {}{}", size, most,
                          carrier == Carrier::kShm ? formatted(" (on network \"loop\": {})", kMostOnLoop) : ""));
  }
  all_capabilities_.resize(size);
  taken_.resize(size, false);
  if (carrier == Carrier::kLoop) {
    loop_ = loop::Job::make(size);
  } else {
    memory_ = std::make_unique<ThreadJob>(size);
  }
}

std::unique_ptr<Poe> SharedJob::join(std::uint32_t rank, std::vector<std::byte> capabilities,
                                     std::chrono::milliseconds timeout,
                                     std::vector<std::vector<std::byte>>& all_capabilities) {
  if (rank >= size_) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "rank " + std::to_string(rank) + " was given; the thread job has ranks 0 to " + std::to_string(size_ - 1));
  }
  std::unique_lock lock(mutex_);
  if (taken_[rank]) {
    throw Error(ErrorCode::kInvalidArgument,
                "rank " + std::to_string(rank) + " of the thread job has joined already; each rank joins once");
  }
  taken_[rank] = true;
  all_capabilities_[rank] = std::move(capabilities);
  if (++count_ == size_) joined_.notify_all();
  if (!WaitHook::wait_until(joined_, lock, WaitHook::Clock::now() + timeout, [&] { return count_ == size_; })) {
    std::string missing;
    for (std::uint32_t other = 0; other < size_; ++other) {
      if (!taken_[other]) missing += (missing.empty() ? "" : ", ") + std::to_string(other);
    }
    throw Error(ErrorCode::kBootstrap, "rank " + std::to_string(rank) + " of a thread job waited " +
                                           std::to_string(timeout.count()) +
                                           " ms; these ranks have not joined: " + missing);
  }
  all_capabilities = all_capabilities_;
  lock.unlock();
  return loop_ ? loop_->endpoint(rank) : memory_->endpoint(rank);
}

}  // namespace unisono::driver
