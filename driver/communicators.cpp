// Communicators of the C interface: how they are made.
#include "core/lasting.hpp"
#include "core/log.hpp"
#include "core/quoted.hpp"
#include "core/reserved_tags.hpp"
#include "driver/callbacks.hpp"
#include "driver/group.hpp"
#include "driver/interface.hpp"
#include "network/flight_record.hpp"

namespace unisono::driver {

namespace {

/// A name that can be told in a line of text, and has room in a flight record.
std::string checked_name(std::string_view name) {
  for (const char character : name) {
    if (character >= ' ' && character <= '~' && character != '"') continue;
    throw Error(ErrorCode::kInvalidArgument, "the name of a communicator has a character of code " +
                                                 std::to_string(static_cast<unsigned char>(character)) +
                                                 "; allowed are the printable ones of ASCII, but for quotation marks");
  }
  if (name.size() > kRecordedName) {
    throw Error(ErrorCode::kInvalidArgument, "the name " + in_quotes(name) + " of a communicator has " +
                                                 std::to_string(name.size()) + " characters; allowed are up to " +
                                                 std::to_string(kRecordedName));
  }
  return std::string(name);
}

CommunicatorHints hints_of(const unisono_communicator_settings* given) {
  CommunicatorHints hints;
  if (given == nullptr) return hints;
  const auto own = import_struct(given, "unisono_communicator_settings");
  hints.group_size = own.group_size;
  hints.group = own.group;
  hints.eager_limit = own.eager_limit;
  hints.timeout = duration_of(own.timeout_seconds, "timeout_seconds");
  hints.lanes = own.without_lanes == 0;
  hints.streams = own.streams != 0;
  if (own.name != nullptr) hints.name = checked_name(own.name);
  if (own.all_gather != nullptr) {
    hints.all_gather = [function = own.all_gather, user = own.user](const void* said, std::size_t bytes, void* all,
                                                                    double seconds) {
      return function(user, said, bytes, all, seconds) == 0;
    };
  }
  return hints;
}

/// Hints for what all of a parent make together.
CommunicatorHints hints_for_all(const unisono_communicator_settings* given, const char* function) {
  CommunicatorHints hints = hints_of(given);
  if (hints.all_gather) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(function) + ": all_gather was given; only unisono_create_group takes it");
  }
  return hints;
}

std::span<const std::uint32_t> list_of(const std::uint32_t* ranks, std::size_t count) {
  if (ranks == nullptr && count != 0) throw Error(ErrorCode::kInvalidArgument, "the list of ranks is null");
  return {ranks, count};
}

/// Runs `make` with the parent, which may give none, and publishes what it made.
template <class Make>
unisono_result making(const char* function, unisono_communicator* parent, unisono_communicator** communicator,
                      Make&& make) {
  return guarded([&] {
    unisono_communicator*& result = output(communicator, "communicator");
    result = nullptr;
    Callbacks::refuse(function);
    const auto of = communicator_of(parent);
    Group::refuse(*of, function);
    const std::shared_ptr<Communicator> made = make(of);
    if (made) result = publish(made);
  });
}

}  // namespace

unisono_communicator* publish(const std::shared_ptr<Communicator>& made) {
  const std::uint64_t handle = Communicators::instance().add(made);
  if (!made->context->keep_handle(handle)) leave_remains(handle);
  return handle_of<unisono_communicator>(handle);
}

void leave_remains(std::uint64_t handle) {
  std::shared_ptr<Communicator> closed;
  try {
    closed = Communicators::instance().get(handle, "communicator", ErrorCode::kFreedCommunicator);
  } catch (const Error&) {
    return;  // another thread has freed it meanwhile
  }
  Group::abandon(*closed, Error(ErrorCode::kWrongProcess, "the context was closed before its group ended"));
  auto remains = std::make_shared<Communicator>();
  remains->context = closed->context;
  remains->number = closed->number;
  remains->rank = closed->rank;
  remains->size = closed->size;
  {
    const std::lock_guard lock(closed->name_mutex);
    remains->name = closed->name;
  }
  Communicators::instance().replace(handle, std::move(remains));
}

void set_name(Communicator& communicator, std::string_view name) {
  const std::string known = checked_name(name);
  communicator.context->endpoint()->engine->name_communicator(communicator.number, known);
  const std::lock_guard lock(communicator.name_mutex);
  communicator.name = known;
}

std::string name_of(const Communicator& communicator) {
  const std::lock_guard lock(communicator.name_mutex);
  return communicator.name;
}

void log_made(const Communicator& communicator, const char* operation) {
  if (!logs(LogLevel::kDebug)) return;
  const std::string name = name_of(communicator);
  log(LogLevel::kDebug, std::string(operation) + ": communicator " + std::to_string(communicator.number) +
                            (name.empty() ? "" : " \"" + name + "\"") + ", of which this is rank " +
                            std::to_string(communicator.rank) + " of " + std::to_string(communicator.size));
}

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_communicator_set_name(unisono_communicator* communicator, const char* name) {
  return guarded([&] { set_name(*communicator_of(communicator), name == nullptr ? "" : name); });
}

unisono_result unisono_communicator_name(const unisono_communicator* communicator, const char** name) {
  return guarded([&] {
    const char*& result = output(name, "name");
    const auto own = communicator_of(communicator);
    auto& kept = lasting<std::string, struct NameOfCommunicator>();
    kept = name_of(*own);
    result = kept.c_str();
  });
}

unisono_result unisono_split(unisono_communicator* parent, int64_t colour, int64_t key, uint32_t group_size,
                             unisono_communicator** communicator) {
  return making("unisono_split", parent, communicator, [&](const auto& of) {
    CommunicatorHints hints;
    hints.group_size = group_size;
    return split(of, colour, key, hints);
  });
}

unisono_result unisono_split_with(unisono_communicator* parent, int64_t colour, int64_t key,
                                  const unisono_communicator_settings* settings, unisono_communicator** communicator) {
  return making("unisono_split_with", parent, communicator,
                [&](const auto& of) { return split(of, colour, key, hints_for_all(settings, "unisono_split_with")); });
}

unisono_result unisono_dup(unisono_communicator* parent, const unisono_communicator_settings* settings,
                           unisono_communicator** communicator) {
  return making("unisono_dup", parent, communicator,
                [&](const auto& of) { return duplicate(of, hints_for_all(settings, "unisono_dup")); });
}

unisono_result unisono_subset(unisono_communicator* parent, const uint32_t* ranks, size_t count,
                              const unisono_communicator_settings* settings, unisono_communicator** communicator) {
  return making("unisono_subset", parent, communicator, [&](const auto& of) {
    return subset(of, list_of(ranks, count), hints_for_all(settings, "unisono_subset"));
  });
}

unisono_result unisono_create_group(unisono_communicator* parent, const uint32_t* ranks, size_t count, int64_t tag,
                                    const unisono_communicator_settings* settings,
                                    unisono_communicator** communicator) {
  return making("unisono_create_group", parent, communicator, [&](const auto& of) {
    const CommunicatorHints hints = hints_of(settings);
    if (!hints.all_gather && (tag < 0 || tag > static_cast<std::int64_t>(kMaxGroupTag))) {
      throw Error(ErrorCode::kInvalidArgument, "create_group: tag " + std::to_string(tag) +
                                                   " was given; allowed are 0 to " + std::to_string(kMaxGroupTag));
    }
    return create_group(of, list_of(ranks, count), static_cast<std::uint32_t>(tag), hints);
  });
}

}  // extern "C"
