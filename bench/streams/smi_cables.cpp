// SMI's microbenchmarks (SC 2019, section 5.3) on simulated cables: smi_cables NETWORK [units]. Prints a JSON line for
// each figure, in cycles of the nodes' clock, from its rank; `units`: of broadcast and reduction alone, at nodes that
// have units for them. Run by tools/bench-streams with `unisono run --cables`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <unisono/smi.hpp>
#include <vector>

namespace {

namespace kernel = unisono::kernel;

std::string network;
SMI_Comm comm;

constexpr double kGigahertz = 0.25;
std::uint64_t cycles() {
  return static_cast<std::uint64_t>(static_cast<double>(unisono_kernel_nanoseconds(comm)) * kGigahertz + 0.5);
}

template <class T>
T value(int rank, int i) {
  return static_cast<T>((rank * 7 + i) % 13);
}

void print(const char* op, int bytes, const char* more, std::uint64_t took, std::uint64_t payload, bool right) {
  std::printf(
      "{\"system\": \"unisono\", \"op\": \"%s\", \"network\": \"%s\", \"ranks\": %d, \"bytes\": %d%s, \"cycles\": %llu",
      op, network.c_str(), comm->size, bytes, more, static_cast<unsigned long long>(took));
  if (payload != 0)
    std::printf(", \"gbps\": %.2f", 8.0 * static_cast<double>(payload) * kGigahertz / static_cast<double>(took));
  std::printf(", \"verified\": %s}\n", right ? "true" : "false");
}

/// All ranks begin in the same cycle.
void run(const std::function<void()>& body) {
  unisono_smi_check(unisono_smi_meet(comm));
  kernel::launch("bench", body).wait();
}

template <class T>
void bandwidth(const char* op, SMI_Datatype type, int peer, bool eager) {
  constexpr int kCount = 16380;
  constexpr int kWord = 28 / sizeof(T);  // what a packet carries
  const int degree = eager ? kCount : -1;
  run([=] {
    std::vector<T> elements(kWord);
    if (comm->rank == 0) {
      SMI_Channel to = SMI_Open_send_channel_ad(kCount, type, peer, 0, comm, degree);
      for (int i = 0; i < kCount; i += kWord) {
        for (int j = 0; j < kWord; ++j) elements[static_cast<std::size_t>(j)] = value<T>(0, i + j);
        SMI_Push_vector(&to, elements.data(), kWord);
      }
    } else if (comm->rank == peer) {
      bool right = true;
      std::uint64_t begin = 0;
      SMI_Channel from = SMI_Open_receive_channel_ad(kCount, type, 0, 0, comm, degree);
      for (int i = 0; i < kCount; i += kWord) {
        SMI_Pop_vector(&from, elements.data(), kWord);
        if (i == 0) begin = cycles();
        for (int j = 0; j < kWord; ++j) right = right && elements[static_cast<std::size_t>(j)] == value<T>(0, i + j);
      }
      const std::string more = ", \"peer\": " + std::to_string(peer);
      // From the first word on, which is not counted.
      print(op, kCount * static_cast<int>(sizeof(T)), more.c_str(), cycles() - begin, (kCount - kWord) * sizeof(T),
            right);
    }
  });
}

void latency(int peer) {
  constexpr int kRounds = 16;
  run([=] {
    if (comm->rank != 0 && comm->rank != peer) return;
    const int other = comm->rank == 0 ? peer : 0;
    bool right = true;
    const std::uint64_t begin = cycles();
    for (int i = 0; i < kRounds; ++i) {
      SMI_Channel to = SMI_Open_send_channel_ad(1, SMI_INT, other, 0, comm, 1);
      SMI_Channel from = SMI_Open_receive_channel_ad(1, SMI_INT, other, 0, comm, 1);
      int element = comm->rank == 0 ? i * 3 : 0;
      if (comm->rank == 0) SMI_Push(&to, &element);
      SMI_Pop(&from, &element);
      right = right && element == i * 3;
      if (comm->rank != 0) SMI_Push(&to, &element);
    }
    const std::string more = ", \"peer\": " + std::to_string(peer);
    if (comm->rank == 0) print("smi_latency", 4, more.c_str(), (cycles() - begin) / (2 * kRounds), 0, right);
  });
}

void collective(const char* op, int kind) {
  constexpr int kCount = 4000;
  constexpr int kRoot = 0;
  run([=] {
    const int size = comm->size;
    const int me = comm->rank;
    unisono_smi_channel channel = unisono_smi_open(kind, kCount, SMI_FLOAT, SMI_ADD, kRoot, 0, comm, -1);
    const bool by_rank = me == kRoot && (kind == UNISONO_SMI_SCATTER || kind == UNISONO_SMI_GATHER);
    bool right = true;
    const std::uint64_t begin = cycles();
    for (int i = 0; i < (by_rank ? kCount * size : kCount); ++i) {
      float given = value<float>(me, i);
      float got = 0;
      if (kind == UNISONO_SMI_BCAST) {
        SMI_Bcast(&channel, &given);
        right = right && given == value<float>(kRoot, i);
        continue;
      }
      if (kind == UNISONO_SMI_GATHER) given = value<float>(me, i % kCount);
      SMI_Collective_vector(&channel, &given, &got, 1);
      if (kind == UNISONO_SMI_REDUCE && me == kRoot) {
        float sum = 0;
        for (int rank = 0; rank < size; ++rank) sum += value<float>(rank, i);
        right = right && got == sum;
      }
      if (kind == UNISONO_SMI_GATHER && me == kRoot) right = right && got == value<float>(i / kCount, i % kCount);
      if (kind == UNISONO_SMI_SCATTER && me != kRoot) right = right && got == value<float>(kRoot, me * kCount + i);
    }
    // Where it ends last.
    const bool ends = kind == UNISONO_SMI_BCAST || kind == UNISONO_SMI_SCATTER ? me == size - 1 : me == kRoot;
    if (ends) print(op, 4 * kCount, "", cycles() - begin, 0, right);
  });
}

}  // namespace

int main(int argc, char** argv) {
  network = argv[1];
  comm = SMI_COMM_WORLD;
  if (argc > 2) {
    collective("smi_bcast_units", UNISONO_SMI_BCAST);
    collective("smi_reduce_units", UNISONO_SMI_REDUCE);
    return 0;
  }
  const int last = comm->size - 1;
  for (const int peer : {1, comm->size / 2, last}) {
    bandwidth<float>("smi_bandwidth_eager_fp32", SMI_FLOAT, peer, true);
    bandwidth<float>("smi_bandwidth_credits_fp32", SMI_FLOAT, peer, false);
    bandwidth<double>("smi_bandwidth_eager_fp64", SMI_DOUBLE, peer, true);
    latency(peer);
  }
  collective("smi_bcast", UNISONO_SMI_BCAST);
  collective("smi_reduce", UNISONO_SMI_REDUCE);
  collective("smi_scatter", UNISONO_SMI_SCATTER);
  collective("smi_gather", UNISONO_SMI_GATHER);
}
