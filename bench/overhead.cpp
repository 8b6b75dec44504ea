// What a cached call of two ranks costs beyond the way of a line from one core to the other.
//
//   bench_overhead                 the time of a 4-byte all-reduce, the half round trip of a line, and what lies
//                                  between them: two threads, each on a core of its own, in turns; then what one
//                                  move more costs: the calls of a single rank with one move and with none
//   bench_overhead --calls N       N calls of each of two thread ranks, and nothing else: for a profiler, such as
//                                  valgrind --tool=callgrind
//   bench_overhead --calls N --started
//                                  the same from one thread that starts both ranks' calls and then waits for both:
//                                  no instruction of it is spent on polling for another thread
//   bench_overhead --calls N --alone barrier|allgather
//                                  N blocking calls of a job of one rank: with no move, or with one that copies 4
//                                  bytes.
//   bench_overhead --calls N --met   N blocking all-reduces of 4 bytes of one rank, each of which finds that the other
//                                  rank, in the same thread, has come: no call waits
//   bench_overhead --marked        single blocking calls that wait for nobody, each between two stores to a fixed
//                                  address, for valgrind --tool=lackey --trace-mem=yes; prints what they are
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unisono/unisono.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t kCalls = 20'000;  // of a block
constexpr int kBlocks = 25;

void check(unisono_result result) {
  if (result == 0) return;
  std::fprintf(stderr, "bench_overhead: %s\n", unisono_last_error());
  std::exit(1);
}

struct Rank {
  unisono_context* context = nullptr;
  unisono_communicator* world = nullptr;
  unisono_call call{};
  std::int32_t mine = 0;
  std::int32_t sum = 0;

  void join(unisono_thread_job* job, std::uint32_t rank) {
    check(unisono_thread_context(job, rank, nullptr, &context));
    check(unisono_world(context, &world));
    call.struct_size = sizeof call;
    call.collective = UNISONO_ALLREDUCE;
    call.datatype = UNISONO_INT32;
    call.op = UNISONO_SUM;
    call.count = 1;
    call.src = &mine;
    call.src_bytes = sizeof mine;
    call.dst = &sum;
    call.dst_bytes = sizeof sum;
  }

  // Every call has data of its own, so that a wrong one is seen.
  void expect(std::uint64_t number) const {
    const auto expected = static_cast<std::int32_t>(3 * number + 1);
    if (sum == expected) return;
    std::fprintf(stderr, "bench_overhead: call %llu gives %d instead of %d\n", static_cast<unsigned long long>(number),
                 sum, expected);
    std::exit(1);
  }

  void run(std::uint32_t rank, std::uint64_t first, std::uint64_t calls) {
    for (std::uint64_t i = first; i < first + calls; ++i) {
      mine = static_cast<std::int32_t>(rank == 0 ? i : 2 * i + 1);
      check(unisono_run(world, &call));
      expect(i);
    }
  }
};

// A word with one writer, in a pair of lines of its own.
struct alignas(128) Word {
  std::atomic<std::uint64_t> value{0};

  void await(std::uint64_t least) const {
    for (int polls = 0; value.load(std::memory_order_acquire) < least; ++polls) {
      if (polls > 20'000) {
        sched_yield();
      } else {
        __builtin_ia32_pause();
      }
    }
  }
};

std::vector<int> cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> all;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) all.push_back(i);
  }
  return all;
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Body>
void on_two_threads(Body body) {
  std::thread other([&] { body(1U); });
  body(0U);
  other.join();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A rank alone: its barrier has no move, its all-gather is one copy of 4 bytes.
void measure_move() {
  unisono_thread_job* job = nullptr;
  check(unisono_thread_job_create(1, &job));
  Rank self;
  self.join(job, 0);
  self.call.collective = UNISONO_ALLGATHER;
  self.call.op = 0;
  unisono_call none{};
  none.struct_size = sizeof none;
  none.collective = UNISONO_BARRIER;
  std::vector<double> empty;
  std::vector<double> difference;
  for (int block = 0; block < kBlocks; ++block) {
    double begin = now();
    for (std::uint64_t i = 0; i < kCalls; ++i) check(unisono_run(self.world, &none));
    empty.push_back((now() - begin) / kCalls);
    begin = now();
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      self.mine = static_cast<std::int32_t>(i);
      check(unisono_run(self.world, &self.call));
    }
    difference.push_back((now() - begin) / kCalls - empty.back());
    if (self.sum != self.mine) std::exit(1);
  }
  check(unisono_finalize(self.context));
  unisono_thread_job_free(job);
  std::printf("call of no move            %8.1f ns\none move more              %8.1f ns\n", median(empty),
              median(difference));
}

int measure() {
  const std::vector<int> where = cores();
  if (where.size() < 2) {
    std::fprintf(stderr, "bench_overhead: two cores are needed, and there is %zu\n", where.size());
    return 1;
  }
  unisono_thread_job* job = nullptr;
  check(unisono_thread_job_create(2, &job));
  Word words[2];
  std::vector<double> lines;
  std::vector<double> calls;
  on_two_threads([&](std::uint32_t rank) {
    pin(where[rank]);
    Rank self;
    self.join(job, rank);
    self.run(rank, 0, kCalls / 10);
    std::uint64_t word = 0;
    std::uint64_t call = kCalls / 10;
    for (int block = 0; block < kBlocks; ++block) {
      double begin = now();
      for (std::uint64_t i = 0; i < kCalls; ++i) {
        ++word;
        if (rank == 1) words[0].await(word);
        words[rank].value.store(word, std::memory_order_release);
        if (rank == 0) words[1].await(word);
      }
      if (rank == 0) lines.push_back((now() - begin) / (2.0 * kCalls));
      begin = now();
      self.run(rank, call, kCalls);
      call += kCalls;
      if (rank == 0) calls.push_back((now() - begin) / kCalls);
    }
    check(unisono_finalize(self.context));
  });
  unisono_thread_job_free(job);
  // The differences of neighbouring blocks, so that both have had the same machine.
  std::vector<double> beyond;
  beyond.reserve(kBlocks);
  for (int i = 0; i < kBlocks; ++i) beyond.push_back(calls[i] - lines[i]);
  std::printf(
      "allreduce of 4 B, 2 ranks  %8.1f ns\nway of a line              %8.1f ns\nbeyond it                  %8.1f ns\n",
      median(calls), median(lines), median(beyond));
  measure_move();
  return 0;
}

int repeat(std::uint64_t count, bool started) {
  unisono_thread_job* job = nullptr;
  check(unisono_thread_job_create(2, &job));
  if (!started) {
    on_two_threads([&](std::uint32_t rank) {
      Rank self;
      self.join(job, rank);
      self.run(rank, 0, count);
      check(unisono_finalize(self.context));
    });
  } else {
    Rank ranks[2];
    // Joining is collective, so it needs two threads; the calls do not.
    on_two_threads([&](std::uint32_t rank) { ranks[rank].join(job, rank); });
    for (std::uint64_t i = 0; i < count; ++i) {
      unisono_request* requests[2] = {};
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        ranks[rank].mine = static_cast<std::int32_t>(rank == 0 ? i : 2 * i + 1);
        check(unisono_start(ranks[rank].world, &ranks[rank].call, &requests[rank]));
      }
      // Either may need the other's progress to complete.
      for (int complete[2] = {}; complete[0] == 0 || complete[1] == 0;) {
        for (int rank = 0; rank < 2; ++rank) {
          if (complete[rank] == 0) check(unisono_test(requests[rank], &complete[rank]));
        }
      }
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        ranks[rank].expect(i);
        unisono_request_free(requests[rank]);
      }
    }
    for (Rank& rank : ranks) check(unisono_finalize(rank.context));
  }
  unisono_thread_job_free(job);
  std::printf("%llu calls on each of 2 ranks, all right\n", static_cast<unsigned long long>(count));
  return 0;
}

/// Two ranks in one thread. A blocking call of rank 0 waits for nobody once rank 1 has started its own.
class Pair {
 public:
  Pair() {
    check(unisono_thread_job_create(2, &job_));
    // Joining is collective, so it needs two threads; the calls do not.
    on_two_threads([&](std::uint32_t rank) { ranks_[rank].join(job_, rank); });
  }

  ~Pair() {
    for (Rank& rank : ranks_) check(unisono_finalize(rank.context));
    unisono_thread_job_free(job_);
  }

  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// An all-reduce of 4 bytes; `begin` and `end` are called around that of rank 0.
  template <typename Begin, typename End>
  void allreduce(std::uint64_t number, Begin begin, End end) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) ranks_[rank].mine = mine(rank, number);
    unisono_request* other = nullptr;
    int complete = 0;
    check(unisono_start(ranks_[1].world, &ranks_[1].call, &other));
    check(unisono_test(other, &complete));
    begin();
    check(unisono_run(ranks_[0].world, &ranks_[0].call));
    end();
    while (complete == 0) check(unisono_test(other, &complete));
    unisono_request_free(other);
    for (const Rank& rank : ranks_) rank.expect(number);
  }

  /// Four bytes from rank 0 to rank 1.
  template <typename Begin, typename End>
  void send_and_receive(std::uint64_t number, Begin begin, End end) {
    unisono_call send = ranks_[0].call;
    send.collective = UNISONO_SEND;
    send.op = 0;
    send.root = 1;
    unisono_call receive = ranks_[1].call;
    receive.collective = UNISONO_RECV;
    receive.op = 0;
    receive.root = 0;
    ranks_[0].mine = static_cast<std::int32_t>(3 * number + 1);
    begin();
    check(unisono_run(ranks_[0].world, &send));
    check(unisono_run(ranks_[1].world, &receive));
    end();
    ranks_[1].expect(number);
  }

 private:
  static std::int32_t mine(std::uint32_t rank, std::uint64_t number) {
    return static_cast<std::int32_t>(rank == 0 ? number : 2 * number + 1);
  }

  unisono_thread_job* job_ = nullptr;
  Rank ranks_[2];
};

int repeat_met(std::uint64_t count) {
  Pair pair;
  for (std::uint64_t i = 0; i < count; ++i)
    pair.allreduce(
        i, [] {}, [] {});
  std::printf("%llu calls that met the other rank's, all right\n", static_cast<unsigned long long>(count));
  return 0;
}

/// Calls whose every access to memory can be told from the others by the stores before and behind them.
int mark() {
  // A place that nobody else stores to, the same in every run (MARK in tools/instructions.py).
  void* const wanted = std::bit_cast<void*>(std::uintptr_t{1} << 40U);
  void* const page =
      mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page != wanted) {
    std::fprintf(stderr, "bench_overhead: the address of the marker is taken\n");
    return 1;
  }
  auto* const marker = static_cast<volatile std::uint64_t*>(page);
  const auto store = [&] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    *marker = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  const auto nothing = [] {};
  constexpr std::uint64_t kBefore = 200;  // calls that are not marked, until everything is as it will be
  for (const bool moves : {false, true}) {
    unisono_thread_job* job = nullptr;
    check(unisono_thread_job_create(1, &job));
    Rank self;
    self.join(job, 0);
    self.call.collective = moves ? UNISONO_ALLGATHER : UNISONO_BARRIER;
    self.call.op = 0;
    if (!moves) {
      self.call.count = 0;
      self.call.datatype = 0;
    }
    for (std::uint64_t i = 0; i <= kBefore; ++i) {
      self.mine = static_cast<std::int32_t>(3 * i + 1);
      if (i == kBefore) store();
      check(unisono_run(self.world, &self.call));
      if (i == kBefore) store();
      if (moves) self.expect(i);
    }
    check(unisono_finalize(self.context));
    unisono_thread_job_free(job);
    std::printf("blocking %s, 1 rank\n", moves ? "all-gather of 4 B" : "barrier");
  }
  Pair pair;
  for (std::uint64_t i = 0; i < kBefore; ++i) pair.allreduce(i, nothing, nothing);
  pair.allreduce(kBefore, store, store);
  std::puts("blocking all-reduce of 4 B, the other rank has come");
  for (std::uint64_t i = 0; i < kBefore; ++i) pair.send_and_receive(i, nothing, nothing);
  pair.send_and_receive(kBefore, store, store);
  std::puts("send and receive of 4 B, both ranks");
  return 0;
}

/// Blocking calls of a job of one rank, which wait for nobody.
int repeat_alone(std::uint64_t count, bool moves) {
  unisono_thread_job* job = nullptr;
  check(unisono_thread_job_create(1, &job));
  Rank self;
  self.join(job, 0);
  self.call.collective = moves ? UNISONO_ALLGATHER : UNISONO_BARRIER;
  self.call.op = 0;
  if (!moves) {
    self.call.count = 0;
    self.call.datatype = 0;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    self.mine = static_cast<std::int32_t>(3 * i + 1);
    check(unisono_run(self.world, &self.call));
    if (moves) self.expect(i);
  }
  check(unisono_finalize(self.context));
  unisono_thread_job_free(job);
  std::printf("%llu calls of one rank, all right\n", static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count = 0;
  bool started = false;
  bool met = false;
  std::string_view alone;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--started") {
      started = true;
    } else if (argument == "--met") {
      met = true;
    } else if (argument == "--marked" && argc == 2) {
      return mark();
    } else if (argument == "--alone" && i + 1 < argc) {
      alone = argv[++i];
    } else if (argument == "--calls" && i + 1 < argc) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else {
      count = 0;
      i = argc;
      std::fprintf(stderr,
                   "usage: bench_overhead [--calls N [--started | --met | --alone barrier|allgather] | --marked]\n");
      return 2;
    }
  }
  if (alone == "barrier" || alone == "allgather") return repeat_alone(count, alone == "allgather");
  if (!alone.empty()) {
    std::fprintf(stderr, "bench_overhead: --alone is barrier or allgather\n");
    return 2;
  }
  if (met) return repeat_met(count);
  if (started && count == 0) {
    std::fprintf(stderr, "bench_overhead: --started goes with --calls N, N at least 1\n");
    return 2;
  }
  return count == 0 ? measure() : repeat(count, started);
}
