// What a collective call takes in a simulated network, by each algorithm: simulated with endpoints that are costs, by
// closed forms, and at least.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/tuning.hpp"
#include "core/call.hpp"
#include "sim/price/logcn.hpp"
#include "sim/price/parameters.hpp"
#include "sim/price/ways.hpp"

namespace unisono::sim {

inline constexpr double kFarOff = 20;

/// One algorithm.
struct Candidate {
  std::string algorithm;
  bool switched = false;                ///< switches take part
  std::string refusal;                  ///< why it has no price; empty: it has closed forms
  double closed = 0;                    ///< cycles by LogGP; by LoGcN if switched
  LogcnTerms terms;                     ///< of LoGcN
  Busiest busiest;                      ///< by its programs
  std::optional<std::uint64_t> cycles;  ///< simulated; nothing: `missing` says why
  std::string missing;
  std::string busy_link;  ///< as simulated, grants included
  double busy_share = 0;  ///< part of the call in which that link sends
};

struct Price {
  std::vector<Candidate> candidates;  ///< the quickest first: by simulation, then by closed form, then refused ones
  double bound = 0;                   ///< no algorithm takes fewer cycles
  std::string choice;                 ///< what a job takes that names no algorithm; empty: none admits the call
  std::optional<std::size_t> rule;    ///< the one of the job's that made the choice
  std::string reason;                 ///< why, where none of them did
  std::string tree;                   ///< of switches; empty: there is none
  std::string unserved;               ///< why no job has that tree; empty: jobs have it
};

/// What a job has agreed on.
struct JobRules {
  std::span<const Rule> rules;  ///< come before those of the library
  bool hardware = false;        ///< its switches are in RTL
};

/// Prices `call` (root 0 and rank 0) by the algorithms of these names, or by all. Candidates are simulated in the order
/// of their closed forms until `until`; of all, those are not that take kFarOff times as long as the quickest by these.
/// The network's `nodes` must fit, as for `call_of`; `job` makes the choice. Throws Error(kInvalidArgument) for a name
/// that is none, or more ranks than can be modelled.
Price price(const NetworkConfig& network, const Call& call, const std::vector<std::string>& names,
            const Parameters& parameters, const EndpointCosts& engine, const EndpointCosts& switches,
            const JobRules& job = {},
            std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());

}  // namespace unisono::sim
