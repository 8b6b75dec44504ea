// What the functions of the C interface have in common: results, handles, structs that grow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "core/error.hpp"
#include "core/thread_state.hpp"
#include "driver/objects.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// The sentence of the calling thread's last error. The caller may write it.
std::string& last_error();
/// Notes a sentence, and returns the code as a result.
unisono_result failed(ErrorCode code, const char* text, bool still_written = false) noexcept;
/// Whether a rank that was stopped may still write to the destination of the call that failed last in this thread.
bool& last_still_written();

/// Runs the body of an interface function; every exception becomes a code and a text.
template <class Body>
unisono_result guarded(Body&& body) noexcept {
  ThreadState& state = thread_state();
  if (state.has_sentence) [[unlikely]] {
    last_error().clear();
    state.has_sentence = false;
  }
  if (state.in_user_op) [[unlikely]]
    return failed(ErrorCode::kInvalidArgument, "the function of an op must not call Unisono");
  try {
    body();
    return static_cast<unisono_result>(ErrorCode::kOk);
  } catch (const Error& error) {
    return failed(error.code(), error.what(), error.still_written());
  } catch (const std::bad_alloc&) {
    return failed(ErrorCode::kOutOfMemory, "memory for the call's own bookkeeping could not be had");
  } catch (const std::exception& error) {
    return failed(ErrorCode::kInternal, error.what());
  } catch (...) {
    return failed(ErrorCode::kInternal, "an unknown exception");
  }
}

template <class T>
std::uint64_t number_of(const T* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

template <class T>
T* handle_of(std::uint64_t number) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(number));  // NOLINT(performance-no-int-to-ptr)
}

inline std::shared_ptr<Context> context_of(const unisono_context* handle) {
  return Contexts::instance().get(number_of(handle), "context", ErrorCode::kWrongProcess);
}

inline std::shared_ptr<Communicator> communicator_of(const unisono_communicator* handle) {
  return Communicators::instance().get(number_of(handle), "communicator", ErrorCode::kFreedCommunicator);
}

/// The handle of a communicator that was made, which is not the world. It is the user's until it is freed, or, once its
/// context was closed, stands for what `leave_remains` leaves.
unisono_communicator* publish(const std::shared_ptr<Communicator>& made);
/// Has a handle stand for no more than what its communicator was: the memory of the job goes with the context, whoever
/// frees the handle, and when.
void leave_remains(std::uint64_t handle);

inline std::shared_ptr<Request> request_of(const unisono_request* handle) {
  return Requests::instance().get(number_of(handle), "request", ErrorCode::kInvalidArgument);
}

template <class T>
T& output(T* pointer, const char* what) {
  if (pointer == nullptr)
    throw Error(ErrorCode::kInvalidArgument, std::string("the place for the ") + what + " is null");
  return *pointer;
}

/// A struct as this version knows it: what an older caller lacks is zero, and what a newer one has
/// beyond must be zero.
template <class Struct>
Struct import_struct(const Struct* given, const char* what) {
  Struct result{};
  const std::size_t size = given->struct_size;
  constexpr std::size_t kMost = 4096;
  // No version of a structure ends within a field; half an address must not be used.
  if (size < sizeof(std::size_t) || size > kMost || size % alignof(Struct) != 0) {
    throw Error(ErrorCode::kInvalidArgument, std::string(what) + ": struct_size is " + std::to_string(size) +
                                                 "; set it to sizeof(" + what + "), which is " +
                                                 std::to_string(sizeof(Struct)) + " in this version");
  }
  std::memcpy(&result, given, std::min(size, sizeof(Struct)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      throw Error(ErrorCode::kUnsupported, std::string(what) + ": struct_size is " + std::to_string(size) +
                                               " and a field beyond the " + std::to_string(sizeof(Struct)) +
                                               " bytes that this version knows is set; use a newer library");
    }
  }
  return result;
}

/// Refuses a structure of the caller's that cannot be filled.
template <class Struct>
void check_struct(const Struct* to, const char* what) {
  const std::size_t size = output(to, what).struct_size;
  if (size < sizeof(std::size_t) || size % alignof(Struct) != 0) {
    throw Error(ErrorCode::kInvalidArgument, std::string(what) + ": struct_size is " + std::to_string(size) +
                                                 "; set it to sizeof(" + what + "), which is " +
                                                 std::to_string(sizeof(Struct)) + " in this version");
  }
}

/// Gives what a structure of an older caller has room for.
template <class Struct>
void export_struct(const Struct& value, Struct* to, const char* what) {
  check_struct(to, what);
  const std::size_t size = to->struct_size;
  std::memcpy(to, &value, std::min(size, sizeof(Struct)));
  to->struct_size = size;
}

inline void throw_if_failed(const CallResult& result) {
  if (result.code != ErrorCode::kOk) throw Error(result.code, result.message, result.still_written);
}

/// What a receive has got, or a probe has found, for its user; `element_bytes` is of his elements. `status` may be
/// null.
void export_status(const MessageStatus& came, std::uint64_t element_bytes, unisono_status* status);

/// Checks a call, and what of it the ranks must have agreed on beforehand.
void prepare(const Communicator& communicator, const unisono_call& given, CheckedCall& checked);

/// Checks a call and makes a request of it, which is not started yet.
std::shared_ptr<Request> make_request(const std::shared_ptr<Communicator>& communicator, const unisono_call& given,
                                      bool persistent);

}  // namespace unisono::driver
