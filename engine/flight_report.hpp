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
};

enum class ReportDetail : std::uint8_t {
  kNow,      ///< a line for each rank of each communicator, and who waits for whom
  kHistory,  ///< the last calls as well
};

/// The report of a job, several lines. `now`: of the clock of `CommunicatorRecord::since`. The records may change
/// meanwhile.
std::string flight_report(std::span<const ObservedEndpoint> endpoints, ReportDetail detail,
                          std::chrono::steady_clock::time_point now);

/// The endpoints of the job that `poe` belongs to.
std::vector<ObservedEndpoint> endpoints_of(const Poe& poe);
/// The report of that job.
std::string flight_report(const Poe& poe, ReportDetail detail);

/// Who waits for whom in that job, a sentence each: "rank 0 waits for rank 1 (pid 7, stopped by a signal)", "rank 0
/// waits for rank 1, which waits for rank 0: a circle, in which nobody can go on"; and which calls differ.
std::vector<std::string> standstill(const Poe& poe);

/// A line for each endpoint, its fields apart by tabs: name, condition, communicators, calls begun, what it does now.
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
