// Collectives whose bits, order and waiting matter: cables_collectives WHAT COUNT ROOT. Elements differ on every rank;
// each rank prints a sum of the bits that it got, which is the same on every platform.
//
//   order     reductions of floats and doubles of any magnitude, so that another order of adding shows, with zeros of
//             both signs and numbers that are none; words and single elements in turn
//   lockstep  each element is reduced, and its sum broadcast, before the next one is given
//   at-once   two broadcasts and two reductions at the same time, on ports and from roots of their own
//   times     COUNT elements are broadcast (BCAST set) or reduced; prints the cycles of the root's kernel
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <unisono/smi.hpp>
#include <vector>

namespace {

SMI_Comm comm;
int rank, size;

struct Sum {
  std::uint64_t bits = 1469598103934665603U;
  template <class T>
  void add(const T& value) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) bits = (bits ^ byte) * 1099511628211U;
  }
};

std::uint32_t random_of(int of, int i, int salt) {
  std::uint32_t state = static_cast<std::uint32_t>(of * 7919 + i * 104729 + salt * 1299709 + 1);
  for (int round = 0; round < 3; ++round) state = (state ^ state >> 15U) * 2246822519U;
  return state;
}

template <class T>
T magnitude(int of, int i) {
  const std::uint32_t drawn = random_of(of, i, 1);
  if (drawn % 29 == 0) return drawn & 64U ? T{0} : -T{0};
  if (drawn % 31 == 0) return std::numeric_limits<T>::infinity();
  const T value = std::ldexp(T{1} + static_cast<T>(drawn >> 8U) / 16777216, static_cast<int>(drawn % 24));
  return drawn & 128U ? -value : value;
}

template <class T>
void reduce(int type, SMI_Op op, int port, int count, int root, Sum& sum) {
  unisono_smi_channel channel = SMI_Open_reduce_channel(count, type, op, port, root, comm);
  std::vector<T> values(static_cast<std::size_t>(count)), results(values.size());
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = magnitude<T>(rank, i);
  for (int i = 0; i < count;) {
    const int word = i % 3 == 0 ? std::min(5, count - i) : 1;
    unisono_smi_check(unisono_smi_collective(&channel, &values[static_cast<std::size_t>(i)],
                                             &results[static_cast<std::size_t>(i)], static_cast<std::size_t>(word)));
    if (random_of(rank, i, 2) % 5 == 0) unisono_kernel_tick(random_of(rank, i, 3) % 40);
    i += word;
  }
  if (rank != root) return;
  for (const T& result : results) {
    if (std::isnan(result)) {
      sum.add('n');  // which of two is kept is nobody's promise
    } else {
      sum.add(result);
    }
  }
}

void bcast(int port, int count, int root, int salt, Sum& sum) {
  SMI_BChannel channel = SMI_Open_bcast_channel(count, SMI_INT, port, root, comm);
  for (int i = 0; i < count; ++i) {
    int value = rank == root ? static_cast<int>(random_of(root, i, salt)) : -1;
    SMI_Bcast(&channel, &value);
    sum.add(value);
    if (random_of(rank, i, salt + 1) % 7 == 0) unisono_kernel_tick(random_of(rank, i, salt) % 20);
  }
}

void lockstep(int count, int root, Sum& sum) {
  SMI_RChannel gives = SMI_Open_reduce_channel(count, SMI_INT, SMI_ADD, 1, root, comm);
  SMI_BChannel gets = SMI_Open_bcast_channel(count, SMI_INT, 0, root, comm);
  int last = 0;
  for (int i = 0; i < count; ++i) {
    const int value = static_cast<int>(random_of(rank, i, 5) % 1000) + last;
    int total = 0;
    SMI_Reduce(&gives, &value, &total);
    SMI_Bcast(&gets, &total);
    int expected = 0;
    for (int other = 0; other < size; ++other) expected += static_cast<int>(random_of(other, i, 5) % 1000) + last;
    if (total != expected) {
      std::fprintf(stderr, "rank %d: sum %d is %d, and not %d\n", rank, i, total, expected);
      std::exit(1);
    }
    last = total % 100;
    sum.add(total);
  }
}

void times(int count, int root) {
  const bool broadcasts = std::getenv("BCAST") != nullptr;
  const char* const words = std::getenv("WORD");
  const int word = words == nullptr ? 1 : std::atoi(words);
  std::vector<float> values(static_cast<std::size_t>(word)), results(values.size());
  unisono_smi_channel channel = broadcasts ? SMI_Open_bcast_channel(count, SMI_FLOAT, 0, root, comm)
                                           : SMI_Open_reduce_channel(count, SMI_FLOAT, SMI_ADD, 1, root, comm);
  const std::uint64_t begin = unisono_kernel_cycle();
  for (int i = 0; i < count; i += word) {
    for (int lane = 0; lane < word; ++lane)
      values[static_cast<std::size_t>(lane)] = static_cast<float>(rank + i + lane);
    unisono_smi_check(unisono_smi_collective(&channel, values.data(), broadcasts ? values.data() : results.data(),
                                             static_cast<std::size_t>(std::min(word, count - i))));
  }
  if (broadcasts ? rank == size - 1 : rank == root) {
    std::printf("%llu cycles\n", static_cast<unsigned long long>(unisono_kernel_cycle() - begin));
  }
}

}  // namespace

int main(int /*argc*/, char** argv) {
  comm = SMI_COMM_WORLD;
  rank = comm->rank;
  size = comm->size;
  const std::string what = argv[1];
  const int count = std::atoi(argv[2]);
  const int root = std::atoi(argv[3]);
  Sum sums[4];
  if (what == "order") {
    unisono::kernel::launch("order", [&] {
      for (int of = 0; of < size; ++of) {
        for (const SMI_Op op : {SMI_ADD, SMI_MAX, SMI_MIN}) {
          reduce<float>(SMI_FLOAT, op, 1, count, of, sums[0]);
          reduce<double>(SMI_DOUBLE, op, 3, count, of, sums[1]);
        }
      }
    });
  }
  if (what == "lockstep") unisono::kernel::launch("lockstep", [&] { lockstep(count, root, sums[0]); });
  if (what == "at-once") {
    unisono::kernel::launch("a", [&] { bcast(0, count, root, 11, sums[0]); });
    unisono::kernel::launch("b", [&] { reduce<float>(SMI_FLOAT, SMI_ADD, 1, count, (root + 1) % size, sums[1]); });
    unisono::kernel::launch("c", [&] { bcast(2, count, (root + 2) % size, 13, sums[2]); });
    unisono::kernel::launch("d", [&] { reduce<float>(SMI_FLOAT, SMI_MAX, 3, count, root, sums[3]); });
  }
  if (what == "times") unisono::kernel::launch("times", [&] { times(count, root); });
  unisono::kernel::wait_all();
  if (what == "times") return 0;
  for (int i = 0; i < 4; ++i)
    std::printf("rank %d: %d %016llx\n", rank, i, static_cast<unsigned long long>(sums[i].bits));
}
