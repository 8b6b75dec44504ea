// How the processes of a job find each other: each says something, and hears what all have said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/join/job.hpp"

namespace unisono::join {

using Blob = std::vector<std::byte>;

/// Bytes that a member gives in one round, at most.
inline constexpr std::uint32_t kMaxGiven = 128 * 1024;

/// The members of a job while it forms. Every function throws Error(kBootstrap) that says who has not come, or who has
/// ended or given up and why; after that the job is lost for all, and each member hears the same reason.
///
/// All rounds together end within the time that the environment gives the job to form. One thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// A round: every member gives at most kMaxGiven bytes, and gets what all gave, by rank. All members call it equally
  /// often.
  virtual std::vector<Blob> all_gather(std::span<const std::byte> own) = 0;
  /// Tells the others why this member does not go on.
  virtual void give_up(const std::string& reason) noexcept = 0;
  /// What all members know and nobody else does; of any length.
  virtual std::span<const std::byte> secret() const = 0;
};

/// The members meet at a socket of rank 0, an abstract one of Unix or one of TCP, as `environment` says. Rank 0 waits
/// here until all have come and have proven that they know the job's secret. Throws Error(kBootstrap).
std::unique_ptr<Exchange> make_hub(const JobEnvironment& environment);

/// The same for a member that tries once: null, and `failure` says why, if nobody listens, or who does has not proven
/// within seconds that he knows the secret. Throws Error(kBootstrap) if rank 0 refuses.
std::unique_ptr<Exchange> try_member_of_hub(JobEnvironment& environment, Deadline deadline, std::string& failure);

class Store;

/// The key-value store of the launcher that has started this process, if one must be asked. Fills in what it tells.
/// Throws Error(kBootstrap), also if it tells something else than the environment.
std::unique_ptr<Store> open_launcher(JobEnvironment& environment);

/// The members meet where `environment` says; `store` is the launcher's. Fills in where rank 0 was found. Throws
/// Error(kBootstrap).
std::unique_ptr<Exchange> make_exchange(JobEnvironment& environment, std::unique_ptr<Store> store);

}  // namespace unisono::join
