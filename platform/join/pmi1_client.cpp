#include <algorithm>
#include <utility>

#include "core/quoted.hpp"
#include "core/text.hpp"
#include "platform/join/pmi.hpp"

namespace unisono::join {

PmiLine Pmi1Client::hear(const std::string& command, Deadline deadline, const char* after) {
  const auto line = socket_.line(deadline);
  if (!line) socket_.fail(formatted("has not answered \"{}\" by the deadline", after));
  auto parsed = parse_pmi_line(*line);
  if (!parsed || parsed->command != command) {
    socket_.fail(formatted("answered \"{}\" by {}, where \"cmd={}\" was expected", after, in_quotes(*line), command));
  }
  return *std::move(parsed);
}

PmiLine Pmi1Client::ask(const std::string& line, const std::string& command, Deadline deadline) {
  socket_.say(line + "\n", deadline);
  // The question without its arguments: a value may be the secret.
  const std::string question = line.substr(0, line.find(' '));
  return hear(command, deadline, question.c_str());
}

PmiPlace Pmi1Client::introduce(const std::string& id, Deadline deadline) {
  const PmiLine greeting = ask("cmd=initack pmiid=" + id, "initack", deadline);
  if (const std::string rc = greeting.word("rc"); !rc.empty() && rc != "0")
    socket_.fail(formatted("refuses process {}", id));
  PmiPlace place;
  // Size, rank and whether to debug, each in a line of its own.
  constexpr int kLines = 3;
  bool has_rank = false;
  for (int i = 0; i < kLines; ++i) {
    const PmiLine line = hear("set", deadline, "cmd=initack");
    if (line.words.contains("size")) place.size = socket_.number(line, "size", 1, kMaxJobSize);
    if (line.words.contains("rank")) {
      place.rank = socket_.number(line, "rank", 0, kMaxJobSize - 1);
      has_rank = true;
    }
  }
  if (!has_rank || place.rank >= place.size) socket_.fail("has not told rank and size of this process");
  return place;
}

bool Pmi1Client::begin(Deadline deadline) {
  const PmiLine greeting = ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline);
  const std::string rc = greeting.word("rc");
  const std::string version = greeting.word("pmi_version");
  if (rc != "0" || version != "1") {
    refused_ = formatted("speaks version {} of PMI (rc {})", in_quotes(version), in_quotes(rc));
    return false;
  }
  constexpr std::uint32_t kLeastValue = 16;
  constexpr std::uint32_t kMost = 1U << 30U;
  const PmiLine limits = ask("cmd=get_maxes", "maxes", deadline);
  max_value_ = socket_.number(limits, "vallen_max", kLeastValue, kMost);
  const std::uint32_t max_key = socket_.number(limits, "keylen_max", 1, kMost);
  // Their ends may have been counted in.
  constexpr std::size_t kRest = 256;
  max_value_ = std::min(max_value_ - 1, kMaxPmiLine - kRest);
  if (max_key < kMaxKey) socket_.fail(formatted("takes keys of {} characters; needed are {}", max_key, kMaxKey));
  const PmiLine store = ask("cmd=get_my_kvsname", "my_kvsname", deadline);
  store_ = store.word("kvsname");
  if (store_.empty()) socket_.fail("has not told the name of its store");
  return true;
}

void Pmi1Client::init(Deadline deadline) {
  if (!begin(deadline)) socket_.fail(refused_ + "; this library speaks 1.1 there");
}

void Pmi1Client::put(const std::string& key, const std::string& value, Deadline deadline) {
  const PmiLine answer =
      ask(formatted("cmd=put kvsname={} key={} value={}", store_, key, value), "put_result", deadline);
  if (answer.word("rc") != "0")
    socket_.fail(formatted("does not take the key {}: {}", key, in_quotes(answer.word("msg"))));
}

std::optional<std::string> Pmi1Client::get(const std::string& key, Deadline deadline) {
  const PmiLine answer = ask(formatted("cmd=get kvsname={} key={}", store_, key), "get_result", deadline);
  if (answer.word("rc") != "0") return std::nullopt;
  return answer.word("value");
}

bool Pmi1Client::barrier(Deadline deadline) {
  constexpr const char* kQuestion = "cmd=barrier_in";
  socket_.say(std::string(kQuestion) + "\n", deadline);
  const auto line = socket_.line(deadline);
  if (!line) return false;
  const auto answer = parse_pmi_line(*line);
  if (!answer || answer->command != "barrier_out") {
    socket_.fail(
        formatted("answered \"{}\" by {}, where \"cmd=barrier_out\" was expected", kQuestion, in_quotes(*line)));
  }
  if (const std::string rc = answer->word("rc"); !rc.empty() && rc != "0") {
    socket_.fail(formatted("could not have all ranks wait for each other: {}", in_quotes(*line)));
  }
  return true;
}

void Pmi1Client::finalize(Deadline deadline) { ask("cmd=finalize", "finalize_ack", deadline); }

}  // namespace unisono::join
