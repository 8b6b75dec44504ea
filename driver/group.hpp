// Groups: calls that are started one by one and submitted together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/objects.hpp"

namespace unisono::driver {

/// Small all-reduces of a group with one operator, datatype and algorithm become one call, over a packed copy. What is
/// fused with what follows from the calls' agreed fields alone, so all ranks do alike.
inline constexpr std::uint64_t kFusedBytes = 4096;        ///< most bytes of an all-reduce that is fused
inline constexpr std::uint64_t kFusedTotalBytes = 65536;  ///< most bytes of what it becomes

/// The calls of one communicator that one thread has started since the group was begun.
class Group : public std::enable_shared_from_this<Group> {
 public:
  /// Opens the group of this thread. Throws Error if one is open.
  static void begin(Communicator& communicator);
  /// Closes it, and submits its calls. What keeps one of them from being submitted becomes that call's result. Throws
  /// Error if none is open.
  static void end(Communicator& communicator);
  /// The open group of this thread, or null.
  static std::shared_ptr<Group> of_this_thread(const Communicator& communicator);
  /// Throws Error(kInvalidArgument) if this thread has one open: `function` blocks. The thread's calls wait for its
  /// end.
  static void refuse(const Communicator& communicator, const char* function);
  /// Ends the calls of all open groups in error: the communicator is gone.
  static void abandon(Communicator& communicator, const Error& error);

  void add(std::shared_ptr<Request> request);
  void remove(const Request& request);

 private:
  void submit();
  static void submit_fused(const std::vector<std::shared_ptr<Request>>& members);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Request>> requests_;
};

}  // namespace unisono::driver
