// A device whose host writes any words into any registers: tables, programs, call descriptors.
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "platform/device/functional.hpp"
#include "platform/device/registers.hpp"
#include "platform/join/job.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint64_t kMemory = 1U << 20U;

/// A device that runs, with a communicator of itself alone.
void prepare(FunctionalDevice& device) {
  device.write(exchange::kTimeoutUs, 20'000);
  const std::uint32_t entry[registers::kEntryWords] = {registers::kStateValid, 0, 0, 1, 0, 4096, ~0U, ~0U};
  for (std::uint32_t word = 1; word < registers::kEntryWords; ++word) {
    device.write(registers::communicator(0, word), entry[word]);
  }
  device.write(registers::communicator(0, registers::kPathEager), 4096);
  device.write(registers::communicator(0, registers::kPathSegment), 4096);
  device.write(registers::communicator(0, registers::kPathRxBuffers), 4);
  device.write(registers::communicator(0, registers::kPathSizeRank), 1);
  device.write(registers::member(0, 0), registers::kMemberValid | static_cast<std::uint32_t>(kSelfSession));
  device.write(exchange::kControl, registers::kControlRun);
  device.write(registers::communicator(0, registers::kPathValid), 1);
  device.write(registers::communicator(0, registers::kState), registers::kStateValid);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  ThreadJob job(1);
  const std::unique_ptr<Poe> network = job.endpoint(0);
  FunctionalDevice device(*network, FunctionalDevice::usual_capability(), kMemory);
  try {
    prepare(device);
  } catch (const Error& error) {
    claim(false, error.what());
  }
  for (int act = 0; act < 100 && !input.empty(); ++act) {
    try {
      const auto kind = input.take<std::uint8_t>();
      if (kind % 8 == 0) {
        device.write(input.up_to(exchange::kBytes / 4) * 4, input.take<std::uint32_t>());
      } else if (kind % 8 == 1) {
        device.read(input.up_to(exchange::kBytes / 4) * 4 + kind / 64);
      } else if (kind % 8 == 2) {
        std::vector<std::byte> bytes(kind);
        device.store(device.memory_address() + input.take<std::uint32_t>() % (kMemory + 64), bytes);
      } else if (kind % 8 == 3) {
        std::vector<std::byte> bytes(kind);
        device.load(device.memory_address() + input.take<std::uint32_t>() % (kMemory + 64), bytes);
      } else {
        // A call: sound but for the bytes that the input alters.
        CallDescriptor call;
        call.collective = static_cast<Collective>(input.up_to(31));
        call.func = Func::kSum;
        call.dtype = Datatype::kInt32;
        call.count = input.up_to(64);
        call.src_address = device.memory_address();
        call.src_bytes = 256;
        call.dst_address = device.memory_address() + 4096;
        call.dst_bytes = 256;
        call.scratch_address = device.memory_address() + 8192;
        call.scratch_bytes = 4096;
        call.params_address = device.memory_address() + 16384;
        call.params_bytes = 4096;
        call.call_id = static_cast<std::uint32_t>(act + 1);
        call.deadline_us = 1000;
        auto words = encode(call);
        for (std::uint32_t changes = input.up_to(3); changes > 0; --changes) {
          words[input.up_to(15)] ^= input.take<std::uint64_t>();
        }
        for (std::uint32_t i = 0; i < 2 * words.size(); ++i) {
          device.write(exchange::kCallSlot + 4 * i, static_cast<std::uint32_t>(words[i / 2] >> (i % 2 * 32)));
        }
        device.write(exchange::kDoorbell, 1);
        device.wait(std::chrono::microseconds(200));
      }
      if ((device.read(exchange::kStatus) & registers::kStatusCompletion) != 0) {
        device.read(exchange::kCompleted);
        const std::uint32_t code = device.read(exchange::kCompletedCode);
        claim((code & registers::kCodeGiven) != 0, "a completion has a code");
        claim(name_of(static_cast<ErrorCode>(code & 0xFFFFU))[0] != '?', "a code is one of the specification");
      }
    } catch (const Error& error) {
      claim(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kOutOfMemory ||
                error.code() == ErrorCode::kDeviceLost,
            error.what());
    }
  }
  return 0;
}
