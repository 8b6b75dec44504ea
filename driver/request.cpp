#include "driver/objects.hpp"

namespace unisono::driver {

Request::Request(std::shared_ptr<Communicator> communicator, CallId id, std::uint64_t element_bytes, bool receives)
    : communicator_(std::move(communicator)), id_(id), element_bytes_(element_bytes), receives_(receives) {}

std::optional<CallResult> Request::known() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

CallResult Request::settle(Engine& engine, CallResult result) {
  const std::lock_guard lock(mutex_);
  if (!result_) {
    result_ = std::move(result);
    engine.forget(id_);
  }
  return *result_;
}

// Asks the engine without holding the lock, for asking may wait. Another thread may settle the request
// meanwhile, after which the engine does not know the call: the settled result is then the answer.
template <class Ask>
std::optional<CallResult> Request::ask(Ask&& ask) {
  if (std::optional<CallResult> result = known()) return result;
  std::shared_ptr<Endpoint> endpoint;
  try {
    endpoint = communicator_->context->endpoint();
  } catch (const Error& error) {
    throw Error(error.code(), std::string("the call was cancelled: ") + error.what());
  }
  try {
    CallResult result = ask(*endpoint);
    if (!result.complete) return std::nullopt;
    return settle(*endpoint->engine, std::move(result));
  } catch (const Error&) {
    if (std::optional<CallResult> result = known()) return result;
    throw;
  }
}

std::optional<CallResult> Request::test() {
  return ask([&](Endpoint& endpoint) { return endpoint.engine->test(id_); });
}

CallResult Request::wait() {
  return *ask([&](Endpoint& endpoint) { return endpoint.engine->wait(id_); });
}

std::optional<CallResult> Request::wait_at_most(std::chrono::microseconds at_most) {
  if (at_most.count() <= 0) return test();
  return ask([&](Endpoint& endpoint) { return endpoint.engine->wait(id_, at_most); });
}

std::int64_t Request::received() const {
  const std::lock_guard lock(mutex_);
  if (!receives_) throw Error(ErrorCode::kInvalidArgument, "only a recv has a received count");
  if (!result_) throw Error(ErrorCode::kInvalidArgument, "the recv has not completed; wait for it first");
  if (result_->code != ErrorCode::kOk) throw Error(result_->code, result_->message);
  return static_cast<std::int64_t>(result_->received_bytes / element_bytes_);
}

void run_to_end(const Communicator& communicator, const CallRequest& request) {
  communicator.context->endpoint()->engine->run(request);
}

}  // namespace unisono::driver
