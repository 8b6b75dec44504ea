// The program's global and static variables, as memory that peers reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono::shmem {

/// The pages of the executable that hold its variables, and what tells whether another process runs the same program.
struct ProgramData {
  std::span<std::byte> pages;   ///< whole pages; empty if there are none
  std::uint64_t signature = 0;  ///< of the layout and of the code: equal if the same program runs
};

/// Of this process.
ProgramData program_data();

/// From now on the pages are those of `memory`, shared memory of the same length, with the contents that they had; the
/// addresses stay. No other thread may write to them meanwhile. False, and nothing has changed, if the system refuses.
bool share(std::span<std::byte> pages, std::byte* memory);
/// The pages are private again, and keep their contents. False if the system refuses.
bool unshare(std::span<std::byte> pages);

}  // namespace unisono::shmem
