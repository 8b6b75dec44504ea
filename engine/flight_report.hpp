// Reads flight records (network/flight_record.hpp) and says in words what the ranks of a job are doing, and who waits
// for whom.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "network/flight_record.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

/// What can be seen of an endpoint from where the report is made.
struct ObservedEndpoint {
  std::string name;                             ///< "pid 4711"
  std::string condition;                        ///< "stopped by a signal", "has left", ...; empty: nothing special
  const CommunicatorRecord* records = nullptr;  ///< kRecordedCommunicators; null: out of sight
  const NativeCounters* counters = nullptr;     ///< null: out of sight
  std::uint32_t rank = 0;                       ///< its number in the whole job
  std::uint32_t of = 0;                         ///< endpoints of a job of several hosts; 0: the job has one host
  /// What carries data to the endpoint; of those whose records are in sight, what carries it to other hosts.
  std::string network = {};  // NOLINT(readability-redundant-member-init): gcc warns where it is left out
};

enum class ReportDetail : std::uint8_t {
  kNow,      ///< a line for each rank of each communicator, and who waits for whom
  kHistory,  ///< the last calls as well
};

/// The report of a job, several lines. `now`: of the clock of `CommunicatorRecord::since`. The records may change
/// meanwhile.
std::string flight_report(std::span<const ObservedEndpoint> endpoints, ReportDetail detail,
                          std::chrono::steady_clock::time_point now);

/// What carries data between the ranks of a job of several hosts, a line each: "ranks 0 and 1 of 4 are on this host and
/// share memory", "tcp carries data to and from ranks 2 and 3". Empty if there is one host.
std::string ways_report(std::span<const ObservedEndpoint> endpoints);

/// A line for each rank in sight that has refused connections or datagrams of strangers: "rank 1 has refused 12
/// connections or datagrams that did not prove to be of the job". Empty if none has.
std::string strangers_report(std::span<const ObservedEndpoint> endpoints);

/// The endpoints of the job that `poe` belongs to.
std::vector<ObservedEndpoint> endpoints_of(const Poe& poe);
/// The report of that job.
std::string flight_report(const Poe& poe, ReportDetail detail);

/// Who waits for whom in that job, a sentence each: "rank 0 waits for rank 1 (pid 7, stopped by a signal)", "rank 0
/// waits for rank 1, which waits for rank 0: a circle, in which nobody can go on"; and which calls differ.
std::vector<std::string> standstill(const Poe& poe);

/// A line for each endpoint, its fields apart by tabs: name, condition, communicators, calls begun, what it does now,
/// its number in the job, the job's endpoints, and what carries data to other hosts ("-" if there are none).
std::string flight_table(std::span<const ObservedEndpoint> endpoints, std::chrono::steady_clock::time_point now);

/// A line for each counter, its fields apart by tabs: name, then the value of each endpoint, "-" where it is out of
/// sight.
std::string counters_table(std::span<const ObservedEndpoint> endpoints);

/// Writes the report of the job, with its history, to where the environment's UNISONO_DUMP says: "stderr", or a file,
/// to whose name a dot and the endpoint's number are added. Does nothing if it says nothing.
void report_failure(const Poe& poe, const std::string& failure);

/// What an endpoint is doing as far as it matters to a rank that waits for it in a communicator, for instance "pid 7,
/// stopped by a signal; is in allreduce #4 of communicator 2, where it waits for rank 1". Empty if it is out of sight.
std::string doings(const Poe& poe, std::uint32_t endpoint, std::uint32_t communicator, std::uint16_t epoch);

/// Whether an endpoint has begun a communicator's collective call of this number, as far as that can be seen: out of
/// sight counts as begun.
bool has_begun(const Poe& poe, std::uint32_t endpoint, std::uint32_t communicator, std::uint16_t epoch,
               std::uint32_t sequence);
/// Whether an endpoint is in a call of any communicator; likewise.
bool is_in_call(const Poe& poe, std::uint32_t endpoint);

}  // namespace unisono::cclo
