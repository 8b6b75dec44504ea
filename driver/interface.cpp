#include "driver/interface.hpp"

#include "core/lasting.hpp"

namespace unisono::driver {

std::string& last_error() {
  thread_state().has_sentence = true;
  return lasting<std::string, struct LastError>();
}

bool& last_still_written() {
  thread_local bool written = false;
  return written;
}

unisono_result failed(ErrorCode code, const char* text, bool still_written) noexcept {
  last_still_written() = still_written;
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();
  }
  return static_cast<unisono_result>(code);
}

std::shared_ptr<Request> make_request(const std::shared_ptr<Communicator>& communicator, const unisono_call& given,
                                      bool persistent) {
  auto checked = std::make_unique<CheckedCall>();
  prepare(*communicator, import_struct(&given, "unisono_call"), *checked);
  return std::make_shared<Request>(communicator, std::move(checked), persistent);
}

}  // namespace unisono::driver
