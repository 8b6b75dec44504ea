#include "doors/shmem/failure.hpp"

#include "unisono/unisono.h"

namespace unisono::shmem {

int code_named(std::string_view name) {
  constexpr int kMore = 128;
  for (int code = 1; code < kMore; ++code) {
    if (unisono_result_name(code) == name) return code;
  }
  return 1;
}

void fail(const char* operation, const std::string& sentence, std::string_view code) {
  throw Failure(code_named(code), std::string(operation) + ": " + sentence);
}

void check(const char* operation, int result) {
  if (result != 0) throw Failure(result, std::string(operation) + ": " + unisono_last_error());
}

}  // namespace unisono::shmem
