// The rules that this process follows: environment, tuning file, or neither.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/tuning_file.hpp"

namespace unisono::cost {

/// What results are to be independent of; each of these promises what those before it do. The values are those of the C
/// interface.
enum class Determinism : std::uint8_t {
  kUnsaid = 0,
  kFast = 1,             ///< nothing is promised
  kRunStable = 2,        ///< the same job with the same settings gives the same bits in every run
  kSizeStable = 3,       ///< and an element's bits do not depend on how many others travel with it
  kPlacementStable = 4,  ///< nor on cores, groups, and whether buffers can be reached
};

/// By its name: "fast", "run_stable", "size_stable", "placement_stable". Throws Error(kInvalidArgument).
Determinism determinism_named(const std::string& name);

/// The tuning file that this process follows, if any.
struct FileInForce {
  std::optional<TuningFile> file;
  std::string path;     ///< of the tuning file; empty without
  std::string warning;  ///< why a file at the usual place was left aside; empty if it was not
};

/// What UNISONO_TUNING says, or stands at the usual place: see `rules_in_force`, which throws likewise.
FileInForce file_in_force();

struct InForce {
  std::optional<TuningFile> file;
  std::string path;         ///< of the tuning file; empty without
  std::string warning;      ///< why a file at the usual place was left aside; empty if it was not
  std::vector<Rule> rules;  ///< those that determinism asks for, pins, then the file's
  std::size_t stable = 0;   ///< how many of the rules determinism asks for
  std::size_t pins = 0;     ///< how many of those after them are the user's own
  Machine machine;          ///< the file's, or the defaults
  Determinism determinism = Determinism::kRunStable;  ///< what holds
  std::string pinned;                                 ///< the text of the pins
};

/// Where `unisono calibrate` writes, and every process looks: $XDG_CONFIG_HOME/unisono/tuning.json, or under ~/.config.
/// Empty if there is no home.
std::string usual_tuning_path();

/// What UNISONO_TUNING, UNISONO_ALGORITHM and UNISONO_DETERMINISM say, unless `pins` and `asked` do. UNISONO_TUNING is
/// the path of a file, or "off"; unset, the usual place is looked at. Throws Error(kInvalidArgument) for a file that
/// was named and cannot be used, and for wrong pins; a file at the usual place that cannot be used is left aside with a
/// warning.
InForce rules_in_force(Determinism asked = Determinism::kUnsaid, const std::optional<std::string>& pins = {});

/// The text of a file. Throws Error(kInvalidArgument).
std::string read_text(const std::string& path);

}  // namespace unisono::cost
