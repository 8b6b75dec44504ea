#include "reference/space_time.hpp"

#include <algorithm>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "reference/text.hpp"

namespace unisono::reference {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string sentence(const Job& job, const std::optional<Finding>& finding) {
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"80\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"10\" y=\"24\" font-size=\"14\" font-weight=\"bold\">" << escaped(describe(job)) << "</text>\n"
      << "<text x=\"10\" y=\"52\">"
      << escaped(finding ? finding->text.substr(0, finding->text.find('\n')) : std::string("no moves"))
      << "</text>\n</svg>\n";
  return svg.str();
}

constexpr double kLeft = 76;
constexpr double kTop = 72;
constexpr double kLane = 28;
constexpr double kBox = 22;
constexpr double kGap = 20;
constexpr double kMessage = 0.8;  ///< time of a message; a move takes 1
constexpr double kStream = 0.5;   ///< how far a move stays behind one it follows element by element
constexpr std::size_t kMostLines = 24;
constexpr double kLabel = 6.8;    ///< width of a character of a label; in most fonts it is less
constexpr double kNumber = 5.8;   ///< width of a figure of a move's number
constexpr double kPad = 4;        ///< between the parts of a box
constexpr double kWidest = 2600;  ///< width up to which boxes have room for labels; then they hold numbers only

// Characters, for a label has arrows.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

double box_width(std::uint32_t index, const std::string& label) {
  return 3 * kPad + kNumber * static_cast<double>(std::to_string(index).size()) +
         kLabel * static_cast<double>(characters(label));
}

/// What would happen if programs whose messages do not match were run: a move completes when what it depends on has,
/// and its arrivals when the messages that they should meet have been sent and fit. Sends complete by themselves.
Run run_unmatched(const Lowered& lowered) {
  Run run;
  run.finding = lowered.finding();
  run.outcomes.resize(lowered.size());
  std::vector<std::vector<Node>> waits_for(lowered.size());
  std::vector<bool> never(lowered.size());
  for (Node n = 0; n < lowered.size(); ++n) {
    const auto& node = lowered.node(n);
    run.outcomes[n].count = node.move->count;
    for (const Node dependent : lowered.dependents(node)) waits_for[dependent].push_back(n);
    for (const Node dependent : lowered.stream_dependents(node)) waits_for[dependent].push_back(n);
    if (node.index >= kWindow) waits_for[n].push_back(n - static_cast<Node>(kWindow));
  }
  for (const Lowered::Channel& channel : lowered.channels()) {
    const auto sends = lowered.sends(channel);
    const auto arrivals = lowered.arrivals(channel);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const Move& taken = *lowered.node(arrivals[i]).move;
      never[arrivals[i]] = never[arrivals[i]] || i >= sends.size();
      if (i < sends.size()) {
        const Move& sent = *lowered.node(sends[i]).move;
        never[arrivals[i]] = never[arrivals[i]] || sent.remote.tag != taken.arrival.tag || sent.count != taken.count ||
                             bytes_of(sent.dtype) != bytes_of(taken.dtype);
        waits_for[arrivals[i]].push_back(sends[i]);
      }
      if (i != 0) waits_for[arrivals[i]].push_back(arrivals[i - 1]);
    }
  }
  std::uint64_t time = 0;
  for (bool more = true; more;) {
    more = false;
    for (Node n = 0; n < lowered.size(); ++n) {
      MoveOutcome& out = run.outcomes[n];
      out.started = true;
      if (out.finished || never[n]) continue;
      const auto done = [&](Node before) { return run.outcomes[before].finished; };
      if (!std::all_of(waits_for[n].begin(), waits_for[n].end(), done)) continue;
      out.finished = more = true;
      out.start = out.first = out.finish = ++time;
    }
  }
  return run;
}

/// When each move would run if a move took one unit of time and a message a little less: the longest path through what
/// the run has shown to be ordered. The run's own clock counts events of all ranks one after the other, which would
/// draw ranks that work side by side as a staircase.
class Schedule {
 public:
  Schedule(const Lowered& lowered, const Run& run) : start(run.outcomes.size()), finish(run.outcomes.size()) {
    std::vector<std::vector<Node>> waits_for(run.outcomes.size());
    std::vector<std::vector<Node>> follows(run.outcomes.size());
    std::vector<std::vector<Node>> takes(run.outcomes.size());
    std::vector<Node> order;
    for (Node n = 0; n < run.outcomes.size(); ++n) {
      if (!run.outcomes[n].started) continue;
      order.push_back(n);
      for (const Node dependent : lowered.dependents(lowered.node(n))) waits_for[dependent].push_back(n);
      for (const Node dependent : lowered.stream_dependents(lowered.node(n))) follows[dependent].push_back(n);
    }
    for (const Lowered::Channel& channel : lowered.channels()) {
      const auto sends = messages(lowered, run, lowered.sends(channel));
      const auto arrivals = messages(lowered, run, lowered.arrivals(channel));
      for (std::size_t i = 0; i < std::min(sends.size(), arrivals.size()); ++i) {
        pairs.emplace_back(sends[i], arrivals[i]);
        if (done(run, sends[i]) && done(run, arrivals[i])) takes[arrivals[i]].push_back(sends[i]);
      }
      for (std::size_t i = arrivals.size(); i < sends.size(); ++i) alone.push_back({sends[i], channel.to, true});
      for (std::size_t i = sends.size(); i < arrivals.size(); ++i) alone.push_back({arrivals[i], channel.from, false});
      for (std::size_t i = 1; i < sends.size(); ++i) waits_for[sends[i]].push_back(sends[i - 1]);
      for (std::size_t i = 1; i < arrivals.size(); ++i) waits_for[arrivals[i]].push_back(arrivals[i - 1]);
    }
    // What happened in the order in which it happened, then what never did, in the order of the programs.
    std::stable_sort(order.begin(), order.end(), [&](Node a, Node b) {
      const auto time = [&](Node n) { return done(run, n) ? run.outcomes[n].first : ~std::uint64_t{0}; };
      return time(a) < time(b);
    });
    for (const Node n : order) {
      double& at = start[n];
      for (const Node before : waits_for[n]) at = std::max(at, finish[before] + 0.1);
      for (const Node before : follows[n]) at = std::max(at, start[before] + kStream);
      for (const Node from : takes[n]) at = std::max(at, finish[from] + kMessage - 0.1);
      finish[n] = at + 1;
      last = std::max(last, finish[n]);
    }
  }

  static bool done(const Run& run, Node n) { return run.outcomes[n].first != 0; }

  std::vector<double> start;
  std::vector<double> finish;
  std::vector<std::pair<Node, Node>> pairs;  ///< each message: the move that sends it and the one that takes it
  /// A message that no move of `peer` takes, or that none sends.
  struct Alone {
    Node node;
    std::uint32_t peer;
    bool sent;
  };
  std::vector<Alone> alone;
  double last = 1;

 private:
  static std::vector<Node> messages(const Lowered& lowered, const Run& run, std::span<const Node> nodes) {
    std::vector<Node> exist;
    for (const Node n : nodes) {
      const Move& move = *lowered.node(n).move;
      const std::uint64_t count = run.outcomes[n].finished ? run.outcomes[n].count : move.count;
      if (run.outcomes[n].started && (count != 0 || move.signal)) exist.push_back(n);
    }
    return exist;
  }
};

}  // namespace

std::string draw_space_time(const Lowered& lowered, const Run& run, const std::optional<Finding>& finding) {
  const Job& job = lowered.job();
  if (run.outcomes.empty()) return sentence(job, finding);
  const Schedule schedule(lowered, run);
  std::vector<std::string> labels(run.outcomes.size());
  double widest = 0;
  for (Node n = 0; n < run.outcomes.size(); ++n) {
    if (!run.outcomes[n].started) continue;
    const auto& node = lowered.node(n);
    labels[n] = label_move(job.programs[node.rank], node.index, node.rank, job.size());
    widest = std::max(widest, box_width(node.index, labels[n]));
  }
  const bool labelled = schedule.last * widest <= kWidest;
  const double scale = labelled ? std::max(widest, 56.0) : std::clamp(1500.0 / schedule.last, 12.0, 56.0);
  const auto x = [&](double time) { return kLeft + time * scale; };
  const auto culprit = [&](const Lowered::MoveNode& node) {
    return finding && ((finding->rank == node.rank && finding->move == node.index) ||
                       (finding->other_rank == node.rank && finding->other_move == node.index));
  };

  // Lanes: the first that is free when the move starts.
  std::vector<double> y(run.outcomes.size());
  std::vector<double> rank_y(job.size());
  double at = kTop;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    rank_y[rank] = at;
    std::vector<double> free;
    std::vector<Node> nodes;
    for (Node n = lowered.first(rank); n < lowered.first(rank) + job.programs[rank].moves.size(); ++n) {
      if (run.outcomes[n].started) nodes.push_back(n);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [&](Node a, Node b) { return schedule.start[a] < schedule.start[b]; });
    for (const Node n : nodes) {
      auto lane = std::find_if(free.begin(), free.end(), [&](double until) { return until <= schedule.start[n]; });
      if (lane == free.end()) lane = free.insert(free.end(), 0);
      *lane = schedule.finish[n] + 0.05;
      y[n] = at + kLane * static_cast<double>(lane - free.begin());
    }
    at += kLane * static_cast<double>(std::max<std::size_t>(1, free.size())) + kGap;
  }

  std::vector<std::string> lines;
  if (finding) {
    std::istringstream text(std::string(name_of(finding->kind)) + ": " + finding->text);
    for (std::string line; std::getline(text, line) && lines.size() < kMostLines;) lines.push_back(line);
  }
  std::size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  const double width = std::max({x(schedule.last) + 40, 760.0, 40 + 7.3 * static_cast<double>(longest)});
  const double height = at + (lines.empty() ? 0 : 12 + 17 * static_cast<double>(lines.size())) + 8;

  std::ostringstream svg;
  svg.precision(7);
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height << "\" width=\"" << width
      << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
         "orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#456\"/></marker></defs>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"10\" y=\"22\" font-size=\"14\" font-weight=\"bold\">" << escaped(describe(job)) << "</text>\n";
  const auto legend = [&](double left, const char* fill, const char* text) {
    svg << "<rect x=\"" << left << "\" y=\"36\" width=\"14\" height=\"12\" rx=\"2\" fill=\"" << fill
        << "\" stroke=\"#234\"/><text x=\"" << left + 20 << "\" y=\"47\">" << text << "</text>\n";
  };
  legend(10, "#cfe2f3", "move, time to the right");
  legend(190, "#fdebd0", "move that never completes");
  legend(390, "#e74c3c", "where it shows");
  svg << "<path d=\"M520 42 H550\" stroke=\"#456\" marker-end=\"url(#head)\"/><text x=\"558\" y=\"47\">message"
         "</text><path d=\"M630 42 H660\" stroke=\"#456\" stroke-dasharray=\"4 3\" marker-end=\"url(#head)\"/>"
         "<text x=\"668\" y=\"47\">not taken</text>\n";
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    svg << "<text x=\"10\" y=\"" << rank_y[rank] + 15 << "\">rank " << rank << "</text><path d=\"M" << kLeft - 8 << ' '
        << rank_y[rank] - kGap / 2 << " H" << width - 12 << "\" stroke=\"#e4e4e4\"/>\n";
  }
  // Messages lie under the moves, so that they cross no number.
  for (const auto& [a, b] : schedule.pairs) {
    const bool taken = Schedule::done(run, a) && Schedule::done(run, b);
    svg << "<path d=\"M" << x(schedule.finish[a]) - (taken ? 0 : scale / 2) << ' ' << y[a] + kBox / 2 << " L"
        << (taken ? x(schedule.start[b]) : x(schedule.start[b]) + scale / 2) << ' '
        << y[b] + (taken ? kBox / 2 : (y[a] < y[b] ? 0 : kBox)) << "\" stroke=\"#456\" fill=\"none\""
        << (taken ? "" : " stroke-dasharray=\"4 3\"") << " marker-end=\"url(#head)\"/>\n";
  }
  // What has no partner ends in a cross at the rank where it should be.
  for (const auto& [node, peer, sent] : schedule.alone) {
    const double there_x = x(sent ? schedule.finish[node] : schedule.start[node]) + (sent ? 0.6 : -0.6) * 56;
    const double there_y = rank_y[peer] + kBox / 2;
    const double here_x = x(sent ? schedule.finish[node] : schedule.start[node]);
    const double here_y = y[node] + kBox / 2;
    svg << "<path d=\"M" << (sent ? here_x : there_x) << ' ' << (sent ? here_y : there_y) << " L"
        << (sent ? there_x : here_x) << ' ' << (sent ? there_y : here_y)
        << "\" stroke=\"#456\" fill=\"none\" stroke-dasharray=\"4 3\" marker-end=\"url(#head)\"/>"
        << "<path class=\"nobody\" d=\"M" << there_x - 5 << ' ' << there_y - 5 << " l10 10 m0 -10 l-10 10"
        << "\" stroke=\"#e74c3c\" stroke-width=\"2.5\"/>\n";
  }
  for (Node n = 0; n < run.outcomes.size(); ++n) {
    const MoveOutcome& out = run.outcomes[n];
    if (!out.started) continue;
    const auto& node = lowered.node(n);
    const char* fill = culprit(node) ? "#e74c3c" : (out.finished ? "#cfe2f3" : "#fdebd0");
    svg << "<g><title>" << escaped(lowered.place(n)) << "</title><rect x=\"" << x(schedule.start[n]) << "\" y=\""
        << y[n] << "\" width=\"" << scale << "\" height=\"" << kBox << "\" rx=\"3\" fill=\"" << fill
        << "\" stroke=\"#234\"" << (out.finished ? "" : " stroke-dasharray=\"3 2\"") << "/>";
    const std::string number = std::to_string(node.index);
    const char* bold = culprit(node) ? " fill=\"white\" font-weight=\"bold\"" : "";
    if (labelled) {
      const double left = x(schedule.start[n]) + kPad;
      const double begin = left + kNumber * static_cast<double>(number.size()) + kPad;
      const double middle = (begin + x(schedule.start[n]) + scale - kPad) / 2;
      svg << "<text x=\"" << left << "\" y=\"" << y[n] + 14.5 << "\" font-size=\"9\" fill=\""
          << (culprit(node) ? "white" : "#678") << "\">" << number << "</text><text x=\"" << middle << "\" y=\""
          << y[n] + 15 << "\" font-size=\"11\" text-anchor=\"middle\"" << bold << '>' << escaped(labels[n])
          << "</text>";
    } else if (static_cast<double>(number.size()) * 7.5 <= scale) {
      svg << "<text x=\"" << x(schedule.start[n]) + scale / 2 << "\" y=\"" << y[n] + 15.5 << "\" text-anchor=\"middle\""
          << bold << '>' << number << "</text>";
    }
    svg << "</g>\n";
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    svg << "<text x=\"10\" y=\"" << at + 14 + 17 * static_cast<double>(i)
        << "\" font-family=\"monospace\" xml:space=\"preserve\">" << escaped(lines[i]) << "</text>\n";
  }
  svg << "</svg>\n";
  return svg.str();
}

std::string draw_job(const Job& job, const Policy& policy, const std::optional<Finding>& finding) {
  Interpreter interpreter(job);
  const Lowered& lowered = interpreter.lowered();
  if (lowered.finding() && lowered.finding()->kind == FindingKind::kUnmatched) {
    return draw_space_time(lowered, run_unmatched(lowered), finding ? finding : lowered.finding());
  }
  const SymbolRun run = interpreter.run_symbols(policy, true);
  return draw_space_time(interpreter.lowered(), run, finding ? finding : run.finding);
}

}  // namespace unisono::reference
