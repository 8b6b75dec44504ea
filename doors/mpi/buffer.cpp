#include "doors/mpi/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace unisono::mpi {

namespace {

std::byte* address(const void* base) { return static_cast<std::byte*>(const_cast<void*>(base)); }

/// Elements at an address that is not null: MPICH packs nothing from MPI_BOTTOM, of which datatypes say where they lie.
class Anchored {
 public:
  Anchored(const void* user, std::int64_t count, MPI_Datatype elements) : at(address(user)), type(elements) {
    if (user != nullptr || count == 0) return;
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_true_extent(elements, &lower, &extent);
    at = reinterpret_cast<std::byte*>(lower);  // NOLINT(performance-no-int-to-ptr): it is one
    const int one = 1;
    const MPI_Aint back = -lower;
    PMPI_Type_create_hindexed(1, &one, &back, elements, &type);
    PMPI_Type_commit(&type);
    owned_ = true;
  }
  Anchored(const Anchored&) = delete;
  Anchored& operator=(const Anchored&) = delete;
  ~Anchored() {
    if (owned_) PMPI_Type_free(&type);
  }

  std::byte* at;
  MPI_Datatype type;

 private:
  bool owned_ = false;
};

/// MPI counts bytes of a pack by int, so that a long block goes in pieces.
template <class Piece>
void in_pieces(std::byte* user, std::int64_t count, const Layout& layout, std::byte* packed, Piece&& piece) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 28;
  const std::int64_t most = std::max<std::int64_t>(1, kPiece / std::max<std::int64_t>(1, layout.size));
  for (std::int64_t rest = count; rest > 0;) {
    const auto now = static_cast<int>(std::min(rest, most));
    const auto bytes = static_cast<int>(now * layout.size);
    piece(user, now, packed, bytes);
    user += now * layout.extent;
    packed += bytes;
    rest -= now;
  }
}

}  // namespace

void pack_elements(const void* user, std::int64_t count, MPI_Datatype type, const Layout& layout, std::byte* packed) {
  const Anchored anchored(user, count, type);
  in_pieces(anchored.at, count, layout, packed, [&](const void* from, int elements, void* to, int bytes) {
    int position = 0;
    PMPI_Pack(from, elements, anchored.type, to, bytes, &position, MPI_COMM_SELF);
  });
}

void unpack_elements(const std::byte* packed, std::int64_t count, MPI_Datatype type, const Layout& layout, void* user) {
  const Anchored anchored(user, count, type);
  in_pieces(anchored.at, count, layout, address(packed), [&](void* to, int elements, const void* from, int bytes) {
    int position = 0;
    PMPI_Unpack(from, bytes, &position, to, elements, anchored.type, MPI_COMM_SELF);
  });
}

Buffer::Buffer(const void* base, std::int64_t count, MPI_Datatype type) : Buffer(base, 1, count, type) {}

Buffer::Buffer(const void* base, int blocks, std::int64_t count, MPI_Datatype type) : base_(address(base)) {
  const Layout layout = layout_of(type);
  block_bytes_ = count * layout.size;
  bytes_ = static_cast<std::uint64_t>(block_bytes_) * static_cast<std::uint64_t>(blocks);
  if (layout.dense || bytes_ == 0) return;
  types_.push_back({type, layout});
  for (std::int64_t block = 0; block < blocks; ++block) blocks_.push_back({count, block * count * layout.extent, 0});
  finish(false, Use::kRead);
}

Buffer::Buffer(const void* base, int blocks, const int* counts, const int* displacements, MPI_Datatype type, Use use)
    : base_(address(base)) {
  if (blocks == 0) return;
  const Layout layout = layout_of(type);
  const auto many = static_cast<std::size_t>(blocks);
  counts_.reserve(many);
  displacements_.reserve(many);
  if (!layout.dense) {  // else blocks that have to be copied are bytes
    types_.push_back({type, layout});
    blocks_.reserve(many);
  }
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t at = displacements[block] * layout.extent;
    counts_.push_back(counts[block] * layout.size);
    displacements_.push_back(at);
    if (!layout.dense) blocks_.push_back({counts[block], at, 0});
  }
  finish(layout.dense, use);
}

Buffer::Buffer(const void* base, const std::vector<Given>& blocks, Use use) : base_(address(base)) {
  bool dense = true;
  types_.reserve(blocks.size());
  counts_.reserve(blocks.size());
  displacements_.reserve(blocks.size());
  blocks_.reserve(blocks.size());
  for (const Given& block : blocks) {
    types_.push_back({block.type, block.count == 0 ? Layout{} : layout_of(block.type)});
    dense &= block.count == 0 || types_.back().layout.dense;
    counts_.push_back(block.count * types_.back().layout.size);
    displacements_.push_back(block.at);
    blocks_.push_back({block.count, block.at, types_.size() - 1});
  }
  finish(dense, use);
}

Buffer::~Buffer() {
  for (Type& one : types_) {
    if (one.owned) PMPI_Type_free(&one.type);
  }
}

/// Whether two blocks with elements do.
bool Buffer::overlaps() const {
  std::int64_t end = 0;
  bool in_order = true;
  for (std::size_t block = 0; block < counts_.size(); ++block) {
    if (counts_[block] == 0) continue;
    in_order = in_order && displacements_[block] >= end;
    end = displacements_[block] + counts_[block];
  }
  if (in_order) return false;
  const auto found = pieces();
  const auto touches = [](const auto& one, const auto& next) { return one.second > next.first; };
  return std::adjacent_find(found.begin(), found.end(), touches) != found.end();
}

/// Where blocks with elements begin and end, in the order of their begins.
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> Buffer::pieces() const {
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> found;
  for (std::size_t block = 0; block < counts_.size(); ++block) {
    if (counts_[block] <= 0) continue;
    const std::uintptr_t begin = base + static_cast<std::uintptr_t>(displacements_[block]);
    found.emplace_back(begin, begin + static_cast<std::uintptr_t>(counts_[block]));
  }
  if (counts_.empty() && bytes_ != 0) found.emplace_back(base, base + bytes_);
  std::sort(found.begin(), found.end());
  return found;
}

bool Buffer::lies_among(const Buffer& other) const {
  if (!copy_.empty() || !other.copy_.empty()) return false;
  const auto mine = reinterpret_cast<std::uintptr_t>(base_);
  const auto others = reinterpret_cast<std::uintptr_t>(other.base_);
  return mine < others + other.bytes_ && others < mine + bytes_;
}

bool Buffer::lies_on(const Buffer& other) const {
  if (!lies_among(other)) return false;
  const auto mine = pieces();
  const auto others = other.pieces();
  std::uintptr_t end = 0;  // of what began before: blocks of one buffer may lie on each other
  auto next = mine.begin();
  for (const auto& [begins, ends] : others) {
    for (; next != mine.end() && next->first < ends; ++next) end = std::max(end, next->second);
    if (end > begins) return true;
  }
  return false;
}

void Buffer::finish(bool dense, Use use) {
  std::int64_t reach = 0;
  std::int64_t all = 0;
  for (std::size_t block = 0; block < counts_.size(); ++block) {
    if (counts_[block] != 0) reach = std::max(reach, displacements_[block] + counts_[block]);
    all += counts_[block];
  }
  // Blocks before the buffer's begin are copied, too; and those of several arrays, which are told apart from one array
  // by MPI_BOTTOM, where displacements are addresses, or by their distance.
  constexpr std::int64_t kApart = std::int64_t{1} << 30;
  dense = dense && base_ != nullptr && reach <= 2 * all + kApart &&
          std::all_of(displacements_.begin(), displacements_.end(), [](std::int64_t at) { return at >= 0; });
  if (dense && use == Use::kWritten) dense = !overlaps();
  if (dense) {
    bytes_ = static_cast<std::uint64_t>(reach);
    blocks_.clear();
    types_.clear();
    return;
  }
  if (blocks_.empty()) {
    copy_always();
  } else {
    copy_blocks();
  }
}

void Buffer::copy_blocks() {
  std::int64_t start = 0;
  for (const Block& block : blocks_) {
    starts_.push_back(start);
    // A negative count is refused when the call is made.
    start += std::max<std::int64_t>(block.elements, 0) * types_[block.type].layout.size;
  }
  bytes_ = static_cast<std::uint64_t>(start);
  copy_.resize(std::max<std::size_t>(bytes_, 1));
}

void Buffer::keep_types() {
  for (Type& one : types_) {
    if (one.owned || one.layout.size == 0) continue;
    PMPI_Type_dup(one.type, &one.type);
    one.owned = true;
  }
}

void Buffer::move(int block, bool packs) {
  const auto index = static_cast<std::size_t>(block);
  const Block& one = blocks_[index];
  const Type& type = types_[one.type];
  std::byte* const packed = copy_.data() + starts_[index];
  if (packs) {
    pack_elements(base_ + one.at, one.elements, type.type, type.layout, packed);
  } else {
    unpack_elements(packed, one.elements, type.type, type.layout, base_ + one.at);
  }
}

void Buffer::copy_always() {
  if (!copy_.empty()) return;
  if (counts_.empty()) {
    copy_.resize(std::max<std::size_t>(bytes_, 1));
    return;
  }
  types_.push_back({MPI_BYTE, layout_of(MPI_BYTE)});
  for (std::size_t block = 0; block < counts_.size(); ++block) {
    blocks_.push_back({counts_[block], displacements_[block], 0});
  }
  copy_blocks();
}

void Buffer::pack() {
  if (blocks_.empty() && !copy_.empty()) std::memcpy(copy_.data(), base_, bytes_);
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
