#include "switch/service/report.hpp"

#include <nlohmann/json.hpp>

#include "platform/join/hexadecimal.hpp"
#include "switch/entry.hpp"

namespace unisono::slots {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are no UTF-8 become the sign that replaces them: what is sent is always JSON.
std::string written(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const char* name_of(Pool::State state) {
  switch (state) {
    case Pool::State::kResuming:
      return "resuming";
    case Pool::State::kRunning:
      return "running";
    case Pool::State::kRefused:
      return "refused";
  }
  return "";
}

Json member_of(const PoolReport& report, std::uint32_t position) {
  const PoolNode::Below& below = report.members[position];
  Json member{{"position", position}, {"first", below.child.first}, {"ranks", below.child.ranks}};
  if (!below.name.empty()) member["switch"] = below.name;
  return member;
}

Json members_of(const PoolReport& report, const std::vector<std::uint32_t>& positions) {
  Json members = Json::array();
  for (const std::uint32_t position : positions) members.push_back(member_of(report, position));
  return members;
}

Json json_of(const OperatorReport& op) {
  const OperatorCounters& counters = op.counters;
  return {{"hash", join::hexadecimal_of(op.hash)},
          {"source", op.source},
          {"element_bytes", op.element_bytes},
          {"memory_bytes", op.bytes},
          {"elements", counters.elements},
          {"stops", counters.stops},
          {"last_stop", counters.last_stop.empty() ? Json(nullptr) : Json(counters.last_stop)}};
}

Json json_of(const PoolReport& report) {
  Json members = Json::array();
  for (std::uint32_t i = 0; i < report.members.size(); ++i) members.push_back(member_of(report, i));
  Json waits = Json::array();
  for (const WaitReport& wait : report.waits) {
    waits.push_back({{"turn", wait.turn}, {"missing", members_of(report, wait.missing)}});
  }
  Json operators = Json::array();
  for (const OperatorReport& op : report.operators) operators.push_back(json_of(op));
  Json json{{"communicator", report.communicator},
            {"epoch", report.epoch},
            {"id", join::hexadecimal_of(report.id)},
            {"job", join::hexadecimal_of(report.job)},
            {"job_name", report.job_name},
            {"above", report.above},
            {"members", members},
            {"slots", report.slots},
            {"payload_bytes", report.payload_bytes},
            {"keeps_order", report.keeps_order},
            {"operators", operators},
            {"state", name_of(report.state)},
            {"generation", report.generation},
            {"entry_bytes", sizeof(EntryHead) + report.members.size() * sizeof(PortEntry)},
            {"memory_bytes", report.memory_bytes},
            {"counters",
             {{"contributions", report.counters.contributions},
              {"results", report.counters.results},
              {"duplicates", report.counters.duplicates},
              {"late", report.counters.late},
              {"faults", report.counters.faults},
              {"generations", report.counters.generations},
              {"frames_in", report.traffic.frames_in},
              {"frames_out", report.traffic.frames_out},
              {"bytes_in", report.traffic.bytes_in},
              {"bytes_out", report.traffic.bytes_out}}},
            {"waiting", report.waiting},
            {"waits", waits}};
  if (report.state == Pool::State::kResuming) json["silent"] = members_of(report, report.silent);
  if (report.state == Pool::State::kRefused) json["refusal"] = report.refusal;
  return json;
}

/// Whose a handler is, for people: who knows the owner itself may run and unload what it has.
std::string sign_of(const HandlerOwner& owner) {
  constexpr std::size_t kLength = 16;
  return join::hexadecimal_of(sha256_of(owner)).substr(0, kLength);
}

}  // namespace

std::string text_of(const StatusReport& report) {
  Json uplink = nullptr;
  if (!report.uplink.empty()) {
    uplink = {{"where", report.uplink},
              {"name", report.parent.name},
              {"connected", report.parent.connected},
              {"above", report.parent.above}};
    if (!report.parent.connected) uplink["fault"] = report.parent.fault;
  }
  return written({{"name", report.name},
                  {"listen", report.listen},
                  {"version", UNISONO_VERSION},
                  {"control_version", kControlVersion},
                  {"uptime_s", report.uptime_s},
                  {"slots", {{"total", report.slots_total}, {"used", report.slots_used}}},
                  {"threads", report.threads},
                  {"up_to_bytes", report.up_to_bytes},
                  {"pools", report.pools},
                  {"jobs", report.jobs},
                  {"callers", report.callers},
                  {"uplink", uplink},
                  {"draining", report.draining},
                  {"counters",
                   {{"frames_in", report.frames.frames_in},
                    {"frames_out", report.frames.frames_out},
                    {"garbage", report.frames.garbage},
                    {"strangers", report.frames.strangers},
                    {"forged", report.frames.forged},
                    {"broken", report.frames.broken},
                    {"over_share", report.frames.over_share},
                    {"lost", report.frames.lost},
                    {"accepted", report.calls.accepted},
                    {"wrong_secrets", report.calls.wrong_secrets},
                    {"other_versions", report.calls.other_versions},
                    {"foreign", report.calls.foreign},
                    {"slow", report.calls.slow},
                    {"crowded", report.calls.crowded}}},
                  {"memory_bytes", report.memory_bytes}});
}

std::string text_of(const std::vector<JobReport>& jobs) {
  Json list = Json::array();
  for (const JobReport& job : jobs) {
    list.push_back({{"job", join::hexadecimal_of(job.job)},
                    {"name", job.name},
                    {"communicators", job.communicators},
                    {"slots", job.slots},
                    {"frames", job.traffic.frames_in + job.traffic.frames_out},
                    {"bytes", job.traffic.bytes_in + job.traffic.bytes_out}});
  }
  return written({{"jobs", list}});
}

std::string text_of(const std::vector<PoolReport>& pools) {
  Json list = Json::array();
  for (const PoolReport& pool : pools) list.push_back(json_of(pool));
  return written({{"pools", list}});
}

std::string text_of(const HandlersReport& handlers, const std::vector<OperatorReport>& operators) {
  Json folding = Json::array();
  for (const OperatorReport& op : operators) {
    Json one = json_of(op);
    one["communicator"] = op.communicator;
    one["job_name"] = op.job_name;
    folding.push_back(std::move(one));
  }
  Json list = Json::array();
  for (const HandlerReport& one : handlers.handlers) {
    Json most = Json::object();
    for (const handler::Function function : handler::kAllFunction) {
      const std::uint64_t executed = one.most_executed[static_cast<std::size_t>(function)];
      if (executed != 0) most[handler::name_of(function)] = executed;
    }
    Json stops = Json::object();
    for (const auto& [reason, times] : one.stops) stops[reason] = times;
    list.push_back({{"name", one.which.name},
                    {"job", one.which.owner == HandlerOwner{} ? Json(nullptr) : Json(sign_of(one.which.owner))},
                    {"hash", join::hexadecimal_of(one.hash)},
                    {"source", one.source},
                    {"instructions", one.words},
                    {"memory_bytes", one.memory_bytes},
                    {"element_bytes", one.element_bytes == 0 ? Json(nullptr) : Json(one.element_bytes)},
                    {"most_executed", most},
                    {"messages", one.messages},
                    {"packets", one.packets},
                    {"runs", one.runs},
                    {"executed", one.instructions},
                    {"outputs", one.outputs},
                    {"stops", stops},
                    {"last_stop", one.last_stop.empty() ? Json(nullptr) : Json(one.last_stop)}});
  }
  return written({{"handlers", list},
                  {"operators", folding},
                  {"most", handlers.limits.most},
                  {"budget", handlers.limits.budget},
                  {"memory_bytes", {{"total", handlers.limits.memory_bytes}, {"used", handlers.memory_bytes}}}});
}

std::string text_of_error(std::string_view sentence) { return written({{"error", sentence}}); }

std::optional<std::vector<std::string>> chain_in_status(std::string_view status) {
  const Json json = Json::parse(status, nullptr, false);
  if (!json.is_object() || !json.contains("uplink")) return std::nullopt;
  std::vector<std::string> chain;
  const Json& uplink = json["uplink"];
  if (!uplink.is_object() || !uplink.contains("above") || !uplink["above"].is_array()) return chain;
  for (const Json& name : uplink["above"]) {
    if (!name.is_string() || chain.size() >= 64) return std::nullopt;
    chain.push_back(name.get<std::string>());
  }
  return chain;
}

}  // namespace unisono::slots
