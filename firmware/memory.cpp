// The functions that the compiler calls without being asked, in the smallest form. There is no C library.
#include <cstddef>
#include <cstdint>

extern "C" {

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
void* memcpy(void* to, const void* from, std::size_t bytes);
void* memset(void* to, int value, std::size_t bytes);

void* memcpy(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<std::uint8_t*>(to);
  const auto* source = static_cast<const std::uint8_t*>(from);
  // Moves and calls are aligned: copy words while both ends are, and the rest by bytes.
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 4 == 0) {
    for (; bytes >= 4; bytes -= 4, target += 4, source += 4) {
      *reinterpret_cast<std::uint32_t*>(target) = *reinterpret_cast<const std::uint32_t*>(source);
    }
  }
  for (; bytes != 0; --bytes) *target++ = *source++;
  return to;
}

void* memset(void* to, int value, std::size_t bytes) {
  auto* target = static_cast<std::uint8_t*>(to);
  for (; bytes != 0; --bytes) *target++ = static_cast<std::uint8_t>(value);
  return to;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

}  // extern "C"
