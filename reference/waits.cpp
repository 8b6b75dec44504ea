#include "reference/waits.hpp"

#include <algorithm>
#include <vector>

namespace unisono::reference {

Finding explain_waits(const Lowered& lowered, Node start, const std::function<Wait(Node)>& why) {
  std::vector<Node> path;
  std::vector<bool> seen(lowered.size());
  Node n = start;
  Wait reason;
  while (n != kNowhere && !seen[n]) {
    seen[n] = true;
    path.push_back(n);
    reason = why(n);
    n = reason.next;
  }
  std::size_t begin = 0;
  if (n != kNowhere) {
    begin = static_cast<std::size_t>(std::find(path.begin(), path.end(), n) - path.begin());
  } else if (path.size() > 8) {
    begin = path.size() - 8;
  }
  std::string text = reason.unmatched ? "a message or arrival has no partner:"
                                      : (n != kNowhere ? "these wait for each other:" : "these wait for ever:");
  for (std::size_t i = begin; i < path.size(); ++i) {
    if (i - begin == 12 && path.size() - i > 2) {
      text += "\n  ... " + std::to_string(path.size() - i - 1) + " more ...";
      i = path.size() - 1;
    }
    text += "\n  " + lowered.place(path[i]) + "\n    " + why(path[i]).text;
  }
  const Node culprit = n != kNowhere ? path[begin] : path.back();
  return lowered.at(reason.unmatched ? FindingKind::kUnmatched : FindingKind::kDeadlock, culprit, text);
}

}  // namespace unisono::reference
