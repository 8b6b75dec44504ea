#include "switch/endpoint/keeper.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/wait_hook.hpp"

namespace unisono::slots {

namespace {

/// How often the thread looks whether a connection has ended.
constexpr std::chrono::milliseconds kLook{50};
/// How long it tries at a time.
constexpr std::chrono::milliseconds kTry{500};

}  // namespace

Keeper::Keeper(std::vector<std::string> addresses, std::string secret)
    : addresses_(std::move(addresses)), secret_(std::move(secret)), connections_(addresses_.size()) {}

Keeper::~Keeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stirred_.notify_all();
  if (thread_.joinable()) thread_.join();
}

ControlConnection& Keeper::connected(std::size_t address, join::Deadline deadline) {
  Connection& connection = connections_[address];
  if (connection.open && connection.open->ended()) connection.open.reset();
  if (connection.open) return *connection.open;
  connection.open = std::make_unique<ControlConnection>(addresses_[address], bytes_of_text(secret_), deadline);
  try {
    ask_again(address, deadline);
  } catch (const Error&) {
    connection.open.reset();  // a connection has all of its pools, or is none
    throw;
  }
  return *connection.open;
}

/// By a new connection, for all that the switch has lost with the one before.
void Keeper::ask_again(std::size_t address, join::Deadline deadline) {
  Connection& connection = connections_[address];
  const auto refused = [&](const PoolRequest& request, const std::string& what, const std::string& why) {
    if (!logs(LogLevel::kInfo)) return;
    log(LogLevel::kInfo, formatted("the switch at {}, which was started anew, does not take {} of communicator {}: {}",
                                   addresses_[address], what, request.communicator, why));
  };
  for (const auto& [id, request] : connection.pools) {
    const PoolAnswer answer = connection.open->make(request, deadline);
    if (!answer.made) {
      refused(request, "the calls", answer.refusal);
      continue;
    }
    const auto operators = connection.operators.find(id);
    if (operators == connection.operators.end()) continue;
    // Frames that come before the operator does are repeated.
    for (const OperatorRequest& op : operators->second) {
      const join::Blob said = connection.open->ask(ControlKind::kOperator, packed(op), deadline);
      if (said.empty()) continue;
      refused(request, formatted("operator {}", name_of(op.func)),
              {reinterpret_cast<const char*>(said.data()), said.size()});
    }
  }
}

Welcome Keeper::welcome(std::size_t address, join::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  return connected(address, deadline).welcome();
}

PoolAnswer Keeper::make(std::size_t address, const PoolRequest& request, join::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  PoolAnswer answer = connected(address, deadline).make(request, deadline);
  if (!answer.made) return answer;
  connections_[address].pools[request.id] = request;
  if (!thread_.joinable()) {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
      // Without it a switch that was started anew is given up; nothing else changes.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return answer;
}

std::string Keeper::set_operator(std::size_t address, const OperatorRequest& request, join::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  ControlConnection& connection = connected(address, deadline);
  // Somebody may have loaded it for everybody; then its hash is enough.
  const OperatorRequest by_hash{request.pool, request.func, request.hash, {}};
  join::Blob said = connection.ask(ControlKind::kOperator, packed(by_hash), deadline);
  if (!said.empty()) said = connection.ask(ControlKind::kOperator, packed(request), deadline);
  if (said.empty()) {
    std::vector<OperatorRequest>& operators = connections_[address].operators[request.pool];
    std::erase_if(operators, [&](const OperatorRequest& one) { return one.func == request.func; });
    operators.push_back(request);
  }
  return {reinterpret_cast<const char*>(said.data()), said.size()};
}

void Keeper::take_operator(const PoolId& id, Func func, join::Deadline deadline) noexcept {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    const auto operators = connection.operators.find(id);
    if (operators == connection.operators.end()) continue;
    const auto gone = std::erase_if(operators->second, [&](const OperatorRequest& one) { return one.func == func; });
    if (gone == 0 || !connection.open) continue;
    try {
      connection.open->ask(ControlKind::kOperator, packed(OperatorRequest{id, func, {}, {}}), deadline);
    } catch (const std::exception&) {
      // It goes with the pool.
    }
  }
}

void Keeper::free(const PoolId& id) {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    connection.operators.erase(id);
    if (connection.pools.erase(id) != 0 && connection.open) connection.open->free(id);
  }
}

void Keeper::watch() {
  pthread_setname_np(pthread_self(), "unisono-switch");
  const WaitHook::Quiet quiet;  // the program's hook is for the program's threads
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    stirred_.wait_for(lock, kLook);
    for (std::size_t i = 0; i < connections_.size() && !stopping_; ++i) look_after(i);
  }
}

void Keeper::look_after(std::size_t address) {
  Connection& connection = connections_[address];
  if (connection.pools.empty() || (connection.open && !connection.open->ended())) return;
  const join::Deadline deadline = join::Clock::now() + kTry;
  try {
    connected(address, deadline);
  } catch (const Error&) {
    // It is tried again.
  }
}

}  // namespace unisono::slots
