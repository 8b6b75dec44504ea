// Elements from rank 0 to rank 1 through a channel of SMI, pushed and popped one by one, then many at once. Prints a
// JSON line for each: the median of repetitions, on rank 1. Run by tools/bench-streams.
#include <unisono/smi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

constexpr int kRepetitions = 7;
constexpr int kCount = 20'000'000;
constexpr int kAtOnce = 16384;

float value(int element) { return static_cast<float>(element & 0xffff); }

/// Sums what comes, so that it is looked at.
[[gnu::noinline]] void push_each(SMI_Comm comm) {
  SMI_Channel to = SMI_Open_send_channel(kCount, SMI_FLOAT, 1, 0, comm);
  for (int i = 0; i < kCount; ++i) {
    const float element = value(i);
    SMI_Push(&to, &element);
  }
}
[[gnu::noinline]] bool pop_each(SMI_Comm comm) {
  SMI_Channel from = SMI_Open_receive_channel(kCount, SMI_FLOAT, 0, 0, comm);
  bool right = true;
  for (int i = 0; i < kCount; ++i) {
    float element = -1;
    SMI_Pop(&from, &element);
    right = right && element == value(i);
  }
  return right;
}
[[gnu::noinline]] void push_many(SMI_Comm comm) {
  std::vector<float> elements(kAtOnce);
  for (int i = 0; i < kAtOnce; ++i) elements[static_cast<std::size_t>(i)] = value(i);
  SMI_Channel to = SMI_Open_send_channel(kCount / kAtOnce * kAtOnce, SMI_FLOAT, 1, 0, comm);
  for (int i = 0; i < kCount / kAtOnce; ++i) SMI_Push_vector(&to, elements.data(), kAtOnce);
}
[[gnu::noinline]] bool pop_many(SMI_Comm comm) {
  std::vector<float> elements(kAtOnce);
  SMI_Channel from = SMI_Open_receive_channel(kCount / kAtOnce * kAtOnce, SMI_FLOAT, 0, 0, comm);
  bool right = true;
  for (int i = 0; i < kCount / kAtOnce; ++i) {
    SMI_Pop_vector(&from, elements.data(), kAtOnce);
    right = right && elements[kAtOnce - 1] == value(kAtOnce - 1);
  }
  return right;
}

void measure(const char* op, SMI_Comm comm, void (*push)(SMI_Comm), bool (*pop)(SMI_Comm)) {
  std::vector<double> seconds;
  bool right = true;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto begin = std::chrono::steady_clock::now();
    if (SMI_Comm_rank(comm) == 0) {
      push(comm);
    } else {
      right = pop(comm) && right;
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (SMI_Comm_rank(comm) != 1) return;
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::printf(
      "{\"system\": \"unisono\", \"op\": \"%s\", \"network\": \"shm\", \"ranks\": 2, \"bytes\": %d, "
      "\"ns_per_element\": %.3f, \"gbps\": %.3f, \"verified\": %s}\n",
      op, 4 * kCount, 1e9 * median / kCount, 4.0 * kCount / median / 1e9, right ? "true" : "false");
}

}  // namespace

int main() {
  SMI_Comm comm = SMI_COMM_WORLD;
  measure("smi_push_pop", comm, push_each, pop_each);
  measure("smi_push_pop_vector", comm, push_many, pop_many);
}
