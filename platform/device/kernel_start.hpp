// What a host tells a device that runs kernels: which one, and its arguments. Bytes of RequestKind::kKernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/generated/spec.hpp"

namespace unisono::device {

struct KernelStart {
  /// A scalar's bits, an address of device memory and its bytes, or the place of a communicator.
  struct Value {
    std::uint64_t bits = 0;
    std::uint64_t bytes = 0;
  };
  /// A communicator: its position in the device's table, and who the host is there.
  struct Member {
    std::uint32_t position = 0;
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    std::uint32_t reserved = 0;
  };
  std::string name;
  std::vector<Value> values;
  std::vector<Member> members;
  std::vector<CallDescriptor> calls;  ///< that the host has prepared; their call ids and waits are not set
  std::uint64_t timeout_us = 0;       ///< of the device's time
};

inline std::vector<std::byte> pack(const KernelStart& start) {
  const std::uint64_t head[5] = {start.timeout_us, start.name.size(), start.values.size(), start.members.size(),
                                 start.calls.size()};
  const std::size_t values = head[2] * sizeof(KernelStart::Value), members = head[3] * sizeof(KernelStart::Member);
  std::vector<std::byte> bytes(sizeof head + values + members + head[4] * (8 * kCallDescriptorWords) + head[1]);
  std::byte* to = bytes.data();
  const auto add = [&to](const void* from, std::size_t count) {
    if (count != 0) std::memcpy(to, from, count);
    to += count;
  };
  add(head, sizeof head);
  add(start.values.data(), values);
  add(start.members.data(), members);
  for (const CallDescriptor& call : start.calls) {
    const auto words = encode(call);
    static_assert(sizeof words == (8 * kCallDescriptorWords));
    add(words.data(), sizeof words);
  }
  add(start.name.data(), start.name.size());
  return bytes;
}

/// Throws Error(kInvalidArgument) for bytes that `pack` has not made.
inline KernelStart unpack_kernel_start(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMost = 4096;
  std::uint64_t head[5] = {};
  const auto broken = [] { throw Error(ErrorCode::kInvalidArgument, "the start of a kernel is cut off"); };
  if (bytes.size() < sizeof head) broken();
  std::memcpy(head, bytes.data(), sizeof head);
  if (head[1] > kMost || head[2] > kMost || head[3] > kMost || head[4] > kMost) broken();
  KernelStart start;
  start.timeout_us = head[0];
  start.values.resize(head[2]);
  start.members.resize(head[3]);
  const std::size_t values = head[2] * sizeof(KernelStart::Value), members = head[3] * sizeof(KernelStart::Member);
  if (bytes.size() != sizeof head + values + members + head[4] * (8 * kCallDescriptorWords) + head[1]) broken();
  const std::byte* at = bytes.data() + sizeof head;
  if (values != 0) std::memcpy(start.values.data(), at, values);
  at += values;
  if (members != 0) std::memcpy(start.members.data(), at, members);
  at += members;
  for (std::uint64_t i = 0; i < head[4]; ++i) {
    std::array<std::uint64_t, kCallDescriptorWords> words{};
    std::memcpy(words.data(), at, sizeof words);
    at += sizeof words;
    start.calls.push_back(decode_call_descriptor(words));
  }
  start.name.assign(reinterpret_cast<const char*>(at), head[1]);
  return start;
}

/// One end, followed by its sentence.
struct KernelEnd {
  std::uint64_t number = 0;  ///< that the host has given it
  std::uint32_t code = 0;    ///< an ErrorCode
  std::uint32_t length = 0;  ///< of the sentence that follows
};
static_assert(sizeof(KernelEnd) == 16);

}  // namespace unisono::device
