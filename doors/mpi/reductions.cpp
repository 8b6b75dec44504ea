// Reductions of MPI. Exported: they stand before those of the MPI below.
#include <vector>

#include "doors/mpi/calls.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

/// The call of a reduction, with its operator, and buffers of so many elements.
unisono_call reducing(unisono_collective collective, const Reduction& reduction, std::int64_t count) {
  unisono_call call = call_of(collective, reduction.datatype);
  call.op = reduction.op;
  call.count = count;
  return call;
}

void give(unisono_call& call, const void* src, std::uint64_t bytes) {
  call.src = src;
  call.src_bytes = bytes;
}
void take(unisono_call& call, void* dst, std::uint64_t bytes) {
  call.dst = dst;
  call.dst_bytes = bytes;
}

/// Runs a call of `elements` elements, or leaves it to the MPI, if the operator is not defined on the datatype: so on
/// all ranks.
template <class Below>
int reduced(const Door& door, const unisono_call& call, std::uint64_t bytes, Entry& entry, Function function,
            MPI_Comm comm, Below&& below) {
  const unisono_result result = unisono_run(door.communicator, &call);
  if (is_undefined(result)) {
    entry.fell_through(Reason::kDatatype);
    return below();
  }
  entry.carried(bytes);
  return told(result, function, comm);
}

/// All-reduce, scan and exscan, which have one vector on each rank.
template <class Below>
int of_vectors(unisono_collective collective, Function function, const void* send, void* receive, int count,
               MPI_Datatype type, MPI_Op op, MPI_Comm comm, Below&& below) {
  Entry entry(function);
  const Door* const door = count < 0 ? nullptr : door_of(comm);
  if (door == nullptr) return below();
  const auto reduction = reduction_of(op, type, entry);
  if (!reduction) return below();
  unisono_call call = reducing(collective, *reduction, count);
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * reduction->bytes;
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  if (call.in_place == 0) give(call, send, bytes);
  take(call, receive, bytes);
  return reduced(*door, call, bytes, entry, function, comm, below);
}

}  // namespace

extern "C" {

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return of_vectors(UNISONO_ALLREDUCE, Function::kAllreduce, send, receive, count, type, op, comm,
                    [&] { return PMPI_Allreduce(send, receive, count, type, op, comm); });
}

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return of_vectors(UNISONO_SCAN, Function::kScan, send, receive, count, type, op, comm,
                    [&] { return PMPI_Scan(send, receive, count, type, op, comm); });
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return of_vectors(UNISONO_EXSCAN, Function::kExscan, send, receive, count, type, op, comm,
                    [&] { return PMPI_Exscan(send, receive, count, type, op, comm); });
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const auto below = [&] { return PMPI_Reduce(send, receive, count, type, op, root, comm); };
  Entry entry(Function::kReduce);
  const Door* const door = count < 0 ? nullptr : door_of(comm);
  if (door == nullptr || root < 0 || root >= door->size) return below();
  const auto reduction = reduction_of(op, type, entry);
  if (!reduction) return below();
  unisono_call call = reducing(UNISONO_REDUCE, *reduction, count);
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * reduction->bytes;
  call.root = root;
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  if (call.in_place == 0) give(call, send, bytes);
  if (door->rank == root) take(call, receive, bytes);
  return reduced(*door, call, bytes, entry, Function::kReduce, comm, below);
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto below = [&] { return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm); };
  Entry entry(Function::kReduceScatterBlock);
  const Door* const door = count < 0 ? nullptr : door_of(comm);
  if (door == nullptr) return below();
  const auto reduction = reduction_of(op, type, entry);
  if (!reduction) return below();
  unisono_call call = reducing(UNISONO_REDUCE_SCATTER, *reduction, count);
  const std::uint64_t block = static_cast<std::uint64_t>(count) * reduction->bytes;
  const std::uint64_t all = block * static_cast<std::uint64_t>(door->size);
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  if (call.in_place == 0) give(call, send, all);
  take(call, receive, call.in_place != 0 ? all : block);
  return reduced(*door, call, all, entry, Function::kReduceScatterBlock, comm, below);
}

int MPI_Reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  const auto below = [&] { return PMPI_Reduce_scatter(send, receive, counts, type, op, comm); };
  Entry entry(Function::kReduceScatter);
  const Door* const door = door_of(comm);
  if (door == nullptr) return below();
  const auto reduction = reduction_of(op, type, entry);
  if (!reduction) return below();
  const std::vector<std::int64_t> elements(counts, counts + door->size);
  std::int64_t total = 0;
  for (const std::int64_t each : elements) total += each;
  const std::uint64_t all = static_cast<std::uint64_t>(total) * reduction->bytes;
  unisono_call call = reducing(UNISONO_REDUCE_SCATTERV, *reduction, 0);
  call.recv_counts = elements.data();
  // In place, the input is in `receive` and the result goes to its begin: from a copy, whatever block it is.
  std::vector<std::byte> input;
  if (send == MPI_IN_PLACE) {
    input.assign(static_cast<std::byte*>(receive), static_cast<std::byte*>(receive) + all);
    give(call, input.data(), all);
  } else {
    give(call, send, all);
  }
  take(call, receive, static_cast<std::uint64_t>(elements[static_cast<std::size_t>(door->rank)]) * reduction->bytes);
  return reduced(*door, call, all, entry, Function::kReduceScatter, comm, below);
}

}  // extern "C"
