// Why nothing goes on: who waits for whom, over all ranks.
#pragma once

#include <chrono>
#include <string>

namespace unisono::kernels {

class Rank;

/// What is waited for on this rank, as text for other ranks: a line for each task that waits, and for each end of a
/// channel that somebody has.
std::string waits_of(Rank& rank);

/// Asks the other ranks, and returns the sentence of an error: the circle of waits if there is one, else all that is
/// known. For the driver of the rank; bounded.
std::string stuck(Rank& rank, std::chrono::microseconds after);

}  // namespace unisono::kernels
