// The functions that kernels of a library call, as calls of its table (unisono/kernel_library.h). `unisono kernel
// build` includes this once, behind the kernels' sources; it is not for programs, which have libunisono.
#ifndef UNISONO_KERNEL_TRAMPOLINES_HPP
#define UNISONO_KERNEL_TRAMPOLINES_HPP

#include "unisono/kernel_export.hpp"

namespace unisono {
inline namespace api {
namespace kernel {
namespace detail_of_exports {

inline const unisono_kernel_services* services = nullptr;
inline unisono_kernel_library library{};

}  // namespace detail_of_exports
}  // namespace kernel
}  // namespace api
}  // namespace unisono

extern "C" {

unisono_result unisono_start(unisono_communicator* communicator, const unisono_call* call, unisono_request** request) {
  return unisono::kernel::detail_of_exports::services->start(communicator, call, request);
}
unisono_result unisono_wait(unisono_request* request) {
  return unisono::kernel::detail_of_exports::services->wait(request);
}
unisono_result unisono_test(unisono_request* request, int* complete) {
  return unisono::kernel::detail_of_exports::services->test(request, complete);
}
unisono_result unisono_request_start(unisono_request* request) {
  return unisono::kernel::detail_of_exports::services->request_start(request);
}
void unisono_request_free(unisono_request* request) {
  unisono::kernel::detail_of_exports::services->request_free(request);
}
unisono_result unisono_communicator_rank(const unisono_communicator* communicator, uint32_t* rank) {
  return unisono::kernel::detail_of_exports::services->rank(communicator, rank);
}
unisono_result unisono_communicator_size(const unisono_communicator* communicator, uint32_t* size) {
  return unisono::kernel::detail_of_exports::services->size(communicator, size);
}
unisono_result unisono_stream_write(unisono_context* context, uint32_t port, const void* data, uint64_t bytes,
                                    double seconds, uint64_t* done) {
  return unisono::kernel::detail_of_exports::services->stream_write(context, port, data, bytes, seconds, done);
}
unisono_result unisono_stream_read(unisono_context* context, uint32_t port, void* data, uint64_t bytes, double seconds,
                                   uint64_t* done) {
  return unisono::kernel::detail_of_exports::services->stream_read(context, port, data, bytes, seconds, done);
}
const char* unisono_last_error(void) { return unisono::kernel::detail_of_exports::services->last_error(); }
const char* unisono_result_name(unisono_result result) {
  return unisono::kernel::detail_of_exports::services->result_name(result);
}
int unisono_kernel_running(void) { return unisono::kernel::detail_of_exports::services->running(); }
void unisono_kernel_yield(int polls) { unisono::kernel::detail_of_exports::services->yield(polls); }
void unisono_kernel_tick(uint64_t cycles) { unisono::kernel::detail_of_exports::services->tick(cycles); }
uint64_t unisono_kernel_cycle(void) { return unisono::kernel::detail_of_exports::services->cycle(); }

__attribute__((visibility("default"))) const unisono_kernel_library* unisono_kernel_library_open(
    const unisono_kernel_services* services) {
  if (services->version != UNISONO_KERNEL_LIBRARY_VERSION || services->struct_size < sizeof *services) return nullptr;
  unisono::kernel::detail_of_exports::services = services;
  const auto& entries = unisono::kernel::detail_of_exports::entries();
  unisono::kernel::detail_of_exports::library = {sizeof(unisono_kernel_library), UNISONO_KERNEL_LIBRARY_VERSION,
                                                 entries.data(), static_cast<uint32_t>(entries.size()), 0};
  return &unisono::kernel::detail_of_exports::library;
}

}  // extern "C"

#endif
