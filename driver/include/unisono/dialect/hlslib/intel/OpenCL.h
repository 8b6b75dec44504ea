// What hosts of SMI's programs use of hlslib's interface to Intel's OpenCL, over CL/cl.hpp beside it.
#ifndef UNISONO_DIALECT_HLSLIB_H
#define UNISONO_DIALECT_HLSLIB_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "CL/cl.hpp"

namespace hlslib {
namespace ocl {

enum class Access { read, write, readWrite };
enum class MemoryBank { unspecified, bank0, bank1, bank2, bank3 };

class ConfigurationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class RuntimeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// For containers whose memory is aligned to so many bytes.
template <class T, std::size_t kBytes>
class AlignedAllocator {
 public:
  using value_type = T;
  template <class Other>
  struct rebind {
    using other = AlignedAllocator<Other, kBytes>;
  };
  AlignedAllocator() = default;
  template <class Other>
  AlignedAllocator(const AlignedAllocator<Other, kBytes>& /*other*/) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kBytes}));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete (memory, std::align_val_t{kBytes}); }
  bool operator==(const AlignedAllocator& /*other*/) const { return true; }
  bool operator!=(const AlignedAllocator& /*other*/) const { return false; }
};

template <class T, Access kAccess>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t elements)
      : buffer_(cl::Context(), CL_MEM_READ_WRITE, elements * sizeof(T)), elements_(elements) {}
  template <class Begin>
  void CopyFromHost(std::size_t offset, std::size_t elements, Begin from) {
    std::copy_n(from, elements, data() + offset);
  }
  template <class Begin>
  void CopyFromHost(Begin from) {
    CopyFromHost(0, elements_, from);
  }
  template <class Begin>
  void CopyToHost(std::size_t offset, std::size_t elements, Begin to) const {
    std::copy_n(data() + offset, elements, to);
  }
  template <class Begin>
  void CopyToHost(Begin to) const {
    CopyToHost(0, elements_, to);
  }
  const cl::Buffer& devicePtr() const { return buffer_; }
  cl::Buffer& devicePtr() { return buffer_; }
  std::size_t nElements() const { return elements_; }

 private:
  T* data() const { return static_cast<T*>(buffer_.address()); }

  cl::Buffer buffer_;
  std::size_t elements_ = 0;
};

class Kernel {
 public:
  template <class... Arguments>
  Kernel(const cl::Program& program, const std::string& name, const Arguments&... arguments)
      : kernel_(program, name.c_str()) {
    cl_uint at = 0;
    (set(at++, arguments), ...);
  }
  cl::Kernel& kernel() { return kernel_; }
  const cl::Kernel& kernel() const { return kernel_; }
  cl::CommandQueue& commandQueue() { return queue_; }
  /// Seconds that it took, twice: as the device and as the host saw it.
  std::pair<double, double> ExecuteTask() { return taken(kernel_.start()); }
  std::future<std::pair<double, double>> ExecuteTaskAsync() {
    return std::async(std::launch::deferred, [run = kernel_.start()] { return taken(run); });
  }
  void ExecuteTaskFork() { kernel_.start(); }

 private:
  template <class T>
  void set(cl_uint at, const T& value) {
    kernel_.setArg(at, value);
  }
  template <class T, Access kAccess>
  void set(cl_uint at, const Buffer<T, kAccess>& value) {
    kernel_.setArg(at, value.devicePtr());
  }
  static std::pair<double, double> taken(const std::shared_ptr<cl::Run>& run) {
    if (run == nullptr) return {0, 0};
    run->wait();
    const double seconds = static_cast<double>(run->end - run->begin) / 1e9;
    return {seconds, seconds};
  }

  cl::Kernel kernel_;
  cl::CommandQueue queue_;
};

class Program {
 public:
  explicit Program(const std::string& path) : program_(path) {}
  template <class... Arguments>
  Kernel MakeKernel(const std::string& name, const Arguments&... arguments) {
    return Kernel(program_, name, arguments...);
  }

 private:
  cl::Program program_;
};

class Context {
 public:
  explicit Context(int /*device*/ = 0) {}
  Program MakeProgram(const std::string& path) {
    program_ = std::make_shared<Program>(path);
    return *program_;
  }
  Program& CurrentlyLoadedProgram() {
    if (program_ == nullptr) throw ConfigurationError("no program was loaded: MakeProgram comes first");
    return *program_;
  }
  template <class T, Access kAccess>
  Buffer<T, kAccess> MakeBuffer(std::size_t elements) {
    return Buffer<T, kAccess>(elements);
  }
  template <class T, Access kAccess>
  Buffer<T, kAccess> MakeBuffer(MemoryBank /*bank*/, std::size_t elements) {
    return Buffer<T, kAccess>(elements);
  }
  template <class T, Access kAccess, class Begin, class = typename std::iterator_traits<Begin>::iterator_category>
  Buffer<T, kAccess> MakeBuffer(Begin begin, Begin end) {
    Buffer<T, kAccess> buffer(static_cast<std::size_t>(std::distance(begin, end)));
    buffer.CopyFromHost(begin);
    return buffer;
  }
  template <class T, Access kAccess, class Begin, class = typename std::iterator_traits<Begin>::iterator_category>
  Buffer<T, kAccess> MakeBuffer(MemoryBank /*bank*/, Begin begin, Begin end) {
    return MakeBuffer<T, kAccess>(begin, end);
  }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace ocl
}  // namespace hlslib

/// What SMI generates for hosts, one for each program: all of it there starts its transport, which is not needed here.
#define UNISONO_SMI_INIT(program)                                                         \
  template <class... Ignored>                                                             \
  inline SMI_Comm SmiInit_##program(int rank, int ranks, Ignored&&... /*of_transport*/) { \
    return SMI_Comm(static_cast<char>(rank), static_cast<char>(ranks));                   \
  }

#endif
