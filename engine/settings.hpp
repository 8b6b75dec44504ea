// What settings of an endpoint are allowed.
#pragma once

#include "engine/engine.hpp"

namespace unisono::cclo {

/// Throws Error(kInvalidArgument), which says what was given and what is allowed.
void check_settings(const EngineSettings& settings);

}  // namespace unisono::cclo
