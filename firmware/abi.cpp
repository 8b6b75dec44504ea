// What the collectives assume of the microcontroller's compiler. Nothing here produces code.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collectives/generate.hpp"
#include "core/header.hpp"
#include "core/signature.hpp"

namespace unisono {

static_assert(sizeof(void*) == 4 && sizeof(std::size_t) == 4, "RV32 with the ilp32 ABI");
static_assert(sizeof(std::uint8_t) == 1 && sizeof(std::uint16_t) == 2 && sizeof(std::uint32_t) == 4);
static_assert(sizeof(std::uint64_t) == 8 && alignof(std::uint64_t) == 8);
static_assert(sizeof(int) == 4 && sizeof(bool) == 1);
static_assert(sizeof(Collective) == 1 && sizeof(ErrorCode) == 2 && sizeof(Datatype) == 1);

// A move in memory is not its wire form, but moves are copied around, and their size is the cost of that.
static_assert(std::is_trivially_copyable_v<Move> && std::is_standard_layout_v<Move>);
static_assert(std::is_trivially_copyable_v<Call> && std::is_trivially_copyable_v<Algorithm>);
static_assert(sizeof(Operand) == 16 && sizeof(Arrival) == 12 && sizeof(RemoteAddress) == 16);
static_assert(sizeof(Move) <= 160);
static_assert(sizeof(Call) == (std::is_empty_v<GroupsOfCall> ? 32 : 40));

// The wire forms do not depend on the machine.
static_assert(sizeof(encode(Move{})) == kMoveBytes && sizeof(encode(Header{})) == kHeaderBytes);
static_assert(encode(make_header(MessageType::kGrant))[0] == 0x21554E);
static_assert([] {
  Move move{};
  move.count = kMaxCount;
  move.remote.peer = 0xABCDEF;
  return decode_move(encode(move)) == move && well_formed_move(encode(move));
}());
static_assert([] {
  Header header = make_header(MessageType::kEager);
  header.message_bytes = header.segment_bytes = 1000;
  header.first = header.last = true;
  seal(header);
  return check_header(encode(header)) == HeaderFault::kNone;
}());

}  // namespace unisono
