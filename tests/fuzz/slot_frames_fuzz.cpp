// What a network may bring to a switch that aggregates, and to its members: any bytes, and frames that are sound by
// themselves but come from nobody that keeps to the protocol.
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "switch/frame.hpp"
#include "switch/slots.hpp"
#include "switch/window.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;         // NOLINT(google-build-using-namespace)
using namespace unisono::slots;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint16_t kPayload = 64;

/// Takes what a pool and a window send; all of it must be sound.
struct Wire final : Outlet, Uplink {
  void check(const SlotFrame& head, std::span<const std::byte> payload) {
    std::vector<std::byte> bytes(frame_bytes(payload.size()));
    claim(write(head, payload, bytes) == bytes.size(), "a frame is as long as it says");
    FrameView frame;
    claim(parse(bytes, frame) == FrameFault::kNone, "what is sent can be read");
    claim(std::equal(payload.begin(), payload.end(), frame.payload.begin(), frame.payload.end()), "as it was");
    ++frames;
  }
  void down(const SlotFrame& head, std::span<const std::byte> payload) override { check(head, payload); }
  void down_all(const SlotFrame& head, std::span<const std::byte> payload) override { check(head, payload); }
  void up(const SlotFrame& head, std::span<const std::byte> payload) override { check(head, payload); }
  std::uint64_t frames = 0;
};

/// A frame that is sound but for what the input says; small numbers, so that turns and members meet.
SlotFrame frame_of(fuzz::Input& input) {
  SlotFrame head = decode_slot_frame(input.take<std::array<std::uint64_t, kSlotFrameWords>>());
  head.kind = static_cast<SlotKind>(static_cast<unsigned>(head.kind) % 8);
  head.generation %= 4;
  head.communicator = 0;
  head.epoch = 0;
  head.turn %= 16;
  if (head.root % 4 != 0) head.slot = static_cast<std::uint16_t>(head.turn % 2);
  if (head.root % 4 != 0) head.second = (head.turn / 2) % 2 != 0;
  head.root %= 5;
  head.call %= 3;
  head.count %= 20;
  head.member = head.member % 8 == 7 ? kEveryone : head.member % 4;
  head.total %= 8;
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  {
    FrameView frame;
    parse(std::as_bytes(std::span(data, size)), frame);
  }
  fuzz::Input input(data, size);
  const auto choice = input.take<std::uint8_t>();
  Wire wire;
  PoolShape shape;
  shape.slots = 2;
  shape.payload_bytes = kPayload;
  shape.keeps_order = (choice & 1U) != 0;
  shape.children = {{0, 1}, {1, 2}, {3, 1}};
  if ((choice & 2U) != 0) shape.uplink = 1;
  Pool pool(shape, wire);
  WindowShape of_window;
  of_window.rank = 3;
  of_window.ranks = 4;
  of_window.position = 2;
  of_window.slots = 2;
  of_window.payload_bytes = kPayload;
  Window window(of_window, wire);
  std::vector<std::byte> source(512);
  std::vector<std::byte> destination(512);
  Time now{std::chrono::seconds(1)};
  SlotCall call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kInt32;
  call.count = 100;
  call.src = source.data();
  call.dst = destination.data();
  window.start(call, now);
  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>();
    now += std::chrono::microseconds(kind * 100);
    const SlotFrame head = frame_of(input);
    // Of any length that parse lets through.
    const std::size_t whole = std::size_t{head.count} * bytes_of(head.dtype);
    const std::size_t length = head.kind == SlotKind::kRefuse ? kRefusalBytes : (kind & 4U) != 0 ? 0 : whole;
    std::vector<std::byte> payload(length);
    const auto bytes = input.take_bytes(length % 64);
    if (!bytes.empty()) std::memcpy(payload.data(), bytes.data(), bytes.size());
    std::vector<std::byte> datagram(frame_bytes(length));
    if (!fits(head)) continue;
    write(head, payload, datagram);
    FrameView frame;
    if (parse(datagram, frame) != FrameFault::kNone) continue;
    switch (kind & 3U) {
      case 0:
        pool.from_parent(frame);
        break;
      case 1:
        window.take(frame, now);
        window.tick(now);
        break;
      default:
        pool.from_child(frame);
    }
    claim(wire.frames < 100'000, "no frame is answered with many");
  }
  claim(window.lacking() <= 7, "there are no results of turns that were not");
  return 0;
}
