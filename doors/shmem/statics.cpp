#include "doors/shmem/statics.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace unisono::shmem {

namespace {

constexpr std::uint64_t kPrime = 1099511628211U;

void mix(std::uint64_t& hash, const void* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * kPrime;
}

std::byte* at_address(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): the loader has numbers only
}

/// As memcpy, of whole pages. Not by it: sanitizers of the program take it for theirs, and what lies between variables
/// for forbidden.
void copy_pages(std::byte* to, const std::byte* from, std::size_t bytes) {
  using Word = std::uint64_t;
  auto* const target = reinterpret_cast<volatile Word*>(to);
  const auto* const source = reinterpret_cast<const volatile Word*>(from);
  for (std::size_t i = 0; i < bytes / sizeof(Word); ++i) target[i] = source[i];
}

/// The first object that the loader lists is the executable.
int look(dl_phdr_info* info, std::size_t /*size*/, void* user) {
  auto& found = *static_cast<ProgramData*>(user);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uintptr_t protected_until = 0;
  std::uint64_t hash = 14695981039346656037U;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0) {
      begin = at;
      end = at + part.p_memsz;
    }
    // What the loader has made read-only after it was relocated stays so.
    if (part.p_type == PT_GNU_RELRO) protected_until = at + part.p_memsz;
    const std::uint64_t layout[] = {part.p_type, part.p_flags, part.p_vaddr, part.p_memsz};
    mix(hash, layout, sizeof layout);
    constexpr std::size_t kEnough = 65536;
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) {
      mix(hash, at_address(at), std::min<std::size_t>(part.p_memsz, kEnough));
    }
  }
  begin = std::max(begin / page * page, (protected_until + page - 1) / page * page);
  end = (end + page - 1) / page * page;
  if (end > begin) found.pages = {at_address(begin), end - begin};
  found.signature = hash;
  return 1;
}

}  // namespace

ProgramData program_data() {
  ProgramData found;
  ::dl_iterate_phdr(look, &found);
  return found;
}

bool share(std::span<std::byte> pages, std::byte* memory) {
  copy_pages(memory, pages.data(), pages.size());
  // An old size of 0 makes a second mapping of the same shared pages.
  return ::mremap(memory, 0, pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) == pages.data();
}

bool unshare(std::span<std::byte> pages) {
  void* const own = ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) return false;
  copy_pages(static_cast<std::byte*>(own), pages.data(), pages.size());
  return ::mremap(own, pages.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) == pages.data();
}

}  // namespace unisono::shmem
