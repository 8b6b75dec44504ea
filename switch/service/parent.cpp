#include "switch/service/parent.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/socket.hpp"
#include "switch/service/report.hpp"

namespace unisono::slots {

namespace {

using join::Clock;
using join::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1000};
/// Of one attempt to connect and to prove.
constexpr seconds kToConnect{2};
/// It is asked so often who is above it.
constexpr seconds kBetweenLooks{1};
/// And has so long to say it.
constexpr milliseconds kToAnswer{1500};
/// A host that does not answer any more is noticed after so long.
constexpr milliseconds kSilent{2000};

/// What is wrong with a chain of switches; empty: nothing.
std::string fault_of_chain(const std::string& own, const std::vector<std::string>& above) {
  std::set<std::string> names{own};
  for (const std::string& name : above) {
    if (names.insert(name).second) continue;
    if (name == own) {
      return formatted(
          "a switch above {} has that name, too: the uplinks lead in a circle, or two switches have one "
          "name; give each a name of its own, and let the topmost have no uplink",
          own);
    }
    return formatted("two switches above {} are named {}; give each a name of its own", own, name);
  }
  return {};
}

}  // namespace

Parent::Parent(std::string where, std::string secret, std::string own, std::function<void()> woken,
               std::function<void(const std::string&)> say)
    : where_(std::move(where)),
      secret_(std::move(secret)),
      own_(std::move(own)),
      woken_(std::move(woken)),
      say_(std::move(say)) {}

Parent::~Parent() { stop(); }

void Parent::connect_first(Deadline deadline) {
  for (;;) {
    try {
      connect(deadline);
    } catch (const Error& error) {
      broke(error.what());
    }
    const ParentState now = state();
    const std::string fault = fault_of_chain(own_, now.above);
    if (!fault.empty()) throw Error(ErrorCode::kBootstrap, formatted("the uplink {}: {}", where_, fault));
    if (connection_) return;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_until(std::min(deadline, next_try_));
  }
  say_(formatted("the switch starts without its uplink, and goes on trying: {}", state().fault));
}

void Parent::start() {
  thread_ = std::thread([this] { work(); });
}

void Parent::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    // What waits for an answer need not wait any longer.
    if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
  }
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

void Parent::make(const PoolRequest& request, std::uint64_t serial) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back({request.id, request, serial, std::nullopt});
  }
  bell_.ring();
}

void Parent::free(const PoolId& id) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back({id, std::nullopt, 0, std::nullopt});
  }
  bell_.ring();
}

void Parent::set_operator(const OperatorRequest& request, std::uint64_t serial) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back({request.pool, std::nullopt, serial, request});
  }
  bell_.ring();
}

std::vector<ParentAnswer> Parent::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

ParentState Parent::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Parent::post(ParentAnswer answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  woken_();
}

// ---- the thread ----

void Parent::work() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
    }
    try {
      connect_when_due();
      take_orders();
      if (connection_ && connection_->ended()) broke("it has closed the connection");
      make_wanted();
      look();
    } catch (const std::exception& error) {
      broke(error.what());
    }
    give_up_late();
    sleep();
  }
}

void Parent::connect(Deadline deadline) {
  auto made = std::make_unique<ControlConnection>(where_, bytes_of_text(secret_),
                                                  std::min(deadline, Clock::now() + kToConnect));
  {
    const tcp::Socket same(dup(made->descriptor()));
    if (same.valid()) tcp::set_patience(same, kSilent);
  }
  std::vector<std::string> above{made->welcome().name};
  above.insert(above.end(), made->welcome().above.begin(), made->welcome().above.end());
  const std::string fault = fault_of_chain(own_, above);
  const std::lock_guard lock(mutex_);
  if (stopped_) throw Error(ErrorCode::kBootstrap, "this switch ends");
  state_.name = above.front();
  state_.above = above;
  if (!fault.empty()) throw Error(ErrorCode::kBootstrap, fault);
  address_ = tcp::remote_address(made->descriptor());
  connection_ = std::move(made);
  descriptor_ = connection_->descriptor();
  state_.connected = true;
  answers_now_.store(true);
  state_.fault.clear();
  pause_ = milliseconds(0);
  next_look_ = Clock::now() + kBetweenLooks;
}

void Parent::connect_when_due() {
  if (connection_ || Clock::now() < next_try_) return;
  connect(Deadline::max());
  say_(formatted("the switch above, {}, answers at {}", state().name, where_));
}

/// The connection is no more, or was none.
void Parent::broke(const std::string& why) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    descriptor_ = -1;
    news = state_.connected;
    state_.connected = false;
    answers_now_.store(false);
    state_.fault = why;
  }
  connection_.reset();
  for (auto& [id, wanted] : wanted_) {
    wanted.made = false;
    for (auto& [func, op] : wanted.operators) op.made = false;
  }
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  next_try_ = Clock::now() + pause_;
  if (news) say_(formatted("the connection to the switch above, at {}, has ended: {}", where_, why));
}

void Parent::take_orders() {
  std::vector<Order> orders;
  {
    const std::lock_guard lock(mutex_);
    orders.swap(orders_);
  }
  for (Order& order : orders) {
    if (order.request) {
      Wanted wanted;
      wanted.request = *std::move(order.request);
      wanted.serial = order.serial;
      wanted.until = Clock::now() + kPatience;
      wanted_.insert_or_assign(order.id, std::move(wanted));
      continue;
    }
    if (order.op) {
      take_operator(order);
      continue;
    }
    // What is made there but was given up here goes as well.
    if (wanted_.erase(order.id) != 0 && connection_) connection_->free(order.id);
  }
}

/// Of a pool that is not wanted any more, nobody waits for an answer.
void Parent::take_operator(Order& order) {
  const auto found = wanted_.find(order.id);
  if (found == wanted_.end()) return;
  if (order.op->takes_away()) {
    found->second.operators.erase(order.op->func);
    if (!connection_ || !found->second.made) return;
    try {
      connection_->ask(ControlKind::kOperator, packed(*order.op), Clock::now() + kPatience);
    } catch (const Error& error) {
      broke(error.what());  // orders behind it are taken all the same
    }
    return;
  }
  WantedOperator op;
  op.request = *std::move(order.op);
  op.serial = order.serial;
  op.until = Clock::now() + kPatience;
  found->second.operators.insert_or_assign(op.request.func, std::move(op));
}

void Parent::make_wanted() {
  for (auto one = wanted_.begin(); one != wanted_.end() && connection_;) {
    if (!make_one(one->second)) {
      one = wanted_.erase(one);
      continue;
    }
    if (one->second.made) give_operators(one->second);
    ++one;
  }
}

/// Gives a pool that is made there the operators that it does not have there yet.
void Parent::give_operators(Wanted& wanted) {
  for (auto one = wanted.operators.begin(); one != wanted.operators.end();) {
    WantedOperator& op = one->second;
    if (op.made) {
      ++one;
      continue;
    }
    const join::Blob said = connection_->ask(ControlKind::kOperator, packed(op.request), Clock::now() + kPatience);
    PoolAnswer answer;
    answer.made = said.empty();
    answer.refusal = {reinterpret_cast<const char*>(said.data()), said.size()};
    const bool news = !op.answered || !answer.made;
    if (op.answered && !answer.made) {
      say_(formatted("the switch above, {}, does not take operator {} of communicator {} again: {}", state().name,
                     name_of(op.request.func), wanted.request.communicator, answer.refusal));
    }
    op.made = answer.made;
    op.answered = true;
    if (news) post({wanted.request.id, op.serial, answer, {}, op.request.func});
    one = answer.made ? std::next(one) : wanted.operators.erase(one);
  }
}

/// False if the switch above has refused, and that is the answer.
bool Parent::make_one(Wanted& wanted) {
  const Deadline now = Clock::now();
  if (wanted.made || now < wanted.next) return true;
  PoolAnswer answer = connection_->make(wanted.request, now + kPatience);
  if (answer.made) {
    wanted.made = true;
    wanted.answered = true;
    tcp::Address address = address_;
    address.port = answer.port;
    post({wanted.request.id, wanted.serial, std::move(answer), address, Func::kNone});
    return true;
  }
  if (!wanted.answered) {
    post({wanted.request.id, wanted.serial, std::move(answer), {}, Func::kNone});
    return false;
  }
  // It had the pool before it was started again. Members wait until it has room, or for their deadlines.
  say_(formatted("the switch above, {}, does not make the pool of communicator {} again: {}", state().name,
                 wanted.request.communicator, answer.refusal));
  wanted.next = now + kLongestPause;
  return true;
}

/// Answers those that have waited long enough for a switch that cannot be reached.
void Parent::give_up_late() {
  const Deadline now = Clock::now();
  const auto too_late = [&](const auto& one) { return !one.made && !one.answered && now >= one.until; };
  const auto silent = [&] {
    PoolAnswer answer;
    answer.refusal = formatted("the switch above {} does not answer: {}", own_, state().fault);
    return answer;
  };
  for (auto one = wanted_.begin(); one != wanted_.end();) {
    Wanted& wanted = one->second;
    std::erase_if(wanted.operators, [&](const auto& entry) {
      if (!too_late(entry.second)) return false;
      post({one->first, entry.second.serial, silent(), {}, entry.first});
      return true;
    });
    if (!too_late(wanted)) {
      ++one;
      continue;
    }
    post({one->first, wanted.serial, silent(), {}, Func::kNone});
    one = wanted_.erase(one);
  }
}

/// Asks who is above the switch above by now, and thereby whether it still answers.
void Parent::look() {
  if (!connection_ || Clock::now() < next_look_) return;
  const join::Blob status = connection_->ask(ControlKind::kAsk, bytes_of_text("status"), Clock::now() + kToAnswer);
  next_look_ = Clock::now() + kBetweenLooks;
  const auto above = chain_in_status({reinterpret_cast<const char*>(status.data()), status.size()});
  if (!above) return;
  std::vector<std::string> chain{connection_->welcome().name};
  chain.insert(chain.end(), above->begin(), above->end());
  const std::string fault = fault_of_chain(own_, chain);
  const std::lock_guard lock(mutex_);
  state_.above = chain;
  if (!fault.empty()) throw Error(ErrorCode::kBootstrap, fault);
}

Deadline Parent::next_due() const {
  Deadline next = connection_ ? next_look_ : next_try_;
  for (const auto& [id, wanted] : wanted_) {
    for (const auto& [func, op] : wanted.operators) {
      if (!op.made && !op.answered) next = std::min(next, op.until);
    }
    if (wanted.made) continue;
    if (!wanted.answered) next = std::min(next, wanted.until);
    if (connection_) next = std::min(next, wanted.next);
  }
  return next;
}

void Parent::sleep() {
  std::array<pollfd, 2> watched{{{bell_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}}};
  if (connection_) watched[1].fd = connection_->descriptor();
  poll(watched.data(), watched.size(), join::milliseconds_until(next_due()));
  if (watched[0].revents != 0) bell_.quiet();
}

}  // namespace unisono::slots
