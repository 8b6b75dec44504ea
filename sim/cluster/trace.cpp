#include "sim/cluster/trace.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>

#include "sim/cluster/host.hpp"

namespace unisono::sim {
namespace {

/// Rows of one slot: the first is of calls.
constexpr std::uint32_t kRows = 64;
constexpr int kLongestAccess = 5000;  ///< cycles

/// Events of the format, a comma between them.
class Events {
 public:
  Events(std::ostream& out, std::uint64_t clock_khz) : out_(out), clock_khz_(clock_khz) {
    out_ << std::fixed << std::setprecision(3) << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { out_ << "\n]}\n"; }

  void name(const char* what, std::size_t node, std::uint32_t row, const std::string& text) {
    begin(what, "M", node, row);
    out_ << ", \"args\": {\"name\": \"" << text << "\"}}";
  }
  /// `arguments` is the inside of a JSON object.
  void span(const std::string& text, std::size_t node, std::uint32_t row, std::uint64_t from, std::uint64_t to,
            const std::string& arguments) {
    begin(text, "X", node, row);
    out_ << ", \"ts\": " << microseconds(from) << ", \"dur\": " << microseconds(to - from) << ", \"args\": {"
         << arguments << "}}";
  }

 private:
  void begin(const std::string& text, const char* phase, std::size_t node, std::uint32_t row) {
    out_ << (first_ ? "\n" : ",\n") << R"({"name": ")" << text << R"(", "ph": ")" << phase << "\", \"pid\": " << node
         << ", \"tid\": " << row;
    first_ = false;
  }
  double microseconds(std::uint64_t cycles) const {
    return static_cast<double>(cycles) * 1000.0 / static_cast<double>(clock_khz_);
  }

  std::ostream& out_;
  std::uint64_t clock_khz_;
  bool first_ = true;
};

std::string name_of_move(const MoveRecord& record) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (record.receives) add("recv " + std::to_string(record.source));
  if (record.func != Func::kNone) add(name_of(record.func));
  if (record.sends) add("send " + std::to_string(record.destination));
  if (text.empty()) add(record.writes ? "copy" : "nothing");
  return text;
}

std::string arguments_of(const MoveRecord& record) {
  std::ostringstream text;
  const auto number = [&](const char* name, std::uint64_t value) {
    text << (text.tellp() == 0 ? "" : ", ") << '"' << name << "\": " << value;
  };
  number("call", record.call_id);
  number("move", record.index);
  number("bytes", record.bytes);
  number("segments", record.segments);
  if (record.receives) number("source", record.source);
  if (record.sends) number("destination", record.destination);
  number("entered", record.entered);
  number("issued", record.issued);
  number("began", record.began);
  number("completed", record.completed);
  number("retired", record.retired);
  text << R"(, "dtype": ")" << name_of(static_cast<Datatype>(record.dtype)) << R"(", "waited_for": [)";
  const char* comma = "";
  for (const auto& [waited, what] : {std::pair{record.waited_credit, "credit"},
                                     {record.waited_grant, "grant"},
                                     {record.waited_space, "space"},
                                     {record.waited_arrival, "arrival"},
                                     {record.waited_producer, "producer"}}) {
    if (!waited) continue;
    text << comma << '"' << what << '"';
    comma = ", ";
  }
  text << "]";
  return text.str();
}

void write_node(Events& events, std::size_t node, std::vector<MoveRecord> records) {
  events.name("process_name", node, 0, "rank " + std::to_string(node));
  // A slot has one call after the other.
  std::map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> calls;
  std::map<std::uint32_t, std::vector<std::uint64_t>> ends;  // of the rows of each slot
  std::stable_sort(records.begin(), records.end(),
                   [](const MoveRecord& a, const MoveRecord& b) { return a.entered < b.entered; });
  for (const MoveRecord& record : records) {
    const auto [call, fresh] =
        calls.try_emplace({record.slot, record.call_id, record.sequence}, record.entered, record.retired);
    if (!fresh) call->second.second = std::max(call->second.second, record.retired);
    auto& rows = ends[record.slot];
    const auto row = std::find_if(rows.begin(), rows.end(), [&](std::uint64_t end) { return end <= record.entered; });
    const auto number = static_cast<std::uint32_t>(row - rows.begin());
    if (row == rows.end()) {
      rows.push_back(record.retired);
    } else {
      *row = record.retired;
    }
    const std::uint32_t tid = kRows * record.slot + 1 + number;
    events.span(name_of_move(record), node, tid, record.entered, record.retired, arguments_of(record));
    if (record.began != 0) events.span("data", node, tid, record.began, record.completed, "");
  }
  for (const auto& [key, times] : calls) {
    const auto [slot, id, sequence] = key;
    events.span("call " + std::to_string(id), node, kRows * slot, times.first, times.second,
                "\"call\": " + std::to_string(id) + ", \"sequence\": " + std::to_string(sequence));
  }
  for (const auto& [slot, rows] : ends) {
    events.name("thread_name", node, kRows * slot, "slot " + std::to_string(slot) + ": calls");
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      events.name("thread_name", node, kRows * slot + 1 + row, "slot " + std::to_string(slot) + ": moves");
    }
  }
}

}  // namespace

void write_trace(std::ostream& out, std::span<const std::vector<MoveRecord>> nodes, std::uint64_t clock_khz) {
  Events events(out, clock_khz);
  for (std::size_t node = 0; node < nodes.size(); ++node) write_node(events, node, nodes[node]);
}

void write_trace(std::ostream& out, const Cluster& cluster) {
  std::vector<std::vector<MoveRecord>> nodes;
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    nodes.push_back(cluster.is_native(node) ? std::vector<MoveRecord>() : cluster.node(node).records());
  }
  write_trace(out, nodes, cluster.clock_khz());
}

void write_counters(std::ostream& out, Cluster& cluster) {
  out << "{\"clock_khz\": " << cluster.clock_khz() << ", \"nodes\": [";
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    // A host may have gone in the middle of an access.
    for (int i = 0; cluster.any_node(node).busy() && i < kLongestAccess; ++i) cluster.tick();
    Host host(cluster, node);
    out << (node == 0 ? "\n{" : ",\n{");
    const char* comma = "";
    // The native engine in the place of a node counts none of this.
    for (const Counter counter : kAllCounter) {
      if (cluster.is_native(node)) break;
      const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
      const std::uint64_t low = host.read(at);
      const std::uint64_t value = low | static_cast<std::uint64_t>(host.read(at + 4)) << 32U;
      out << comma << '"' << name_of(counter) << "\": " << value;
      comma = ", ";
    }
    out << "}";
  }
  out << "\n]}\n";
}

}  // namespace unisono::sim
