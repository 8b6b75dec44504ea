#include "kernels/stuck.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "kernels/group.hpp"
#include "kernels/rank.hpp"

namespace unisono::kernels {

namespace {

/// How long the others may take to answer.
constexpr std::chrono::milliseconds kPatience{1000};

/// A task that waits, or who has an end of a channel. Ranks are those of the job.
struct Line {
  std::uint32_t rank = 0;
  std::string task;
  std::string verb;  ///< push, pop, read, write, kernel; sends, receives
  std::uint32_t communicator = 0;
  std::uint32_t port = 0;
  std::uint32_t peer = 0;
  std::uint64_t element = 0;
  std::uint64_t count = 0;
  std::string name;
  std::string towards;
  bool thread = false;
};

const char* verb_of(Wait::Kind kind) {
  switch (kind) {
    case Wait::Kind::kPush:
      return "push";
    case Wait::Kind::kPop:
      return "pop";
    case Wait::Kind::kRead:
      return "read";
    case Wait::Kind::kWrite:
      return "write";
    case Wait::Kind::kKernel:
      return "kernel";
    case Wait::Kind::kNone:
      break;
  }
  return "nothing";
}

std::uint32_t in_world(const Group& group, std::uint32_t rank) {
  const auto& endpoints = group.communicator()->endpoints;
  return rank < endpoints.size() ? endpoints[rank] : rank;
}

void add(std::string& text, const Line& line) {
  text += formatted("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", line.rank, line.task, line.verb, line.communicator,
                    line.port, line.peer, line.element, line.count, line.name.empty() ? "-" : line.name,
                    line.towards.empty() ? "-" : line.towards, line.thread ? 1 : 0);
}

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream all(text);
  for (std::string row; std::getline(all, row);) {
    std::vector<std::string> fields;
    std::istringstream parts(row);
    for (std::string field; std::getline(parts, field, '\t');) fields.push_back(field);
    if (fields.size() != 11) continue;
    const auto number = [](const std::string& digits) {
      std::uint64_t value = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return value;
    };
    Line line;
    line.rank = static_cast<std::uint32_t>(number(fields[0]));
    line.task = fields[1];
    line.verb = fields[2];
    line.communicator = static_cast<std::uint32_t>(number(fields[3]));
    line.port = static_cast<std::uint32_t>(number(fields[4]));
    line.peer = static_cast<std::uint32_t>(number(fields[5]));
    line.element = number(fields[6]);
    line.count = number(fields[7]);
    line.name = fields[8] == "-" ? "" : fields[8];
    line.towards = fields[9] == "-" ? "" : fields[9];
    line.thread = fields[10] == "1";
    lines.push_back(line);
  }
  return lines;
}

std::string who(const Line& line) {
  return line.thread ? formatted("{} (rank {})", line.task, line.rank)
                     : formatted("kernel {} (rank {})", line.task, line.rank);
}

std::string sentence_of(const Line& line) {
  const std::string of = line.communicator == 0 ? "" : formatted(" of communicator {}", line.communicator);
  if (line.verb == "push") {
    return formatted("{} waits to push element {} of {} of port {} to rank {}{}", who(line), line.element, line.count,
                     line.port, line.peer, of);
  }
  if (line.verb == "pop") {
    return formatted("{} waits to pop element {} of {} of port {} from rank {}{}", who(line), line.element, line.count,
                     line.port, line.peer, of);
  }
  if (line.verb == "read") return formatted("{} waits to read queue {}, which is empty", who(line), line.name);
  if (line.verb == "write") return formatted("{} waits to write queue {}, which is full", who(line), line.name);
  return formatted("{} waits for the end of kernel {}", who(line), line.name);
}

bool waits(const Line& line) { return line.verb != "sends" && line.verb != "receives"; }

/// The lines that could end the wait of one: those of who has the other end or, if nobody has, of all its rank.
std::vector<std::size_t> next_of(const std::vector<Line>& lines, const Line& from) {
  std::vector<std::size_t> next;
  const bool remote = from.verb == "push" || from.verb == "pop";
  const std::string other = from.verb == "push" ? "receives" : "sends";
  std::string owner = from.towards;
  const std::uint32_t rank = remote ? from.peer : from.rank;
  if (remote) {
    for (const Line& line : lines) {
      if (line.verb == other && line.rank == rank && line.peer == from.rank && line.port == from.port &&
          line.communicator == from.communicator) {
        owner = line.task;
      }
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (!waits(line) || line.rank != rank || &line == &from) continue;
    if (line.verb == "kernel" && owner.empty()) continue;
    if (owner.empty() ? remote : line.task == owner) next.push_back(i);
  }
  return next;
}

/// A circle that can be reached from a line; empty if there is none.
std::vector<std::size_t> circle(const std::vector<Line>& lines, std::size_t at, std::vector<std::size_t>& path,
                                std::vector<bool>& seen) {
  if (const auto found = std::find(path.begin(), path.end(), at); found != path.end()) return {found, path.end()};
  if (seen[at]) return {};
  seen[at] = true;
  path.push_back(at);
  for (const std::size_t next : next_of(lines, lines[at])) {
    std::vector<std::size_t> found = circle(lines, next, path, seen);
    if (!found.empty()) return found;
  }
  path.pop_back();
  return {};
}

}  // namespace

std::string waits_of(Rank& rank) {
  std::string text;
  const auto describe = [&](const Task& task, bool thread) {
    if (task.wait.kind == Wait::Kind::kNone || task.ready.load()) return;
    Line line;
    line.rank = rank.number_in_world();
    line.task = task.name;
    line.verb = verb_of(task.wait.kind);
    line.thread = thread;
    line.communicator = task.wait.communicator;
    line.port = task.wait.port;
    line.element = task.wait.element;
    line.count = task.wait.count;
    if (task.wait.name != nullptr) line.name = task.wait.name;
    // Who was at a queue last may have ended since.
    for (const auto& kernel : rank.kernels()) {
      if (task.wait.towards == &kernel->task) line.towards = kernel->task.name;
    }
    for (const Group* const group : rank.groups()) {
      if (group->number() == line.communicator) line.peer = in_world(*group, task.wait.peer);
    }
    add(text, line);
  };
  for (const auto& kernel : rank.kernels()) describe(kernel->task, false);
  for (const Task* const task : rank.threads()) describe(*task, true);
  for (Group* const group : rank.groups()) {
    group->each_end([&](const Link& link, bool sends) {
      if (link.owner() == nullptr || !link.active()) return;
      Line line;
      line.rank = rank.number_in_world();
      line.task = link.owner()->name;
      line.verb = sends ? "sends" : "receives";
      line.communicator = group->number();
      line.port = link.port();
      line.peer = in_world(*group, link.peer());
      add(text, line);
    });
  }
  return text;
}

std::string stuck(Rank& rank, std::chrono::microseconds after) {
  for (Group* const group : rank.groups()) group->tell_waits(waits_of(rank));
  const auto until = Rank::Clock::now() + kPatience;
  const auto all_have = [&] {
    for (Group* const group : rank.groups()) {
      for (std::uint32_t peer = 0; peer < group->size(); ++peer) {
        if (peer != group->rank() && group->waits()[peer].empty()) return false;
      }
    }
    return true;
  };
  while (!all_have() && Rank::Clock::now() < until) {
    if (!rank.step()) rank.idle(std::chrono::milliseconds(10));
  }
  std::map<std::uint32_t, std::string> texts{{rank.number_in_world(), waits_of(rank)}};
  for (Group* const group : rank.groups()) {
    for (std::uint32_t peer = 0; peer < group->size(); ++peer) {
      if (!group->waits()[peer].empty()) texts[in_world(*group, peer)] = group->waits()[peer];
    }
  }
  std::vector<Line> lines;
  for (const auto& [of, text] : texts) {
    const std::vector<Line> more = lines_of(text);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  std::string sentence = formatted("nothing has gone on for {} s", static_cast<double>(after.count()) / 1e6);
  std::vector<bool> seen(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!waits(lines[i])) continue;
    std::vector<std::size_t> path;
    std::vector<std::size_t> found = circle(lines, i, path, seen);
    if (found.empty()) continue;
    // It is told alike on all its ranks.
    std::rotate(found.begin(), std::min_element(found.begin(), found.end()), found.end());
    sentence += ", and nothing can: ";
    for (const std::size_t at : found) sentence += sentence_of(lines[at]) + "; ";
    return sentence + "which closes the circle";
  }
  sentence += ": ";
  bool first = true;
  for (const Line& line : lines) {
    if (!waits(line)) continue;
    if (!first) sentence += "; ";
    first = false;
    sentence += sentence_of(line);
  }
  return sentence;
}

}  // namespace unisono::kernels
