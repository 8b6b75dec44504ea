#include <algorithm>

#include "core/text.hpp"
#include "platform/join/pmi.hpp"

namespace unisono::join {

std::string PmiLine::word(const std::string& name) const {
  const auto found = words.find(name);
  return found == words.end() ? std::string() : found->second;
}

std::optional<PmiLine> parse_pmi_line(std::string_view line) {
  PmiLine parsed;
  std::string* last = nullptr;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == 0) return std::nullopt;
    if (equals == std::string_view::npos) {
      if (last == nullptr) return std::nullopt;
      last->append(" ").append(word);
      continue;
    }
    const std::string name(word.substr(0, equals));
    const std::string value(word.substr(equals + 1));
    if (parsed.command.empty()) {
      if (name != "cmd" || value.empty()) return std::nullopt;
      parsed.command = value;
      last = &parsed.command;
      continue;
    }
    const auto [place, fresh] = parsed.words.emplace(name, value);
    if (!fresh) return std::nullopt;
    last = &place->second;
  }
  if (parsed.command.empty()) return std::nullopt;
  return parsed;
}

std::optional<PmiLine> parse_pmi_message(std::string_view message) {
  PmiLine parsed;
  while (!message.empty()) {
    const std::size_t equals = message.find('=');
    if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
    const std::string name(message.substr(0, equals));
    if (name.find(';') != std::string::npos) return std::nullopt;
    message.remove_prefix(equals + 1);
    std::string value;
    for (;;) {
      const std::size_t end = message.find(';');
      value.append(message.substr(0, end));
      if (end == std::string_view::npos) return std::nullopt;
      message.remove_prefix(end + 1);
      if (!message.starts_with(';')) break;
      value.push_back(';');
      message.remove_prefix(1);
    }
    if (parsed.command.empty()) {
      if (name != "cmd" || value.empty()) return std::nullopt;
      parsed.command = std::move(value);
    } else if (!parsed.words.emplace(name, std::move(value)).second) {
      return std::nullopt;
    }
  }
  if (parsed.command.empty()) return std::nullopt;
  return parsed;
}

std::string pmi_message(std::string_view command,
                        std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string text = formatted("cmd={};", command);
  for (const auto& [name, value] : words) {
    text.append(name).append("=");
    for (const char c : value) text.append(c == ';' ? 2 : 1, c);
    text.append(";");
  }
  return formatted("{:6}", text.size()) + text;
}

}  // namespace unisono::join
