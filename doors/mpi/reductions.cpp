#include "doors/mpi/reductions.hpp"

#include <optional>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono::mpi {

namespace {

/// Who computes: Unisono with these, or the MPI's operator; with neither the call is the MPI's own.
struct Reduction {
  std::optional<unisono_op> op;
  unisono_datatype datatype = 0;
  std::int64_t bytes = 0;  ///< of an element of Unisono's
};

std::optional<Reduction> reduction_of(const Operands& operands, Reason& reason) {
  const auto op = operator_of(operands.op);
  if (!op) {
    reason = Reason::kOperator;
    const bool folds = operands.op != MPI_OP_NULL && operands.op != MPI_REPLACE && operands.op != MPI_NO_OP;
    return folds && operands.type != MPI_DATATYPE_NULL ? std::optional(Reduction{}) : std::nullopt;
  }
  if (const auto element = element_of(operands.type)) {
    return Reduction{op, *element, static_cast<std::int64_t>(bytes_of(static_cast<Datatype>(*element)))};
  }
  // Predefined operators take predefined datatypes only.
  reason = Reason::kDatatype;
  return is_predefined(operands.type) ? std::optional(Reduction{}) : std::nullopt;
}

void become(Operation& operation, unisono_collective collective, const Reduction& reduction) {
  operation.call.collective = collective;
  operation.call.datatype = reduction.datatype;
  operation.call.op = *reduction.op;
}

/// Buffers of a call that Unisono computes; lengths in bytes. A null destination: this rank gets no result.
void bind(Operation& operation, const Operands& operands, std::int64_t give, void* receive, std::int64_t take) {
  unisono_call& call = operation.call;
  if (operands.send == MPI_IN_PLACE) {
    call.in_place = 1;
    operation.overwrites(operands.receive, static_cast<std::uint64_t>(take));
  } else {
    call.src = operands.send;
    call.src_bytes = static_cast<std::uint64_t>(give);
  }
  if (receive == nullptr) return;
  call.dst = receive;
  call.dst_bytes = static_cast<std::uint64_t>(take);
}

/// The operands as bytes, for an operator of the MPI.
Buffer& operands_as_bytes(Operation& operation, const Operands& operands, std::int64_t count) {
  Buffer& from =
      operation.from.emplace(operands.send == MPI_IN_PLACE ? operands.receive : operands.send, count, operands.type);
  if (operands.send == MPI_IN_PLACE) {
    operation.overwrites(operands.receive, static_cast<std::uint64_t>(count * layout_of(operands.type).extent));
  }
  operation.call.datatype = UNISONO_BYTE;
  operation.give(from);
  operation.bytes = from.bytes();
  return from;
}

/// Reduce-scatter by an operator of the MPI: every rank sends each other one the block that it will have.
bool exchange_and_fold(Operation& operation, const Operands& operands, const std::vector<std::int64_t>& counts) {
  const Fold fold(operands.op, operands.type);
  const int ranks = operation.door->size;
  std::int64_t total = 0;
  for (const std::int64_t count : counts) {
    operation.send_counts.push_back(count * fold.layout().size);
    total += count;
  }
  const std::int64_t own = counts[static_cast<std::size_t>(operation.door->rank)];
  operation.receive_counts.assign(static_cast<std::size_t>(ranks), own * fold.layout().size);
  operands_as_bytes(operation, operands, total);
  operation.call.collective = UNISONO_ALLTOALLV;
  operation.call.send_counts = operation.send_counts.data();
  operation.call.recv_counts = operation.receive_counts.data();
  operation.folds(fold, own, ranks, ranks, operands.receive);
  return true;
}

}  // namespace

bool prepare_vectors(Operation& operation, unisono_collective collective, const Operands& operands, int count) {
  if (count < 0 || operands.receive == MPI_IN_PLACE) return false;
  const auto reduction = reduction_of(operands, operation.reason);
  if (!reduction) return false;
  if (reduction->op) {
    become(operation, collective, *reduction);
    operation.call.count = count;
    bind(operation, operands, count * reduction->bytes, operands.receive, count * reduction->bytes);
    operation.bytes = static_cast<std::uint64_t>(count * reduction->bytes);
    return true;
  }
  operation.call.collective = UNISONO_ALLGATHER;
  operation.call.count = operands_as_bytes(operation, operands, count).block_bytes();
  const int ranks = operation.door->size;
  int folded = ranks;
  if (collective == UNISONO_SCAN) folded = operation.door->rank + 1;
  if (collective == UNISONO_EXSCAN) folded = operation.door->rank;
  operation.folds(Fold(operands.op, operands.type), count, ranks, folded, operands.receive);
  return true;
}

bool prepare_reduce(Operation& operation, const Operands& operands, int count, int root) {
  if (count < 0 || root < 0 || root >= operation.door->size) return false;
  const auto reduction = reduction_of(operands, operation.reason);
  if (!reduction) return false;
  const bool is_root = operation.door->rank == root;
  if (is_root && operands.receive == MPI_IN_PLACE) return false;
  operation.call.root = root;
  if (reduction->op) {
    become(operation, UNISONO_REDUCE, *reduction);
    operation.call.count = count;
    const std::int64_t bytes = count * reduction->bytes;
    bind(operation, operands, bytes, is_root ? operands.receive : nullptr, bytes);
    operation.bytes = static_cast<std::uint64_t>(bytes);
    return true;
  }
  operation.call.collective = UNISONO_GATHER;
  operation.call.count = operands_as_bytes(operation, operands, count).block_bytes();
  const int blocks = is_root ? operation.door->size : 0;
  operation.folds(Fold(operands.op, operands.type), count, blocks, blocks, operands.receive);
  return true;
}

bool prepare_reduce_scatter(Operation& operation, const Operands& operands, const int* counts) {
  if (counts == nullptr || operands.receive == MPI_IN_PLACE) return false;
  const auto reduction = reduction_of(operands, operation.reason);
  if (!reduction) return false;
  const std::vector<std::int64_t> elements(counts, counts + operation.door->size);
  if (!reduction->op) return exchange_and_fold(operation, operands, elements);
  std::int64_t total = 0;
  for (const std::int64_t each : elements) total += each;
  const std::int64_t own = elements[static_cast<std::size_t>(operation.door->rank)];
  become(operation, UNISONO_REDUCE_SCATTERV, *reduction);
  operation.receive_counts = elements;
  operation.call.recv_counts = operation.receive_counts.data();
  operation.bytes = static_cast<std::uint64_t>(total * reduction->bytes);
  Operands bound = operands;
  // In place, the input is in `receive` and the result goes to its begin: from a copy, whatever block it is.
  if (operands.send == MPI_IN_PLACE) {
    bound.send = operation.copies_input(operands.receive, operation.bytes);
    operation.overwrites(operands.receive, operation.bytes);
  }
  bind(operation, bound, total * reduction->bytes, operands.receive, own * reduction->bytes);
  return true;
}

bool prepare_reduce_scatter_block(Operation& operation, const Operands& operands, int count) {
  if (count < 0 || operands.receive == MPI_IN_PLACE) return false;
  const auto reduction = reduction_of(operands, operation.reason);
  if (!reduction) return false;
  const int ranks = operation.door->size;
  if (!reduction->op) {
    return exchange_and_fold(operation, operands, std::vector<std::int64_t>(static_cast<std::size_t>(ranks), count));
  }
  become(operation, UNISONO_REDUCE_SCATTER, *reduction);
  operation.call.count = count;
  const std::int64_t block = count * reduction->bytes;
  const std::int64_t all = block * ranks;
  bind(operation, operands, all, operands.receive, operands.send == MPI_IN_PLACE ? all : block);
  operation.bytes = static_cast<std::uint64_t>(all);
  return true;
}

}  // namespace unisono::mpi
