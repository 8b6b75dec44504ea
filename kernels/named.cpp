// The functions of unisono/kernels.h, and what kernels of a library ask for where they run in this process.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "core/text.hpp"
#include "driver/callbacks.hpp"
#include "driver/interface.hpp"
#include "kernels/library.hpp"
#include "kernels/named_run.hpp"
#include "kernels/rank.hpp"
#include "unisono/kernels.h"
#include "unisono/smi.h"

namespace unisono::kernels {
namespace {

/// Says what the kernel is at while it asks for something.
class Asks {
 public:
  explicit Asks(NamedRun::At what, std::uint32_t port = 0) {
    Kernel* const kernel = Rank::current_kernel();
    if (kernel == nullptr || kernel->named == nullptr) return;
    run_ = kernel->named.get();
    run_->at(what, port);
  }
  ~Asks() {
    if (run_ != nullptr) run_->at(NamedRun::At::kComputes);
  }
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;

 private:
  NamedRun* run_ = nullptr;  // of the kernel that runs, which may be dropped in the middle
};

unisono_result wait(unisono_request* request) {
  const Asks asks(NamedRun::At::kCommand);
  return unisono_wait(request);
}

unisono_result test(unisono_request* request, int* complete) {
  if (Kernel* const kernel = Rank::current_kernel(); kernel != nullptr && kernel->named) {
    kernel->named->at(NamedRun::At::kCommand);  // until it asks for something else
  }
  return unisono_test(request, complete);
}

unisono_result stream_write(unisono_context* context, uint32_t port, const void* data, uint64_t bytes, double seconds,
                            uint64_t* done) {
  const Asks asks(NamedRun::At::kGives, port);
  return unisono_stream_write(context, port, data, bytes, seconds, done);
}

unisono_result stream_read(unisono_context* context, uint32_t port, void* data, uint64_t bytes, double seconds,
                           uint64_t* done) {
  const Asks asks(NamedRun::At::kTakes, port);
  return unisono_stream_read(context, port, data, bytes, seconds, done);
}

const unisono_kernel_services kServices{
    sizeof(unisono_kernel_services),
    UNISONO_KERNEL_LIBRARY_VERSION,
    unisono_start,
    wait,
    test,
    unisono_request_free,
    unisono_communicator_rank,
    unisono_communicator_size,
    stream_write,
    stream_read,
    unisono_last_error,
    unisono_result_name,
    unisono_kernel_running,
    unisono_kernel_yield,
    unisono_kernel_tick,
    unisono_kernel_cycle,
    unisono_request_start,
};

struct Loaded {
  std::mutex mutex;
  std::unique_ptr<const Library> library;
};

Loaded& loaded() {
  static Loaded of_process;
  return of_process;
}

const Library& library() {
  Loaded& own = loaded();
  const std::lock_guard lock(own.mutex);
  if (own.library == nullptr) {
    const char* const path = std::getenv("UNISONO_KERNELS");  // NOLINT(concurrency-mt-unsafe)
    if (path == nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  "no library of kernels is loaded; start the program with `unisono run --kernels FILE.so`, or load it "
                  "(unisono_kernels_load)");
    }
    own.library = std::make_unique<const Library>(path, kServices);
  }
  return *own.library;
}

bool suits(const unisono_kernel_parameter& parameter, const unisono_kernel_argument& argument) {
  if (parameter.kind != argument.kind) return false;
  if (parameter.kind == UNISONO_KERNEL_COMMUNICATOR || parameter.kind == UNISONO_KERNEL_CALL) return true;
  const bool bytes = parameter.kind == UNISONO_KERNEL_MEMORY &&
                     (parameter.datatype == UNISONO_BYTE || argument.datatype == UNISONO_BYTE);
  return bytes || parameter.datatype == argument.datatype;
}

NamedRun::Arguments arguments_of(const unisono_kernel_entry& kernel, const driver::Context& context,
                                 std::span<const unisono_kernel_argument> given) {
  const std::string title = "kernel " + words_of(kernel) + ": ";
  const auto refuse = [&](const std::string& what) { throw Error(ErrorCode::kInvalidArgument, title + what); };
  if (given.size() != kernel.parameters_count) {
    refuse(formatted("{} arguments were given; it takes {}", given.size(), kernel.parameters_count));
  }
  NamedRun::Arguments arguments;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const unisono_kernel_argument& one = given[i];
    const unisono_kernel_parameter& parameter = kernel.parameters[i];
    if (!suits(parameter, one)) {
      refuse(formatted("argument {} is {}; needed is {}", i,
                       words_of(unisono_kernel_parameter{one.kind, one.datatype, parameter.writes, 0}),
                       words_of(parameter)));
    }
    if (one.kind == UNISONO_KERNEL_MEMORY) {
      if (one.data == nullptr && one.bytes != 0) refuse(formatted("the memory of argument {} is null", i));
      arguments.values.push_back({reinterpret_cast<std::uintptr_t>(one.data), one.bytes});
      arguments.memory.push_back({static_cast<std::byte*>(one.data), one.bytes, parameter.writes != 0});
    } else if (one.kind == UNISONO_KERNEL_COMMUNICATOR) {
      const auto communicator = driver::communicator_of(one.communicator);
      if (communicator->context.get() != &context) refuse(formatted("argument {} is of another context", i));
      arguments.values.push_back({arguments.communicators.size(), 0});
      arguments.communicators.push_back(communicator);
      arguments.handles.push_back(one.communicator);
    } else if (one.kind == UNISONO_KERNEL_CALL) {
      const auto request = driver::request_of(static_cast<unisono_request*>(one.data));
      if (!request->persistent()) {
        refuse(
            formatted("argument {} is a request that runs once; prepare the call (unisono_prepare; in Python "
                      "start=False)",
                      i));
      }
      if (request->communicator()->context.get() != &context) refuse(formatted("argument {} is of another context", i));
      if (!request->idle()) refuse(formatted("the call of argument {} is in flight; wait for it first", i));
      if (!request->call().before.empty()) {
        refuse(formatted("the call of argument {} follows others; let the kernel follow them", i));
      }
      if (std::find(arguments.calls.begin(), arguments.calls.end(), request) != arguments.calls.end()) {
        refuse(formatted("the call of argument {} is another argument, too; a call is in flight once", i));
      }
      arguments.values.push_back({arguments.calls.size(), 0});
      arguments.calls.push_back(request);
      arguments.call_handles.push_back(static_cast<unisono_request*>(one.data));
    } else {
      arguments.values.push_back({one.bits, 0});
    }
  }
  return arguments;
}

}  // namespace
}  // namespace unisono::kernels

using namespace unisono;           // NOLINT(google-build-using-namespace)
using namespace unisono::kernels;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_kernels_load(const char* path) {
  return driver::guarded([&] {
    if (path == nullptr) throw Error(ErrorCode::kInvalidArgument, "the path of the library of kernels is null");
    Loaded& own = loaded();
    const std::lock_guard lock(own.mutex);
    if (own.library != nullptr && own.library->path() == path) return;
    if (own.library != nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("kernels: {} is loaded; a process has one library of kernels", own.library->path()));
    }
    own.library = std::make_unique<const Library>(path, kServices);
  });
}

unisono_result unisono_kernel_parameters(const char* name, const unisono_kernel_parameter** parameters,
                                         uint32_t* count) {
  return driver::guarded([&] {
    if (name == nullptr) throw Error(ErrorCode::kInvalidArgument, "the name of the kernel is null");
    const unisono_kernel_entry& kernel = library().find(name);
    driver::output(parameters, "parameters") = kernel.parameters;
    driver::output(count, "number of parameters") = kernel.parameters_count;
  });
}

unisono_result unisono_kernel_start(unisono_context* context, const char* name,
                                    const unisono_kernel_argument* arguments, size_t arguments_count,
                                    const unisono_kernel_options* options, unisono_request** request) {
  return driver::guarded([&] {
    driver::output(request, "request") = nullptr;
    if (name == nullptr) throw Error(ErrorCode::kInvalidArgument, "the name of the kernel is null");
    if (arguments == nullptr && arguments_count != 0) {
      throw Error(ErrorCode::kInvalidArgument, formatted("kernel {}: the arguments are null", name));
    }
    driver::Callbacks::refuse("unisono_kernel_start");
    if (Rank::current() != nullptr) {
      throw Error(ErrorCode::kInvalidArgument, formatted("kernel {}: kernels are started by the program", name));
    }
    const auto own = driver::context_of(context);
    const unisono_kernel_entry& kernel = library().find(name);
    auto given = arguments_of(kernel, *own, {arguments, arguments_count});
    auto checked = std::make_unique<driver::CheckedCall>();
    if (options != nullptr) {
      const auto with = driver::import_struct(options, "unisono_kernel_options");
      for (std::size_t i = 0; i < with.wait_for_count; ++i) {
        checked->before.push_back(driver::request_of(with.wait_for[i]));
      }
      if (with.timeout_seconds != 0) checked->request.timeout = driver::duration_of(with.timeout_seconds, "timeout");
    }
    const auto rank = Rank::of(own);
    const auto run = std::make_shared<NamedRun>(kernel, std::move(given), context, rank->ports());
    checked->request.kernel = run;
    checked->request.call.collective = Collective::kNop;
    const auto world =
        driver::Communicators::instance().get(own->world_handle, "communicator", ErrorCode::kFreedCommunicator);
    const auto made = std::make_shared<driver::Request>(world, std::move(checked), false);
    made->start();
    if (!own->endpoint()->engine->runs_kernels()) rank->run_named(run);
    *request = driver::handle_of<unisono_request>(driver::Requests::instance().add(made));
  });
}

}  // extern "C"
