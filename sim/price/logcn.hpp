// LoGcN (Haghi, thesis 2023, section 5.6) of a call that switches take part in:
//
//   T = 2 o + L(N) + m / G + c,   c = N alpha + (gamma - 1) m / G,   G = beta BW
//
// N is the number of switches on the longest way, m a message, BW the rate of a link. What is ours:
//
// - *L(N)* is what the configuration says of the links on that way, for a frame of the first segment. It is taken in
//   whole by each switch, as it is in the model.
// - *beta m* is what the busiest link carries (`busiest_of`): one vector of an all-reduce, all blocks of a gather.
// - *gamma* is 1: a switch folds a word in each cycle.
// - *g* is 0 in the thesis, whose switches join blocks into one message. Ours pass each on by itself, so where there
//   are several, those of the rank or switch that has the most follow one another by g or by m / G, whatever is more.
// - Messages that have to be granted wait for one grant, on the first link; the others have come by then.
#pragma once

#include "core/call.hpp"
#include "sim/price/parameters.hpp"
#include "sim/price/ways.hpp"

namespace unisono::sim {

/// What the form is made of, in cycles.
struct LogcnTerms {
  double o = 0, latency = 0, bytes = 0, c = 0, grant = 0;
  std::uint32_t switches = 0;  ///< N

  double total() const { return o + latency + bytes + c + grant; }
};

/// `programs`: those of `call` by the algorithm of switches, over the tree that lay_tree lays.
LogcnTerms logcn(const Ways& ways, const Call& call, const ModelledCall& programs, const Parameters& parameters,
                 const EndpointCosts& engine);

}  // namespace unisono::sim
