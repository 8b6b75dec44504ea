// Datatypes and operators of MPI, as Unisono has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "doors/mpi/mpi.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

/// What a reduction computes with; none for a type that has no elements of one kind that Unisono knows. Types with
/// equal signatures have the same answer, so that it is the same on all ranks.
std::optional<unisono_datatype> element_of(MPI_Datatype type);

/// Whether MPI defines the datatype, or it is a duplicate of such a one.
bool is_predefined(MPI_Datatype type);

/// A predefined operator; none for one of the user, or one that Unisono has not.
std::optional<unisono_op> operator_of(MPI_Op op);

/// How elements of a datatype lie in memory.
struct Layout {
  std::int64_t size = 0;    ///< bytes of data in an element
  std::int64_t extent = 0;  ///< bytes from one element to the next
  bool dense = false;       ///< an element is its bytes, in their order, at the buffer's address
};
Layout layout_of(MPI_Datatype type);

}  // namespace unisono::mpi
