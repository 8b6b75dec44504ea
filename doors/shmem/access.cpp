#include "doors/shmem/access.hpp"

#include "doors/shmem/job.hpp"

namespace unisono::shmem {

void put_far(const char* operation, const Target& target, int pe, const void* source, std::uint64_t bytes) {
  Job::of(operation).remote()->put(operation, target, pe, source, bytes);
}

void get_far(const char* operation, const Target& target, int pe, void* dest, std::uint64_t bytes) {
  Job::of(operation).remote()->get(operation, target, pe, dest, bytes);
}

std::uint64_t atomic_far(const char* operation, Atomic what, std::uint32_t width, const Target& target, int pe,
                         std::uint64_t operand, std::uint64_t comparand, bool fetches) {
  return Job::of(operation).remote()->atomic(operation, what, width, target, pe, operand, comparand, fetches);
}

}  // namespace unisono::shmem
