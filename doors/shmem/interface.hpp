// What all functions of shmem.h have in common.
#pragma once

#include <exception>

#include "doors/shmem/include/shmem.h"
#include "doors/shmem/job.hpp"

namespace unisono::shmem {

/// Runs the body of a function of C. A failure ends the job with its sentence.
template <class Body>
inline auto guarded(Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    Job::die(error.what());
  }
}

/// PE of the world that a context calls `pe`.
inline int pe_of(const char* operation, shmem_ctx_t ctx, int pe) {
  return Job::of(operation).teams().translate(operation, ctx, pe);
}

}  // namespace unisono::shmem

// The two forms of a function: of the default context, and of a context of the program. DEFINE(P, C, PE, NAME, TYPE)
// defines shmem_<P><NAME>..., whose first argument is C, and whose argument `pe` means PE of the world.
#define UNISONO_SHMEM_ON_CTX shmem_ctx_t ctx,
#define UNISONO_SHMEM_BOTH(NAME, TYPE) \
  DEFINE(, , pe, NAME, TYPE)           \
  DEFINE(ctx_, UNISONO_SHMEM_ON_CTX, pe_of(kOperation, ctx, pe), NAME, TYPE)
// Another name for a function, for tools that have taken its own; an alias is made in the file that defines it.
#define UNISONO_SHMEM_NAME(N) extern "C" __typeof__(pshmem_##N) pshmem_##N __attribute__((alias("shmem_" #N)));
// Begins the body of a function.
#define UNISONO_SHMEM_NAMED(TEXT) constexpr const char* kOperation = TEXT
