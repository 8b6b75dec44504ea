// Going on after the end of a rank: a communicator of those that are left.
#include <algorithm>
#include <exception>
#include <string>

#include "driver/objects.hpp"

namespace unisono::driver {

namespace {

/// What agreements of the driver are for.
enum Purpose : std::uint32_t { kOfUser = 1, kOfShrink = 2, kOfVerdict = 3, kOfReset = 4 };

/// An agreement, of which an error says what it was for where that part of the job must end.
Agreed agree_for(const char* operation, Engine& engine, std::uint32_t communicator, Purpose purpose,
                 std::uint64_t value, std::uint64_t number, std::chrono::microseconds timeout) {
  try {
    return engine.agree(communicator, purpose, value, number, timeout);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPartitioned) throw;
    throw Error(ErrorCode::kPartitioned, std::string(operation) + ": " + error.what());
  }
}

bool this_part_must_end(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kPartitioned;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::uint64_t agree(const Communicator& communicator, std::uint64_t value, std::chrono::microseconds timeout) {
  {
    // Others may have the new communicator, and this rank is a member: it must not lose it by agreeing on something
    // else in between.
    const std::lock_guard lock(communicator.shrinking_mutex);
    if (communicator.shrinking) {
      throw Error(ErrorCode::kInvalidArgument, "agree: a shrink of communicator " +
                                                   std::to_string(communicator.number) +
                                                   " was cut off while the new one was made; call shrink again first");
    }
  }
  Engine& engine = *communicator.context->endpoint()->engine;
  return agree_for("agree", engine, communicator.number, kOfUser, value, 0, timeout).value;
}

std::vector<std::uint32_t> failed_ranks(const Communicator& communicator) {
  std::vector<std::uint32_t> ranks;
  const std::vector<bool> gone = communicator.context->endpoint()->engine->gone(communicator.number);
  for (std::uint32_t rank = 0; rank < gone.size(); ++rank) {
    if (gone[rank]) ranks.push_back(rank);
  }
  return ranks;
}

namespace {

/// Agrees who is left, and makes a communicator of them, if that can be done here.
Shrinking make_of_those_left(const Communicator& parent, Engine& engine, std::chrono::microseconds timeout) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  const std::uint32_t proposed = parent.context->propose_number(parent.size);
  // Cut off, it stands for good: the agreement may have come about, and is then what the next attempt hears.
  const Agreed left = agree_for("shrink", engine, parent.number, kOfShrink, kAll, proposed, timeout);
  const NumberProposal stands(parent.context, proposed);
  Shrinking own;
  own.made = std::make_shared<Communicator>();
  Communicator& made = *own.made;
  made.context = parent.context;
  made.number = static_cast<std::uint32_t>(left.number);
  for (std::uint32_t rank = 0; rank < parent.size; ++rank) {
    if (left.gone[rank]) continue;
    if (rank == parent.rank) made.rank = static_cast<std::uint32_t>(made.endpoints.size());
    made.endpoints.push_back(parent.endpoints[rank]);
  }
  made.size = static_cast<std::uint32_t>(made.endpoints.size());
  // Another thread may have taken the number meanwhile, and a rank may lack memory: all learn of it.
  if (!parent.context->claim_number(made.number)) return own;
  try {
    made.grouping = hosts_of(*parent.context->endpoint()->poe, made.endpoints);
    engine.create_communicator(made.number, 0, made.endpoints, engine.state(parent.number).agreed, made.grouping);
    made.fast_path = engine.fast_path(made.number);
    own.created = true;
  } catch (const Error& error) {
    parent.context->release_number(made.number);
    own.code = error.code();
    own.failure = error.what();
  }
  return own;
}

void give_back(const Shrinking& own, Engine& engine) {
  if (!own.created || !own.made->context->release_number(own.made->number)) return;
  engine.free_communicator(own.made->number);
}

}  // namespace

void drop_shrinking(Communicator& communicator, Engine& engine) {
  std::optional<Shrinking> own;
  {
    const std::lock_guard lock(communicator.shrinking_mutex);
    own.swap(communicator.shrinking);
  }
  if (own) give_back(*own, engine);
}

namespace {

/// Has switches carry the calls of a communicator that all ranks left have, and will not make again: what goes wrong
/// meanwhile, the end of one more of them above all, is told by its first calls, on every rank.
void let_switches_carry(const Communicator& made, Engine& engine) {
  try {
    made.context->arrange_carriers(made.number, made.endpoints);
  } catch (const Error& error) {
    engine.revoke(made.number, error.what());
  }
}

/// A communicator of those that are left, whose calls go by its ranks.
std::shared_ptr<Communicator> made_by_those_left(const std::shared_ptr<Communicator>& parent,
                                                 std::chrono::microseconds timeout) {
  const std::shared_ptr<Endpoint> endpoint = parent->context->endpoint();
  Engine& engine = *endpoint->engine;
  constexpr int kAttempts = 64;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::optional<Shrinking> own;
    {
      const std::lock_guard lock(parent->shrinking_mutex);
      own.swap(parent->shrinking);
    }
    if (!own) own = make_of_those_left(*parent, engine, timeout);
    constexpr std::uint64_t kCreated = 1, kMayTryAgain = 2;
    const std::uint64_t word = (own->created ? kCreated : 0) | (own->failure.empty() ? kMayTryAgain : 0);
    std::uint64_t verdict = 0;
    try {
      verdict = agree_for("shrink", engine, parent->number, kOfVerdict, word, 0, timeout).value;
    } catch (...) {
      if (this_part_must_end(std::current_exception())) {
        give_back(*own, engine);
        throw;
      }
      // The others may have their verdict, or get it yet.
      const std::lock_guard lock(parent->shrinking_mutex);
      parent->shrinking = std::move(own);
      throw;
    }
    if ((verdict & kCreated) != 0) return own->made;
    give_back(*own, engine);
    if (!own->failure.empty()) throw Error(own->code, "shrink: " + own->failure);
    if ((verdict & kMayTryAgain) == 0) {
      throw Error(ErrorCode::kUnsupported, "shrink: another rank could not make the communicator; see its own error");
    }
  }
  throw Error(ErrorCode::kCapacity,
              "shrink: no communicator number could be agreed on in " + std::to_string(kAttempts) + " attempts");
}

}  // namespace

std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& parent, std::chrono::microseconds timeout) {
  std::shared_ptr<Communicator> made = made_by_those_left(parent, timeout);
  let_switches_carry(*made, *parent->context->endpoint()->engine);
  log_made(*made, "shrink");
  return made;
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
  const Agreed come = agree_for("reset", engine, world->number, kOfReset, 0, 0, {});
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
  const std::shared_ptr<Communicator> left = made_by_those_left(world, {});
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
