#include "sim/network/settings.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/network/cables.hpp"

namespace unisono::sim {
namespace {

const char* name_of(Shape shape) {
  switch (shape) {
    case Shape::kPointToPoint:
      return "point_to_point";
    case Shape::kSwitch:
      return "switch";
    case Shape::kRing:
      return "ring";
    case Shape::kTorus:
      return "torus";
    case Shape::kCables:
      return "cables";
    default:
      return "leaf_spine";
  }
}

/// Whether a link has a use for a key.
bool takes(const NetworkConfig& config, const LinkPlan& link, std::string_view key) {
  if (key != "buffer_bytes") return !link.local;
  // Frames wait at the far end of a link that asks for room, else in the switch before it.
  const bool asks = config.policy == Policy::kPause || link.local;
  return (asks && !link.to.is_node) || (config.policy == Policy::kDrop && !link.from.is_node);
}

class Lines {
 public:
  Lines(const NetworkConfig& config, const Topology& topology) : config_(config), topology_(topology) {}

  void check() const {
    const std::string shape = std::string("the topology is ") + name_of(config_.shape);
    for (const char* key : {"columns", "rows", "planes"}) {
      if (config_.shape != Shape::kTorus) refuse_key(key, "is of topology = torus; " + shape);
    }
    for (const char* key : {"leaves", "spines"}) {
      if (config_.shape != Shape::kLeafSpine) refuse_key(key, "is of topology = leaf_spine; " + shape);
    }
    if (topology_.switches == 0) refuse_key("switch_latency", "there is no switch; " + shape);
    if (topology_.switches == 0) refuse_key("queue_share", "there is no switch; " + shape);
    if (config_.policy == Policy::kPause) refuse_key("queue_share", "is of policy = drop; the policy is pause");
    if (!given("reorder")) {
      refuse_key("reorder_cycles", "nothing is reordered; `reorder` says how often");
      for (const LinkSetting& setting : config_.settings) {
        if (setting.key == "reorder_cycles") {
          refuse(setting.line, written(setting), "nothing is reordered; `reorder` says how often");
        }
      }
    }
    for (const auto& [key, line] : config_.lines) {
      if (key == "buffer_bytes") check_links(key, "*", line, key);
    }
    for (const LinkSetting& setting : config_.settings) {
      check_links(setting.key, setting.pattern, setting.line, written(setting));
    }
  }

 private:
  static std::string written(const LinkSetting& setting) { return setting.key + "@" + setting.pattern; }

  [[noreturn]] void refuse(std::uint32_t line, const std::string& what, const std::string& why) const {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{}, line {}: {} does nothing here: {}", config_.source, line, what, why));
  }

  bool given(std::string_view key) const {
    return config_.lines.find(key) != config_.lines.end() ||
           std::any_of(config_.settings.begin(), config_.settings.end(),
                       [&](const LinkSetting& setting) { return setting.key == key; });
  }

  void refuse_key(const char* key, const std::string& why) const {
    const auto found = config_.lines.find(key);
    if (found != config_.lines.end()) refuse(found->second, key, why);
  }

  /// Refuses a setting of which no link that it names takes anything.
  void check_links(const std::string& key, const std::string& pattern, std::uint32_t line,
                   const std::string& what) const {
    const LinkPlan* named = nullptr;
    const LinkPlan* other = nullptr;
    for (const LinkPlan& link : topology_.links) {
      const bool names = matches(pattern, link.name);
      if (takes(config_, link, key)) {
        if (names) return;
        if (other == nullptr) other = &link;
      } else if (names && named == nullptr) {
        named = &link;
      }
    }
    if (named == nullptr) return;
    std::string why = named->name + (named->local ? " is within a card and has nothing of a cable" : " has no buffer");
    if (other != nullptr) why += "; " + other->name + " has, for instance";
    refuse(line, what, why);
  }

  const NetworkConfig& config_;
  const Topology& topology_;
};

}  // namespace

CableSettings cables_of(const NetworkConfig& config) {
  constexpr std::array<std::string_view, 6> kOfCables = {"topology", "nodes", "clock_mhz",
                                                         "seed",     "gbps",  "propagation"};
  const auto refuse_line = [&](std::uint32_t line, const std::string& what, const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, formatted("{}, line {}: {}: {}", config.source, line, what, why));
  };
  if (const auto line = config.lines.find("topology"); line != config.lines.end() && config.shape != Shape::kCables) {
    refuse_line(line->second, formatted("topology = {}", name_of(config.shape)),
                "nodes are joined by cables here; leave the line out, or say `topology = cables`");
  }
  for (const auto& [key, line] : config.lines) {
    if (std::find(kOfCables.begin(), kOfCables.end(), key) != kOfCables.end()) continue;
    refuse_line(line, key, "does nothing here: cables carry words without frames, and lose none");
  }
  for (const LinkSetting& setting : config.settings) {
    refuse_line(setting.line, formatted("{}@{}", setting.key, setting.pattern), "all cables are alike here");
  }
  if (config.link.propagation == 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted("{}: propagation = 0: what leaves a node in a cycle reaches none in the same one", config.source));
  }
  return {config.link.propagation, Rate::of(config.link.mbps, config.clock_khz)};
}

void refuse_idle_settings(const NetworkConfig& config, const Topology& topology) { Lines(config, topology).check(); }

std::vector<std::string> faults_of(const Topology& topology) {
  std::vector<std::string> faults;
  const auto any = [&](const char* key, auto has) {
    if (std::any_of(topology.links.begin(), topology.links.end(),
                    [&](const LinkPlan& link) { return has(link.config); })) {
      faults.emplace_back(key);
    }
  };
  any("loss", [](const LinkConfig& link) { return link.loss > 0; });
  any("duplicate", [](const LinkConfig& link) { return link.duplicate > 0; });
  any("reorder", [](const LinkConfig& link) { return link.reorder > 0; });
  any("corrupt", [](const LinkConfig& link) { return link.corrupt > 0; });
  any("down", [](const LinkConfig& link) { return !link.down.empty(); });
  return faults;
}

}  // namespace unisono::sim
