// Clocks of SMI's hosts.
#ifndef UNISONO_DIALECT_UTILS_HPP
#define UNISONO_DIALECT_UTILS_HPP

#include <chrono>

typedef long unsigned int timestamp_t;

inline timestamp_t current_time_usecs() {
  using std::chrono::system_clock;
  return static_cast<timestamp_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch()).count());
}
inline long current_time_nsecs() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count();
}

#endif
