// Handles of the C interface: numbers in the guise of pointers, so that any misuse is recognised.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "core/lasting.hpp"
#include "core/per_process.hpp"
#include "core/thread_state.hpp"

namespace unisono::driver {

/// What a handle is for; part of every handle.
enum class HandleKind : std::uint8_t {
  kContext = 1,
  kCommunicator,
  kRequest,
  kThreadJob,
  kProgram,
  kRegistration,
  kGraph
};

/// Layout of a handle: serial number (never reused), fork generation, kind. The low bit is always set,
/// so no handle looks like an aligned address.
struct HandleBits {
  std::uint64_t serial;
  std::uint64_t generation;
  HandleKind kind;

  static constexpr std::uint64_t kGenerations = 1U << 12U;
  static constexpr std::uint64_t kOfContext = std::uint64_t{1} << 46U;  ///< in a serial: freed with its context only
  constexpr std::uint64_t pack() const {
    return serial << 16U | (generation % kGenerations) << 4U | static_cast<std::uint64_t>(kind) << 1U | 1U;
  }
};

/// The live objects of one kind. Thread-safe. Lives for ever, so that handles can be checked at any
/// time; in a child of fork it begins empty and unlocked, whatever the parent's threads were doing.
template <class Object, HandleKind kKind>
class Handles {
 public:
  static Handles& instance() { return PerProcess<Handles>::instance(); }

  /// Registers an object and returns its handle. `of_context`: it lives as long as its context, which is then said of
  /// its freed handle.
  std::uint64_t add(std::shared_ptr<Object> object, bool of_context = false) {
    const std::uint64_t serial = ++last_serial_ | (of_context ? HandleBits::kOfContext : 0);
    const std::uint64_t handle = HandleBits{serial, fork_generation(), kKind}.pack();
    Shard& shard = shard_of(handle);
    const std::lock_guard lock(shard.mutex);
    shard.objects.emplace(handle, std::move(object));
    return handle;
  }

  /// Throws Error unless the handle, live or freed, is one that this process made for such an object.
  static void recognise(std::uint64_t handle, const char* what) { check(handle, what); }

  /// The object of a handle. Throws Error that says what is wrong with the handle; `freed` is the code
  /// for one that was freed.
  std::shared_ptr<Object> get(std::uint64_t handle, const char* what, ErrorCode freed) {
    check(handle, what);
    Shard& shard = shard_of(handle);
    {
      const std::lock_guard lock(shard.mutex);
      if (const auto found = shard.objects.find(handle); found != shard.objects.end()) return found->second;
    }
    const std::uint64_t serial = handle >> 16U;
    if ((serial & ~HandleBits::kOfContext) > last_serial_.load()) throw Error(ErrorCode::kInvalidArgument, never(what));
    if (kKind == HandleKind::kContext) throw Error(freed, "the context was closed; create a new one");
    if ((serial & HandleBits::kOfContext) != 0) {
      throw Error(freed, std::string("the context was closed, and its ") + what + " with it; create a new context");
    }
    throw Error(freed, std::string("the ") + what + " was freed; use a live " + what);
  }

  /// As `get`, for handles that a thread uses over and over: the one it asked for last is compared, not looked up. The
  /// object lives until the thread asks for another one.
  Object& get_again(std::uint64_t handle, const char* what, ErrorCode freed) {
    struct Last {
      ~Last() { thread_state().last[static_cast<std::size_t>(kKind)] = nullptr; }
      std::uint64_t handle = 0;
      std::uint64_t changes = 0;
      std::shared_ptr<Object> object;
    };
    void*& place = thread_state().last[static_cast<std::size_t>(kKind)];
    if (place == nullptr) [[unlikely]] {
      place = &lasting<Last>();
    }
    Last& last = *static_cast<Last*>(place);
    const std::uint64_t changes = changes_.load(std::memory_order_acquire);
    if (last.handle != handle || last.changes != changes ||
        (handle >> 4U) % HandleBits::kGenerations != fork_generation() % HandleBits::kGenerations) {
      last.handle = 0;
      last.object = get(handle, what, freed);
      last.handle = handle;
      last.changes = changes;
    }
    return *last.object;
  }

  /// Lets a live handle stand for another object. Throws as `get` without code for freed ones.
  void replace(std::uint64_t handle, std::shared_ptr<Object> object) {
    changes_.fetch_add(1, std::memory_order_release);
    Shard& shard = shard_of(handle);
    const std::lock_guard lock(shard.mutex);
    if (const auto found = shard.objects.find(handle); found != shard.objects.end()) found->second = std::move(object);
  }

  /// Takes an object out, as `get`. Its handle is freed from here on.
  std::shared_ptr<Object> take(std::uint64_t handle, const char* what, ErrorCode freed) {
    if (std::shared_ptr<Object> object = take_if(handle, what, [](const Object&) { return true; })) return object;
    return get(handle, what, freed);  // which says what is wrong
  }
  /// The same if `may(object)`, else null, as if it was freed. Throws Error if it is no handle.
  template <class May>
  std::shared_ptr<Object> take_if(std::uint64_t handle, const char* what, May&& may) {
    check(handle, what);
    changes_.fetch_add(1, std::memory_order_release);
    Shard& shard = shard_of(handle);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.objects.find(handle);
    if (found == shard.objects.end() || !may(*found->second)) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    shard.objects.erase(found);
    return object;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<Object>> objects;
  };

  static std::string never(const char* what) {
    return std::string("the handle given for the ") + what + " is not one that Unisono made for a " + what;
  }

  static void check(std::uint64_t handle, const char* what) {
    if (handle == 0) throw Error(ErrorCode::kInvalidArgument, std::string("the ") + what + " is null");
    const HandleBits expected{handle >> 16U, handle >> 4U, kKind};
    if (expected.pack() != handle) throw Error(ErrorCode::kInvalidArgument, never(what));
    if ((handle >> 4U) % HandleBits::kGenerations != fork_generation() % HandleBits::kGenerations) {
      throw Error(
          ErrorCode::kWrongProcess,
          std::string("the ") + what + " belongs to the parent process of this fork; create a context in this process");
    }
  }

  Shard& shard_of(std::uint64_t handle) { return shards_[(handle >> 16U) % shards_.size()]; }

  std::atomic<std::uint64_t> changes_{0};  ///< objects taken out
  std::atomic<std::uint64_t> last_serial_{0};
  std::array<Shard, 16> shards_;
};

}  // namespace unisono::driver
