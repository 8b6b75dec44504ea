#include "doors/mpi/calls.hpp"

#include <cstdio>

#include "core/generated/spec.hpp"

namespace unisono::mpi {

unisono_call call_of(unisono_collective collective, unisono_datatype datatype) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = datatype;
  return call;
}

std::optional<Reduction> reduction_of(MPI_Op op, MPI_Datatype type, Entry& entry) {
  const auto func = operator_of(op);
  if (!func) {
    entry.fell_through(Reason::kOperator);
    return std::nullopt;
  }
  const auto element = element_of(type);
  if (!element) {
    entry.fell_through(Reason::kDatatype);
    return std::nullopt;
  }
  return Reduction{*func, *element, bytes_of(static_cast<Datatype>(*element))};
}

bool is_undefined(unisono_result result) {
  const auto code = static_cast<ErrorCode>(result);
  return code == ErrorCode::kInvalidOp || code == ErrorCode::kInvalidDatatype;
}

int told(unisono_result result, Function function, MPI_Comm comm) {
  if (result == 0) return MPI_SUCCESS;
  std::fprintf(stderr, "unisono: %s: %s\n", name_of(function), unisono_last_error());
  PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

int run(const Door& door, const unisono_call& call, Function function, MPI_Comm comm) {
  return told(unisono_run(door.communicator, &call), function, comm);
}

}  // namespace unisono::mpi
