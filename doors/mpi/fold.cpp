#include "doors/mpi/fold.hpp"

#include <algorithm>
#include <cstring>

#include "doors/mpi/buffer.hpp"

namespace unisono::mpi {

Fold::Fold(MPI_Op op, MPI_Datatype type) : op_(op), type_(type), layout_(layout_of(type)) {}

Fold::Elements Fold::room_for(std::int64_t count) const {
  MPI_Aint lower = 0;
  MPI_Aint span = 0;
  PMPI_Type_get_true_extent(type_, &lower, &span);
  Elements room;
  const std::int64_t all = count == 0 ? 0 : span + (count - 1) * std::max<std::int64_t>(layout_.extent, 0);
  room.memory.resize(static_cast<std::size_t>(std::max<std::int64_t>(all, 1)));
  room.at = room.memory.data() - lower;
  return room;
}

int Fold::operator()(std::byte* packed, std::int64_t stride, int blocks, std::int64_t count, void* result) {
  if (blocks == 0 || count == 0) return MPI_SUCCESS;
  const auto place = [&](int block) { return packed + block * stride; };
  if (layout_.dense) {
    std::memcpy(result, place(blocks - 1), static_cast<std::size_t>(count * layout_.size));
  } else {
    unpack_elements(place(blocks - 1), count, type_, layout_, result);
  }
  Elements operand;
  if (!layout_.dense && blocks > 1) operand = room_for(count);
  for (int block = blocks - 2; block >= 0; --block) {
    std::byte* from = place(block);
    if (!layout_.dense) {
      unpack_elements(from, count, type_, layout_, operand.at);
      from = operand.at;
    }
    // in op inout: the lower rank is on the left.
    const int error = PMPI_Reduce_local(from, result, static_cast<int>(count), type_, op_);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

}  // namespace unisono::mpi
