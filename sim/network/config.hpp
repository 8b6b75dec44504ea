// What the network of a simulated cluster is: its shape, its links, its faults. Read from a small text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::sim {

/// Cables (cables.hpp) are no shape of this network: nodes are joined by SMI's transport, and routes say how.
enum class Shape : std::uint8_t { kPointToPoint, kSwitch, kRing, kTorus, kLeafSpine, kCables };

/// What happens to a frame that finds no room.
enum class Policy : std::uint8_t {
  kDrop,   ///< it is lost, as in Ethernet
  kPause,  ///< it waits at the sending end of the link: credits, nothing is ever lost for want of room
};

/// When the words of a frame are shown to the node that receives it.
enum class Receive : std::uint8_t {
  kCutThrough,  ///< each in the cycle in which it arrives
  kWhole,       ///< when the whole frame has arrived and passed its check
};

/// Cycles [from, to) in which a link carries nothing.
struct Outage {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  friend bool operator==(const Outage&, const Outage&) = default;
};

/// One direction of a cable. Probabilities are per frame; lengths of time are in cycles.
struct LinkConfig {
  std::uint64_t mbps = 100'000;
  std::uint32_t propagation = 50;       ///< from the end of a word's last bit to its arrival
  std::uint32_t header_bytes = 50;      ///< on the wire before the payload: preamble 8, Ethernet 14, IPv4 20, UDP 8
  std::uint32_t trailer_bytes = 16;     ///< after it: frame check 4, gap 12
  std::uint32_t min_wire_bytes = 84;    ///< a shorter frame is padded to this, header and trailer included
  std::uint64_t buffer_bytes = 262144;  ///< drop: of the queue that feeds the link; pause: at the link's far end

  double loss = 0;
  double duplicate = 0;
  double reorder = 0;  ///< delayed by 1 .. reorder_cycles, so that later frames overtake it
  double corrupt = 0;
  std::uint32_t reorder_cycles = 1000;
  std::vector<Outage> down;

  friend bool operator==(const LinkConfig&, const LinkConfig&) = default;
};

/// A setting for the links whose name matches a pattern, as `gbps@leaf*>spine* = 400`.
struct LinkSetting {
  std::string key, pattern, value;
  std::uint32_t line = 0;
};

/// Switches, or nodes, at which units are to stand (unit.hpp), as `ais@leaf*` or `aas@node9` say it.
struct UnitPattern {
  bool at_node = false;  ///< in the place of an engine (aas); else in a switch (ais)
  std::string pattern;   ///< of names: "leaf0", "node9"
  friend bool operator==(const UnitPattern&, const UnitPattern&) = default;
};

struct NetworkConfig {
  Shape shape = Shape::kSwitch;
  std::uint32_t nodes = 2;
  std::uint32_t columns = 0, rows = 0;   ///< torus; both 0: as square as the nodes of a plane admit
  std::uint32_t planes = 0;              ///< torus; 0: two dimensions
  std::uint32_t leaves = 0, spines = 0;  ///< leaf-spine; leaves divide the nodes
  std::uint64_t clock_khz = 250'000;
  std::uint32_t mtu = 8972;            ///< largest payload of a frame: 9000 less IPv4 and UDP headers
  std::uint32_t switch_latency = 100;  ///< from a word's arrival at a switch to when it can leave
  Policy policy = Policy::kDrop;
  std::uint32_t queue_share = 1;        ///< drop: an input may hold this many times what an output's queue has free
  std::uint64_t receive_bytes = 65536;  ///< what a node has not popped yet
  Receive receive = Receive::kCutThrough;
  bool frame_check = true;  ///< off: corrupted frames are delivered, with one bit flipped
  bool sessions = false;    ///< nodes get the frames of a session in order and once, or not at all (sessions.hpp)
  std::uint64_t seed = 1;
  LinkConfig link;                       ///< every link
  std::vector<LinkSetting> settings;     ///< some links, applied in order
  std::vector<UnitPattern> aggregation;  ///< where units stand; none: nowhere

  std::string source = "network";  ///< how the text is called in messages
  std::map<std::string, std::uint32_t, std::less<>>
      lines;  ///< of the text: where a key stands that is not of some links
};

/// Reads lines of `key = value` and `key@links = value`; `#` begins a comment. Throws Error(kInvalidArgument) that
/// names line and key. `source` is how the text is called in messages.
NetworkConfig parse_network(std::string_view text, const std::string& source = "network");

/// Applies one setting to a link. Throws as `parse_network`.
void apply(LinkConfig& link, std::string_view key, std::string_view value);

/// What `aggregation` says: patterns joined by `|`. Throws as `parse_network`, without a line.
std::vector<UnitPattern> parse_aggregation(std::string_view value);

/// Whether `name` is what `pattern` describes; `*` stands for any characters.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace unisono::sim
