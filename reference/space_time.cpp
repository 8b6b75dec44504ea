#include "reference/space_time.hpp"

#include <algorithm>
#include <sstream>
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

constexpr double kLeft = 80;
constexpr double kTop = 64;
constexpr double kLane = 26;
constexpr double kBox = 20;
constexpr double kGap = 18;

}  // namespace

std::string draw_space_time(const Lowered& lowered, const Run& run, const std::optional<Finding>& finding) {
  const Job& job = lowered.job();
  std::uint64_t last = 1;
  for (const Event& event : run.events) last = std::max(last, event.time);
  const double scale = std::clamp(1400.0 / static_cast<double>(last + 1), 4.0, 28.0);
  const auto x = [&](std::uint64_t time) { return kLeft + static_cast<double>(time) * scale; };
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
    std::vector<std::uint64_t> free;
    std::vector<Node> nodes;
    for (Node n = lowered.first(rank); n < lowered.first(rank) + job.programs[rank].moves.size(); ++n) {
      if (n < run.outcomes.size() && run.outcomes[n].started) nodes.push_back(n);
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](Node a, Node b) { return run.outcomes[a].start < run.outcomes[b].start; });
    for (const Node n : nodes) {
      const MoveOutcome& out = run.outcomes[n];
      auto lane = std::find_if(free.begin(), free.end(), [&](std::uint64_t until) { return until <= out.start; });
      if (lane == free.end()) lane = free.insert(free.end(), 0);
      *lane = out.finished ? out.finish + 1 : last + 2;
      y[n] = at + kLane * static_cast<double>(lane - free.begin());
    }
    at += kLane * static_cast<double>(std::max<std::size_t>(1, free.size())) + kGap;
  }

  std::ostringstream svg;
  const double width = x(last + 2) + 40;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << at + 20
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
         "orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#456\"/></marker></defs>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"bold\">" << escaped(describe(job)) << "</text>\n";
  // Legend.
  const auto legend = [&](double left, const char* fill, const char* text) {
    svg << "<rect x=\"" << left << "\" y=\"32\" width=\"14\" height=\"12\" fill=\"" << fill
        << "\" stroke=\"#234\"/><text x=\"" << left + 19 << "\" y=\"43\">" << text << "</text>\n";
  };
  legend(10, "#cfe2f3", "move, from start to completion");
  legend(230, "#fdebd0", "move that never completed");
  legend(420, "#e74c3c", "culprit");
  svg << "<path d=\"M500 38 H530\" stroke=\"#456\" marker-end=\"url(#head)\"/><text x=\"537\" y=\"43\">message"
         "</text>\n";
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    svg << "<text x=\"10\" y=\"" << rank_y[rank] + 15 << "\">rank " << rank << "</text><path d=\"M" << kLeft << ' '
        << rank_y[rank] + kBox / 2 << " H" << width - 20 << "\" stroke=\"#ddd\"/>\n";
  }
  for (Node n = 0; n < run.outcomes.size(); ++n) {
    const MoveOutcome& out = run.outcomes[n];
    if (!out.started) continue;
    const auto& node = lowered.node(n);
    const double right = x(out.finished ? out.finish : last + 1);
    const char* fill = culprit(node) ? "#e74c3c" : (out.finished ? "#cfe2f3" : "#fdebd0");
    svg << "<g><title>" << escaped(lowered.place(n)) << "</title><rect x=\"" << x(out.start) << "\" y=\"" << y[n]
        << "\" width=\"" << std::max(scale * 0.8, right - x(out.start)) << "\" height=\"" << kBox
        << "\" rx=\"2\" fill=\"" << fill << "\" stroke=\"#234\"" << (out.finished ? "" : " stroke-dasharray=\"3 2\"")
        << "/><text x=\"" << x(out.start) + 3 << "\" y=\"" << y[n] + 14 << "\">" << node.index << "</text></g>\n";
  }
  for (const Lowered::Channel& channel : lowered.channels()) {
    std::vector<Node> sends;
    std::vector<Node> arrivals;
    const auto exists = [&](Node n) {
      return run.outcomes[n].first != 0 && (run.outcomes[n].count != 0 || lowered.node(n).move->signal);
    };
    for (const Node n : lowered.sends(channel)) {
      if (exists(n)) sends.push_back(n);
    }
    for (const Node n : lowered.arrivals(channel)) {
      if (exists(n)) arrivals.push_back(n);
    }
    for (std::size_t i = 0; i < std::min(sends.size(), arrivals.size()); ++i) {
      const Node a = sends[i];
      const Node b = arrivals[i];
      const bool down = y[a] < y[b];
      svg << "<path d=\"M" << x(run.outcomes[a].first) << ' ' << y[a] + (down ? kBox : 0) << " L"
          << x(run.outcomes[b].first) << ' ' << y[b] + (down ? 0 : kBox)
          << "\" stroke=\"#456\" fill=\"none\" marker-end=\"url(#head)\"/>\n";
    }
  }
  svg << "</svg>\n";
  return svg.str();
}

}  // namespace unisono::reference
