#include "doors/mpi/operation.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/generated/spec.hpp"

namespace unisono::mpi {

namespace {

/// From so many bytes of an operand on, ranks divide the work of an operator of the MPI.
constexpr std::uint64_t kSliced = 32 << 10;
/// Of a scan so many bytes of all ranks are gathered at a time.
constexpr std::int64_t kPiece = 128 << 10;

int class_of(unisono_result result) {
  switch (static_cast<ErrorCode>(result)) {
    case ErrorCode::kInvalidCount:
      return MPI_ERR_COUNT;
    case ErrorCode::kInvalidOp:
      return MPI_ERR_OP;
    case ErrorCode::kInvalidDatatype:
      return MPI_ERR_TYPE;
    case ErrorCode::kBufferTooSmall:
    case ErrorCode::kTruncated:
      return MPI_ERR_TRUNCATE;
    case ErrorCode::kOverlappingBuffers:
      return MPI_ERR_BUFFER;
    case ErrorCode::kOutOfMemory:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_OTHER;
  }
}

unisono_call of_blocks(unisono_collective collective) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = UNISONO_BYTE;
  return call;
}

}  // namespace

bool is_undefined(unisono_result result) {
  const auto code = static_cast<ErrorCode>(result);
  return code == ErrorCode::kInvalidOp || code == ErrorCode::kInvalidDatatype;
}

void Operation::give(Buffer& buffer) {
  call.src = buffer.data();
  call.src_bytes = buffer.bytes();
}

void Operation::take(Buffer& buffer) {
  call.dst = buffer.data();
  call.dst_bytes = buffer.bytes();
}

void Operation::give_blocks(Buffer& buffer) {
  give(buffer);
  call.send_counts = buffer.counts();
  call.send_displacements = buffer.displacements();
}

void Operation::take_blocks(Buffer& buffer) {
  take(buffer);
  call.recv_counts = buffer.counts();
  call.recv_displacements = buffer.displacements();
}

void Operation::keep_apart() {
  if (!from || !to || !from->lies_among(*to) || from->lies_on(*to)) return;
  from->copy_always();
  if (call.send_counts != nullptr) {
    give_blocks(*from);
  } else {
    give(*from);
  }
}

const void* Operation::copies_input(const void* data, std::uint64_t length) {
  copied_ = data;
  copy_.resize(std::max<std::size_t>(length, 1));
  return copy_.data();
}

void Operation::folds(const Fold& by, std::int64_t count, int blocks, int folded, void* result) {
  fold_ = by;
  fold_count_ = count;
  fold_blocks_ = blocks;
  folded_ = folded;
  result_ = result;
}

Operation::~Operation() {
  if (kept_ != MPI_DATATYPE_NULL) PMPI_Type_free(&kept_);
}

void Operation::settle() {
  if (!waits) {
    if (from) from->keep_types();
    if (to) to->keep_types();
    if (fold_ && kept_ == MPI_DATATYPE_NULL) PMPI_Type_dup(fold_->type(), &kept_);
  }
  if (!fold_ || fold_blocks_ == 0) return;
  const std::int64_t length = fold_blocks_ * fold_count_ * fold_->layout().size;
  blocks_.resize(static_cast<std::size_t>(std::max<std::int64_t>(length, 1)));
  call.dst = blocks_.data();
  call.dst_bytes = static_cast<std::uint64_t>(length);
}

void Operation::begin() {
  if (from) from->pack();
  if (input == kAll) to->pack();
  if (input >= 0) to->pack_block(input);
  if (copied_ != nullptr) std::memcpy(copy_.data(), copied_, call.src_bytes);
}

int Operation::end() {
  if (results != kNone) to->unpack(results);
  if (!fold_) return MPI_SUCCESS;
  return (*fold_)(blocks_.data(), fold_count_ * fold_->layout().size, folded_, fold_count_, result_);
}

unisono_result Operation::run() {
  if (fold_) {
    const bool scans = function == Function::kScan || function == Function::kExscan;
    const bool scatters = function == Function::kReduceScatter || function == Function::kReduceScatterBlock;
    // Every rank has the same count.
    const std::uint64_t operand = from ? from->bytes() : 0;
    if (operand >= kSliced && !scatters) return scans ? run_in_pieces() : run_in_slices();
    settle();
  }
  begin();
  const unisono_result result = unisono_run(door->communicator, &call);
  if (result == 0) end();
  return result;
}

/// All-reduce, and reduce: each rank folds a slice of the elements.
unisono_result Operation::run_in_slices() {
  begin();
  const auto ranks = static_cast<std::size_t>(door->size);
  const std::int64_t size = fold_->layout().size;
  const std::int64_t count = static_cast<std::int64_t>(from->bytes()) / size;
  const auto first = [&](std::size_t rank) {
    return count * static_cast<std::int64_t>(rank) / static_cast<std::int64_t>(ranks);
  };
  std::vector<std::int64_t> slices(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) slices[rank] = (first(rank + 1) - first(rank)) * size;
  const std::int64_t own = slices[static_cast<std::size_t>(door->rank)];
  const std::vector<std::int64_t> equal(ranks, own);

  blocks_.resize(static_cast<std::size_t>(std::max<std::int64_t>(own * door->size, 1)));
  unisono_call exchange = of_blocks(UNISONO_ALLTOALLV);
  exchange.src = from->data();
  exchange.src_bytes = from->bytes();
  exchange.send_counts = slices.data();
  exchange.dst = blocks_.data();
  exchange.dst_bytes = static_cast<std::uint64_t>(own * door->size);
  exchange.recv_counts = equal.data();
  if (const unisono_result result = unisono_run(door->communicator, &exchange); result != 0) return result;

  Fold::Elements folded = fold_->room_for(own / size);
  (*fold_)(blocks_.data(), own, door->size, own / size, folded.at);
  std::vector<std::byte> packed;
  const std::byte* slice = folded.at;
  if (!fold_->layout().dense) {
    packed.resize(static_cast<std::size_t>(std::max<std::int64_t>(own, 1)));
    pack_elements(folded.at, own / size, fold_->type(), fold_->layout(), packed.data());
    slice = packed.data();
  }

  const bool all = function == Function::kAllreduce;
  const bool receives = all || door->rank == call.root;
  unisono_call collect = of_blocks(all ? UNISONO_ALLGATHERV : UNISONO_GATHERV);
  collect.root = call.root;
  collect.src = slice;
  collect.src_bytes = static_cast<std::uint64_t>(own);
  collect.recv_counts = slices.data();
  std::vector<std::byte> gathered;
  if (receives) {
    if (!fold_->layout().dense) gathered.resize(from->bytes());
    collect.dst = fold_->layout().dense ? result_ : gathered.data();
    collect.dst_bytes = from->bytes();
  }
  const unisono_result result = unisono_run(door->communicator, &collect);
  if (result == 0 && receives && !fold_->layout().dense) {
    unpack_elements(gathered.data(), count, fold_->type(), fold_->layout(), result_);
  }
  return result;
}

/// Scans: so many elements at a time that the operands of all ranks need little memory.
unisono_result Operation::run_in_pieces() {
  begin();
  const std::int64_t size = fold_->layout().size;
  const std::int64_t count = static_cast<std::int64_t>(from->bytes()) / size;
  const std::int64_t most = std::max<std::int64_t>(1, kPiece / (size * door->size));
  blocks_.resize(static_cast<std::size_t>(std::min(most, count) * size * door->size));
  for (std::int64_t done = 0; done < count; done += most) {
    const std::int64_t now = std::min(most, count - done);
    unisono_call gather = of_blocks(UNISONO_ALLGATHER);
    gather.count = now * size;
    gather.src = from->data() + done * size;
    gather.src_bytes = static_cast<std::uint64_t>(now * size);
    gather.dst = blocks_.data();
    gather.dst_bytes = static_cast<std::uint64_t>(now * size * door->size);
    if (const unisono_result result = unisono_run(door->communicator, &gather); result != 0) return result;
    (*fold_)(blocks_.data(), now * size, folded_, now,
             static_cast<std::byte*>(result_) + done * fold_->layout().extent);
  }
  return 0;
}

bool Operation::is_comparable() const {
  const bool exchanges =
      function == Function::kAlltoall || function == Function::kAlltoallv || function == Function::kAlltoallw;
  return !(exchanges && call.in_place != 0);
}

int Operation::told(unisono_result result) const {
  if (result == 0) return MPI_SUCCESS;
  std::fprintf(stderr, "unisono: %s: %s\n", name_of(function).c_str(), unisono_last_error());
  return failed(class_of(result));
}

int Operation::failed(int error) const {
  PMPI_Comm_call_errhandler(comm, error);
  return error;
}

}  // namespace unisono::mpi
