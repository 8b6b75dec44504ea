#include <algorithm>

#include "core/text.hpp"
#include "driver/callbacks.hpp"
#include "driver/group.hpp"
#include "driver/objects.hpp"
#include "network/wait_hook.hpp"

namespace unisono::driver {

// --------------------------------------------------------------------------------------------- flights

std::optional<CallResult> Flight::known() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

bool Flight::ended() const {
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

CallResult Flight::settle(Engine& engine, CallResult result) {
  const std::lock_guard lock(mutex_);
  if (!result_) {
    result_ = std::move(result);
    engine.forget(id_);
  }
  return *result_;
}

/// The result if the call has ended, without progress.
std::optional<CallResult> Flight::settled(Engine& engine) {
  const std::lock_guard lock(mutex_);
  if (!result_) result_ = engine.take(id_);
  return result_;
}

std::shared_ptr<Endpoint> Flight::endpoint() const {
  try {
    return context_->endpoint();
  } catch (const Error& error) {
    throw Error(error.code(), std::string("the call was cancelled: ") + error.what());
  }
}

// Asks the engine without holding the lock, for asking may wait. Another thread may settle the flight
// meanwhile, after which the engine does not know the call: the settled result is then the answer.
template <class Ask>
std::optional<CallResult> Flight::ask(Ask&& ask) {
  if (context_ == nullptr) return known();  // it ended before it was submitted
  std::shared_ptr<Endpoint> own;
  try {
    own = endpoint();
  } catch (const Error&) {
    if (std::optional<CallResult> result = known()) return result;
    throw;
  }
  try {
    if (std::optional<CallResult> result = settled(*own->engine)) return result;
    CallResult result = ask(*own);
    if (!result.complete) return std::nullopt;
    return settle(*own->engine, std::move(result));
  } catch (const Error&) {
    if (std::optional<CallResult> result = known()) return result;
    throw;
  }
}

std::optional<CallResult> Flight::test() {
  return ask([&](Endpoint& endpoint) { return endpoint.engine->test(id_); });
}

CallResult Flight::wait() {
  return *ask([&](Endpoint& endpoint) { return endpoint.engine->wait(id_); });
}

std::optional<CallResult> Flight::wait_at_most(std::chrono::microseconds at_most) {
  if (at_most.count() <= 0) return test();
  return ask([&](Endpoint& endpoint) { return endpoint.engine->wait(id_, at_most); });
}

void Flight::when_complete(std::function<void(const CallResult&)> listener) {
  if (const std::optional<CallResult> result = known()) {
    listener(*result);
    return;
  }
  const std::shared_ptr<Endpoint> own = endpoint();
  // The engine keeps the listener, so the listener must not keep the engine.
  own->engine->when_complete(id_, [self = shared_from_this(), listener = std::move(listener),
                                   where = std::weak_ptr<Endpoint>(own)](const CallResult& result) {
    // Another thread may have settled it meanwhile, and knows the result: the engine has forgotten the call then.
    CallResult settled = result;
    if (const std::optional<CallResult> known = self->known()) {
      settled = *known;
    } else if (const std::shared_ptr<Endpoint> endpoint = where.lock()) {
      settled = self->settle(*endpoint->engine, result);
    }
    listener(settled);
  });
}

// -------------------------------------------------------------------------------------------- requests

Request::Request(std::shared_ptr<Communicator> communicator, std::unique_ptr<CheckedCall> call, bool persistent)
    : communicator_(std::move(communicator)),
      persistent_(persistent),
      element_bytes_(call->element_bytes),
      collective_(call->request.call.collective),
      call_(std::move(call)) {}

Request::Request(std::shared_ptr<Communicator> communicator, std::shared_ptr<Flight> flight, Collective collective,
                 std::uint64_t element_bytes)
    : communicator_(std::move(communicator)),
      persistent_(false),
      element_bytes_(element_bytes),
      collective_(collective),
      flight_(std::move(flight)) {}

bool Request::done() const {
  const std::lock_guard lock(mutex_);
  return callbacks_ == 0 && flight_ && flight_->ended() && group_.expired();
}

std::string Request::title() const {
  const std::string of = formatted("(communicator {}, rank {}): ", communicator_->number, communicator_->rank);
  return std::string(name_of(collective_)) + " " + of;
}

std::shared_ptr<Flight> Request::flight() const {
  const std::lock_guard lock(mutex_);
  if (!group_.expired()) {
    throw Error(ErrorCode::kInvalidArgument,
                title() + "the call waits for the end of its group; end the group first (unisono_group_end)");
  }
  if (!flight_) {
    throw Error(ErrorCode::kInvalidArgument,
                title() + "the call was prepared and has not been started; start it first (unisono_request_start)");
  }
  return flight_;
}

void Request::start() {
  std::shared_ptr<Flight> before;
  {
    const std::lock_guard lock(mutex_);
    if (!group_.expired())
      throw Error(ErrorCode::kInvalidArgument, title() + "the call has been started in a group already");
    before = flight_;
  }
  if (before && !persistent_) {
    throw Error(ErrorCode::kInvalidArgument,
                title() +
                    "the call runs once; prepare a call that is to be started again (unisono_prepare; in Python "
                    "start=False)");
  }
  if (before && !before->test()) {
    throw Error(ErrorCode::kInvalidArgument, title() + "the call is in flight; wait for it before it is started again");
  }
  if (const std::shared_ptr<Group> group = Group::of_this_thread(*communicator_)) {
    for (const auto& first : call_->before) static_cast<void>(first->flight());  // none that waits for a group's end
    group->add(shared_from_this());
    const std::lock_guard lock(mutex_);
    flight_.reset();
    group_ = group;
    return;
  }
  submit();
}

void Request::submit() {
  resolve_before(*call_);
  const auto own = communicator_->context->endpoint();
  const CallRequest& request = call_->request;
  CallId id = 0;
  if (request.plain() && request.vectors == nullptr && request.program == nullptr) {
    id = own->engine->submit_at_once(request);
  }
  if (id == 0) id = own->engine->submit(request);
  fly(std::make_shared<Flight>(communicator_->context, id));
  communicator_->context->call_started();
}

void Request::fly(std::shared_ptr<Flight> flight) {
  const std::lock_guard lock(mutex_);
  group_.reset();
  flight_ = std::move(flight);
  if (!persistent_) call_.reset();
}

bool Request::idle() const {
  const std::lock_guard lock(mutex_);
  return !flight_ || flight_->ended();
}

void Request::leave_group() {
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(mutex_);
    group = group_.lock();
    group_.reset();
  }
  if (group) group->remove(*this);
}

void Request::on_complete(std::function<void(const CallResult&)> function) {
  const std::shared_ptr<Flight> own = flight();
  {
    const std::lock_guard lock(mutex_);
    ++callbacks_;
  }
  const auto ended = [self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      --self->callbacks_;
    }
    self->called_back_.notify_all();
  };
  try {
    own->when_complete([function = std::move(function), ended](const CallResult& result) {
      Callbacks::run([function, ended, result] {
        function(result);
        ended();
      });
    });
  } catch (...) {
    ended();
    throw;
  }
}

void Request::await_callbacks() {
  std::unique_lock lock(mutex_);
  WaitHook::wait_until(called_back_, lock, WaitHook::Clock::time_point::max(), [&] { return callbacks_ == 0; });
}

std::int64_t whole_elements(std::uint64_t bytes, std::uint64_t element_bytes) {
  if (bytes % element_bytes != 0) {
    throw Error(ErrorCode::kMismatchedCall,
                "recv: " + std::to_string(bytes) + " bytes came, which are no whole elements of " +
                    std::to_string(element_bytes) + " bytes; the sender's elements have another size");
  }
  return static_cast<std::int64_t>(bytes / element_bytes);
}

MessageStatus Request::status() const {
  if (collective_ != Collective::kRecv) throw Error(ErrorCode::kInvalidArgument, "only a recv has a received count");
  const std::optional<CallResult> result = flight()->known();
  if (!result) throw Error(ErrorCode::kInvalidArgument, "the recv has not completed; wait for it first");
  if (result->code != ErrorCode::kOk) throw Error(result->code, result->message);
  return result->status;
}

std::int64_t Request::received() const { return whole_elements(status().bytes, element_bytes_); }

std::uint64_t run_to_end(const Communicator& communicator, const CallRequest& request) {
  const auto endpoint = communicator.context->endpoint();
  return endpoint->engine->run(request);
}

}  // namespace unisono::driver
