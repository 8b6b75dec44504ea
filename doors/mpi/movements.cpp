#include "doors/mpi/movements.hpp"

#include <vector>

#include "doors/mpi/device.hpp"

namespace unisono::mpi {

namespace {

void become(Operation& operation, unisono_collective collective) {
  operation.call.collective = collective;
  operation.call.datatype = UNISONO_BYTE;
}

bool becomes_rooted(Operation& operation, unisono_collective collective, int root) {
  if (root < 0 || root >= operation.door->size) return false;
  become(operation, collective);
  operation.call.root = root;
  return true;
}

// What is read or written, on ranks for which it matters. What is wrong otherwise than here, such as a negative count
// of one of several blocks, Unisono refuses by itself.

bool is_given(const Elements& blocks, int /*ranks*/) { return blocks.count >= 0 && blocks.type != MPI_DATATYPE_NULL; }
bool is_given(const Blocks& blocks, int /*ranks*/) {
  return blocks.counts != nullptr && blocks.displacements != nullptr && blocks.type != MPI_DATATYPE_NULL;
}
bool is_given(const TypedBlocks& blocks, int ranks) {
  if (blocks.counts == nullptr || blocks.displacements == nullptr || blocks.types == nullptr) return false;
  for (int rank = 0; rank < ranks; ++rank) {  // blocks of nothing may have no datatype
    if (blocks.counts[rank] != 0 && blocks.types[rank] == MPI_DATATYPE_NULL) return false;
  }
  return true;
}

template <class Blocks>
bool is_buffer(const Operation& operation, const Blocks& blocks) {
  return blocks.data != MPI_IN_PLACE && is_given(blocks, operation.door->size);
}
template <class Blocks>
bool is_buffer_or_in_place(const Operation& operation, const Blocks& blocks) {
  return blocks.data == MPI_IN_PLACE || is_given(blocks, operation.door->size);
}

/// A buffer of one block for each of `ranks`, however the caller has said it.
void emplace(std::optional<Buffer>& buffer, int ranks, const Elements& of, Buffer::Use /*use*/) {
  buffer.emplace(of.data, ranks, of.count, of.type);
}
void emplace(std::optional<Buffer>& buffer, int ranks, const Blocks& of, Buffer::Use use) {
  buffer.emplace(of.data, ranks, of.counts, of.displacements, of.type, use);
}
void emplace(std::optional<Buffer>& buffer, int ranks, const TypedBlocks& of, Buffer::Use use) {
  std::vector<Buffer::Given> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) blocks.push_back({of.counts[rank], of.displacements[rank], of.types[rank]});
  buffer.emplace(of.data, blocks, use);
}

/// All blocks of a collective: equal ones have a count, others an array of them.
void gives(Operation& operation, const Elements& /*blocks*/) {
  operation.give(*operation.from);
  operation.call.count = operation.from->block_bytes();
}
template <class Blocks>
void gives(Operation& operation, const Blocks& /*blocks*/) {
  operation.give_blocks(*operation.from);
}
void takes(Operation& operation, const Elements& /*blocks*/) {
  operation.take(*operation.to);
  operation.call.count = operation.to->block_bytes();
}
template <class Blocks>
void takes(Operation& operation, const Blocks& /*blocks*/) {
  operation.take_blocks(*operation.to);
}

/// The block that this rank gives, or is already where it belongs.
void gives_own(Operation& operation, const Elements& send) {
  if (send.data == MPI_IN_PLACE) {
    operation.call.in_place = 1;
    operation.input = operation.door->rank;
    operation.results = operation.door->rank;
    return;
  }
  operation.from.emplace(send.data, send.count, send.type);
  operation.give(*operation.from);
}

/// A block of every rank comes here.
template <class Receive>
bool receives_all(Operation& operation, const Elements& send, const Receive& receive) {
  if (!is_buffer_or_in_place(operation, send) || !is_buffer(operation, receive)) return false;
  emplace(operation.to, operation.door->size, receive, Buffer::Use::kWritten);
  takes(operation, receive);
  operation.results = Operation::kAll;
  gives_own(operation, send);
  operation.keep_apart();
  operation.bytes = operation.to->bytes();
  return true;
}

template <class Receive>
bool to_all(Operation& operation, unisono_collective collective, const Elements& send, const Receive& receive) {
  become(operation, collective);
  return receives_all(operation, send, receive);
}

template <class Receive>
bool to_root(Operation& operation, unisono_collective collective, const Elements& send, const Receive& receive,
             int root) {
  if (!becomes_rooted(operation, collective, root)) return false;
  if (operation.door->rank == root) return receives_all(operation, send, receive);
  if (!is_buffer(operation, send)) return false;
  operation.from.emplace(send.data, send.count, send.type);
  operation.give(*operation.from);
  operation.call.count = operation.from->block_bytes();
  operation.bytes = operation.from->bytes();
  return true;
}

template <class Send>
bool from_root(Operation& operation, unisono_collective collective, const Send& send, const Elements& receive,
               int root) {
  if (!becomes_rooted(operation, collective, root)) return false;
  const bool is_root = operation.door->rank == root;
  if (is_root && !is_buffer(operation, send)) return false;
  if (!is_buffer(operation, receive) && !(is_root && receive.data == MPI_IN_PLACE)) return false;
  if (is_root) {
    emplace(operation.from, operation.door->size, send, Buffer::Use::kRead);
    gives(operation, send);
    operation.bytes = operation.from->bytes();
  }
  if (is_root && receive.data == MPI_IN_PLACE) {
    operation.call.in_place = 1;
    return true;
  }
  operation.to.emplace(receive.data, receive.count, receive.type);
  operation.take(*operation.to);
  operation.results = Operation::kAll;
  if (!is_root) {
    operation.call.count = operation.to->block_bytes();
    operation.bytes = operation.to->bytes();
  }
  operation.keep_apart();
  return true;
}

template <class Blocks>
bool among_all(Operation& operation, unisono_collective collective, const Blocks& send, const Blocks& receive) {
  if (!is_buffer_or_in_place(operation, send) || !is_buffer(operation, receive)) return false;
  become(operation, collective);
  emplace(operation.to, operation.door->size, receive, Buffer::Use::kWritten);
  takes(operation, receive);
  operation.results = Operation::kAll;
  operation.bytes = operation.to->bytes();
  if (send.data == MPI_IN_PLACE && (collective == UNISONO_ALLTOALL || operation.waits)) {
    operation.call.in_place = 1;
    operation.input = Operation::kAll;
    return true;
  }
  // In place with counts, ranks agree on the longest block first, so that even a start would wait.
  emplace(operation.from, operation.door->size, send.data == MPI_IN_PLACE ? receive : send, Buffer::Use::kRead);
  if (send.data == MPI_IN_PLACE) operation.from->copy_always();
  gives(operation, send);
  operation.keep_apart();
  return true;
}

/// A device must be told the counts of all ranks, which MPI lets the root alone know.
bool root_alone_knows(Operation& operation) {
  if (!on_devices()) return false;
  operation.reason = Reason::kDevice;
  return true;
}

}  // namespace

bool prepare_barrier(Operation& operation) {
  operation.call.collective = UNISONO_BARRIER;
  return true;
}

bool prepare_bcast(Operation& operation, void* data, int count, MPI_Datatype type, int root) {
  if (!is_buffer(operation, Elements{data, count, type})) return false;
  if (!becomes_rooted(operation, UNISONO_BCAST, root)) return false;
  operation.to.emplace(data, count, type);
  operation.take(*operation.to);
  operation.call.count = operation.to->block_bytes();
  operation.bytes = operation.to->bytes();
  const bool is_root = operation.door->rank == root;
  operation.input = is_root ? Operation::kAll : Operation::kNone;
  operation.results = is_root ? Operation::kNone : Operation::kAll;
  return true;
}

bool prepare_allgather(Operation& operation, const Elements& send, const Elements& receive) {
  return to_all(operation, UNISONO_ALLGATHER, send, receive);
}

bool prepare_allgatherv(Operation& operation, const Elements& send, const Blocks& receive) {
  return to_all(operation, UNISONO_ALLGATHERV, send, receive);
}

bool prepare_gather(Operation& operation, const Elements& send, const Elements& receive, int root) {
  return to_root(operation, UNISONO_GATHER, send, receive, root);
}

bool prepare_gatherv(Operation& operation, const Elements& send, const Blocks& receive, int root) {
  if (root_alone_knows(operation)) return false;
  return to_root(operation, UNISONO_GATHERV, send, receive, root);
}

bool prepare_scatter(Operation& operation, const Elements& send, const Elements& receive, int root) {
  return from_root(operation, UNISONO_SCATTER, send, receive, root);
}

bool prepare_scatterv(Operation& operation, const Blocks& send, const Elements& receive, int root) {
  if (root_alone_knows(operation)) return false;
  return from_root(operation, UNISONO_SCATTERV, send, receive, root);
}

bool prepare_alltoall(Operation& operation, const Elements& send, const Elements& receive) {
  return among_all(operation, UNISONO_ALLTOALL, send, receive);
}

bool prepare_alltoallv(Operation& operation, const Blocks& send, const Blocks& receive) {
  return among_all(operation, UNISONO_ALLTOALLV, send, receive);
}

bool prepare_alltoallw(Operation& operation, const TypedBlocks& send, const TypedBlocks& receive) {
  return among_all(operation, UNISONO_ALLTOALLV, send, receive);
}

}  // namespace unisono::mpi
