// Channels of every kind, type, root and length: cables_channels WHAT TYPE COUNT DEGREE PAUSE. Elements differ on every
// rank; what each rank gets is checked, and printed as a sum of its bits, which is the same on every platform.
#include <algorithm>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unisono/smi.hpp>
#include <vector>

namespace {

int rank, size;
SMI_Comm comm;

template <class T>
struct Run {
  int type;
  int count;
  int degree;
  int pause;
  std::uint64_t bits = 1469598103934665603U;

  // Small numbers, so that sums are exact in the smaller types too.
  static T element(int of, int i, int salt) {
    const int number = (of * 5 + i * 3 + salt * 7) % 11;
    if constexpr (std::same_as<T, std::complex<double>>) {
      return {static_cast<double>(number), static_cast<double>((number + of + i) % 7)};
    } else {
      return static_cast<T>(number);
    }
  }
  void got(int i, const T& value, const T* expected) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) bits = (bits ^ byte) * 1099511628211U;
    if (expected == nullptr || std::memcmp(expected, &value, sizeof value) == 0) return;
    std::fprintf(stderr, "rank %d: element %d is wrong\n", rank, i);
    std::exit(1);
  }
  void rest(int i) const {
    if (pause != 0 && (i + rank) % pause == 0) unisono_kernel_tick(static_cast<std::uint64_t>(1 + i % 5));
  }

  // To the next rank, and from the one before; to itself too where there is one rank.
  void ring() {
    SMI_Channel to = SMI_Open_send_channel_ad(count, type, (rank + 1) % size, 0, comm, degree);
    SMI_Channel from = SMI_Open_receive_channel_ad(count, type, (rank + size - 1) % size, 0, comm, degree);
    const int before = (rank + size - 1) % size;
    for (int i = 0, j = 0; j < count;) {
      // As far ahead as the degree allows.
      while (i < count && i - j < (degree > 0 ? degree : 1)) {
        const T value = element(rank, i, 1);
        SMI_Push_flush(&to, &value, i % 13 == 0);
        rest(i++);
      }
      T value;
      SMI_Pop(&from, &value);
      const T expected = element(before, j, 1);
      got(j++, value, &expected);
    }
  }
  void line() {
    const int last = size - 1;
    if (rank == 0 && size > 1) {
      SMI_Channel to = SMI_Open_send_channel_ad(count, type, last, 1, comm, degree);
      for (int i = 0; i < count; ++i) {
        const T value = element(0, i, 2);
        SMI_Push(&to, &value);
        rest(i);
      }
    } else if (rank == last && size > 1) {
      SMI_Channel from = SMI_Open_receive_channel_ad(count, type, 0, 1, comm, degree);
      for (int i = 0; i < count; ++i) {
        T value;
        SMI_Pop(&from, &value);
        const T expected = element(0, i, 2);
        got(i, value, &expected);
        rest(i);
      }
    }
  }
  void vector() {
    constexpr int kWord = 16;
    std::vector<T> values(static_cast<std::size_t>(count));
    if (rank == 0 && size > 1) {
      for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = element(0, i, 3);
      SMI_Channel to = SMI_Open_send_channel_ad(count, type, 1, 2, comm, degree);
      for (int i = 0; i < count; i += kWord)
        SMI_Push_vector(&to, &values[static_cast<std::size_t>(i)], std::min(kWord, count - i));
    } else if (rank == 1) {
      SMI_Channel from = SMI_Open_receive_channel_ad(count, type, 0, 2, comm, degree);
      for (int i = 0; i < count; i += kWord)
        SMI_Pop_vector(&from, &values[static_cast<std::size_t>(i)], std::min(kWord, count - i));
      for (int i = 0; i < count; ++i) {
        const T expected = element(0, i, 3);
        got(i, values[static_cast<std::size_t>(i)], &expected);
      }
    }
  }
  void bcast(int root) {
    SMI_BChannel channel = SMI_Open_bcast_channel_ad(count, type, 0, root, comm, degree);
    for (int i = 0; i < count; ++i) {
      T value = rank == root ? element(root, i, 4) : T{};
      SMI_Bcast(&channel, &value);
      const T expected = element(root, i, 4);
      got(i, value, &expected);
      rest(i);
    }
  }
  void reduce(int root, SMI_Op op) {
    SMI_RChannel channel = SMI_Open_reduce_channel_ad(count, type, op, 1, root, comm, degree);
    for (int i = 0; i < count; ++i) {
      const T value = element(rank, i, 5);
      T result{};
      SMI_Reduce(&channel, &value, &result);
      rest(i);
      if (rank != root) continue;
      T expected{};
      bool first = true;
      for (int other = 0; other < size; ++other) {
        const T more = element(other, i, 5);
        if (first)
          expected = more;
        else if (op == SMI_ADD)
          expected = static_cast<T>(expected + more);
        else if constexpr (std::totally_ordered<T>)
          expected = (op == SMI_MAX) == (more > expected) ? more : expected;
        first = false;
      }
      got(i, result, &expected);
    }
  }
  void scatter(int root) {
    SMI_ScatterChannel channel = SMI_Open_scatter_channel_ad(count, count, type, 2, root, comm, degree);
    const int calls = rank == root ? count * size : count;
    for (int i = 0; i < calls; ++i) {
      const T value = element(root, i, 6);
      T mine{};
      SMI_Scatter(&channel, &value, &mine);
      const int at = rank == root ? i - rank * count : i;
      if (at < 0 || at >= count) continue;
      const T expected = element(root, rank * count + at, 6);
      got(at, mine, &expected);
    }
  }
  void gather(int root) {
    SMI_GatherChannel channel = SMI_Open_gather_channel_ad(count, count, type, 3, root, comm, degree);
    const int calls = rank == root ? count * size : count;
    for (int i = 0; i < calls; ++i) {
      const int of = rank == root ? i / count : rank;
      const T value = element(rank, i % count, 7);
      T result{};
      SMI_Gather(&channel, &value, &result);
      const T expected = element(of, i % count, 7);
      if (rank == root) got(i, result, &expected);
    }
  }
  void others() {
    unisono_smi_channel sums = SMI_Open_allreduce_channel(count, type, SMI_ADD, 0, comm);
    unisono_smi_channel all = SMI_Open_allgather_channel(count, type, 1, comm);
    unisono_smi_channel exchange = SMI_Open_alltoall_channel(count, type, 2, comm);
    for (int i = 0; i < count; ++i) {
      const T value = element(rank, i, 8);
      T result{};
      SMI_Allreduce(&sums, &value, &result);
      T expected{};
      for (int other = 0; other < size; ++other) expected = static_cast<T>(expected + element(other, i, 8));
      got(i, result, &expected);
    }
    SMI_Barrier(3, comm);
    for (int i = 0; i < count * size; ++i) {
      const T value = element(rank, i % count, 9);
      T result{};
      SMI_Allgather(&all, &value, &result);
      const T expected = element(i / count, i % count, 9);
      got(i, result, &expected);
    }
    for (int i = 0; i < count * size; ++i) {
      const T value = element(rank, i, 10);
      T result{};
      SMI_Alltoall(&exchange, &value, &result);
      const T expected = element(i / count, rank * count + i % count, 10);
      got(i, result, &expected);
    }
  }
  void all(const std::string& what) {
    if (what == "ring") ring();
    if (what == "line") line();
    if (what == "vector") vector();
    if (what == "others") others();
    for (int root = 0; root < size; ++root) {
      if (what == "bcast") bcast(root);
      if (what == "reduce") {
        reduce(root, SMI_ADD);
        if (!std::totally_ordered<T>) continue;
        reduce(root, SMI_MAX);
        reduce(root, SMI_MIN);
      }
      if (what == "scatter") scatter(root);
      if (what == "gather") gather(root);
    }
  }
};

template <class T>
void run(int type, const std::string& what, char** argv) {
  Run<T> made{type, std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5])};
  unisono::kernel::launch("all", [&] { made.all(what); });
  unisono::kernel::wait_all();
  std::printf("rank %d: %016llx\n", rank, static_cast<unsigned long long>(made.bits));
}

}  // namespace

int main(int /*argc*/, char** argv) {
  comm = SMI_COMM_WORLD;
  if (const char* const split = std::getenv("SPLIT"); split != nullptr) {
    // Two communicators, the ranks of the second in the other order.
    const int colour = comm->rank % 2;
    comm = SMI_Comm_split(comm, colour, colour == 0 ? comm->rank : -comm->rank);
  }
  rank = comm->rank;
  size = comm->size;
  const std::string what = argv[1];
  const std::string type = argv[2];
  if (type == "char") run<signed char>(SMI_CHAR, what, argv);
  if (type == "short") run<short>(SMI_SHORT, what, argv);
  if (type == "int") run<int>(SMI_INT, what, argv);
  if (type == "float") run<float>(SMI_FLOAT, what, argv);
  if (type == "double") run<double>(SMI_DOUBLE, what, argv);
  if (type == "complex") run<std::complex<double>>(SMI_TYPE_OF(UNISONO_COMPLEX128), what, argv);
  if (type == "ulong") run<unsigned long>(SMI_ULONG, what, argv);
  return 0;
}
