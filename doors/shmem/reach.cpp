#include "doors/shmem/reach.hpp"

#include <cinttypes>
#include <cstdio>

#include "doors/shmem/failure.hpp"

namespace unisono::shmem {

Reach reach;

namespace {

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<std::uintptr_t>(address));
  return text;
}

}  // namespace

std::string describe_address(const void* address, std::uint64_t bytes) {
  for (const Region& region : reach.regions) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.begin);
    if (offset < region.bytes) {
      return std::to_string(bytes) + " bytes at " + hex(address) + " reach beyond the end of " +
             (&region == &reach.regions[kHeapRegion] ? "the symmetric heap" : "the program's variables") +
             ", which is " + std::to_string(region.bytes - offset) + " bytes further";
    }
  }
  return hex(address) + " is not in symmetric memory; use what shmem_malloc gave" +
         (reach.regions[kStaticsRegion].bytes != 0
              ? ", or a global or static variable of the program (not of a shared library, nor of a thread)"
              : "; global and static variables are not symmetric in this job, since its PEs do not run one program "
                "that allows it");
}

void refuse(const char* operation, const void* address, std::uint64_t bytes, int pe) {
  if (reach.size == 0) fail(operation, "there is no job; call shmem_init before, and shmem_finalize after all else");
  if (pe < 0 || pe >= reach.size) {
    fail(operation, "PE " + std::to_string(pe) + " was given; there are PEs 0 to " + std::to_string(reach.size - 1));
  }
  fail(operation, describe_address(address, bytes));
}

}  // namespace unisono::shmem
