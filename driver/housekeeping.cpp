// Housekeeping of the C interface: settings of a running context, what a communicator is like, counters, resets.
#include "driver/housekeeping.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/lasting.hpp"
#include "core/log.hpp"
#include "core/quoted.hpp"
#include "cost/in_force.hpp"
#include "driver/callbacks.hpp"
#include "driver/group.hpp"
#include "driver/interface.hpp"
#include "driver/observe.hpp"

namespace unisono::driver {

namespace {

/// The rules by which this process chooses algorithms. A file that had to be left aside is mentioned once.
std::shared_ptr<const std::vector<Rule>> rules_of_process(const RuleChoice& choice) {
  cost::InForce found = cost::rules_in_force(static_cast<cost::Determinism>(choice.determinism), choice.algorithms);
  static std::once_flag warned;
  if (!found.warning.empty()) std::call_once(warned, log, LogLevel::kWarn, found.warning, "unisono");
  if (logs(LogLevel::kInfo)) {
    log(LogLevel::kInfo, "algorithms: " + (found.path.empty() ? "no tuning file" : "the tuning file " + found.path) +
                             (found.pins == 0 ? "" : "; before it, " + found.pinned));
  }
  if (found.rules.empty()) return nullptr;
  return std::make_shared<const std::vector<Rule>>(std::move(found.rules));
}

EngineSettings::Deadlines deadlines_of_environment() {
  const char* const value = std::getenv("UNISONO_DEADLINES");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  const std::string_view text = value == nullptr ? "fail" : value;
  if (text == "fail") return EngineSettings::Deadlines::kFail;
  if (text == "warn") return EngineSettings::Deadlines::kWarn;
  if (text == "off") return EngineSettings::Deadlines::kOff;
  throw Error(ErrorCode::kInvalidArgument,
              "environment variable UNISONO_DEADLINES is " + in_quotes(text) + ", but should be fail, warn or off");
}
static_assert(static_cast<int>(EngineSettings::Deadlines::kFail) == UNISONO_DEADLINE_FAILS - 1 &&
              static_cast<int>(EngineSettings::Deadlines::kOff) == UNISONO_DEADLINE_OFF - 1);

}  // namespace

unisono_settings import_settings(const unisono_settings* given) {
  unisono_settings none{};
  none.struct_size = sizeof none;
  return given == nullptr ? none : import_struct(given, "unisono_settings");
}

void apply(const unisono_settings& given, EngineSettings& settings, RuleChoice& choice) {
  EngineSettings made = settings;
  RuleChoice chosen = choice;
  if (given.determinism < 0 || given.determinism > UNISONO_PLACEMENT_STABLE) {
    throw Error(ErrorCode::kInvalidArgument, "determinism is " + std::to_string(given.determinism) +
                                                 "; allowed are 0 (what UNISONO_DETERMINISM says) to " +
                                                 std::to_string(UNISONO_PLACEMENT_STABLE));
  }
  static_assert(UNISONO_FAST == static_cast<int>(cost::Determinism::kFast) &&
                UNISONO_PLACEMENT_STABLE == static_cast<int>(cost::Determinism::kPlacementStable));
  if (given.determinism != 0) chosen.determinism = given.determinism;
  if (given.algorithms != nullptr) chosen.algorithms = given.algorithms;
  if (!chosen.made || given.determinism != 0 || given.algorithms != nullptr) {
    made.rules = rules_of_process(chosen);
    chosen.made = true;
  }
  if (given.eager_limit != 0) made.eager_limit = given.eager_limit;
  if (given.segment_bytes != 0) made.segment_bytes = given.segment_bytes;
  if (given.rx_buffer_count != 0) made.rx_buffer_count = given.rx_buffer_count;
  if (given.deadlines < 0 || given.deadlines > UNISONO_DEADLINE_OFF) {
    throw Error(ErrorCode::kInvalidArgument, "deadlines is " + std::to_string(given.deadlines) +
                                                 "; allowed are 0 (what UNISONO_DEADLINES says), " +
                                                 "UNISONO_DEADLINE_FAILS, _WARNS and _OFF");
  }
  if (given.deadlines != 0) {
    made.deadlines = static_cast<EngineSettings::Deadlines>(given.deadlines - 1);
  } else if (!choice.made) {
    made.deadlines = deadlines_of_environment();
  }
  const auto timeout = duration_of(given.timeout_seconds, "timeout_seconds");
  if (timeout.count() != 0) made.timeout = timeout;
  if (given.without_lanes != 0) made.lanes = given.without_lanes < 0;
  if (made.segment_bytes < kLeastSegmentBytes) {
    throw Error(ErrorCode::kInvalidArgument, "segment_bytes is " + std::to_string(made.segment_bytes) +
                                                 "; allowed are " + std::to_string(kLeastSegmentBytes) + " and more");
  }
  settings = std::move(made);
  choice = std::move(chosen);
}

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_configure(unisono_context* context, const unisono_settings* settings) {
  return guarded([&] {
    const unisono_settings given = import_settings(&output(settings, "settings"));
    context_of(context)->configure(given);
  });
}

unisono_result unisono_settings_now(const unisono_context* context, unisono_settings* settings) {
  return guarded([&] {
    const auto own = context_of(context);
    const EngineSettings now = own->endpoint()->engine->settings();
    const RuleChoice choice = own->rule_choice();
    auto& algorithms = lasting<std::string, struct Algorithms>();
    const cost::InForce in_force =
        cost::rules_in_force(static_cast<cost::Determinism>(choice.determinism), choice.algorithms);
    algorithms = in_force.pinned;
    unisono_settings result{};
    result.eager_limit = now.eager_limit;
    result.segment_bytes = now.segment_bytes;
    result.rx_buffer_count = now.rx_buffer_count;
    result.timeout_seconds = static_cast<double>(now.timeout.count()) * 1e-6;
    result.without_lanes = now.lanes ? -1 : 1;
    result.offload = own->offloads_all() ? 1 : -1;
    result.determinism = static_cast<int>(in_force.determinism);
    result.deadlines = static_cast<int>(now.deadlines) + 1;
    result.algorithms = algorithms.c_str();
    export_struct(result, settings, "unisono_settings");
  });
}

unisono_result unisono_communicator_describe(const unisono_communicator* communicator,
                                             unisono_communicator_state* state) {
  return guarded([&] {
    const auto own = communicator_of(communicator);
    const CommunicatorState now = own->context->endpoint()->engine->state(own->number);
    unisono_communicator_state result{};
    result.number = now.number;
    result.epoch = now.epoch;
    result.rank = own->rank;
    result.size = own->size;
    result.group_size = own->grouping.size;
    result.groups = groups_of(own->grouping, own->size);
    result.group = group_of(own->grouping, own->rank);
    result.eager_limit = now.agreed.eager_limit;
    result.segment_bytes = now.agreed.segment_bytes;
    result.rx_buffer_count = now.agreed.rx_buffer_count;
    result.timeout_seconds = static_cast<double>(now.timeout.count()) * 1e-6;
    result.capability = now.agreed.capability;
    result.calls = now.calls;
    result.lanes = now.lanes ? 1 : 0;
    result.revoked = now.revoked ? 1 : 0;
    auto& carrier = lasting<std::string, struct Carrier>();
    carrier = own->context->carrier_of(own->number);
    if (carrier.empty()) carrier = now.carrier;
    result.carrier = carrier.c_str();
    export_struct(result, state, "unisono_communicator_state");
  });
}

unisono_result unisono_counter(const unisono_communicator* communicator, size_t position, const char** name,
                               uint64_t* value) {
  return guarded([&] {
    const char*& text = output(name, "name");
    uint64_t& number = output(value, "value");
    const auto endpoint = communicator_of(communicator)->context->endpoint();
    text = nullptr;
    number = 0;
    if (position >= endpoint->engine->counters()) return;
    number = endpoint->engine->counter(position);
    text = endpoint->engine->counter_name(position);
  });
}

unisono_result unisono_reset(unisono_context* context) {
  return guarded([&] {
    Callbacks::refuse("unisono_reset");
    const auto own = context_of(context);
    const auto before = Communicators::instance().get(own->world_handle, "communicator", ErrorCode::kFreedCommunicator);
    Group::abandon(*before, Error(ErrorCode::kRevoked, "the context was reset before its group ended"));
    const std::shared_ptr<Communicator> made = reset(before);
    set_name(*made, name_of(*before));
    Communicators::instance().replace(own->world_handle, made);
  });
}

unisono_result unisono_process_configure(uint32_t pid, const unisono_settings* settings) {
  return guarded([&] { order_settings(pid, import_settings(&output(settings, "settings"))); });
}

unisono_result unisono_process_reset(uint32_t pid) {
  return guarded([&] { order_reset(pid); });
}

}  // extern "C"
