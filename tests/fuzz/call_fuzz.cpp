// Calls of the C interface with any numbers in any field, on a job of one rank; and programs of any moves, carried out.
#include <array>
#include <memory>
#include <vector>

#include "core/crc32c.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "unisono/unisono.h"

using unisono::fuzz::claim;

namespace {

/// A context whose world has this process only.
unisono_communicator* world() {
  static unisono_communicator* const made = [] {
    for (const char* name : {"UNISONO_SIZE", "UNISONO_RANK", "UNISONO_PLATFORM", "UNISONO_ALGORITHM"}) unsetenv(name);
    setenv("UNISONO_TUNING", "off", 1);
    unisono_context* context = nullptr;
    unisono_communicator* communicator = nullptr;
    claim(unisono_init(nullptr, &context) == 0 && unisono_world(context, &communicator) == 0, "a job of one rank");
    return communicator;
  }();
  return made;
}

/// Mostly a small number, sometimes any.
std::int64_t number(unisono::fuzz::Input& input, std::uint32_t most) {
  const auto kind = input.take<std::uint8_t>();
  return kind < 8 ? input.take<std::int64_t>() : static_cast<std::int64_t>(kind % (most + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  unisono::fuzz::Input input(data, size);
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = static_cast<unisono_collective>(number(input, 33));
  call.datatype = static_cast<unisono_datatype>(number(input, 21));
  call.op = static_cast<unisono_op>(number(input, 14));
  call.in_place = static_cast<int>(number(input, 1));
  call.root = number(input, 1);
  call.tag = number(input, 1);
  call.count = number(input, 60);
  call.window_offset = static_cast<std::uint64_t>(number(input, 8));
  call.timeout_seconds = 0.001;
  // Each in memory of its own length, so that any byte beyond is noticed.
  const auto src_bytes = input.take<std::uint16_t>() % 1024U;
  const auto dst_bytes = input.take<std::uint16_t>() % 1024U;
  const std::unique_ptr<std::byte[]> src(new std::byte[src_bytes]());
  const std::unique_ptr<std::byte[]> dst(new std::byte[dst_bytes]());
  call.src = src.get();
  call.src_bytes = src_bytes;
  call.dst = dst.get();
  call.dst_bytes = dst_bytes;
  const auto arrays = input.take<std::uint8_t>();
  std::array<std::unique_ptr<std::int64_t[]>, 4> counts;
  for (auto& array : counts) {
    array.reset(new std::int64_t[1]);
    array[0] = number(input, 60);
  }
  if ((arrays & 1U) != 0) call.send_counts = counts[0].get();
  if ((arrays & 2U) != 0) call.send_displacements = counts[1].get();
  if ((arrays & 4U) != 0) call.recv_counts = counts[2].get();
  if ((arrays & 8U) != 0) call.recv_displacements = counts[3].get();
  if ((arrays & 16U) != 0) unisono_window(world(), dst.get(), dst_bytes);
  if ((arrays & 32U) != 0) call.algorithm = "linear";
  if ((arrays & 64U) != 0) call.struct_size = static_cast<std::size_t>(number(input, 200)) % 300;

  unisono_program* program = nullptr;
  const auto rest = input.rest();
  std::vector<std::uint8_t> file(rest.begin(), rest.end());
  if (file.size() >= 4) {
    const std::uint32_t sum = unisono::crc32c({file.data(), file.size() - 4});
    std::memcpy(file.data() + file.size() - 4, &sum, sizeof sum);
    const unisono_result read = unisono_program_parse(file.data(), file.size(), &program);
    claim((read == 0) == (program != nullptr), "a program, or an error");
    call.program = program;
  }
  unisono_call whole = call;
  // A struct_size beyond the structure is a promise that more memory stands there.
  std::array<std::byte, 4096> larger{};
  std::memcpy(larger.data(), &whole, sizeof whole);
  const unisono_result result = unisono_run(world(), reinterpret_cast<const unisono_call*>(larger.data()));
  claim(unisono_result_name(result)[0] != '?', "a result is one of the specification");
  claim((result == 0) == (unisono_last_error()[0] == '\0'), "an error has a sentence");
  unisono_program_free(program);
  unisono_window(world(), nullptr, 0);
  return 0;
}
