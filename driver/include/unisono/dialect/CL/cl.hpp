// What hosts of SMI's programs use of OpenCL's C++ interface, for kernels that were built by `unisono kernel build`.
// The device is this process: its memory is the host's, and kernels run as fibres.
#ifndef UNISONO_DIALECT_CL_HPP
#define UNISONO_DIALECT_CL_HPP

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "smi/communicator.h"
#include "unisono/dialect/table.h"

using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;
using cl_char = std::int8_t;
using cl_bool = std::uint32_t;
using cl_mem = void*;
enum { CL_SUCCESS = 0, CL_FALSE = 0, CL_TRUE = 1 };
enum { CL_MEM_READ_WRITE = 1, CL_MEM_WRITE_ONLY = 2, CL_MEM_READ_ONLY = 4 };
enum {
  CL_CHANNEL_1_INTELFPGA = 1 << 16,
  CL_CHANNEL_2_INTELFPGA = 2 << 16,
  CL_CHANNEL_3_INTELFPGA = 3 << 16,
  CL_CHANNEL_4_INTELFPGA = 4 << 16
};
enum { CL_PROFILING_COMMAND_START = 1, CL_PROFILING_COMMAND_END = 2 };

namespace cl {

[[noreturn]] inline void fail(const std::string& sentence) {
  std::fprintf(stderr, "unisono: error: %s\n", sentence.c_str());
  std::exit(1);
}

class Device {};
class Platform {};
class Context {
 public:
  Context() = default;
};

/// Memory; its first word is its address, which is what kernels are given.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Context& /*context*/, int /*flags*/, std::size_t bytes, void* /*host*/ = nullptr,
         cl_int* status = nullptr)
      : address_(std::aligned_alloc(64, (bytes + 64) / 64 * 64)), owner_(address_, &std::free) {
    std::memset(address_, 0, bytes);
    if (status != nullptr) *status = CL_SUCCESS;
  }
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A library of kernels.
class Program {
 public:
  Program() = default;
  explicit Program(const std::string& path) : path_(path) {
    const std::string there = path.find('/') == std::string::npos ? "./" + path : path;
    void* const library = dlopen(there.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail("no kernels: " + std::string(dlerror()) + "; make them by unisono kernel build");
    using Table = const unisono_dialect_kernel* (*)();
    const auto table = reinterpret_cast<Table>(dlsym(library, "unisono_dialect_kernels"));
    if (table == nullptr) fail(path + " was not made by unisono kernel build");
    first_ = table();
  }
  /// Null for one that is not there, as those of SMI's own transport are not.
  const unisono_dialect_kernel* find(const std::string& name) const {
    std::string known;
    for (const unisono_dialect_kernel* at = first_; at != nullptr; at = at->next) {
      if (name == at->name) return at;
      known = std::string(at->name) + (known.empty() ? "" : ", ") + known;
    }
    if (name.rfind("smi_kernel_", 0) == 0) return nullptr;
    fail(path_ + " has no kernel " + name + "; it has: " + known);
  }

 private:
  std::string path_;
  const unisono_dialect_kernel* first_ = nullptr;
};

/// A run of a kernel.
struct Run {
  const unisono_dialect_kernel* kernel = nullptr;
  std::vector<std::vector<unsigned char>> arguments;
  unisono_kernel* handle = nullptr;
  std::uint64_t begin = 0;  // nanoseconds: of the simulated clock, if there is one
  std::uint64_t end = 0;

  static void body(void* argument) {
    Run& run = **static_cast<std::shared_ptr<Run>*>(argument);
    std::vector<const void*> given;
    for (const auto& bytes : run.arguments) given.push_back(bytes.data());
    run.kernel->run(given.data());
    run.end = unisono_kernel_nanoseconds(unisono_smi_world());
  }
  void wait() {
    if (handle != nullptr) unisono_smi_check(unisono_kernel_wait(std::exchange(handle, nullptr)));
  }
};

class Event {
 public:
  void wait() const {
    if (run_ != nullptr) run_->wait();
  }
  template <int kWhat>
  cl_ulong getProfilingInfo(cl_int* status = nullptr) const {
    if (status != nullptr) *status = CL_SUCCESS;
    return kWhat == CL_PROFILING_COMMAND_START ? run_->begin : run_->end;
  }
  std::shared_ptr<Run> run_;
};

/// Copies are the same kernel.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Program& program, const char* name, cl_int* status = nullptr) : state_(std::make_shared<State>()) {
    state_->name = name;
    state_->kernel = program.find(name);
    if (status != nullptr) *status = CL_SUCCESS;
  }
  cl_int setArg(cl_uint at, std::size_t bytes, const void* value) {
    auto& all = state_->arguments;
    if (all.size() <= at) all.resize(at + 1);
    all[at].assign(static_cast<const unsigned char*>(value), static_cast<const unsigned char*>(value) + bytes);
    return CL_SUCCESS;
  }
  template <class T>
  cl_int setArg(cl_uint at, const T& value) {
    return setArg(at, sizeof value, &value);
  }
  cl_int setArg(cl_uint at, const Buffer& value) {
    void* const address = value.address();
    return setArg(at, sizeof address, &address);
  }
  /// Starts it; null for one of SMI's transport, which is not needed.
  std::shared_ptr<Run> start() const {
    if (state_->kernel == nullptr) return nullptr;
    const unisono_dialect_kernel& kernel = *state_->kernel;
    auto run = std::make_shared<Run>();
    run->kernel = state_->kernel;
    run->arguments = state_->arguments;
    if (run->arguments.size() != kernel.arguments) {
      fail("kernel " + state_->name + " has " + std::to_string(kernel.arguments) + " arguments, and " +
           std::to_string(run->arguments.size()) + " were given");
    }
    for (unsigned i = 0; i < kernel.arguments; ++i) {
      if (run->arguments[i].size() == kernel.sizes[i]) continue;
      fail("kernel " + state_->name + ": argument " + std::to_string(i) + " has " + std::to_string(kernel.sizes[i]) +
           " bytes, and " + std::to_string(run->arguments[i].size()) + " were given");
    }
    run->begin = run->end = unisono_kernel_nanoseconds(unisono_smi_world());
    auto* const argument = new std::shared_ptr<Run>(run);
    const auto release = [](void* given) { delete static_cast<std::shared_ptr<Run>*>(given); };
    unisono_smi_check(unisono_kernel_launch(unisono_smi_world(), state_->name.c_str(), Run::body, argument, release, 0,
                                            &run->handle));
    return run;
  }

 private:
  struct State {
    std::string name;
    const unisono_dialect_kernel* kernel = nullptr;
    std::vector<std::vector<unsigned char>> arguments;
  };
  std::shared_ptr<State> state_;
};

/// Copies are the same queue. What is enqueued begins at once.
class CommandQueue {
 public:
  CommandQueue() : runs_(std::make_shared<std::vector<std::shared_ptr<Run>>>()) {}
  CommandQueue(const Context& /*context*/, const Device& /*device*/, int /*options*/ = 0, cl_int* status = nullptr)
      : CommandQueue() {
    if (status != nullptr) *status = CL_SUCCESS;
  }
  cl_int enqueueTask(const Kernel& kernel, const std::vector<Event>* /*after*/ = nullptr, Event* event = nullptr) {
    std::shared_ptr<Run> run = kernel.start();
    if (event != nullptr) event->run_ = run;
    if (run != nullptr) runs_->push_back(std::move(run));
    return CL_SUCCESS;
  }
  cl_int enqueueWriteBuffer(const Buffer& to, cl_bool /*blocks*/, std::size_t offset, std::size_t bytes,
                            const void* from) {
    std::memcpy(static_cast<unsigned char*>(to.address()) + offset, from, bytes);
    return CL_SUCCESS;
  }
  cl_int enqueueReadBuffer(const Buffer& from, cl_bool /*blocks*/, std::size_t offset, std::size_t bytes, void* to) {
    std::memcpy(to, static_cast<unsigned char*>(from.address()) + offset, bytes);
    return CL_SUCCESS;
  }
  cl_int flush() { return CL_SUCCESS; }
  cl_int finish() {
    for (const auto& run : *runs_) run->wait();
    runs_->clear();
    return CL_SUCCESS;
  }

 private:
  std::shared_ptr<std::vector<std::shared_ptr<Run>>> runs_;
};

}  // namespace cl

#endif
