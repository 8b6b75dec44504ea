// Settings of contexts: what a user gives, and what that makes of an engine's.
#pragma once

#include "driver/objects.hpp"

namespace unisono::driver {

/// Settings as this version knows them. Throws Error for a structure that it cannot understand.
unisono_settings import_settings(const unisono_settings* given);
/// Changes `settings` and `choice` to what is given; fields that are zero leave them as they are. Reads tuning file and
/// environment if rules for algorithms are chosen, or there are none yet. Throws Error, with nothing changed.
void apply(const unisono_settings& given, EngineSettings& settings, RuleChoice& choice);

}  // namespace unisono::driver
