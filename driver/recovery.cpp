// Going on after the end of a rank: a communicator of those that are left.
#include <algorithm>
#include <string>

#include "driver/objects.hpp"

namespace unisono::driver {

namespace {

/// What agreements of the driver are for.
enum Purpose : std::uint32_t { kOfUser = 1, kOfShrink = 2, kOfVerdict = 3, kOfReset = 4 };

}  // namespace

std::uint64_t agree(const Communicator& communicator, std::uint64_t value, std::chrono::microseconds timeout) {
  return communicator.context->endpoint()->engine->agree(communicator.number, kOfUser, value, 0, timeout).value;
}

std::vector<std::uint32_t> failed_ranks(const Communicator& communicator) {
  std::vector<std::uint32_t> ranks;
  const std::vector<bool> gone = communicator.context->endpoint()->engine->gone(communicator.number);
  for (std::uint32_t rank = 0; rank < gone.size(); ++rank) {
    if (gone[rank]) ranks.push_back(rank);
  }
  return ranks;
}

std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& parent, std::chrono::microseconds timeout) {
  const std::shared_ptr<Endpoint> endpoint = parent->context->endpoint();
  Engine& engine = *endpoint->engine;
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  constexpr int kAttempts = 64;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Agreed left =
        engine.agree(parent->number, kOfShrink, kAll, parent->context->propose_number(parent->size), timeout);
    auto made = std::make_shared<Communicator>();
    made->context = parent->context;
    made->number = static_cast<std::uint32_t>(left.number);
    for (std::uint32_t rank = 0; rank < parent->size; ++rank) {
      if (left.gone[rank]) continue;
      if (rank == parent->rank) made->rank = static_cast<std::uint32_t>(made->endpoints.size());
      made->endpoints.push_back(parent->endpoints[rank]);
    }
    made->size = static_cast<std::uint32_t>(made->endpoints.size());

    // Another thread may have taken the number meanwhile, and a rank may lack memory: all learn of it.
    bool created = false;
    std::string failure;
    ErrorCode code = ErrorCode::kInternal;
    if (parent->context->claim_number(made->number)) {
      try {
        engine.create_communicator(made->number, 0, made->endpoints, engine.state(parent->number).agreed);
        made->express = engine.express(made->number);
        created = true;
      } catch (const Error& error) {
        parent->context->release_number(made->number);
        code = error.code();
        failure = error.what();
      }
    }
    constexpr std::uint64_t kCreated = 1, kMayTryAgain = 2;
    const std::uint64_t own = (created ? kCreated : 0) | (failure.empty() ? kMayTryAgain : 0);
    const std::uint64_t verdict = engine.agree(parent->number, kOfVerdict, own, 0, timeout).value;
    if ((verdict & kCreated) != 0) {
      log_made(*made, "shrink");
      return made;
    }
    if (created) {
      engine.free_communicator(made->number);
      parent->context->release_number(made->number);
    }
    if (!failure.empty()) throw Error(code, "shrink: " + failure);
    if ((verdict & kMayTryAgain) == 0) {
      throw Error(ErrorCode::kUnsupported, "shrink: another rank could not make the communicator; see its own error");
    }
  }
  throw Error(ErrorCode::kCapacity,
              "shrink: no communicator number could be agreed on in " + std::to_string(kAttempts) + " attempts");
}

std::shared_ptr<Communicator> reset(const std::shared_ptr<Communicator>& world) {
  const std::shared_ptr<Context> context = world->context;
  const std::shared_ptr<Endpoint> endpoint = context->endpoint();
  Engine& engine = *endpoint->engine;
  if (!engine.recovers()) {
    throw Error(ErrorCode::kUnsupported,
                "reset: this engine cannot give up its communicators and go on; the native engine can "
                "(UNISONO_PLATFORM=native). Close the context and make a new one");
  }
  // Nobody's calls are ended before everybody has come, so those that can complete do.
  const Agreed come = engine.agree(world->number, kOfReset, 0, 0, {});
  if (const auto gone = std::count(come.gone.begin(), come.gone.end(), true); gone != 0) {
    throw Error(ErrorCode::kPeerDead,
                "reset: " + std::to_string(gone) + " of " + std::to_string(world->size) +
                    " ranks have died or left; unisono_shrink makes a communicator of the others");
  }
  for (const std::uint32_t number : context->numbers()) {
    try {
      engine.revoke(number, "the context was reset");
      if (number == world->number || !context->release_number(number)) continue;
      engine.free_communicator(number);
    } catch (const Error&) {
      continue;  // another thread frees it, or has claimed its number only
    }
  }
  const std::shared_ptr<Communicator> left = shrink(world, {});
  const auto give_up = [&](const Communicator& communicator) {
    if (context->release_number(communicator.number)) engine.free_communicator(communicator.number);
  };
  if (left->size != world->size) {
    give_up(*left);
    throw Error(ErrorCode::kPeerDead,
                "reset: a rank has died meanwhile; unisono_shrink makes a communicator of the others");
  }
  // Settings may have been changed since the last world was made: this time all capabilities are exchanged.
  try {
    std::shared_ptr<Communicator> made = duplicate(left, {});
    give_up(*left);
    give_up(*world);
    return made;
  } catch (...) {
    give_up(*left);
    throw;
  }
}

}  // namespace unisono::driver
