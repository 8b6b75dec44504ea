// Lanes between memory that other ranks write: lines, words that say what has been read, the directory of an endpoint
// and the head of a block hold whatever a broken or hostile member puts there.
#include <array>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "network/shm/lanes.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

/// Mostly a small number, sometimes any.
std::uint64_t number(fuzz::Input& input) {
  const auto kind = input.take<std::uint8_t>();
  return kind < 64 ? input.take<std::uint64_t>() : kind;
}

// ------------------------------------------------------------------------------------------- the ends of a lane

/// Both ends of a lane whose shared words change under them. Each array has its own length, so that a byte beyond it is
/// noticed.
void ends(fuzz::Input& input) {
  const std::uint32_t cell_bytes = 8192U << input.up_to(2);
  const auto lines = std::make_unique<shm::LaneLine[]>(shm::kLaneLines);
  const auto cells = std::make_unique<std::byte[]>(cell_bytes);
  const auto tail = std::make_unique<shm::LaneTail>();
  shm::LaneSender sender;
  sender.lines = lines.get();
  sender.cells = cells.get();
  sender.tail = tail.get();
  sender.cell_bytes = cell_bytes;
  shm::LaneReceiver receiver;
  receiver.lines = lines.get();
  receiver.cells = cells.get();
  receiver.tail = tail.get();
  receiver.cell_bytes = cell_bytes;
  const auto in_cells = [&](const std::byte* begin, std::uint32_t bytes) {
    return begin >= cells.get() && bytes <= cell_bytes && begin - cells.get() <= cell_bytes - bytes;
  };

  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>();
    switch (kind % 8) {
      case 0: {  // the peer's words
        tail->lines = number(input);
        tail->bytes = number(input);
        break;
      }
      case 1: {
        tail->lines = receiver.taken;
        tail->bytes = receiver.emptied;
        break;
      }
      case 2: {  // a line of the peer, anywhere and of any number
        shm::LaneLine& line = lines[input.up_to(shm::kLaneLines - 1)];
        line.head = number(input);
        line.flag = number(input);
        break;
      }
      case 3: {
        shm::LaneLine& line = lines[receiver.taken % shm::kLaneLines];
        line.head = number(input);
        line.flag = receiver.awaited(input.take<std::uint32_t>());
        break;
      }
      case 4:
      case 5: {  // sends what an engine would: at most a segment
        const auto bytes = static_cast<std::uint32_t>(number(input) % (shm::segment_bytes_for(cell_bytes) + 1));
        if (!sender.has_line()) break;
        if (bytes > shm::kInlineBytes) {
          std::byte* place = sender.cell(bytes);
          if (place == nullptr) break;
          claim(in_cells(place, bytes), "what is sent stands in the lane's cells");
          std::memset(place, kind, bytes);
          sender.take_cell(bytes);
        } else {
          std::memset(sender.next().payload.data(), kind, bytes);
        }
        sender.publish(bytes, kind);
        break;
      }
      default: {  // takes what the line says
        if (!receiver.has_line()) break;
        const auto bytes = static_cast<std::uint32_t>(receiver.next().head);
        if (bytes > shm::kInlineBytes) {
          const std::byte* place = receiver.cell(bytes);
          claim((place != nullptr) == (bytes <= cell_bytes), "what cells can hold is found in them, nothing else");
          if (place == nullptr) return;  // the engine ends the communicator here
          claim(in_cells(place, bytes), "what has come stands in the lane's cells");
          receiver.release_cell(bytes);
        }
        receiver.release();
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------- the directory

constexpr std::uint32_t kMembers = 2;

struct Member {
  std::shared_ptr<shm::Arena> arena;
  std::unique_ptr<shm::LaneSet> set;
};

/// Whether so many bytes from an address on lie in arenas.
bool in_arenas(const shm::Segment& segment, const void* begin, std::uint64_t bytes) {
  return segment.offset_of(begin, bytes) != 0;
}

/// An open set: all its parts must lie in the memory that the ranks share.
void look_at(const shm::Segment& segment, const shm::LaneSet& set) {
  for (const auto space : {shm::LaneSpace::kCollective, shm::LaneSpace::kPointToPoint, shm::LaneSpace::kAnswers,
                           shm::small_set(shm::kSmallSets - 1)}) {
    for (std::uint32_t peer = 0; peer < kMembers; ++peer) {
      shm::LaneSender sender = set.sender(space, peer);
      shm::LaneReceiver receiver = set.receiver(space, peer);
      const std::uint64_t lines = shm::kLaneLines * sizeof(shm::LaneLine);
      claim(in_arenas(segment, sender.lines, lines) && in_arenas(segment, receiver.lines, lines), "lines are shared");
      claim(in_arenas(segment, sender.cells, sender.cell_bytes), "cells to send from are shared");
      claim(in_arenas(segment, receiver.cells, receiver.cell_bytes), "cells to receive in are shared");
      claim(in_arenas(segment, sender.tail, sizeof(shm::LaneTail)), "what has been read is shared");
      claim(in_arenas(segment, receiver.tail, sizeof(shm::LaneTail)), "what has been read is shared");
      if (sender.has_line()) sender.publish(1, 2);
      if (receiver.has_line()) receiver.release();
    }
  }
  const shm::TouchGuard guard = set.touch_guard();
  if (guard.enter()) guard.leave();
  claim(guard.touches(0) || !guard.touches(0), "the lines that say who touches can be read");
}

void directory(fuzz::Input& input) {
  shm::Geometry geometry;
  geometry.endpoints = kMembers;
  geometry.arena_bytes = std::uint64_t{32} << 20U;
  const auto segment = shm::Segment::create(geometry);
  const std::array<std::uint32_t, kMembers> all{0, 1};
  std::array<Member, kMembers> members;
  for (std::uint32_t self = 0; self < kMembers; ++self) {
    members[self].arena = std::make_shared<shm::Arena>(segment, self);
  }
  const std::uint64_t begin = segment->offset_of(segment->arena(0), 1);
  for (int act = 0; act < 60 && !input.empty(); ++act) {
    const auto kind = input.take<std::uint8_t>();
    Member& member = members[kind / 8 % kMembers];
    try {
      switch (kind % 8) {
        case 0:
        case 1: {  // a communicator is made, or freed
          const auto self = static_cast<std::uint32_t>(&member - members.data());
          member.set.reset();
          if (kind < 224) {
            member.set =
                std::make_unique<shm::LaneSet>(segment, member.arena, self, kind / 16 % 2, std::uint16_t{0}, all);
          }
          break;
        }
        case 2:
        case 3:
          if (member.set != nullptr && member.set->open()) look_at(*segment, *member.set);
          break;
        case 4: {  // an entry of a directory
          shm::DirectoryEntry& entry = segment->directory(kind / 8 % kMembers)[input.up_to(3)];
          entry.key = number(input) % 8 == 0 ? number(input) : (std::uint64_t{kind / 16U % 2U} << 16U) + 1;
          entry.place = input.up_to(2) == 0 ? number(input) : begin + input.up_to(64) * 4096 + input.up_to(1) * 8;
          break;
        }
        case 5: {  // words of a block: its head stands at the begin of some page
          std::byte* place = segment->at(begin + input.up_to(64) * 4096, 4096);
          const std::array<std::uint32_t, 4> words{
              static_cast<std::uint32_t>(number(input) % 4), input.up_to(3),
              input.up_to(3) == 0 ? static_cast<std::uint32_t>(number(input)) : 4096U << input.up_to(9),
              input.up_to(1)};
          std::memcpy(place, words.data(), sizeof words);
          break;
        }
        default: {
          // Buffers come and go in between.
          std::byte* buffer = member.arena->allocate(1 + number(input) % (1U << 22U));
          if (buffer != nullptr && kind >= 64) member.arena->deallocate(buffer);
        }
      }
    } catch (const Error& error) {
      claim(error.code() == ErrorCode::kCorruptMessage || error.code() == ErrorCode::kOutOfMemory ||
                error.code() == ErrorCode::kCapacity,
            "what cannot be lanes is refused as such");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  if (input.take<std::uint8_t>() % 2 == 0) {
    ends(input);
  } else {
    directory(input);
  }
  return 0;
}
