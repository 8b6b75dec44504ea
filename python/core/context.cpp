// Contexts: joining a job, its memory, settings, streams and kernels.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/core/array_memory.hpp"
#include "python/core/communicator.hpp"
#include "python/core/memory.hpp"
#include "python/core/module.hpp"
#include "python/core/outcome.hpp"
#include "python/core/request.hpp"
#include "unisono/kernels.h"
#include "unisono/unisono.h"

namespace unisono::python {

namespace {

/// Memory of unisono_allocate as an object with the buffer protocol. Arrays over it hold it; the last one gives it
/// back.
class Allocation {
 public:
  Allocation(unisono_context* context, std::uint64_t bytes) : context_(context), bytes_(bytes) {
    check(unisono_allocate(context, bytes, &memory_));
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { unisono_deallocate(context_, memory_); }  // refused in a child of fork, whose memory this is not

  std::uint64_t bytes() const { return bytes_; }
  /// More memory of the same context.
  std::unique_ptr<Allocation> another(std::uint64_t bytes) const {
    return std::make_unique<Allocation>(context_, bytes);
  }

  static int fill(PyObject* self, Py_buffer* view, int flags) {
    const auto* allocation = nb::inst_ptr<Allocation>(self);
    return PyBuffer_FillInfo(view, self, allocation->memory_, static_cast<Py_ssize_t>(allocation->bytes_), 0, flags);
  }

 private:
  unisono_context* context_;
  std::uint64_t bytes_;
  void* memory_ = nullptr;
};

/// Lanes and offload are 1 for on, -1 for off, 0 for what they are.
unisono_settings settings_of(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count,
                             double timeout, int lanes, int offload, int determinism,
                             const std::optional<std::string>& algorithms, int deadlines) {
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  settings.eager_limit = eager_limit;
  settings.segment_bytes = segment_bytes;
  settings.rx_buffer_count = rx_buffer_count;
  settings.timeout_seconds = timeout;
  settings.without_lanes = -lanes;
  settings.offload = offload;
  settings.determinism = determinism;
  settings.algorithms = algorithms ? algorithms->c_str() : nullptr;
  settings.deadlines = deadlines;
  return settings;
}

class Context {
 public:
  explicit Context(unisono_context* handle) : handle_(handle) {}

  std::unique_ptr<Allocation> allocate(std::uint64_t bytes) const {
    return std::make_unique<Allocation>(handle_, bytes);
  }

  Communicator world() const {
    unisono_communicator* world = nullptr;
    check(unisono_world(handle_, &world));
    return Communicator(world, false);
  }
  std::string dump(bool history) const {
    const char* text = nullptr;
    check(unisono_dump(handle_, history ? UNISONO_DUMP_HISTORY : UNISONO_DUMP_NOW, &text));
    return text;
  }
  void configure(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout,
                 int lanes, int offload, int determinism, const std::optional<std::string>& algorithms,
                 int deadlines) const {
    const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes, offload,
                                                  determinism, algorithms, deadlines);
    call_library([&] { return unisono_configure(handle_, &settings); });
  }
  nb::tuple settings() const {
    unisono_settings now{};
    now.struct_size = sizeof now;
    call_library([&] { return unisono_settings_now(handle_, &now); });
    return nb::make_tuple(now.eager_limit, now.segment_bytes, now.rx_buffer_count, now.timeout_seconds,
                          now.without_lanes<0, now.offload> 0, now.determinism, std::string(now.algorithms),
                          now.deadlines);
  }
  void reset() const {
    call_library([&] { return unisono_reset(handle_); });
  }
  /// Bytes that have gone through.
  std::uint64_t stream_write(std::uint32_t port, nb::handle data, double seconds) const {
    const Memory from(data, "elements", false);
    std::uint64_t done = 0;
    interruptibly([&] { return unisono_stream_write(handle_, port, from.data(), from.bytes(), seconds, &done); });
    return done;
  }
  std::uint64_t stream_read(std::uint32_t port, nb::handle data, double seconds) const {
    const Memory into(data, "into", true);
    std::uint64_t done = 0;
    interruptibly([&] { return unisono_stream_read(handle_, port, into.data(), into.bytes(), seconds, &done); });
    return done;
  }
  /// Starts a kernel. Its arguments: kind, datatype, and the scalar's bytes, an array, or a communicator.
  std::unique_ptr<Request> start_kernel(const std::string& name,
                                        const std::vector<std::tuple<unsigned, int, nb::object>>& given,
                                        const std::vector<const Request*>& wait_for, double timeout) const {
    release_abandoned();
    std::vector<unisono_kernel_parameter> parameters = kernel_parameters(name);
    std::vector<unisono_kernel_argument> arguments;
    InFlight made;
    made.arguments.reserve(given.size());
    for (const auto& [kind, datatype, value] : given) {
      unisono_kernel_argument one{};
      one.kind = kind;
      one.datatype = datatype;
      if (kind == UNISONO_KERNEL_MEMORY) {
        const bool writes = arguments.size() < parameters.size() && parameters[arguments.size()].writes != 0;
        made.arguments.emplace_back(value, "an argument", writes);
        one.data = made.arguments.back().data();
        one.bytes = made.arguments.back().bytes();
      } else if (kind == UNISONO_KERNEL_COMMUNICATOR) {
        made.used.push_back(value);
        one.communicator = nb::cast<const Communicator&>(value).handle();
      } else if (kind == UNISONO_KERNEL_CALL) {
        made.used.push_back(value);
        one.data = nb::cast<const Request&>(value).handle();
      } else {
        const auto bytes = nb::cast<nb::bytes>(value);
        std::memcpy(&one.bits, bytes.c_str(), std::min<std::size_t>(bytes.size(), sizeof one.bits));
      }
      arguments.push_back(one);
    }
    const std::vector<unisono_request*> before = handles_of(wait_for);
    const unisono_kernel_options options{sizeof options, before.data(), before.size(), timeout};
    call_library([&] {
      return unisono_kernel_start(handle_, name.c_str(), arguments.data(), arguments.size(), &options, &made.request);
    });
    return std::make_unique<Request>(std::move(made));
  }
  static std::vector<unisono_kernel_parameter> kernel_parameters(const std::string& name) {
    const unisono_kernel_parameter* first = nullptr;
    std::uint32_t count = 0;
    check(unisono_kernel_parameters(name.c_str(), &first, &count));
    return {first, first + count};
  }
  void progress() const {
    call_library([&] { return unisono_progress(handle_); });
  }
  int descriptor() const {
    int result = -1;
    call_library([&] { return unisono_descriptor(handle_, &result); });
    return result;
  }
  bool arm() const {
    int ready = 0;
    call_library([&] { return unisono_arm(handle_, &ready); });
    return ready != 0;
  }
  void abort(const std::string& reason) const {
    call_library([&] { return unisono_abort(handle_, reason.empty() ? nullptr : reason.c_str()); });
  }
  /// NumPy takes the memory of new arrays from here; returns what it took it from before.
  nb::object take_array_memory() const { return python::take_array_memory(handle_); }
  /// `compares`: what the ranks have called.
  void close(bool compares) const {
    Outcome outcome;
    {
      const WithoutGil released;
      outcome.code = compares ? unisono_finalize(handle_) : unisono_abandon(handle_);
      if (outcome.code != 0) outcome.text = unisono_last_error();
    }
    release_abandoned();
    if (outcome.code != 0) raise(outcome.code, outcome.text);
  }

 private:
  unisono_context* handle_;
};

struct ThreadJob {
  ThreadJob(std::uint32_t size, const char* network) { check(unisono_thread_job_create_on(size, network, &handle)); }
  ThreadJob(const ThreadJob&) = delete;
  ThreadJob& operator=(const ThreadJob&) = delete;
  ~ThreadJob() { unisono_thread_job_free(handle); }
  unisono_thread_job* handle = nullptr;
};

/// A key-value store that is written in Python. Its functions are called by the thread that joins, which has no GIL.
struct PythonStore {
  nb::callable put;
  nb::callable get;

  /// Whatever it raises, Python keeps it, and raises it as the cause.
  template <class Function>
  static int guarded(Function&& function) {
    constexpr int kRaised = 2;
    const nb::gil_scoped_acquire gil;
    try {
      return function();
    } catch (const nb::python_error&) {
      return kRaised;
    }
  }
  static int put_bytes(void* user, const char* key, const void* value, size_t bytes, double seconds) {
    return guarded([&] {
      static_cast<PythonStore*>(user)->put(key, nb::bytes(value, bytes), seconds);
      return 0;
    });
  }
  static int get_bytes(void* user, const char* key, void* value, size_t capacity, size_t* bytes, double seconds) {
    return guarded([&] {
      const nb::object found = static_cast<PythonStore*>(user)->get(key, seconds);
      if (found.is_none()) return static_cast<int>(UNISONO_JOIN_LATE);
      const auto text = nb::bytes(found);
      *bytes = text.size();
      std::memcpy(value, text.data(), std::min(text.size(), capacity));
      return 0;
    });
  }
};

/// Runs a joining function without the GIL.
template <class Join>
Context joined(Join&& join) {
  unisono_context* context = nullptr;
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = join(&context);
    if (outcome.code != 0) outcome.text = unisono_last_error();
  }
  if (outcome.code != 0) raise(outcome.code, outcome.text);
  return Context(context);
}

}  // namespace

void bind_contexts(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&Allocation::fill)}, {0, nullptr}};
  nb::class_<Allocation>(module, "Allocation", nb::type_slots(slots), "Memory that ranks on this machine share.")
      .def("__len__", &Allocation::bytes)
      .def("another", &Allocation::another, "bytes"_a, "More memory of the same context.");
  nb::class_<Context>(module, "Context", "One endpoint of a job.")
      .def("allocate", &Context::allocate, "bytes"_a)
      .def_prop_ro("world", &Context::world)
      .def("dump", &Context::dump, "history"_a)
      .def("configure", &Context::configure, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
           "lanes"_a, "offload"_a, "determinism"_a, "algorithms"_a.none(), "deadlines"_a)
      .def("progress", &Context::progress)
      .def("start_kernel", &Context::start_kernel, "name"_a, "arguments"_a, "wait_for"_a, "timeout"_a)
      .def_static(
          "kernel_parameters",
          [](const std::string& name) {
            std::vector<std::tuple<unsigned, int, bool>> all;
            for (const unisono_kernel_parameter& one : Context::kernel_parameters(name)) {
              all.emplace_back(one.kind, one.datatype, one.writes != 0);
            }
            return all;
          },
          "name"_a, "Kind, datatype, and whether it is written, of each argument of a kernel.")
      .def("stream_write", &Context::stream_write, "port"_a, "data"_a, "seconds"_a)
      .def("stream_read", &Context::stream_read, "port"_a, "data"_a, "seconds"_a)
      .def("descriptor", &Context::descriptor)
      .def("arm", &Context::arm)
      .def("abort", &Context::abort, "reason"_a)
      .def("settings", &Context::settings)
      .def("reset", &Context::reset)
      .def("take_array_memory", &Context::take_array_memory)
      .def("close", &Context::close, "compares"_a);
  module.def(
      "load_kernels", [](const std::string& path) { check(unisono_kernels_load(path.c_str())); }, "path"_a,
      "Loads a library of kernels for this process.");
  module.def(
      "dump_process",
      [](std::uint32_t pid, int what) {
        const char* text = nullptr;
        check(unisono_dump_process(pid, what, &text));
        return std::string(text);
      },
      "pid"_a, "what"_a, "What the ranks of the jobs of a process are doing, in words.");
  nb::class_<ThreadJob>(module, "ThreadJob", "A job whose ranks are threads.")
      .def(nb::init<std::uint32_t, const char*>(), "size"_a, "network"_a = "shm");

  module.def(
      "init",
      [](std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout,
         int lanes, int offload, int determinism, const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        return joined([&](unisono_context** context) { return unisono_init(&settings, context); });
      },
      "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a, "lanes"_a, "offload"_a, "determinism"_a,
      "algorithms"_a.none(), "deadlines"_a);
  module.def(
      "join",
      [](std::uint32_t rank, std::uint32_t size, nb::callable put, nb::callable get, std::uint32_t eager_limit,
         std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout, int lanes, int offload,
         int determinism, const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        PythonStore store{std::move(put), std::move(get)};
        unisono_join_functions functions{};
        functions.struct_size = sizeof functions;
        functions.rank = rank;
        functions.size = size;
        functions.user = &store;
        functions.put = &PythonStore::put_bytes;
        functions.get = &PythonStore::get_bytes;
        return joined([&](unisono_context** context) { return unisono_join(&functions, &settings, context); });
      },
      "rank"_a, "size"_a, "put"_a, "get"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
      "lanes"_a, "offload"_a, "determinism"_a, "algorithms"_a.none(), "deadlines"_a,
      "Joins through a key-value store of the caller's.");
  module.def(
      "thread_context",
      [](const ThreadJob& job, std::uint32_t rank, std::uint32_t eager_limit, std::uint32_t segment_bytes,
         std::uint32_t rx_buffer_count, double timeout, int lanes, int offload, int determinism,
         const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        return joined(
            [&](unisono_context** context) { return unisono_thread_context(job.handle, rank, &settings, context); });
      },
      "job"_a, "rank"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a, "lanes"_a, "offload"_a,
      "determinism"_a, "algorithms"_a.none(), "deadlines"_a);
  module.def(
      "process_configure",
      [](std::uint32_t pid, std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count,
         double timeout) {
        const unisono_settings settings =
            settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, 0, 0, 0, std::nullopt, 0);
        check(unisono_process_configure(pid, &settings));
      },
      "pid"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
      "What the communicators of a process's jobs are made with from now on.");
  module.def(
      "process_reset", [](std::uint32_t pid) { check(unisono_process_reset(pid)); }, "pid"_a,
      "Has a process's jobs give up their communicators.");
}

}  // namespace unisono::python
