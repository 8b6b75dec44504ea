// The rules that this process follows: environment, tuning file, or neither.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/tuning_file.hpp"

namespace unisono::cost {

struct InForce {
  std::optional<TuningFile> file;
  std::string path;         ///< of the tuning file; empty without
  std::string warning;      ///< why a file at the usual place was left aside; empty if it was not
  std::vector<Rule> rules;  ///< pins, then the file's
  std::size_t pins = 0;     ///< how many of the rules are the user's own
  Machine machine;          ///< the file's, or the defaults
};

/// Where `unisono calibrate` writes, and every process looks: $XDG_CONFIG_HOME/unisono/tuning.json, or under ~/.config.
/// Empty if there is no home.
std::string usual_tuning_path();

/// What UNISONO_TUNING and UNISONO_ALGORITHM say. UNISONO_TUNING is the path of a file, or "off"; unset, the usual
/// place is looked at. Throws Error(kInvalidArgument) for a file that was named and cannot be used, and for wrong pins;
/// a file at the usual place that cannot be used is left aside with a warning.
InForce rules_in_force();

/// The text of a file. Throws Error(kInvalidArgument).
std::string read_text(const std::string& path);

}  // namespace unisono::cost
