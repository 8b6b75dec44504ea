// What hosts of SMI's programs use of MPI, over Unisono: for programs that are started by `unisono run`. A program that
// is compiled with an MPI's own mpi.h gets that instead.
#ifndef UNISONO_DIALECT_MPI_H
#define UNISONO_DIALECT_MPI_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "smi/communicator.h"

typedef int MPI_Comm;
typedef int MPI_Datatype;
struct MPI_Status {
  int MPI_SOURCE = 0;
  int MPI_TAG = 0;
  int MPI_ERROR = 0;
};
enum { MPI_SUCCESS = 0, MPI_COMM_WORLD = 0, MPI_MAX_ERROR_STRING = 256 };
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))
enum {
  MPI_CHAR = UNISONO_INT8,
  MPI_BYTE = UNISONO_BYTE,
  MPI_SHORT = UNISONO_INT16,
  MPI_INT = UNISONO_INT32,
  MPI_LONG = UNISONO_INT64,
  MPI_FLOAT = UNISONO_FP32,
  MPI_DOUBLE = UNISONO_FP64
};

namespace unisono_dialect_mpi {

inline unsigned bytes_of(MPI_Datatype type) {
  switch (type) {
    case MPI_CHAR:
    case MPI_BYTE:
      return 1;
    case MPI_SHORT:
      return 2;
    case MPI_INT:
    case MPI_FLOAT:
      return 4;
    default:
      return 8;
  }
}

inline int run(int collective, const void* src, std::size_t src_elements, void* dst, std::size_t dst_elements,
               std::size_t count, MPI_Datatype type, int root, int tag) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = type;
  call.count = count;
  call.root = static_cast<std::uint32_t>(root);
  call.tag = tag;
  call.src = src;
  call.src_bytes = src_elements * bytes_of(type);
  call.dst = dst;
  call.dst_bytes = dst_elements * bytes_of(type);
  unisono_smi_check(unisono_run(unisono_smi_world_communicator(), &call));
  return MPI_SUCCESS;
}

}  // namespace unisono_dialect_mpi

inline int MPI_Init(int* /*argc*/, char*** /*argv*/) {
  unisono_smi_world();
  return MPI_SUCCESS;
}
inline int MPI_Comm_rank(MPI_Comm /*comm*/, int* rank) {
  *rank = unisono_smi_world()->rank;
  return MPI_SUCCESS;
}
inline int MPI_Comm_size(MPI_Comm /*comm*/, int* size) {
  *size = unisono_smi_world()->size;
  return MPI_SUCCESS;
}
inline int MPI_Barrier(MPI_Comm /*comm*/) {
  unisono_smi_check(unisono_smi_meet(unisono_smi_world()));
  return MPI_SUCCESS;
}
/// All that was pushed has been taken, on all ranks; the job is left as the program ends.
inline int MPI_Finalize() {
  unisono_smi_check(unisono_smi_finish(unisono_smi_world()));
  return MPI_Barrier(MPI_COMM_WORLD);
}
inline int MPI_Send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm /*comm*/) {
  const auto elements = static_cast<std::size_t>(count);
  return unisono_dialect_mpi::run(UNISONO_SEND, from, elements, nullptr, 0, elements, type, to, tag);
}
inline int MPI_Recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm /*comm*/, MPI_Status* status) {
  const auto elements = static_cast<std::size_t>(count);
  if (status != nullptr) *status = {from, tag, MPI_SUCCESS};
  return unisono_dialect_mpi::run(UNISONO_RECV, nullptr, 0, to, elements, elements, type, from, tag);
}
inline int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm /*comm*/) {
  const auto elements = static_cast<std::size_t>(count);
  return unisono_dialect_mpi::run(UNISONO_BCAST, data, elements, data, elements, elements, type, root, 0);
}
/// As many elements are received as are sent to each rank.
inline int MPI_Scatter(const void* from, int count, MPI_Datatype type, void* to, int /*received*/,
                       MPI_Datatype /*received_type*/, int root, MPI_Comm /*comm*/) {
  const auto elements = static_cast<std::size_t>(count);
  const auto size = static_cast<std::size_t>(unisono_smi_world()->size);
  return unisono_dialect_mpi::run(UNISONO_SCATTER, from, elements * size, to, elements, elements, type, root, 0);
}
inline int MPI_Error_string(int /*code*/, char* text, int* length) {
  std::strcpy(text, "an error of MPI");  // NOLINT(clang-analyzer-security.insecureAPI.strcpy)
  *length = static_cast<int>(std::strlen(text));
  return MPI_SUCCESS;
}

#endif
