// What people are told of a function that did not come to a good end.
#pragma once

#include <string>

#include "switch/handler/interpreter.hpp"

namespace unisono::handler {

/// Verdicts that let the rest of the message go on, or not; every other one is a failure.
inline constexpr std::uint32_t kGoOn = 0;
inline constexpr std::uint32_t kDrop = 1;

/// `file:line` of a word; the file alone if the line is not known.
std::string place_of(const Program& program, std::uint32_t word);

/// `file:line: function is stopped at packet N: why`, or empty if it came to its end with kGoOn or kDrop.
std::string sentence_of(const Program& program, Function function, const Surroundings& around, const Outcome& outcome);

}  // namespace unisono::handler
