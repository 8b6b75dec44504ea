#include "doors/shmem/collectives.hpp"

#include <numeric>
#include <string>

#include "doors/shmem/failure.hpp"

namespace unisono::shmem {

namespace {

unisono_call of(unisono_collective collective) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = UNISONO_BYTE;
  return call;
}

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

/// The source, or a copy of it if the call would write to it.
class Source {
 public:
  Source(const void* source, std::uint64_t bytes, const void* dest, std::uint64_t dest_bytes) : data_(source) {
    if (!overlap(source, bytes, dest, dest_bytes)) return;
    const auto* const begin = static_cast<const std::byte*>(source);
    copy_.assign(begin, begin + bytes);
    data_ = copy_.data();
  }
  const void* data() const { return data_; }

 private:
  const void* data_;
  std::vector<std::byte> copy_;
};

}  // namespace

void sync(const char* operation, const Team& team) {
  const unisono_call call = of(UNISONO_BARRIER);
  check(operation, unisono_run(team.communicator, &call));
}

void broadcast(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes, int root,
               bool at_root) {
  if (root < 0 || root >= team.size()) {
    fail(operation,
         "root " + std::to_string(root) + " was given; the team has PEs 0 to " + std::to_string(team.size() - 1));
  }
  const bool mine = root == team.rank;
  unisono_call call = of(UNISONO_BCAST);
  call.root = root;
  call.count = static_cast<std::int64_t>(bytes);
  // The root's is only read.
  call.dst = mine ? const_cast<void*>(source) : dest;  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  call.dst_bytes = bytes;
  check(operation, unisono_run(team.communicator, &call));
  if (mine && at_root && dest != source && bytes != 0) std::memmove(dest, source, bytes);
}

void collect(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes) {
  const auto own = static_cast<std::int64_t>(bytes);
  std::vector<std::int64_t> counts(team.pes.size());
  fcollect(operation, team, counts.data(), &own, sizeof own);
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const Source given(source, bytes, dest, static_cast<std::uint64_t>(total));
  unisono_call call = of(UNISONO_ALLGATHERV);
  call.src = given.data();
  call.src_bytes = bytes;
  call.dst = dest;
  call.dst_bytes = static_cast<std::uint64_t>(total);
  call.recv_counts = counts.data();
  check(operation, unisono_run(team.communicator, &call));
}

void fcollect(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes) {
  const std::uint64_t total = bytes * team.pes.size();
  const Source given(source, bytes, dest, total);
  unisono_call call = of(UNISONO_ALLGATHER);
  call.count = static_cast<std::int64_t>(bytes);
  call.src = given.data();
  call.src_bytes = bytes;
  call.dst = dest;
  call.dst_bytes = total;
  check(operation, unisono_run(team.communicator, &call));
}

void alltoall(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes) {
  const std::uint64_t total = bytes * team.pes.size();
  const Source given(source, total, dest, total);
  unisono_call call = of(UNISONO_ALLTOALL);
  call.count = static_cast<std::int64_t>(bytes);
  call.src = given.data();
  call.src_bytes = total;
  call.dst = dest;
  call.dst_bytes = total;
  check(operation, unisono_run(team.communicator, &call));
}

void alltoalls(const char* operation, const Team& team, void* dest, const void* source, std::ptrdiff_t dst_step,
               std::ptrdiff_t src_step, std::uint64_t count, std::uint64_t size) {
  if (dst_step < 1 || src_step < 1) {
    fail(operation, "steps of " + std::to_string(dst_step) + " and " + std::to_string(src_step) +
                        " were given; allowed are 1 and more");
  }
  const std::uint64_t all = count * team.pes.size();
  std::vector<std::byte> packed(all * size);
  std::vector<std::byte> came(all * size);
  // Blocks stand one behind the other: that of j begins at element j * count * step.
  for (std::uint64_t i = 0; i < all; ++i) {
    std::memcpy(packed.data() + i * size,
                static_cast<const std::byte*>(source) + i * static_cast<std::uint64_t>(src_step) * size, size);
  }
  alltoall(operation, team, came.data(), packed.data(), count * size);
  for (std::uint64_t i = 0; i < all; ++i) {
    std::memcpy(static_cast<std::byte*>(dest) + i * static_cast<std::uint64_t>(dst_step) * size, came.data() + i * size,
                size);
  }
}

void reduce(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t count,
            std::uint64_t size, unisono_datatype datatype, unisono_op op) {
  const std::uint64_t bytes = count * size;
  const Source given(source, bytes, dest, bytes);
  unisono_call call = of(UNISONO_ALLREDUCE);
  call.datatype = datatype;
  call.op = op;
  call.count = static_cast<std::int64_t>(count);
  call.src = given.data();
  call.src_bytes = bytes;
  call.dst = dest;
  call.dst_bytes = bytes;
  check(operation, unisono_run(team.communicator, &call));
}

}  // namespace unisono::shmem
