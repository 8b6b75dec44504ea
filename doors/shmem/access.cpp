#include "doors/shmem/access.hpp"

#include "doors/shmem/job.hpp"

namespace unisono::shmem {

namespace {

/// Of no bytes only the PE is looked at.
Target target_of(const char* operation, const void* address, std::uint64_t bytes, int pe) {
  return resolve(operation, bytes == 0 ? reach.regions[kHeapRegion].begin : address, bytes, pe);
}

}  // namespace

void put_far(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe) {
  const Target target = target_of(operation, dest, bytes, pe);
  if (bytes != 0) Job::of(operation).remote()->put(operation, target, pe, source, bytes);
}

void get_far(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe) {
  const Target target = target_of(operation, source, bytes, pe);
  if (bytes != 0) Job::of(operation).remote()->get(operation, target, pe, dest, bytes);
}

std::uint64_t atomic_far(const char* operation, Atomic what, std::uint32_t width, const Target& target, int pe,
                         std::uint64_t operand, std::uint64_t comparand, bool fetches) {
  return Job::of(operation).remote()->atomic(operation, what, width, target, pe, operand, comparand, fetches);
}

}  // namespace unisono::shmem
