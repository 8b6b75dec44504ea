#include <cstdlib>
#include <utility>

#include "core/quoted.hpp"
#include "core/text.hpp"
#include "platform/join/pmi.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {

std::optional<PmiLine> Pmi2Client::try_ask(std::string_view command, Words words, Deadline deadline) {
  socket_.say(pmi_message(command, words), deadline);
  const auto message = socket_.message(deadline);
  if (!message) return std::nullopt;
  auto parsed = parse_pmi_message(*message);
  if (!parsed || parsed->command != std::string(command) + "-response") {
    // The question without its arguments: a value may be the secret.
    socket_.fail(formatted("answered \"cmd={}\" by {}, where \"cmd={}-response\" was expected", command,
                           in_quotes(*message), command));
  }
  return parsed;
}

PmiLine Pmi2Client::ask(std::string_view command, Words words, Deadline deadline) {
  auto answer = try_ask(command, words, deadline);
  if (!answer) socket_.fail(formatted("has not answered \"cmd={}\" by the deadline", command));
  if (answer->word("rc") != "0") {
    socket_.fail(formatted("refuses \"cmd={}\": rc {}, {}", command, in_quotes(answer->word("rc")),
                           in_quotes(answer->word("errmsg"))));
  }
  return *std::move(answer);
}

bool Pmi2Client::begin(Deadline deadline) {
  // Either version begins with a line.
  socket_.say("cmd=init pmi_version=2 pmi_subversion=0\n", deadline);
  const auto line = socket_.line(deadline);
  if (!line) socket_.fail("has not answered \"cmd=init\" by the deadline");
  const auto greeting = parse_pmi_line(*line);
  if (!greeting || greeting->command != "response_to_init") {
    socket_.fail(
        formatted("answered \"cmd=init\" by {}, where \"cmd=response_to_init\" was expected", in_quotes(*line)));
  }
  const std::string rc = greeting->word("rc");
  const std::string version = greeting->word("pmi_version");
  if (rc != "0" || version != "2") {
    refused_ = formatted("speaks version {} of PMI (rc {})", in_quotes(version), in_quotes(rc));
    return false;
  }
  const std::string job = variable("PMI_JOBID").value_or("");
  const std::string id = variable("PMI_ID").value_or(variable("PMI_RANK").value_or(""));
  const PmiLine here = ask("fullinit", {{"pmijobid", job}, {"pmirank", id}, {"threaded", "FALSE"}}, deadline);
  PmiPlace place;
  place.size = socket_.number(here, "size", 1, kMaxJobSize);
  place.rank = socket_.number(here, "rank", 0, place.size - 1);
  place_ = place;
  store_ = ask("job-getid", {}, deadline).word("jobid");
  if (store_.empty()) socket_.fail("has not told the name of its job");
  // Not all know it.
  const PmiLine count = ask("info-getnodeattr", {{"key", "localRanksCount"}, {"wait", "FALSE"}}, deadline);
  if (count.word("found") == "TRUE") local_ranks_ = socket_.number(count, "value", 1, kMaxJobSize);
  return true;
}

void Pmi2Client::init(Deadline deadline) {
  if (!begin(deadline)) socket_.fail(refused_ + "; this library speaks 1.1 and 2.0");
}

void Pmi2Client::put(const std::string& key, const std::string& value, Deadline deadline) {
  ask("kvs-put", {{"key", key}, {"value", value}}, deadline);
}

std::optional<std::string> Pmi2Client::get(const std::string& key, Deadline deadline) {
  const auto answer = try_ask("kvs-get", {{"jobid", store_}, {"srcid", "-1"}, {"key", key}}, deadline);
  if (!answer || answer->word("rc") != "0" || answer->word("found") != "TRUE") return std::nullopt;
  return answer->word("value");
}

bool Pmi2Client::barrier(Deadline deadline) {
  const auto answer = try_ask("kvs-fence", {}, deadline);
  if (!answer) return false;
  if (const std::string rc = answer->word("rc"); rc != "0") {
    socket_.fail(formatted("could not have all ranks wait for each other: rc {}", in_quotes(rc)));
  }
  return true;
}

void Pmi2Client::finalize(Deadline deadline) { ask("finalize", {}, deadline); }

}  // namespace unisono::join
