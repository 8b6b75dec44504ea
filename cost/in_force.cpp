#include "cost/in_force.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "collectives/tuning.hpp"
#include "core/error.hpp"
#include "core/quoted.hpp"
#include "cost/pins.hpp"

namespace unisono::cost {
namespace {

std::string variable(const char* name) {
  const char* value =
      std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the environment is not changed by threads here
  return value == nullptr ? "" : value;
}

}  // namespace

std::string usual_tuning_path() {
  const std::string configuration = variable("XDG_CONFIG_HOME");
  if (!configuration.empty()) return configuration + "/unisono/tuning.json";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/unisono/tuning.json";
}

std::string read_text(const std::string& path) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, "it cannot be read: " + why);
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) refuse(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) refuse("it is no ordinary file");  // a pipe might never end
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) refuse(std::generic_category().message(errno));
  constexpr std::size_t kMost = (std::size_t{4} << 20U) + 1;
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kMost), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

Determinism determinism_named(const std::string& name) {
  if (name == "fast") return Determinism::kFast;
  if (name == "run_stable") return Determinism::kRunStable;
  if (name == "size_stable") return Determinism::kSizeStable;
  if (name == "placement_stable") return Determinism::kPlacementStable;
  throw Error(ErrorCode::kInvalidArgument,
              "determinism is " + in_quotes(name) + "; allowed are fast, run_stable, size_stable and placement_stable");
}

FileInForce file_in_force() {
  FileInForce result;
  const std::string named = variable("UNISONO_TUNING");
  if (named == "off") return result;
  const std::string path = named.empty() ? usual_tuning_path() : named;
  struct stat status {};
  if (named.empty() && (path.empty() || stat(path.c_str(), &status) != 0)) return result;
  try {
    result.file = parse_tuning(read_text(path));
    result.path = path;
  } catch (const Error& error) {
    const std::string text = "the tuning file " + path + ": " + error.what();
    if (!named.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "UNISONO_TUNING names " + text +
                                                   ". Allowed are a file that `unisono "
                                                   "calibrate` wrote, or \"off\"");
    }
    result.warning = text + "; it is left aside. Run `unisono calibrate` again, or remove it";
  }
  return result;
}

InForce rules_in_force(Determinism asked, const std::optional<std::string>& given) {
  InForce result;
  if (const std::string named = variable("UNISONO_DETERMINISM"); asked == Determinism::kUnsaid && !named.empty()) {
    try {
      asked = determinism_named(named);
    } catch (const Error& error) {
      throw Error(error.code(), std::string("UNISONO_DETERMINISM: ") + error.what());
    }
  }
  if (asked != Determinism::kUnsaid) result.determinism = asked;
  if (asked >= Determinism::kSizeStable) result.rules.assign(stable_rules().begin(), stable_rules().end());
  result.stable = result.rules.size();
  result.pinned = given ? *given : variable("UNISONO_ALGORITHM");
  const std::vector<Rule> pins = parse_pins(result.pinned);
  result.rules.insert(result.rules.end(), pins.begin(), pins.end());
  result.pins = pins.size();
  FileInForce found = file_in_force();
  result.path = std::move(found.path);
  result.warning = std::move(found.warning);
  if (!found.file) return result;
  result.file = std::move(found.file);
  result.machine = result.file->machine;
  result.rules.insert(result.rules.end(), result.file->rules.begin(), result.file->rules.end());
  return result;
}

}  // namespace unisono::cost
