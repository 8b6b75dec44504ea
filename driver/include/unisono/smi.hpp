// SMI in typed C++: channels whose elements are pushed and popped one by one, and kernels. Over unisono/smi.h, which
// says what each does; failures are thrown as unisono::Error, also inside of kernels.
//
//   unisono::smi::SendChannel<float> to(world, {.count = n, .peer = 1, .port = 0});
//   for (float value : values) to.push(value);
//
// A channel is used by one thread, or one kernel, at a time. It need not be ended by anybody.
#ifndef UNISONO_SMI_HPP
#define UNISONO_SMI_HPP

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "unisono/smi.h"
#include "unisono/unisono.hpp"

namespace unisono {
inline namespace api {

namespace smi {

/// A communicator, as channels see it. To be copied.
class Group {
 public:
  /// All ranks of the job that the environment describes; see SMI_COMM_WORLD.
  static Group world() { return Group(unisono_smi_world()); }
  /// The ranks of a communicator, whose context must outlive the use. Not collective.
  explicit Group(const Communicator& communicator) {
    detail::check(unisono_smi_comm_of(communicator.handle(), &comm_));
  }
  explicit Group(SMI_Comm comm) : comm_(comm) {}

  int rank() const { return comm_->rank; }
  int size() const { return comm_->size; }
  /// Collective: see unisono_smi_split. Throws Error.
  Group split(int colour, int key) const {
    SMI_Comm made = nullptr;
    detail::check(unisono_smi_split(comm_, colour, key, &made));
    return Group(made);
  }
  void barrier(int port) const { detail::check(unisono_smi_barrier(comm_, port)); }
  /// Sends what was pushed, and waits until others have taken it.
  void finish() const { detail::check(unisono_smi_finish(comm_)); }
  SMI_Comm get() const { return comm_; }

 private:
  SMI_Comm comm_ = nullptr;
};

/// What a channel is opened with.
struct Open {
  long long count = 0;  ///< elements; of scatter, gather, allgather and alltoall: of each rank
  int peer = 0;         ///< destination, source or root
  int port = 0;         ///< 0 to 65535
  int degree = -1;      ///< asynchronicity degree, elements; -1: the library's choice
};

/// What all channels have. T: any element type that has a datatype.
template <class T>
class Channel {
 protected:
  Channel(int kind, const Group& group, const Open& open, SMI_Op op = 0)
      : channel_(unisono_smi_open(kind, open.count, SMI_TYPE_OF(detail::datatype_of<T>()), op, open.peer, open.port,
                                  group.get(), open.degree)) {}
  void collective(const T* send, T* receive, std::size_t calls) {
    detail::check(unisono_smi_collective(&channel_, send, receive, calls));
  }
  /// Several calls. One of the spans may be empty, where this rank does not give or get an element in them.
  void collective(std::span<const T> send, std::span<T> receive) {
    if (send.size() != receive.size() && !send.empty() && !receive.empty()) {
      constexpr unisono_result kInvalidCount = 2;
      throw Error(kInvalidCount, "port " + std::to_string(channel_.port) + ": " + std::to_string(send.size()) +
                                     " elements are given, and there is room for " + std::to_string(receive.size()) +
                                     "; pass as many of each, or none of what this rank does not give or get");
    }
    collective(send.empty() ? nullptr : send.data(), receive.empty() ? nullptr : receive.data(),
               send.empty() ? receive.size() : send.size());
  }

  unisono_smi_channel channel_;
};

template <class T>
class SendChannel : private Channel<T> {
 public:
  SendChannel(const Group& group, const Open& open) : Channel<T>(UNISONO_SMI_SEND, group, open) {}
  /// Takes the element; waits where the channel stalls.
  void push(const T& value) {
    unisono_smi_end* const end = this->channel_.end;
    if (end->cursor == end->limit) [[unlikely]] {
      detail::check(unisono_smi_push(&this->channel_, &value, 1));
      return;
    }
    unsigned char* const at = end->cursor;
    end->cursor = at + sizeof value;  // first: what is written next may be anything
    std::memcpy(at, &value, sizeof value);
  }
  void push(std::span<const T> values) {
    detail::check(unisono_smi_push(&this->channel_, values.data(), values.size()));
  }
  /// Sends what was pushed and is not on its way yet.
  void flush() { detail::check(unisono_smi_flush(&this->channel_)); }
};

template <class T>
class ReceiveChannel : private Channel<T> {
 public:
  ReceiveChannel(const Group& group, const Open& open) : Channel<T>(UNISONO_SMI_RECEIVE, group, open) {}
  /// The next element, when it has come.
  T pop() {
    T value;
    unisono_smi_end* const end = this->channel_.end;
    if (end->cursor == end->limit) [[unlikely]] {
      detail::check(unisono_smi_pop(&this->channel_, &value, 1));
      return value;
    }
    const unsigned char* const at = end->cursor;
    end->cursor += sizeof value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  void pop(std::span<T> values) { detail::check(unisono_smi_pop(&this->channel_, values.data(), values.size())); }
};

template <class T>
class BcastChannel : private Channel<T> {
 public:
  BcastChannel(const Group& group, const Open& open) : Channel<T>(UNISONO_SMI_BCAST, group, open) {}
  /// On the root, `value` goes to all; on the others it becomes the root's.
  void bcast(T& value) { this->collective(&value, &value, 1); }
  void bcast(std::span<T> values) { this->collective(values.data(), values.data(), values.size()); }
};

/// `result` is the root's. The others' elements are reduced in the order of ranks, then with the root's.
template <class T>
class ReduceChannel : private Channel<T> {
 public:
  ReduceChannel(const Group& group, SMI_Op op, const Open& open) : Channel<T>(UNISONO_SMI_REDUCE, group, open, op) {}
  void reduce(const T& value, T& result) { this->collective(&value, &result, 1); }
  void reduce(std::span<const T> values, std::span<T> results) {
    this->collective(values, results.size() > values.size() ? results.first(values.size()) : results);
  }
};

template <class T>
class AllreduceChannel : private Channel<T> {
 public:
  AllreduceChannel(const Group& group, SMI_Op op, const Open& open)
      : Channel<T>(UNISONO_SMI_ALLREDUCE, group, open, op) {}
  void allreduce(const T& value, T& result) { this->collective(&value, &result, 1); }
  void allreduce(std::span<const T> values, std::span<T> results) {
    this->collective(values, results.size() > values.size() ? results.first(values.size()) : results);
  }
};

/// Scatter, gather, allgather and alltoall: in each call an element is given, where this rank does so in that call, and
/// one is got; see smi.h for which.
template <class T, int kKind>
class ExchangeChannel : private Channel<T> {
 public:
  ExchangeChannel(const Group& group, const Open& open) : Channel<T>(kKind, group, open) {}
  void next(const T& value, T& result) { this->collective(&value, &result, 1); }
  void next(std::span<const T> values, std::span<T> results) { this->collective(values, results); }
};
template <class T>
using ScatterChannel = ExchangeChannel<T, UNISONO_SMI_SCATTER>;
template <class T>
using GatherChannel = ExchangeChannel<T, UNISONO_SMI_GATHER>;
template <class T>
using AllgatherChannel = ExchangeChannel<T, UNISONO_SMI_ALLGATHER>;
template <class T>
using AlltoallChannel = ExchangeChannel<T, UNISONO_SMI_ALLTOALL>;

}  // namespace smi

namespace kernel {

/// A kernel that was launched.
class Kernel {
 public:
  explicit Kernel(unisono_kernel* handle) : handle_(handle) {}
  Kernel(Kernel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Kernel& operator=(Kernel&&) = delete;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  /// Does not wait: the kernel goes on.
  ~Kernel() { unisono_kernel_forget(handle_); }
  /// Waits for its end. Throws what it has ended with.
  void wait() { detail::check(unisono_kernel_wait(std::exchange(handle_, nullptr))); }

 private:
  unisono_kernel* handle_;
};

namespace detail_of_kernels {

inline void run(void* argument) {
  try {
    (*static_cast<std::function<void()>*>(argument))();
  } catch (const Error& error) {
    unisono_kernel_fail(error.code(), error.what());
  } catch (const std::exception& error) {
    constexpr unisono_result kOfTheUser = 23;  // internal: there is no code for exceptions that are not Unisono's
    unisono_kernel_fail(kOfTheUser, error.what());
  }
}
inline void release(void* argument) { delete static_cast<std::function<void()>*>(argument); }

inline Kernel launch(const smi::Group& group, const std::string& name, std::function<void()> function, bool forever) {
  auto* const owned = new std::function<void()>(std::move(function));
  unisono_kernel* handle = nullptr;
  detail::check(unisono_kernel_launch(group.get(), name.c_str(), run, owned, release, forever ? 1 : 0, &handle));
  return Kernel(handle);
}

}  // namespace detail_of_kernels

/// Starts a function as a kernel of the group's rank; see unisono_kernel_launch.
inline Kernel launch(const smi::Group& group, const std::string& name, std::function<void()> function) {
  return detail_of_kernels::launch(group, name, std::move(function), false);
}
inline Kernel launch(const std::string& name, std::function<void()> function) {
  return launch(smi::Group::world(), name, std::move(function));
}
/// One that need not end.
inline void launch_forever(const smi::Group& group, const std::string& name, std::function<void()> function) {
  detail_of_kernels::launch(group, name, std::move(function), true);
}
inline void wait_all(const smi::Group& group) { detail::check(unisono_kernel_wait_all(group.get())); }
inline void wait_all() { wait_all(smi::Group::world()); }

/// A queue between kernels of one rank, of a given depth; see unisono_kernel_queue. T: trivially copyable.
template <class T>
class Queue {
 public:
  Queue(const char* name, std::size_t depth) : values_(std::make_unique<T[]>(depth)) {
    queue_.name = name;
    queue_.depth = depth;
  }
  void write(const T& value) {
    if (timed_) timed_ = unisono_kernel_queue_turn(&queue_, 1, 1) >= 0;
    if (queue_.written - queue_.read == queue_.depth) unisono_kernel_queue_wait(&queue_, 1);
    values_[queue_.written++ % queue_.depth] = value;
    if (queue_.reader_waits != 0) unisono_kernel_queue_wake(&queue_, 0);
  }
  T read() {
    if (timed_) timed_ = unisono_kernel_queue_turn(&queue_, 0, 1) >= 0;
    if (queue_.written == queue_.read) unisono_kernel_queue_wait(&queue_, 0);
    const T value = values_[queue_.read++ % queue_.depth];
    if (queue_.writer_waits != 0) unisono_kernel_queue_wake(&queue_, 1);
    return value;
  }

 private:
  unisono_kernel_queue queue_{};
  bool timed_ = true;  // until the library says no
  std::unique_ptr<T[]> values_;
};

}  // namespace kernel
}  // namespace api
}  // namespace unisono

#endif
