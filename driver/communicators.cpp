// Communicators of the C interface: how they are made.
#include "driver/callbacks.hpp"
#include "driver/interface.hpp"

namespace unisono::driver {

namespace {

CommunicatorWishes wishes_of(const unisono_communicator_settings* given) {
  CommunicatorWishes wishes;
  if (given == nullptr) return wishes;
  const auto own = import_struct(given, "unisono_communicator_settings");
  wishes.group_size = own.group_size;
  wishes.eager_limit = own.eager_limit;
  wishes.timeout = duration_of(own.timeout_seconds, "timeout_seconds");
  wishes.lanes = own.without_lanes == 0;
  return wishes;
}

std::span<const std::uint32_t> list_of(const std::uint32_t* ranks, std::size_t count) {
  if (ranks == nullptr && count != 0) throw Error(ErrorCode::kInvalidArgument, "the list of ranks is null");
  return {ranks, count};
}

/// Runs `make`, which may give none, and publishes what it made.
template <class Make>
unisono_result making(const char* function, unisono_communicator** communicator, Make&& make) {
  return guarded([&] {
    unisono_communicator*& result = output(communicator, "communicator");
    result = nullptr;
    Callbacks::refuse(function);
    const std::shared_ptr<Communicator> made = make();
    if (made) result = handle_of<unisono_communicator>(Communicators::instance().add(made));
  });
}

}  // namespace

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_split(unisono_communicator* parent, int64_t colour, int64_t key, uint32_t group_size,
                             unisono_communicator** communicator) {
  return making("unisono_split", communicator, [&] {
    CommunicatorWishes wishes;
    wishes.group_size = group_size;
    return split(communicator_of(parent), colour, key, wishes);
  });
}

unisono_result unisono_split_with(unisono_communicator* parent, int64_t colour, int64_t key,
                                  const unisono_communicator_settings* settings, unisono_communicator** communicator) {
  return making("unisono_split_with", communicator,
                [&] { return split(communicator_of(parent), colour, key, wishes_of(settings)); });
}

unisono_result unisono_dup(unisono_communicator* parent, const unisono_communicator_settings* settings,
                           unisono_communicator** communicator) {
  return making("unisono_dup", communicator, [&] { return duplicate(communicator_of(parent), wishes_of(settings)); });
}

unisono_result unisono_subset(unisono_communicator* parent, const uint32_t* ranks, size_t count,
                              const unisono_communicator_settings* settings, unisono_communicator** communicator) {
  return making("unisono_subset", communicator,
                [&] { return subset(communicator_of(parent), list_of(ranks, count), wishes_of(settings)); });
}

unisono_result unisono_create_group(unisono_communicator* parent, const uint32_t* ranks, size_t count, int64_t tag,
                                    const unisono_communicator_settings* settings,
                                    unisono_communicator** communicator) {
  return making("unisono_create_group", communicator, [&] {
    if (tag < 0 || tag > static_cast<std::int64_t>(kMaxUserTag)) {
      throw Error(ErrorCode::kInvalidArgument, "create_group: tag " + std::to_string(tag) +
                                                   " was given; allowed are 0 to " + std::to_string(kMaxUserTag));
    }
    return create_group(communicator_of(parent), list_of(ranks, count), static_cast<std::uint32_t>(tag),
                        wishes_of(settings));
  });
}

}  // extern "C"
