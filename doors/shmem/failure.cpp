#include "doors/shmem/failure.hpp"

#include "unisono/unisono.h"

namespace unisono::shmem {

void fail(const char* operation, const std::string& sentence) {
  throw Failure(std::string(operation) + ": " + sentence);
}

void check(const char* operation, int result) {
  if (result != 0) fail(operation, unisono_last_error());
}

}  // namespace unisono::shmem
