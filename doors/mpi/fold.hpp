// Reductions that the MPI's own operators compute: those of the program, and predefined ones on types that Unisono has
// not. Unisono moves the operands; the operator is called by MPI_Reduce_local, in a thread that is in a call of MPI,
// and in the order of the ranks, so that it need not commute. All ranks get the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "doors/mpi/elements.hpp"
#include "doors/mpi/mpi.hpp"

namespace unisono::mpi {

/// An operator on elements of a datatype.
class Fold {
 public:
  Fold(MPI_Op op, MPI_Datatype type);

  MPI_Op op() const { return op_; }
  MPI_Datatype type() const { return type_; }
  const Layout& layout() const { return layout_; }

  /// result := block 0 op block 1 ... op block `blocks` - 1; nothing if there is none. Block i has `count` packed
  /// elements at `packed` + i * `stride` bytes, and is not kept; `result` is memory of the user's, as the datatype
  /// lies there. Returns what the MPI says.
  int operator()(std::byte* packed, std::int64_t stride, int blocks, std::int64_t count, void* result);

  /// Memory for so many elements as the datatype lies; `at` is the address of the first.
  struct Elements {
    std::vector<std::byte> memory;
    std::byte* at = nullptr;
  };
  Elements room_for(std::int64_t count) const;

 private:
  MPI_Op op_;
  MPI_Datatype type_;
  Layout layout_;
};

}  // namespace unisono::mpi
