// Examination of a call's arguments, before anything is sent.
#pragma once

#include <string>

#include "engine/state.hpp"

namespace unisono::cclo {

/// Fills `call` (whose communicator is set) from `request`: normalises fields that the operation does not
/// use, chooses the algorithm, gets the program, binds regions. Throws Error that says what was given and
/// what is allowed. Buffer sizes are those of docs/model.md, rules 17 and 18.
void admit(const CallRequest& request, CallState& call);

/// Why engines in hardware do not carry out a receive that names no source or no tag, or a probe; empty if they may.
std::string wildcard_in_hardware(const CallRequest& request);

}  // namespace unisono::cclo
