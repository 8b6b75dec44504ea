// Why a call is served as it is: the choice, its rule, and what all algorithms would cost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/tuning.hpp"
#include "cost/machine.hpp"
#include "cost/names.hpp"
#include "cost/predict.hpp"

namespace unisono::cost {

struct Candidate {
  int position = 0;
  std::uint8_t radix = 0;  ///< as `Call::radix`; another than the usual one if the choice has it
  bool admitted = false;   ///< else nothing was predicted
  Prediction prediction;
};

struct Explanation {
  Choice choice;
  /// Whether times are predicted. Between hosts they are if the machine has the prices of a network (`for_hosts`). If
  /// not, times are 0, candidates stand as in the table of algorithms, and there is no runner-up, no crossover.
  bool priced = true;
  std::vector<Candidate> candidates;  ///< the quickest first, then those that do not admit the call
  int runner_up = -1;                 ///< the quickest that was not chosen, with its usual radix; -1: there is none
  /// Bytes nearest to the call's at which the runner-up becomes quicker, or slower, than the choice.
  std::optional<std::uint64_t> crossover;
  /// Sizes were tried by this factor, so an order that changes twice between two of them is not seen; 0: there was
  /// nothing to compare.
  std::uint32_t crossover_stride = 0;
  /// Nanoseconds spent on learning that buffers cannot be reached directly; 0 where the ranks do not ask.
  double asked_in_vain = 0;
};

/// `reachable`: all buffers are memory that every rank reaches; between hosts (`tuning.hosts`) they never are. The
/// call's groups are those of its communicator: its hosts, if it has several. `call.direct` does not matter. With
/// `named` that algorithm is taken for the choice, as if the call named it; then `choice.rule` is null. Throws
/// Error(kUnsupported) if it does not admit the call.
Explanation explain(Call call, bool reachable, const Tuning& tuning, const Machine& machine,
                    const NamedAlgorithm* named = nullptr);

}  // namespace unisono::cost
