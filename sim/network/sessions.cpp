#include "sim/network/sessions.hpp"

namespace unisono::sim {

std::uint32_t Sessions::send(std::uint32_t source, std::uint32_t destination, std::uint16_t port) {
  ++sent_;
  return sessions_[{source, destination, port}].sent++;
}

Sessions::Verdict Sessions::receive(std::uint32_t source, std::uint32_t destination, std::uint16_t port,
                                    std::uint32_t number, std::uint64_t cycle) {
  const Name name{source, destination, port};
  Session& session = sessions_[name];
  // Numbers wrap around.
  const auto ahead = static_cast<std::int32_t>(number - session.expected);
  if (ahead < 0) return Verdict::kTwice;
  if (session.broken) return Verdict::kBroken;
  if (ahead > 0) {
    breaks(name, session, session.expected, number, false, cycle);
    return Verdict::kBroken;
  }
  ++session.expected;
  return Verdict::kPass;
}

void Sessions::damaged(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t number,
                       std::uint64_t cycle) {
  const Name name{source, destination, port};
  breaks(name, sessions_[name], number, number + 1, true, cycle);
}

void Sessions::breaks(const Name& name, Session& session, std::uint32_t missing, std::uint32_t until, bool nothing_came,
                      std::uint64_t cycle) {
  if (session.broken) return;
  session.broken = true;
  const auto [source, destination, port] = name;
  broken_.push_back({cycle, source, destination, port, missing, until, nothing_came});
}

void Sessions::settle_all(std::uint64_t cycle) {
  settled_ = sent_;
  for (auto& [name, session] : sessions_) {
    if (session.sent != session.expected) breaks(name, session, session.expected, session.sent, true, cycle);
  }
}

}  // namespace unisono::sim
