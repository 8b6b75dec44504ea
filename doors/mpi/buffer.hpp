// Elements of a call of MPI as bytes in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "doors/mpi/elements.hpp"
#include "doors/mpi/mpi.hpp"

namespace unisono::mpi {

/// Blocks of elements: where they lie if their datatypes are dense, else a packed copy, block behind block, for which
/// extents of derived datatypes are what MPI says they are.
class Buffer {
 public:
  /// What becomes of the blocks. Those that are written may overlap in MPI's implementations, though not in its
  /// standard; they are received apart then.
  enum class Use : std::uint8_t { kRead, kWritten };

  /// One block.
  Buffer(const void* base, std::int64_t count, MPI_Datatype type);
  /// `blocks` blocks of `count` elements, one behind the other.
  Buffer(const void* base, int blocks, std::int64_t count, MPI_Datatype type);
  /// A block for each rank, at displacements that count extents. Both arrays have `blocks` entries.
  Buffer(const void* base, int blocks, const int* counts, const int* displacements, MPI_Datatype type, Use use);
  /// A block with a datatype of its own, so many bytes from the buffer's begin. One without elements may have any
  /// datatype, none included.
  struct Given {
    std::int64_t count;
    std::int64_t at;
    MPI_Datatype type;
  };
  Buffer(const void* base, const std::vector<Given>& blocks, Use use);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  /// Where the bytes are.
  std::byte* data() { return copy_.empty() ? base_ : copy_.data(); }
  std::uint64_t bytes() const { return bytes_; }
  /// Bytes of one of equal blocks.
  std::int64_t block_bytes() const { return block_bytes_; }
  /// Of blocks with counts: their bytes, and where they begin; null displacements: one behind the other.
  const std::int64_t* counts() const { return counts_.data(); }
  const std::int64_t* displacements() const { return blocks_.empty() ? displacements_.data() : nullptr; }

  /// Has the bytes copied even if they are dense: for input that lies where results go. Only blocks are, not what lies
  /// between them.
  void copy_always();
  /// Whether what reaches from the first to the last byte of this buffer meets what does of another, and whether a
  /// block of one lies on a block of the other, whose own blocks do not overlap. Of copies, neither.
  bool lies_among(const Buffer& other) const;
  bool lies_on(const Buffer& other) const;
  /// Keeps the datatypes that are still needed, so that the program may free them before the call has ended.
  void keep_types();
  /// Copies what the user has, of all blocks or of one, into the packed copy, if there is one.
  void pack();
  void pack_block(int block);
  /// Copies results, of all blocks or of all but one (`but`), to where the user has them, if there is a packed copy.
  void unpack(int but = -1);

 private:
  struct Block {
    std::int64_t elements;
    std::int64_t at;  ///< bytes from `base_`
    std::size_t type;
  };
  struct Type {
    MPI_Datatype type;
    Layout layout;
    bool owned = false;
  };
  void finish(bool dense, Use use);
  bool overlaps() const;
  void copy_blocks();
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> pieces() const;
  void move(int block, bool packs);

  std::byte* base_;
  std::vector<Type> types_;    ///< of blocks in a packed copy
  std::vector<Block> blocks_;  ///< of a packed copy
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> displacements_;
  std::vector<std::int64_t> starts_;  ///< in the packed copy
  std::vector<std::byte> copy_;
  std::uint64_t bytes_ = 0;
  std::int64_t block_bytes_ = 0;
};

/// Copies elements between the user's memory and bytes in a row.
void pack_elements(const void* user, std::int64_t count, MPI_Datatype type, const Layout& layout, std::byte* packed);
void unpack_elements(const std::byte* packed, std::int64_t count, MPI_Datatype type, const Layout& layout, void* user);

}  // namespace unisono::mpi
