#include "doors/mpi/buffer.hpp"

#include <algorithm>

namespace unisono::mpi {

Buffer::Buffer(const void* base, std::int64_t count, MPI_Datatype type) : Buffer(base, 1, count, type) {}

Buffer::Buffer(const void* base, int blocks, std::int64_t count, MPI_Datatype type)
    : base_(static_cast<std::byte*>(const_cast<void*>(base))), type_(type), layout_(layout_of(type)) {
  block_bytes_ = count * layout_.size;
  bytes_ = static_cast<std::uint64_t>(block_bytes_) * static_cast<std::uint64_t>(blocks);
  if (layout_.dense || bytes_ == 0) return;
  for (std::int64_t block = 0; block < blocks; ++block) blocks_.push_back({count, block * count});
  lay_out();
}

Buffer::Buffer(const void* base, int blocks, const int* counts, const int* displacements, MPI_Datatype type)
    : base_(static_cast<std::byte*>(const_cast<void*>(base))), type_(type), layout_(layout_of(type)) {
  std::int64_t reach = 0;
  for (int block = 0; block < blocks; ++block) {
    counts_.push_back(counts[block] * layout_.size);
    displacements_.push_back(displacements[block] * layout_.extent);
    if (counts[block] != 0) reach = std::max(reach, displacements_.back() + counts_.back());
  }
  if (layout_.dense) {
    bytes_ = static_cast<std::uint64_t>(reach);
    return;
  }
  for (int block = 0; block < blocks; ++block) blocks_.push_back({counts[block], displacements[block]});
  lay_out();
}

void Buffer::lay_out() {
  std::int64_t at = 0;
  for (const Block& block : blocks_) {
    starts_.push_back(at);
    at += block.elements * layout_.size;
  }
  bytes_ = static_cast<std::uint64_t>(at);
  copy_.resize(std::max<std::size_t>(bytes_, 1));
}

void Buffer::move(int block, bool packs) {
  const auto index = static_cast<std::size_t>(block);
  std::byte* user = base_ + blocks_[index].displacement * layout_.extent;
  std::byte* packed = copy_.data() + starts_[index];
  // MPI counts bytes of a pack by int, so a long block goes in pieces.
  constexpr std::int64_t kPiece = std::int64_t{1} << 28;
  const std::int64_t most = std::max<std::int64_t>(1, kPiece / std::max<std::int64_t>(1, layout_.size));
  for (std::int64_t rest = blocks_[index].elements; rest > 0;) {
    const auto now = static_cast<int>(std::min(rest, most));
    const auto bytes = static_cast<int>(now * layout_.size);
    int position = 0;
    if (packs) {
      PMPI_Pack(user, now, type_, packed, bytes, &position, MPI_COMM_SELF);
    } else {
      PMPI_Unpack(packed, bytes, &position, user, now, type_, MPI_COMM_SELF);
    }
    user += now * layout_.extent;
    packed += bytes;
    rest -= now;
  }
}

void Buffer::pack() {
  for (std::size_t block = 0; block < blocks_.size(); ++block) move(static_cast<int>(block), true);
}

void Buffer::pack_block(int block) {
  if (!blocks_.empty()) move(block, true);
}

void Buffer::unpack(int but) {
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (static_cast<int>(block) != but) move(static_cast<int>(block), false);
  }
}

}  // namespace unisono::mpi
