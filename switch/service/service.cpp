#include "switch/service/service.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/call.hpp"
#include "core/cores.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "engine/kernels.hpp"
#include "platform/join/hexadecimal.hpp"
#include "switch/control.hpp"
#include "switch/handler_control.hpp"
#include "switch/service/bell.hpp"
#include "switch/service/callers.hpp"
#include "switch/service/handlers.hpp"
#include "switch/service/listening.hpp"
#include "switch/service/parent.hpp"
#include "switch/service/pool_table.hpp"
#include "switch/service/report.hpp"
#include "switch/service/worker.hpp"

namespace unisono::slots {

namespace {

using join::Blob;
using join::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long a switch waits for the one above it when it starts.
constexpr seconds kForUplink{5};
/// How long the last answers may take when it ends.
constexpr milliseconds kForLastAnswers{500};

join::HostPort place_of(const std::string& listen) {
  // No HOST:PORT of a caller has port 0.
  constexpr std::string_view kAny = ":0";
  const bool any = listen.ends_with(kAny);
  std::optional<join::HostPort> place = join::parse_host_port(any ? listen.substr(0, listen.size() - 1) + "1" : listen);
  if (!place) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("the switch is to listen at \"{}\"; allowed is HOST:PORT, as in 10.0.0.9:4700", listen));
  }
  if (any) place->port = 0;
  return *place;
}

/// All operators on all datatypes that a pool folds.
std::uint64_t capability_of_pools() {
  Capability capability;
  capability.version = 1;
  for (const Datatype dtype : kAllDatatype) {
    for (const Func func : kAllFunc) {
      if (func == Func::kNone || is_user(func) || cclo::combine_kernel(func, dtype) == nullptr) continue;
      capability.datatypes |= 1U << static_cast<unsigned>(dtype);
      capability.funcs = static_cast<std::uint16_t>(capability.funcs | 1U << static_cast<unsigned>(func));
    }
  }
  return encode(capability)[0];
}

std::string text_in(const Blob& body) { return {reinterpret_cast<const char*>(body.data()), body.size()}; }

Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

constexpr std::string_view kNoGroup = "off";

ServiceSettings checked(ServiceSettings settings) {
  const auto refuse = [](const std::string& text) { throw Error(ErrorCode::kInvalidArgument, "the switch: " + text); };
  constexpr std::size_t kLeastSecret = 16;
  if (settings.secret.size() < kLeastSecret || settings.secret.size() > join::kMaxSecret) {
    refuse(formatted("its secret has {} characters; allowed are {} to {}", settings.secret.size(), kLeastSecret,
                     join::kMaxSecret));
  }
  if (!settings.name.empty() && !is_switch_name(settings.name)) {
    refuse(formatted("its name may have up to {} printable characters, without blanks, quotes and backslashes",
                     kMostSwitchName));
  }
  if (settings.slots < 8) refuse(formatted("{} slots; it needs at least 8", settings.slots));
  if (settings.threads < 1 || settings.threads > 256)
    refuse(formatted("{} threads; allowed are 1 to 256", settings.threads));
  if (settings.handlers.budget < 1 || settings.handlers.budget > kMostBudget) {
    refuse(
        formatted("handlers may execute {} instructions; allowed are 1 to {}", settings.handlers.budget, kMostBudget));
  }
  if (!settings.uplink.empty() && !join::parse_host_port(settings.uplink)) {
    refuse(formatted("its uplink is \"{}\"; allowed is HOST:PORT, as in 10.0.0.1:4700", settings.uplink));
  }
  if (const auto group = tcp::parse_address(settings.multicast);
      !settings.multicast.empty() && settings.multicast != kNoGroup &&
      !(group && !group->six && group->bytes[0] >> 4U == 0xe && group->port != 0)) {
    refuse(
        formatted("its multicast is \"{}\"; allowed are {} and ADDRESS:PORT of a group of IPv4, as in 239.1.2.3:4701",
                  settings.multicast, kNoGroup));
  }
  if (!settings.say) settings.say = [](const std::string&) {};
  return settings;
}

}  // namespace

class Service::Parts final : public CallersHandler {
 public:
  explicit Parts(ServiceSettings settings) : settings_(checked(std::move(settings))) {
    join::HostPort place = place_of(settings_.listen);
    at_ = place_to_listen(place);
    if (!settings_.uplink.empty()) check_uplink(at_, *join::parse_host_port(settings_.uplink));
    join::Descriptor listener = take_ports(place);
    address = place.text();
    port = place.port;
    name = settings_.name.empty() ? address : settings_.name;
    if (!is_switch_name(name)) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("the switch at {} needs a name: its address is longer than {} characters", address,
                            kMostSwitchName));
    }
    for (std::uint32_t i = 1; i < settings_.threads; ++i) {
      workers_.push_back(worker_near(static_cast<std::uint16_t>(port + i)));
    }
    if (!settings_.uplink.empty()) {
      parent_ = std::make_unique<Parent>(
          settings_.uplink, settings_.secret, name, [this] { bell_.ring(); }, settings_.say);
      parent_->connect_first(Clock::now() + kForUplink);
    }
    table_ = std::make_unique<PoolTable>(name, settings_.secret, settings_.slots, workers_, parent_.get(),
                                         result_groups(place.host));
    handlers_ = std::make_unique<Handlers>(settings_.handlers, [this] { bell_.ring(); });
    callers_ = std::make_unique<Callers>(std::move(listener), settings_.secret, name, *this);
  }

  void run() {
    for (const auto& worker : workers_) worker->start();
    handlers_->start();
    if (parent_) parent_->start();
    try {
      serve();
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  void stop() noexcept {
    stopped_.store(true);
    bell_.ring();
  }

  std::string address;
  std::string name;
  std::uint16_t port = 0;

 private:
  /// At a port that is the same after a restart, if it is free.
  std::unique_ptr<Worker> worker_near(std::uint16_t wanted) const {
    tcp::Address at = at_;
    try {
      at.port = wanted;
      return std::make_unique<Worker>(at, settings_.impairment);
    } catch (const Error&) {
      at.port = 0;
      return std::make_unique<Worker>(at, settings_.impairment);
    }
  }

  /// A switch sends to a group by the address that it listens at. Members who reach it at the loopback are on this
  /// host, and a group of the loopback is, too.
  ResultGroups result_groups(const std::string& host) const {
    if (settings_.multicast == kNoGroup) return {};
    const auto own = tcp::parse_address(host);
    bool leaves_by_it = own && !own->six && !own->unspecified();
    const bool at_loopback = leaves_by_it && own->loopback();
    if (settings_.multicast.empty() && !at_loopback) return {};
    for (const auto& worker : workers_) {
      leaves_by_it = leaves_by_it && worker->datagrams().sends_to_groups_by(*own);
    }
    if (!settings_.multicast.empty()) return {.of_all = settings_.multicast};
    std::size_t cores = 0;
    for (const std::uint64_t word : affinity_of(0)) cores += static_cast<std::size_t>(std::popcount(word));
    cores = std::min(cores, static_cast<std::size_t>(std::min(cgroup_quota().cores, 65536.0)));
    return {.at_loopback = leaves_by_it ? port : std::uint16_t{0}, .cores = cores};
  }

  /// The same number for TCP and UDP; in `place`, then.
  join::Descriptor take_ports(join::HostPort& place) {
    constexpr int kTries = 32;
    const bool any = place.port == 0;
    for (int i = 1;; ++i) {
      if (any) at_.port = 0;
      join::Descriptor listener = listen_for_callers(at_, place.text());
      at_.port = place.port = join::port_of(listener);
      try {
        workers_.push_back(std::make_unique<Worker>(at_, settings_.impairment));
        return listener;
      } catch (const Error& error) {
        if (!any || i == kTries) {
          throw Error(ErrorCode::kBootstrap,
                      formatted("the switch cannot listen at {}: {}", place.text(), error.what()));
        }
      }
    }
  }

  void serve() {
    std::vector<pollfd> watched;
    join::Deadline until = join::Deadline::max();
    while (Clock::now() < until && !(ending_ && callers_->all_sent())) {
      watched.assign(1, {bell_.descriptor(), POLLIN, 0});
      callers_->watch(watched);
      const join::Deadline next = std::min({until, callers_->deadline(), table_->deadline()});
      poll(watched.data(), watched.size(), next == join::Deadline::max() ? -1 : join::milliseconds_until(next));
      if (watched[0].revents != 0) bell_.quiet();
      if (stopped_.load()) return;
      if (parent_) {
        for (const ParentAnswer& said : parent_->take_answers()) answer(table_->parent_said(said));
      }
      for (const HandlerAnswer& one : handlers_->take_answers()) {
        callers_->answer(one.caller, {ControlKind::kRun, one.number, packed(one.answer)});
      }
      callers_->serve(std::span(watched).subspan(1));
      table_->free_unwanted(Clock::now());
      if (ending_) until = std::min(until, Clock::now() + kForLastAnswers);
    }
  }

  void end() {
    handlers_->stop();
    if (parent_) parent_->stop();
    for (const auto& worker : workers_) worker->stop();
  }

  Welcome welcome() override {
    Welcome welcome;
    welcome.name = name;
    welcome.capability = capability_of_pools();
    if (parent_) welcome.above = parent_->state().above;
    welcome.up_to_bytes = settings_.up_to_bytes;
    welcome.room_bytes = workers_[0]->datagrams().room_bytes();
    welcome.slots = settings_.slots;
    welcome.draining = table_->draining();
    return welcome;
  }

  void asked(CallerId caller, ControlFrame frame) override {
    const auto reply = [&](Blob body) { callers_->answer(caller, {frame.kind, frame.number, std::move(body)}); };
    switch (frame.kind) {
      case ControlKind::kMake: {
        const std::optional<PoolRequest> request = pool_request_in(frame.body);
        if (!request) return callers_->refuse(caller, formatted("the switch {}: a broken request for a pool", name));
        return answer(table_->make(caller, frame.number, *request));
      }
      case ControlKind::kFree: {
        PoolId id{};
        if (frame.body.size() != id.size()) {
          return callers_->refuse(caller, formatted("the switch {}: a broken request to free a pool", name));
        }
        std::copy(frame.body.begin(), frame.body.end(), id.begin());
        table_->free(caller, id);
        return reply({});
      }
      case ControlKind::kAsk:
        return reply(blob_of(tell(text_in(frame.body))));
      case ControlKind::kDrain: {
        const bool drains = frame.body.empty() || frame.body.front() != std::byte{0};
        if (drains != table_->draining()) {
          settings_.say(drains ? "the switch is being drained: it makes no more pools"
                               : "the switch makes pools again");
        }
        table_->drain(drains);
        return reply({});
      }
      case ControlKind::kStop:
        ending_ = true;
        return reply({});
      case ControlKind::kLoad: {
        const std::optional<LoadRequest> request = load_request_in(frame.body);
        if (!request) return callers_->refuse(caller, formatted("the switch {}: a broken request to load", name));
        return reply(packed(load(caller, *request)));
      }
      case ControlKind::kUnload: {
        const std::optional<UnloadRequest> request = unload_request_in(frame.body);
        if (!request) return callers_->refuse(caller, formatted("the switch {}: a broken request to unload", name));
        return reply(blob_of(handlers_->unload(request->which)));
      }
      case ControlKind::kRun: {
        std::optional<RunRequest> request = run_request_in(frame.body);
        if (!request) return callers_->refuse(caller, formatted("the switch {}: broken packets of a handler", name));
        return handlers_->run(caller, frame.number, *std::move(request));
      }
      case ControlKind::kOperator: {
        std::optional<OperatorRequest> request = operator_request_in(frame.body);
        if (!request) return callers_->refuse(caller, formatted("the switch {}: a broken operator", name));
        if (settings_.handlers.most == 0) {
          return reply(
              blob_of(formatted("the switch {} takes no operators of users; start it with --handlers N", name)));
        }
        if (request->binary.empty() && !request->takes_away()) {
          // Callers send the binary then.
          std::optional<Blob> binary = handlers_->operator_binary(request->hash);
          if (!binary) return reply(blob_of(formatted("the switch {} has no operator with this hash", name)));
          request->binary = *std::move(binary);
        }
        return answer(table_->set_operator(caller, frame.number, *request, settings_.handlers.memory_bytes));
      }
    }
  }

  LoadAnswer load(CallerId caller, const LoadRequest& request) {
    LoadAnswer answer = handlers_->load(caller, request);
    if (answer.refusal.empty() && answer.fresh && request.stays) {
      settings_.say(formatted("the handler {} is loaded, {}", request.which.name, join::hexadecimal_of(request.hash)));
    }
    return answer;
  }

  void gone(CallerId caller) override {
    table_->gone(caller);
    handlers_->gone(caller);
  }

  void answer(const std::vector<TableAnswer>& answers) {
    for (const TableAnswer& one : answers) {
      callers_->answer(one.caller, {one.kind, one.number, one.body});
    }
  }

  /// Operators of communicators, and where one handler is asked for, those that are the same.
  std::string stat(const std::string& handler) {
    const HandlersReport report = handlers_->report(handler);
    std::vector<OperatorReport> operators = table_->report_operators();
    if (!handler.empty()) {
      std::erase_if(operators, [&](const OperatorReport& op) {
        return std::none_of(report.handlers.begin(), report.handlers.end(),
                            [&](const HandlerReport& one) { return one.hash == op.hash; });
      });
    }
    return text_of(report, operators);
  }

  std::string tell(const std::string& question) {
    if (question == "status") return text_of(status());
    if (question == "jobs") return text_of(table_->report_jobs());
    constexpr std::string_view kStat = "stat ";
    if (question == "stat") return stat("");
    if (question.starts_with(kStat)) return stat(question.substr(kStat.size()));
    constexpr std::string_view kShow = "show ";
    std::uint32_t communicator = 0;
    if (question.starts_with(kShow)) {
      const char* const end = question.data() + question.size();
      const auto [rest, fault] = std::from_chars(question.data() + kShow.size(), end, communicator);
      if (fault == std::errc() && rest == end) return text_of(table_->report_pools(communicator));
    }
    return text_of_error(
        "a switch is asked for: status, jobs, show N (N is the number of a communicator), stat, stat NAME (of a "
        "handler)");
  }

  StatusReport status() {
    StatusReport report;
    report.name = name;
    report.listen = address;
    report.uptime_s = std::chrono::duration<double>(Clock::now() - begin_).count();
    report.slots_total = table_->places().total();
    report.slots_used = table_->places().used();
    report.threads = workers_.size();
    report.up_to_bytes = settings_.up_to_bytes;
    report.pools = table_->size();
    report.jobs = table_->jobs();
    report.callers = callers_->proven();
    report.uplink = settings_.uplink;
    if (parent_) report.parent = parent_->state();
    report.draining = table_->draining();
    report.memory_bytes = table_->memory_bytes();
    for (const auto& worker : workers_) {
      const WorkerCounters counters = worker->counters();
      report.frames.frames_in += counters.frames_in;
      report.frames.frames_out += counters.frames_out;
      report.frames.garbage += counters.garbage;
      report.frames.strangers += counters.strangers;
      report.frames.forged += counters.forged;
      report.frames.broken += counters.broken;
      report.frames.over_share += counters.over_share;
      report.frames.lost += counters.lost;
    }
    report.calls = callers_->counters();
    return report;
  }

  ServiceSettings settings_;
  tcp::Address at_;  ///< where it listens
  const join::Deadline begin_ = Clock::now();
  Bell bell_;
  std::atomic<bool> stopped_{false};
  bool ending_ = false;  ///< somebody has asked for it
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Parent> parent_;
  std::unique_ptr<PoolTable> table_;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<Callers> callers_;
};

Service::Service(ServiceSettings settings) : parts_(std::make_unique<Parts>(std::move(settings))) {}
Service::~Service() = default;
const std::string& Service::address() const { return parts_->address; }
const std::string& Service::name() const { return parts_->name; }
std::uint16_t Service::port() const { return parts_->port; }
void Service::run() { parts_->run(); }
void Service::stop() noexcept { parts_->stop(); }

}  // namespace unisono::slots
