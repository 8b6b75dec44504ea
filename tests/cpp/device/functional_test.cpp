// The registers of the functional device, used as a host would without the library.
#include "platform/device/functional.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "core/error.hpp"
#include "platform/device/registers.hpp"
#include "platform/join/job.hpp"

namespace unisono::test {
namespace {

using namespace registers;  // NOLINT(google-build-using-namespace)

class Functional : public testing::Test {
 protected:
  Functional()
      : job_(1), network_(job_.endpoint(0)), device_(*network_, FunctionalDevice::usual_capability(), 1 << 20) {
    device_.write(exchange::kControl, kControlRun);
  }

  void ring(const CallDescriptor& call) {
    const auto words = encode(call);
    for (std::uint32_t i = 0; i < 32; ++i) {
      device_.write(exchange::kCallSlot + 4 * i, static_cast<std::uint32_t>(words[i / 2] >> 32U * (i % 2)));
    }
    device_.write(exchange::kDoorbell, 1);
  }
  void nop(std::uint32_t number, std::uint32_t after = 0) {
    CallDescriptor call;
    call.call_id = number;
    call.wait_for0 = after;
    ring(call);
  }
  void communicator() {
    device_.write(exchange::kTransport, kSessionOpen | 0);
    device_.write(member(0, 0), kMemberValid | 0);
    const Capability all = FunctionalDevice::usual_capability();
    const std::array<std::uint32_t, 6> controller{9, 0, 1, 0, 4096, all.datatypes};
    device_.write(unisono::registers::communicator(0, kNumber), controller);
    device_.write(unisono::registers::communicator(0, kFuncs), all.funcs);
    const std::array<std::uint32_t, 7> path{9, 0, 4096, 4096, 4, 1, 1};
    device_.write(unisono::registers::communicator(0, kPathNumber), path);
    device_.write(unisono::registers::communicator(0, kState), kStateValid | 1U << kStateChangesShift);
  }
  std::pair<std::uint32_t, std::uint32_t> completion() {
    for (int i = 0; i < 1000 && (device_.read(exchange::kStatus) & kStatusCompletion) == 0; ++i) {
      device_.wait(std::chrono::milliseconds(1));
    }
    const std::uint32_t number = device_.read(exchange::kCompleted);
    return {number, device_.read(exchange::kCompletedCode)};
  }

  ThreadJob job_;
  std::unique_ptr<Poe> network_;
  FunctionalDevice device_;
};

TEST_F(Functional, SaysWhatItIs) {
  EXPECT_EQ(device_.read(exchange::kIdentity), 0x554e4953U);
  EXPECT_EQ(device_.read(exchange::kVersion), kAbiVersion << 16U | kWireVersion);
  const Capability own = decode_capability(
      {device_.read(exchange::kCapability) | std::uint64_t{device_.read(exchange::kCapability + 4)} << 32U});
  EXPECT_EQ(own, FunctionalDevice::usual_capability());
  EXPECT_TRUE(own.remote_memory);
  EXPECT_FALSE(own.streams || own.casts || own.strides || own.lanes);
  EXPECT_TRUE(own.programs);
  EXPECT_EQ(own.funcs >> 15U, 0U);  // no operators of the user
}

TEST_F(Functional, RefusesWhatIsNoRegister) {
  EXPECT_THROW(device_.read(exchange::kDoorbell), Error);
  EXPECT_THROW(device_.write(exchange::kIdentity, 1), Error);
  EXPECT_THROW(device_.write(exchange::kCompleted, 1), Error);
  EXPECT_THROW(device_.read(0x0054), Error);
  EXPECT_THROW(device_.read(2), Error);
  EXPECT_THROW(device_.read(exchange::kBytes), Error);
  EXPECT_THROW(device_.write(exchange::kRxBuffers, 1), Error);
}

TEST_F(Functional, FirmwareIsReachedWhileItDoesNotRun) {
  EXPECT_THROW(device_.write(exchange::kFirmwareData, 1), Error);
  device_.write(exchange::kControl, 0);
  EXPECT_EQ(device_.read(exchange::kStatus) & kStatusReady, 0U);
  device_.write(exchange::kFirmwareAddress, 8);
  device_.write(exchange::kFirmwareData, 11);
  device_.write(exchange::kFirmwareData, 12);
  EXPECT_EQ(device_.read(exchange::kFirmwareAddress), 16U);
  device_.write(exchange::kFirmwareAddress, 8);
  EXPECT_EQ(device_.read(exchange::kFirmwareData), 11U);
  EXPECT_EQ(device_.read(exchange::kFirmwareData), 12U);
}

TEST_F(Functional, ANopNeedsNoCommunicatorAndIsAnsweredOnce) {
  EXPECT_EQ(completion(), (std::pair<std::uint32_t, std::uint32_t>{0, 0}));
  nop(7);
  EXPECT_EQ(completion(), (std::pair<std::uint32_t, std::uint32_t>{7, kCodeGiven}));
  EXPECT_EQ(device_.read(exchange::kCompleted), 0U);
  EXPECT_EQ(device_.read(exchange::kCompletedCode), 0U);
}

TEST_F(Functional, CarriesOutACopyInItsMemory) {
  communicator();
  const std::array<std::byte, 5> given{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  device_.store(device_.memory_address() + 3, given);
  CallDescriptor call;
  call.collective = Collective::kCopy;
  call.dtype = Datatype::kByte;
  call.count = 5;
  call.src_address = device_.memory_address() + 3;
  call.dst_address = device_.memory_address() + 1000;
  call.src_bytes = call.dst_bytes = 5;
  call.call_id = 3;
  ring(call);
  EXPECT_EQ(completion(), (std::pair<std::uint32_t, std::uint32_t>{3, kCodeGiven}));
  std::array<std::byte, 5> out{};
  device_.load(device_.memory_address() + 1000, out);
  EXPECT_EQ(out, given);
  EXPECT_THROW(device_.load(device_.memory_address() + (1 << 20) - 2, out), Error);
  EXPECT_THROW(device_.store(0, given), Error);
}

TEST_F(Functional, RefusedCallsAreCompletionsWithACode) {
  communicator();
  const auto code_of = [&](const CallDescriptor& call) {
    ring(call);
    const auto [number, code] = completion();
    EXPECT_EQ(number, call.call_id);
    EXPECT_EQ(device_.read(exchange::kStatus) & kStatusFailed, kStatusFailed);
    EXPECT_EQ(device_.read(exchange::kErrorCall), call.call_id);
    EXPECT_EQ(device_.read(exchange::kError), code & 0xffffU);
    device_.write(exchange::kStatus, kStatusFailed);
    EXPECT_EQ(device_.read(exchange::kStatus) & kStatusFailed, 0U);
    return static_cast<ErrorCode>(code & 0xffffU);
  };
  CallDescriptor call;
  call.collective = Collective::kCopy;
  call.dtype = Datatype::kInt32;
  call.count = 4;
  call.src_bytes = call.dst_bytes = 16;
  call.src_address = device_.memory_address();
  call.dst_address = device_.memory_address() + (1 << 20) - 15;  // one byte beyond
  call.call_id = 1;
  EXPECT_EQ(code_of(call), ErrorCode::kInvalidArgument);
  call.dst_address = device_.memory_address() + 64;
  call.communicator = 5;
  EXPECT_EQ(code_of(call), ErrorCode::kFreedCommunicator);
  call.communicator = 0;
  call.dtype = static_cast<Datatype>(60);
  EXPECT_EQ(code_of(call), ErrorCode::kInvalidDatatype);
  call.dtype = Datatype::kInt32;
  call.dst_bytes = 12;
  EXPECT_EQ(code_of(call), ErrorCode::kBufferTooSmall);
  call.dst_bytes = 16;
  call.wire_dtype = Datatype::kFp16;
  EXPECT_EQ(code_of(call), ErrorCode::kUnsupported);
  call.wire_dtype = Datatype::kNone;
  call.src_stream = true;
  EXPECT_EQ(code_of(call), ErrorCode::kInvalidArgument);  // its address is no port
  call.src_stream = false;
  call.count = kMaxCount + 1;
  EXPECT_EQ(code_of(call), ErrorCode::kInvalidCount);
  call = {};
  call.algorithm = 4;
  call.call_id = 2;
  EXPECT_EQ(code_of(call), ErrorCode::kUnknownAlgorithm);
  call.algorithm = 1;  // a kernel, of which there is none
  EXPECT_EQ(code_of(call), ErrorCode::kInvalidArgument);
}

TEST_F(Functional, AFollowerOfAFailureFailsWithItsCodeAlsoLater) {
  CallDescriptor bad;
  bad.algorithm = 9;
  bad.call_id = 40;
  ring(bad);
  EXPECT_EQ(completion().second & 0xffffU, static_cast<std::uint32_t>(ErrorCode::kUnknownAlgorithm));
  nop(41, 40);
  EXPECT_EQ(completion().second & 0xffffU, static_cast<std::uint32_t>(ErrorCode::kUnknownAlgorithm));
  nop(42, 41);
  EXPECT_EQ(completion().second & 0xffffU, static_cast<std::uint32_t>(ErrorCode::kUnknownAlgorithm));
  nop(40);  // the number is used anew
  EXPECT_EQ(completion().second, kCodeGiven);
  nop(43, 40);
  EXPECT_EQ(completion().second, kCodeGiven);
}

TEST_F(Functional, TakesNoMoreThan32CallsWhoseAnswersAreNotRead) {
  for (std::uint32_t number = 1; number <= 32; ++number) {
    nop(number);
    ASSERT_EQ(device_.read(exchange::kStatus) & kStatusSlotTaken, 0U) << number;
  }
  nop(33);
  EXPECT_NE(device_.read(exchange::kStatus) & kStatusSlotTaken, 0U);
  EXPECT_THROW(device_.write(exchange::kCallSlot, 0), Error);
  EXPECT_THROW(device_.write(exchange::kDoorbell, 1), Error);
  EXPECT_EQ(completion().first, 1U);
  EXPECT_EQ(device_.read(exchange::kStatus) & kStatusSlotTaken, 0U);
  for (std::uint32_t number = 2; number <= 33; ++number) EXPECT_EQ(completion().first, number);
}

TEST_F(Functional, ASoftResetDropsAnswersAndKeepsTheRest) {
  communicator();
  nop(1);
  device_.write(exchange::kTimeoutUs, 77);
  device_.write(exchange::kControl, kControlReset | kControlRun);
  EXPECT_EQ(device_.read(exchange::kControl), kControlRun);
  EXPECT_EQ(completion(), (std::pair<std::uint32_t, std::uint32_t>{0, 0}));
  EXPECT_EQ(device_.read(exchange::kTimeoutUs), 77U);
  EXPECT_EQ(device_.read(unisono::registers::communicator(0, kNumber)), 9U);
}

}  // namespace
}  // namespace unisono::test
