// Measures the hardware engine in cycles: Verilated engines on a simulated network, called by kernels.
//
// One JSON object per line and measurement; the first describes the set-up. tools/bench-rtl prints them as tables.
// Every result is compared with what it must be, and a wrong one ends the program with status 1.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/rtl/job.hpp"
#include "collectives/algorithm.hpp"
#include "collectives/tuning.hpp"
#include "sim/price/rules.hpp"

namespace unisono::bench {
namespace {

constexpr double kMhz = 250;
constexpr double kBytesPerCycle = 50;          ///< of a link of 100 Gb/s
constexpr std::uint64_t kHeaderBytes = 64;     ///< before each segment
constexpr std::uint32_t kSegmentBytes = 8192;  ///< what a receive buffer of the engine holds
constexpr std::uint32_t kEagerLimit = 4096;
constexpr std::uint32_t kRxBuffers = 16;
constexpr std::uint32_t kPlace = 3;        ///< of the usual communicator
constexpr std::uint32_t kOutstanding = 8;  ///< calls at once, as many as an engine has slots

enum class Amount : std::uint8_t { kQuick, kUsual, kFull };

struct Options {
  bool pace = false;  ///< of the simulation, instead of the engine's figures
  Amount amount = Amount::kUsual;
  std::set<std::string, std::less<>> only;
  unsigned seeds = 0;                        ///< of the jitter; 0: by the amount
  std::uint32_t outstanding = kOutstanding;  ///< sends at once, and receives
};

/// One line of output.
class Line {
 public:
  explicit Line(std::string_view section) { add("section", section); }
  ~Line() {
    std::printf("%s}\n", text_.c_str());
    std::fflush(stdout);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Line& add(std::string_view name, std::string_view value) { return put(name, '"' + std::string(value) + '"'); }
  Line& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  Line& add(std::string_view name, bool value) { return put(name, value ? "true" : "false"); }
  Line& add(std::string_view name, double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.6g", value);
    return put(name, buffer);
  }
  template <std::integral T>
  Line& add(std::string_view name, T value) {
    return put(name, std::to_string(value));
  }

  /// Cycles, and what they are in time.
  Line& time(std::uint64_t cycles) {
    add("cycles", cycles);
    return add("us", static_cast<double>(cycles) / kMhz);
  }
  /// Of payload that took so long.
  Line& rate(std::uint64_t bytes, std::uint64_t cycles) {
    return add("gbps", static_cast<double>(bytes) * 8 * kMhz / 1000 / static_cast<double>(cycles));
  }

 private:
  Line& put(std::string_view name, const std::string& value) {
    text_ += (text_.size() == 1 ? "\"" : ", \"") + std::string(name) + "\": " + value;
    return *this;
  }
  std::string text_ = "{";
};

/// Bytes on the wire of a message: what it holds, and a header and a link's framing for each of its segments.
std::uint64_t on_wire(std::uint64_t bytes, std::uint64_t segment = kSegmentBytes) {
  const sim::LinkConfig link;
  const std::uint64_t segments = std::max<std::uint64_t>(1, (bytes + segment - 1) / segment);
  return bytes + segments * (kHeaderBytes + link.header_bytes + link.trailer_bytes);
}

/// Least cycles from one node to another: two links and a switch.
std::uint64_t hop() {
  const sim::NetworkConfig network;
  return 2ULL * network.link.propagation + network.switch_latency;
}

/// Least cycles in which that payload can enter or leave one node, in another one's hands after a hop.
double least(std::uint64_t bytes, std::uint64_t segment = kSegmentBytes) {
  return static_cast<double>(hop()) + static_cast<double>(on_wire(bytes, segment)) / kBytesPerCycle;
}

sim::ClusterConfig cluster_of(std::uint32_t nodes, std::uint64_t seed = 1) {
  sim::ClusterConfig config;
  config.network.nodes = nodes;
  config.network.policy = sim::Policy::kPause;
  config.network.seed = seed;
  config.seed = seed;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 50;  // HBM behind its switch, as unisono-cluster has it
  config.memory.write_latency = 30;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

/// As a job has them: long messages leave a quarter of the credit to short ones.
sim::Host::Agreed usual() { return {kEagerLimit, kSegmentBytes, kRxBuffers, true, kRxBuffers / 4}; }

/// The first calls of an engine find nothing in its caches; what is measured comes after them.
void warm_up(Job& job, std::uint32_t place) {
  Work barrier;
  barrier.collective = Collective::kBarrier;
  barrier.place = place;
  for (int i = 0; i < 2; ++i) {
    job.run(barrier);
    job.settle();
  }
}

std::unique_ptr<Job> job_of(std::uint32_t nodes) {
  auto job = std::make_unique<Job>(cluster_of(nodes));
  job->create(kPlace, usual());
  warm_up(*job, kPlace);
  return job;
}

std::vector<std::uint64_t> sizes_of(const Options& options, std::vector<std::uint64_t> quick,
                                    std::vector<std::uint64_t> usually, std::uint64_t full = 0) {
  if (options.amount == Amount::kQuick) return quick;
  if (options.amount == Amount::kFull && full != 0) usually.push_back(full);
  return usually;
}

constexpr std::uint64_t kKi = 1024, kMi = 1024 * 1024;

// -- nop
// ---------------------------------------------------------------------------------------------------------------

CallDescriptor nop(std::uint32_t id) {
  CallDescriptor call;
  call.collective = Collective::kNop;
  call.call_id = id;
  return call;
}

void measure_nop(const Options& /*options*/) {
  const auto job = job_of(2);
  const auto from_kernel = [&] {
    const std::uint32_t id = job->next_id();
    const std::uint64_t start = job->now();
    job->call(0, nop(id));
    return job->answer_of(0, id) - start;
  };
  Line("nop").add("from", "kernel").time(from_kernel());
  job->settle();
  constexpr std::uint32_t kRow = 32;
  const std::uint64_t start = job->now();
  std::uint64_t end = start;
  std::uint32_t given = 0, taken = 0, first = job->next_id();
  for (std::uint32_t i = 1; i < kRow; ++i) job->next_id();
  while (taken < kRow) {
    if (given < kRow && !job->cluster().node(0).calling()) job->call(0, nop(first + given++));
    job->tick();
    auto& answers = job->cluster().node(0).answers();
    for (; !answers.empty(); answers.pop_front(), ++taken) end = answers.front().cycle;
  }
  Line("nop").add("from", "kernel, one behind the other").time((end - start) / kRow);

  const auto from_host = [&](bool descriptor_too) {
    const CallDescriptor call = nop(job->next_id());
    std::uint64_t begin = job->now();
    if (descriptor_too) {
      job->host(0).submit(call);
    } else {
      job->host(0).submit(call);
      job->host(0).completion(10'000);
      begin = job->now();
      job->host(0).write(exchange::kDoorbell, 1);
    }
    if (job->host(0).completion(10'000) != std::pair(call.call_id, std::uint16_t{0})) {
      throw WrongResult("a nop of the host has another answer");
    }
    return job->now() - begin;
  };
  Line("nop").add("from", "host, doorbell to code read").time(from_host(false));
  Line("nop").add("from", "host, with the descriptor's 32 writes").time(from_host(true));
}

// -- send and receive
// ---------------------------------------------------------------------------------------------------

struct Stream {
  std::uint64_t cycles = 0;      ///< from the first call to the last answer of the receiver
  std::uint64_t first_word = 0;  ///< of the sender
};

/// That many messages from node 0 to node 1, each with a receive, `outstanding` of each at once.
Stream stream(Job& job, std::uint64_t bytes, std::uint32_t messages, std::uint32_t outstanding,
              std::uint32_t place = kPlace) {
  const std::uint32_t first = job.next_id();
  for (std::uint32_t i = 1; i < messages; ++i) job.next_id();
  const std::uint64_t step = (bytes + 127) / 64 * 64;
  const auto area = [&](std::uint32_t node, std::uint32_t number) {
    return place_of(node, 0) + number % outstanding * step;
  };
  const auto data_of = [&](std::uint32_t number) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::byte>((i * 2654435761U + (first + number) * 40503U) >> 7U);
    }
    return data;
  };
  const auto descriptor = [&](std::uint32_t node, std::uint32_t number) {
    CallDescriptor call;
    call.collective = node == 0 ? Collective::kSend : Collective::kRecv;
    call.dtype = Datatype::kByte;
    call.communicator = place;
    call.root = 1 - node;
    call.tag = number % outstanding;
    call.count = bytes;
    call.call_id = first + number;
    if (node == 0) {
      call.src_address = area(0, number);
      call.src_bytes = bytes;
    } else {
      call.dst_address = area(1, number);
      call.dst_bytes = bytes;
    }
    return call;
  };
  std::array<std::uint32_t, 2> given{}, taken{};
  std::array<std::vector<bool>, 2> done{std::vector<bool>(messages), std::vector<bool>(messages)};
  const auto check = [&](std::uint32_t number) {
    std::vector<std::byte> got(bytes);
    job.cluster().node(1).load(area(1, number), got);
    if (got != data_of(number))
      throw WrongResult("a message of " + std::to_string(bytes) + " bytes came with other data");
  };
  job.cluster().node(0).forget_first_sent();
  const std::uint64_t start = job.now();
  Stream result;
  while (taken[1] < messages || taken[0] < messages) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      // The place of a message is free when the one that stood there has ended.
      const bool room = given[node] < messages && (given[node] < outstanding || done[node][given[node] - outstanding]);
      if (!room || job.cluster().node(node).calling()) continue;
      if (node == 0) job.cluster().node(0).store(area(0, given[0]), data_of(given[0]));
      job.call(node, descriptor(node, given[node]++));
    }
    job.tick();
    for (std::uint32_t node = 0; node < 2; ++node) {
      auto& answers = job.cluster().node(node).answers();
      for (; !answers.empty(); answers.pop_front(), ++taken[node]) {
        const std::uint32_t number = answers.front().call_id - first;
        if (answers.front().code != 0 || number >= given[node] || done[node][number]) {
          throw WrongResult("a send or receive was answered with an error, or twice");
        }
        done[node][number] = true;
        if (node == 0) continue;
        result.cycles = answers.front().cycle - start;
        check(number);
      }
    }
    if (job.now() - start > 20'000'000) throw std::runtime_error("messages are not answered");
  }
  if (job.cluster().node(0).first_sent() != 0) result.first_word = job.cluster().node(0).first_sent() - start;
  return result;
}

void measure_send(const Options& options) {
  const auto job = job_of(2);
  for (const std::uint64_t bytes : sizes_of(options, {64, 4 * kKi, 64 * kKi, kMi},
                                            {64, 256, kKi, 4 * kKi, 16 * kKi, 64 * kKi, 256 * kKi, kMi}, 4 * kMi)) {
    stream(*job, bytes, 1, 1);  // arguments as never before: the firmware admits them first
    job->settle();
    for (const std::uint32_t outstanding : {1U, options.outstanding}) {
      const auto many = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(256 * kKi / bytes, kOutstanding, 64));
      const std::uint32_t messages = outstanding == 1 ? 1 : many;
      const Stream measured = stream(*job, bytes, messages, outstanding);
      job->settle();
      const std::uint64_t all = bytes * messages;
      // Each message has segments of its own.
      const double bound = static_cast<double>(messages * on_wire(bytes)) / kBytesPerCycle;
      Line("send")
          .add("bytes", bytes)
          .add("messages", messages)
          .add("outstanding", outstanding)
          .time(measured.cycles)
          .rate(all, measured.cycles)
          .add("bound_gbps", static_cast<double>(all) * 8 * kMhz / 1000 / bound)
          .add("share_of_bound", bound / static_cast<double>(measured.cycles))
          .add("cycles_per_message", static_cast<double>(measured.cycles) / messages);
    }
  }
}

// -- latency
// ------------------------------------------------------------------------------------------------------------

/// The algorithm's place in the table, as a job of `unisono run --network` chooses it: by prices of this network.
int chosen(Collective collective, std::uint32_t size, std::uint64_t count) {
  static std::map<std::uint32_t, std::vector<Rule>> rules_of_size;
  std::vector<Rule>& rules = rules_of_size[size];
  if (rules.empty()) {
    const sim::Ways ways(cluster_of(size).network);
    const sim::EndpointCosts engine;
    rules = sim::rules_by_price({ways, sim::measure(engine, sim::costs_of_switch()), engine, size});
  }
  Call call;
  call.collective = collective;
  call.size = size;
  call.count = count;
  call.dtype = collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  Tuning tuning;
  tuning.rules = rules;
  tuning.radices = false;  // the firmware takes none
  return choose_algorithm(call, tuning);
}

const char* name_of_algorithm(int position) {
  return position < 0 ? "?" : algorithms()[static_cast<std::size_t>(position)].name;
}

/// Cycles between two frames that a node sends in this work, from the end of its first to that of its last.
double frame_interval(Job& job, std::uint32_t node, const Work& work) {
  std::vector<std::uint64_t> ends;
  std::uint64_t before = job.cluster().network().pushed(node);
  job.watch([&] {
    const std::uint64_t frames = job.cluster().network().pushed(node);
    if (frames != before) ends.push_back(job.now());
    before = frames;
  });
  job.run(work);
  job.watch({});
  return ends.size() < 2 ? 0 : static_cast<double>(ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
}

void measure_latency(const Options& /*options*/) {
  {
    const auto job = job_of(2);
    for (const std::uint64_t bytes : {64U, 1024U, 4096U}) {
      stream(*job, bytes, 1, 1);
      job->settle();
      const Stream measured = stream(*job, bytes, 1, 1);
      job->settle();
      Line("latency").add("what", "send, call to first word").add("bytes", bytes).time(measured.first_word);
      Line("latency").add("what", "send, call to answer of the receive").add("bytes", bytes).time(measured.cycles);
    }
  }
  {
    const auto job = job_of(8);
    for (const Collective collective : {Collective::kBcast, Collective::kAllreduce, Collective::kAllgather,
                                        Collective::kAlltoall, Collective::kBarrier}) {
      Work work{collective, -1, collective == Collective::kBarrier ? 0U : 16U, 0, kPlace};
      work.algorithm = chosen(collective, 8, work.count);
      const Outcome cold = job->run(work);
      job->settle();
      const Outcome warm = job->run(work);
      job->settle();
      for (const bool first : {true, false}) {
        Line("latency")
            .add("what", std::string(name_of(collective)) + " " + name_of_algorithm(work.algorithm) +
                             ", 8 ranks, call to first word" + (first ? ", new arguments" : ""))
            .add("bytes", 4 * work.count)
            .time((first ? cold : warm).first_word);
      }
    }
  }
  constexpr std::uint32_t kMany = 14;
  const auto job = job_of(kMany);
  struct Issue {
    Collective collective;
    const char* algorithm;
    std::uint32_t node;
  };
  for (const Issue& issue : {Issue{Collective::kScatter, "linear", 0}, Issue{Collective::kAllreduce, "flat", 0},
                             Issue{Collective::kBcast, "linear", 0}, Issue{Collective::kAlltoall, "scattered", 0},
                             Issue{Collective::kAlltoall, "pairwise", 0}}) {
    const Work work{issue.collective, find_algorithm(issue.collective, issue.algorithm), 16, 0, kPlace};
    job->run(work);
    job->settle();
    const double interval = frame_interval(*job, issue.node, work);
    job->settle();
    Line("issue")
        .add("what", std::string(name_of(issue.collective)) + " " + issue.algorithm + ", 14 ranks, 64 B")
        .add("cycles_per_frame", interval);
  }
}

// -- collectives
// --------------------------------------------------------------------------------------------------------

struct Kind {
  Collective collective;
  bool blocks;  ///< the count is that of a block
};

constexpr Kind kKinds[] = {
    {Collective::kBcast, false},     {Collective::kScatter, true},   {Collective::kGather, true},
    {Collective::kReduce, false},    {Collective::kAllgather, true}, {Collective::kReduceScatter, true},
    {Collective::kAllreduce, false}, {Collective::kAlltoall, true},  {Collective::kScan, false}};

/// Payload that some node must send or receive at least, of a collective whose longest buffer has so many bytes.
std::uint64_t least_bytes(Collective collective, std::uint64_t bytes, std::uint32_t ranks) {
  switch (collective) {
    case Collective::kBarrier:
      return 0;
    case Collective::kBcast:
    case Collective::kReduce:
    case Collective::kScan:
      return bytes;
    case Collective::kAllreduce:
      return 2 * bytes * (ranks - 1) / ranks;
    default:
      return bytes * (ranks - 1) / ranks;
  }
}

/// Runs it twice if it is short, so that the firmware knows the arguments, and reports the second time.
Outcome measured(Job& job, const Work& work, std::uint64_t bytes, std::uint64_t& cold) {
  constexpr std::uint64_t kLong = 512 * kKi;  // past it the firmware's first time does not show
  Outcome outcome = job.run(work);
  job.settle();
  cold = outcome.cycles;
  if (bytes < kLong) {
    outcome = job.run(work);
    job.settle();
  }
  return outcome;
}

void report(const char* section, Job& job, const Work& work, std::uint64_t bytes, bool automatic,
            std::uint32_t segment = kSegmentBytes) {
  std::uint64_t cold = 0;
  const Outcome outcome = measured(job, work, bytes, cold);
  const std::uint64_t payload = least_bytes(work.collective, bytes, job.size());
  const double bound = least(payload, segment);
  Line(section)
      .add("collective", name_of(work.collective))
      .add("algorithm", name_of_algorithm(work.algorithm))
      .add("automatic", automatic)
      .add("ranks", job.size())
      .add("bytes", bytes)
      .add("segment_bytes", segment)
      .time(outcome.cycles)
      .add("cold_cycles", cold)
      .add("first_word", outcome.first_word)
      .rate(std::max<std::uint64_t>(payload, 1), outcome.cycles)
      .add("bound_cycles", bound)
      .add("ratio_to_bound", static_cast<double>(outcome.cycles) / bound)
      .add("source_bytes", outcome.source_bytes)
      .add("result_bytes", outcome.result_bytes);
}

void measure_collectives(const Options& options) {
  constexpr std::uint32_t kRanks = 8;
  const auto job = job_of(kRanks);
  Work barrier;
  barrier.collective = Collective::kBarrier;
  barrier.place = kPlace;
  job->check_barrier(kPlace);
  job->settle();
  barrier.algorithm = chosen(Collective::kBarrier, kRanks, 0);
  report("collectives", *job, barrier, 0, true);
  for (const Kind& kind : kKinds) {
    for (const std::uint64_t bytes :
         sizes_of(options, {64, 8 * kKi, 64 * kKi}, {64, kKi, 8 * kKi, 64 * kKi, 256 * kKi, kMi}, 4 * kMi)) {
      Work work;
      work.collective = kind.collective;
      work.count = bytes / 4 / (kind.blocks ? kRanks : 1);
      work.place = kPlace;
      work.algorithm = chosen(kind.collective, kRanks, work.count);
      report("collectives", *job, work, bytes, true);
      if (kind.collective != Collective::kAllreduce) continue;
      for (const char* name : {"ring", "recursive_doubling"}) {
        work.algorithm = find_algorithm(kind.collective, name);
        report("collectives", *job, work, bytes, false);
      }
    }
  }
}

// -- scaling
// ------------------------------------------------------------------------------------------------------------

void measure_scaling(const Options& options) {
  const bool quick = options.amount == Amount::kQuick;
  for (const std::uint32_t ranks :
       quick ? std::vector<std::uint32_t>{2, 4, 8} : std::vector<std::uint32_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14}) {
    const auto job = job_of(ranks);
    if (ranks <= 10) {
      for (const std::uint64_t bytes : {8 * kKi, 128 * kKi}) {
        const Work work{Collective::kReduce, chosen(Collective::kReduce, ranks, bytes / 4), bytes / 4, 0, kPlace};
        report("scaling", *job, work, bytes, true);
      }
    }
    const std::uint64_t count = 128 * kKi / 4;
    const Work work{Collective::kAllreduce, chosen(Collective::kAllreduce, ranks, count), count, 0, kPlace};
    report("scaling", *job, work, 128 * kKi, true);
  }
}

// -- segments and memory
// ------------------------------------------------------------------------------------------------

void measure_segments(const Options& options) {
  constexpr std::uint64_t kBytes = 128 * kKi;
  const int ring = find_algorithm(Collective::kAllreduce, "ring");
  struct Variant {
    const char* name;
    unsigned read_latency, write_latency, beats, cycles;
    bool shared;
  };
  const Variant all[] = {{"usual", 50, 30, 1, 1, false},
                         {"fast", 10, 10, 1, 1, false},
                         {"slow to answer", 200, 120, 1, 1, false},
                         {"64 Gb/s per port", 50, 30, 1, 2, false},
                         {"reads and writes share a bus", 50, 30, 1, 1, true}};
  const std::size_t variants = options.amount == Amount::kQuick ? 1 : std::size(all);
  for (const Variant& variant : std::span(all).first(variants)) {
    sim::ClusterConfig config = cluster_of(4);
    config.memory.read_latency = variant.read_latency;
    config.memory.write_latency = variant.write_latency;
    config.memory.bandwidth_beats = variant.beats;
    config.memory.bandwidth_cycles = variant.cycles;
    config.memory.shared_bus = variant.shared;
    Job job(config);
    std::uint32_t place = 0;
    for (const std::uint32_t segment : {512U, 1024U, 2048U, 4096U, 8192U}) {
      if (&variant != all && segment != kSegmentBytes) continue;
      job.create(++place, {std::min(segment, kEagerLimit), segment, kRxBuffers});
      warm_up(job, place);
      const Work work{Collective::kAllreduce, ring, kBytes / 4, 0, place};
      std::uint64_t cold = 0;
      const Outcome outcome = measured(job, work, kBytes, cold);
      const double bound = least(least_bytes(work.collective, kBytes, 4), segment);
      Line("segments")
          .add("what", "allreduce ring, 4 ranks, 128 KB")
          .add("memory", variant.name)
          .add("segment_bytes", segment)
          .time(outcome.cycles)
          .rate(least_bytes(work.collective, kBytes, 4), outcome.cycles)
          .add("ratio_to_bound", static_cast<double>(outcome.cycles) / bound);
      const Stream sent = stream(job, kBytes, kOutstanding, kOutstanding, place);
      job.settle();
      Line("segments")
          .add("what", "send, 8 of 128 KB")
          .add("memory", variant.name)
          .add("segment_bytes", segment)
          .time(sent.cycles)
          .rate(kOutstanding * kBytes, sent.cycles)
          .add("ratio_to_bound", static_cast<double>(sent.cycles) * kBytesPerCycle /
                                     static_cast<double>(kOutstanding * on_wire(kBytes, segment)));
    }
  }
}

// -- protocols, incast, jitter
// -------------------------------------------------------------------------------------------

void measure_protocols(const Options& options) {
  constexpr std::uint32_t kRanks = 8, kEager = 1, kGranted = 2;
  Job job(cluster_of(kRanks));
  job.create(kEager, {kSegmentBytes, kSegmentBytes, kRxBuffers});
  job.create(kGranted, {16, kSegmentBytes, kRxBuffers});
  warm_up(job, kEager);
  warm_up(job, kGranted);
  for (const std::uint64_t bytes : sizes_of(options, {64, 8 * kKi}, {64, 512, 2 * kKi, 4 * kKi, 8 * kKi})) {
    for (const std::uint32_t place : {kEager, kGranted}) {
      const char* protocol = place == kEager ? "eager" : "rendezvous";
      stream(job, bytes, 1, 1, place);
      job.settle();
      const Stream sent = stream(job, bytes, 1, 1, place);
      job.settle();
      Line("protocols").add("what", "send").add("protocol", protocol).add("bytes", bytes).time(sent.cycles);
      for (const Collective collective : {Collective::kBcast, Collective::kReduce, Collective::kAllreduce}) {
        const Work work{collective, chosen(collective, kRanks, bytes / 4), bytes / 4, 0, place};
        std::uint64_t cold = 0;
        const Outcome outcome = measured(job, work, bytes, cold);
        Line("protocols")
            .add("what", std::string(name_of(collective)) + " " + name_of_algorithm(work.algorithm) + ", 8 ranks")
            .add("protocol", protocol)
            .add("bytes", bytes)
            .time(outcome.cycles);
      }
    }
  }
}

void measure_incast(const Options& options) {
  constexpr std::uint32_t kRanks = 10;
  const auto job = job_of(kRanks);
  const sim::Network& network = job->cluster().network();
  const std::uint32_t link = network.link_named("switch0>node0");
  const int linear = find_algorithm(Collective::kGather, "linear");
  for (const std::uint64_t bytes :
       sizes_of(options, {4 * kKi, 64 * kKi}, {kKi, 4 * kKi, 16 * kKi, 64 * kKi, 256 * kKi})) {
    const Work work{Collective::kGather, linear, bytes / 4, 0, kPlace};
    const auto lost = [&] {
      std::uint64_t sum = 0;
      for (std::uint32_t i = 0; i < network.links(); ++i) {
        for (const std::uint64_t count : network.counters(i).dropped) sum += count;
      }
      return sum;
    };
    const std::uint64_t lost_before = lost();
    job->run(work);
    job->settle();
    const std::uint64_t before = network.counters(link).wire_bytes;
    const Outcome outcome = job->run(work);
    const std::uint64_t wire = network.counters(link).wire_bytes - before;
    job->settle();
    const double bound = static_cast<double>((kRanks - 1) * on_wire(bytes)) / kBytesPerCycle;
    Line("incast")
        .add("what", "gather linear, 9 to 1")
        .add("bytes", bytes)
        .time(outcome.cycles)
        .rate((kRanks - 1) * bytes, outcome.cycles)
        .add("share_of_link", static_cast<double>(wire) / kBytesPerCycle / static_cast<double>(outcome.cycles))
        .add("share_of_bound", bound / static_cast<double>(outcome.cycles))
        .add("dropped", lost() - lost_before);
  }
}

// What a seed changes: the length of each link, which stays as it is in the run, and when the memory answers.
constexpr std::uint32_t kLeastPropagation = 30, kMostPropagation = 70;

sim::ClusterConfig jittered(std::uint32_t nodes, std::uint64_t seed) {
  sim::ClusterConfig config = cluster_of(nodes, seed);
  config.memory.jitter = 20;
  config.memory.stall_ar = config.memory.stall_r = config.memory.stall_aw = config.memory.stall_w = 8;
  std::mt19937_64 random(seed);
  for (const std::uint32_t node : std::views::iota(0U, nodes)) {
    const std::string own = "node" + std::to_string(node);
    for (const std::string& link : {own + ">switch0", "switch0>" + own}) {
      const std::uint64_t cycles = kLeastPropagation + random() % (kMostPropagation - kLeastPropagation + 1);
      config.network.settings.push_back({"propagation", link, std::to_string(cycles), 0});
    }
  }
  return config;
}

struct Jittered {
  std::uint64_t sum = 0, send = 0;  ///< cycles
  friend bool operator==(const Jittered&, const Jittered&) = default;
};

constexpr std::uint64_t kJitterBytes = 1024;

/// An all-reduce and then a send of a new cluster, each with arguments that the engines know.
Jittered jitter_of(std::uint64_t seed) {
  constexpr std::uint32_t kRanks = 4;
  Job job(jittered(kRanks, seed));
  job.create(kPlace, usual());
  const Work work{Collective::kAllreduce, -1, kJitterBytes / 4, 0, kPlace};
  Jittered result;
  // The second time may still be the firmware's, where the call came just behind the communicator.
  for (int turn = 0; turn < 3; ++turn) {
    result.sum = job.run(work).cycles;
    job.settle(200);
    result.send = stream(job, kJitterBytes, 1, 1).cycles;
    job.settle(200);
  }
  return result;
}

void measure_jitter(const Options& options) {
  unsigned seeds = options.amount == Amount::kQuick ? 20 : 250;
  if (options.seeds != 0) seeds = options.seeds;
  // Every tenth run is made twice: it must take the same cycles.
  const unsigned again = (seeds + 9) / 10;
  std::vector<Jittered> all(seeds), second(again);
  std::atomic<unsigned> next{0};
  const auto work = [&] {
    for (unsigned i = next++; i < seeds + again; i = next++) {
      if (i < seeds) {
        all[i] = jitter_of(i + 1);
      } else {
        second[i - seeds] = jitter_of(10 * (i - seeds) + 1);
      }
    }
  };
  {
    // A worker whose run has failed ends with it; the others go on to their ends.
    std::vector<std::future<void>> workers;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      workers.push_back(std::async(std::launch::async, work));
    }
    for (auto& worker : workers) worker.get();
  }
  for (unsigned i = 0; i < again; ++i) {
    if (second[i] == all[10 * i]) continue;
    throw WrongResult("seed " + std::to_string(10 * i + 1) + " took " + std::to_string(all[10 * i].sum) + " and " +
                      std::to_string(all[10 * i].send) + " cycles, and another time " + std::to_string(second[i].sum) +
                      " and " + std::to_string(second[i].send));
  }
  const auto tell = [&](const char* what, std::uint64_t Jittered::*cycles) {
    std::vector<std::uint64_t> sorted;
    for (const Jittered& one : all) sorted.push_back(one.*cycles);
    std::sort(sorted.begin(), sorted.end());
    double mean = 0;
    for (const std::uint64_t one : sorted) mean += static_cast<double>(one) / seeds;
    // The least that so many are not above.
    const auto percentile = [&](unsigned percent) { return sorted[(seeds * percent + 99) / 100 - 1]; };
    Line("jitter")
        .add("what", what)
        .add("seeds", seeds)
        .add("repeated", again)
        .add("least", sorted.front())
        .add("median", percentile(50))
        .add("p99", percentile(99))
        .add("most", sorted.back())
        .add("mean", mean)
        .add("most_over_median", static_cast<double>(sorted.back()) / static_cast<double>(percentile(50)));
  };
  tell("allreduce, 4 ranks, 1 KB", &Jittered::sum);
  tell("send, 4 ranks, 1 KB, to the answer of the receive", &Jittered::send);
}

// -- stalls
// ------------------------------------------------------------------------------------------------------------

using Counts = std::array<std::uint64_t, kAllCounter.size()>;

/// The counters of all engines, summed.
Counts counts_of(Job& job) {
  Counts counts{};
  for (std::uint32_t node = 0; node < job.size(); ++node) {
    for (const Counter counter : kAllCounter) {
      const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
      const std::uint64_t low = job.host(node).read(at);
      counts[static_cast<std::size_t>(counter)] += low | std::uint64_t{job.host(node).read(at + 4)} << 32U;
    }
  }
  return counts;
}

/// What calls whose arguments are known wait for: parts of the cycles in which an engine has a call. They overlap.
void measure_stalls(const Options& options) {
  constexpr Counter kStalls[] = {Counter::kCpuBusy,      Counter::kStallRead,      Counter::kStallWrite,
                                 Counter::kStallTxData,  Counter::kStallTxNetwork, Counter::kStallLane,
                                 Counter::kStallCredit,  Counter::kStallGrant,     Counter::kStallSpace,
                                 Counter::kStallArrival, Counter::kStallProducer,  Counter::kStallWindow};
  constexpr std::uint32_t kRanks = 8;
  const auto job = job_of(kRanks);
  const auto tell = [&](const std::string& what, std::uint64_t bytes, const auto& once) {
    once();
    job->settle();
    const Counts before = counts_of(*job);
    const std::uint64_t cycles = once();
    job->settle();
    const Counts after = counts_of(*job);
    const auto difference = [&](Counter counter) {
      return static_cast<double>(after[static_cast<std::size_t>(counter)] - before[static_cast<std::size_t>(counter)]);
    };
    const double busy = std::max(1.0, difference(Counter::kBusy));
    Line line("stalls");
    line.add("what", what).add("bytes", bytes).time(cycles);
    line.add("busy", busy / kRanks / static_cast<double>(cycles));
    for (const Counter counter : kStalls) line.add(name_of(counter), difference(counter) / busy);
  };
  for (const std::uint64_t bytes : sizes_of(options, {64, 64 * kKi}, {64, 8 * kKi, 64 * kKi}, kMi)) {
    for (const auto& [collective, name] : {std::pair(Collective::kBcast, "binomial"),
                                           {Collective::kAllreduce, "ring"},
                                           {Collective::kAllreduce, "recursive_doubling"},
                                           {Collective::kGather, "linear"},
                                           {Collective::kAlltoall, "scattered"}}) {
      const std::uint64_t blocks =
          collective == Collective::kGather || collective == Collective::kAlltoall ? kRanks : 1;
      Work work{collective, find_algorithm(collective, name), std::max<std::uint64_t>(1, bytes / 4 / blocks), 0,
                kPlace};
      tell(
          std::string(name_of(collective)) + " " + (name == std::string_view("recursive_doubling") ? "doubling" : name),
          bytes, [&] { return job->run(work).cycles; });
    }
    tell("send, " + std::to_string(kOutstanding) + " at once", bytes,
         [&] { return stream(*job, bytes, bytes < kKi ? 64 : 8, kOutstanding).cycles; });
  }
}

// -- the program
// --------------------------------------------------------------------------------------------------------

/// How fast clusters are simulated: times of this machine, so no lines for the tables.
void tell_paces(const char* what) {
  for (const auto& [nodes, pace] : simulation().paces) {
    std::fprintf(stderr,
                 "%-60s %2u nodes: %8.0f cycles, %5.1f kHz per processor, %5.1f %% of nodes' cycles evaluated\n", what,
                 nodes, pace.cycles, pace.cycles / pace.seconds / 1000, 100 * pace.evaluated / pace.cycles);
  }
  simulation().paces.clear();
}

void measure_pace() {
  const auto reduces = [](std::uint64_t bytes, int times) {
    const auto job = job_of(4);
    for (int i = 0; i < times; ++i) {
      Work work;
      work.collective = Collective::kAllreduce;
      work.place = kPlace;
      work.count = bytes / 4;
      job->run(work);
      job->settle();
    }
  };
  reduces(64, 12);
  tell_paces("all-reduce of 64 B");
  reduces(64 * kKi, 8);
  tell_paces("all-reduce of 64 KB");
  reduces(kMi, 1);
  tell_paces("all-reduce of 1 MB");
  {
    const auto job = job_of(8);
    stream(*job, 64 * kKi, 16, 8);
  }
  tell_paces("sends from one node to another, the others wait");
}

struct Section {
  const char* name;
  void (*measure)(const Options&);
};

constexpr Section kSections[] = {{"nop", measure_nop},
                                 {"send", measure_send},
                                 {"latency", measure_latency},
                                 {"collectives", measure_collectives},
                                 {"scaling", measure_scaling},
                                 {"segments", measure_segments},
                                 {"protocols", measure_protocols},
                                 {"incast", measure_incast},
                                 {"jitter", measure_jitter},
                                 {"stalls", measure_stalls}};

constexpr const char* kUsage =
    "usage: bench_rtl [--quick | --full] [--only SECTION,...] [--seeds N] [--outstanding N] [--threads N] [--no-skip]\n"
    "       bench_rtl --pace [--threads N] [--no-skip]\n"
    "\n"
    "sections: nop send latency collectives scaling segments protocols incast jitter stalls\n"
    "  --quick   few sizes, a minute or two;  --full  4 MB too\n"
    "  --outstanding  sends and receives at once, 1 to 8\n"
    "  --threads  that evaluate engines;  --no-skip  evaluate also what cannot change. Neither changes a figure\n";

unsigned number_of(std::string_view option, std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument(std::string(option) + ": '" + std::string(text) + "' is no number");
  }
  return number;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == arguments.size()) throw std::invalid_argument(std::string(option) + " needs a value");
      return arguments[++i];
    };
    if (option == "--quick") {
      options.amount = Amount::kQuick;
    } else if (option == "--full") {
      options.amount = Amount::kFull;
    } else if (option == "--only") {
      std::string_view names = value();
      while (!names.empty()) {
        const std::size_t comma = std::min(names.find(','), names.size());
        const std::string_view name = names.substr(0, comma);
        names.remove_prefix(std::min(comma + 1, names.size()));
        if (std::none_of(std::begin(kSections), std::end(kSections),
                         [&](const Section& s) { return name == s.name; })) {
          throw std::invalid_argument("there is no section '" + std::string(name) + "'");
        }
        options.only.emplace(name);
      }
    } else if (option == "--seeds") {
      options.seeds = number_of(option, value());
    } else if (option == "--threads") {
      simulation().threads = std::max(1U, number_of(option, value()));
    } else if (option == "--pace") {
      options.pace = true;
    } else if (option == "--no-skip") {
      simulation().skip = false;
    } else if (option == "--outstanding") {
      options.outstanding = std::clamp(number_of(option, value()), 1U, kOutstanding);
    } else {
      throw std::invalid_argument("there is no option " + std::string(option));
    }
  }
  return options;
}

void describe() {
  const sim::NetworkConfig network;
  const sim::ClusterConfig cluster = cluster_of(2);
  Line("setup")
      .add("clock_mhz", kMhz)
      .add("link_gbps", static_cast<double>(network.link.mbps) / 1000)
      .add("mtu", network.mtu)
      .add("framing_bytes", network.link.header_bytes + network.link.trailer_bytes)
      .add("header_bytes", kHeaderBytes)
      .add("segment_bytes", kSegmentBytes)
      .add("eager_limit", kEagerLimit)
      .add("rx_buffers", kRxBuffers)
      .add("propagation", network.link.propagation)
      .add("switch_latency", network.switch_latency)
      .add("memory_read_latency", cluster.memory.read_latency)
      .add("memory_write_latency", cluster.memory.write_latency);
}

int run(const Options& options) {
  if (options.pace) {
    measure_pace();
    return 0;
  }
  describe();
  for (const Section& section : kSections) {
    if (options.only.empty() || options.only.contains(std::string_view(section.name))) section.measure(options);
  }
  tell_paces("all of these");
  return 0;
}

}  // namespace
}  // namespace unisono::bench

int main(int count, char** arguments) {
  try {
    return unisono::bench::run(unisono::bench::parse({arguments, static_cast<std::size_t>(count)}));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "bench_rtl: %s\n%s", error.what(), unisono::bench::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_rtl: %s\n", error.what());
    return 1;
  }
}
