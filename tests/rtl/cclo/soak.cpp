// Random calls on four engines for as many cycles as asked for: `soak_rtl [CYCLES] [SEED] [--no-skip | --check-skip]`.
//
// Memory stalls and answers out of order, ranks give their calls at different times. On five communicators of two to
// four ranks, one of them called by kernels, run collectives of all datatypes and operators, in place and not, by name
// and as the engine chooses; messages; loaded programs; chains; calls that are refused; and calls whose deadline
// passes, after which their communicator is made anew while the others go on. Every second call has been there before,
// so that it comes from the microcode memory. Every result is compared with the interpreter, every code with what it
// must be, and nothing but dst may change. Ends with 1 at the first thing that is wrong; with UNISONO_SOAK_LOG set, it
// tells of each call when it is given and when it ends. The course that it tells of at the end is a number made of all
// ends of calls with their cycles, and of all counters: it is the same with --no-skip, which evaluates every engine in
// every cycle.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/facts.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"
#include "tests/rtl/cclo/call_case.hpp"
#include "tests/rtl/cclo/program_case.hpp"

namespace {

using namespace unisono;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::uint32_t kNodes = 4;
constexpr std::uint64_t kLimit = 2'000'000;  ///< cycles after which a call is taken for hanging
constexpr std::uint64_t kAreas = 14;         ///< of memory, so calls that have some under way
constexpr std::uint32_t kLoaded = 3;         ///< slots of programs that are used
constexpr std::uint64_t kRests = sim::Node::kMemoryAddress + (std::uint64_t{3} << 30U);  ///< their moves in memory

/// Something is wrong with the engine.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

sim::ClusterConfig config_of(std::uint64_t seed, bool skip, bool check_skip) {
  sim::ClusterConfig config;
  config.skip = skip;
  config.check_skip = check_skip;
  config.network.nodes = kNodes;
  config.network.policy = sim::Policy::kPause;
  config.network.seed = config.seed = seed;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.memory.jitter = 40;
  config.memory.reorder = true;
  config.memory.stall_ar = config.memory.stall_r = config.memory.stall_aw = config.memory.stall_w = 30;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

enum class Kind : std::uint8_t { kCollective, kMessage, kProgram, kNop, kRefused, kFollower, kExpiring, kOneSided };
constexpr std::array<const char*, 8> kNames = {"collectives",         "messages", "programs",     "nops", "refused",
                                               "after a refused one", "expiring", "puts and gets"};
constexpr std::uint64_t kPlace = 1U << 20U;  ///< in an area: where the other side of a message stands

struct Communicator {
  std::uint32_t place = 0, size = 0;
  sim::Host::Agreed agreed;
  bool by_kernel = false;  ///< its calls come from kernels' streams
  std::uint32_t changes = 0;
  std::uint32_t under_way = 0;
  bool closing = false;  ///< takes no calls until it has been made anew
};

/// What can be called again, with other data.
struct Spec {
  Kind kind = Kind::kCollective;
  std::size_t communicator = 0;
  const Algorithm* algorithm = nullptr;
  Call call;  ///< of a message: of its sender
  bool automatic = false;
  reference::CountPattern pattern = reference::CountPattern::kUniform;
  std::uint64_t counts_seed = 0;
  std::uint32_t from = 0, tag = 0;  ///< of a message
};

/// One call of those ranks that give it.
struct Item {
  Kind kind = Kind::kCollective;
  std::uint32_t id = 0;
  std::optional<std::size_t> communicator;
  std::optional<std::uint64_t> area;
  bool by_kernel = false;
  std::array<std::optional<CallDescriptor>, kNodes> descriptors;
  std::array<bool, kNodes> given{}, ended{};
  std::optional<rtl::CallCase> collective;
  std::optional<std::size_t> program;  ///< slot
  std::vector<std::byte> message;      ///< what the receiver gets, or what a put or a get brings
  std::uint32_t target = 0;            ///< of a put or a get
  std::uint64_t place = 0;             ///< in the target's memory
  std::optional<ErrorCode> code;       ///< that it must end with; none: ok with the right result, or timeout
  std::uint64_t last_given = 0;

  bool done() const {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      if (descriptors[node] && !ended[node]) return false;
    }
    return true;
  }
};

class Soak {
 public:
  Soak(std::uint64_t cycles, std::uint64_t seed, bool skip, bool check_skip)
      : cluster_(config_of(seed, skip, check_skip)), random_(seed), cycles_(cycles) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      hosts_.emplace_back(cluster_, node);
      hosts_[node].run();
    }
    //                place size  eager segment buffers
    communicators_ = {{0, 4, {4096, 4096, 1}, false},
                      {1, 4, {1024, 1024, 2}, false},
                      {2, 4, {64, 512, 3}, true},
                      {3, 3, {2048, 8192, 4}, false},
                      {7, 2, {256, 2048, 1}, false}};
    for (Communicator& communicator : communicators_) create(communicator);
    for (std::uint64_t area = 0; area < kAreas; ++area) free_.push_back(area);
    loaded_.resize(kLoaded);
    program_use_.resize(kLoaded);
    for (const Algorithm& algorithm : algorithms()) {
      const CollectiveFacts facts = facts_of(algorithm.collective);
      const bool one_sided = algorithm.collective == Collective::kPut || algorithm.collective == Collective::kGet;
      if (!facts.point_to_point && !one_sided && algorithm.collective != Collective::kNop && !algorithm.direct) {
        table_.push_back(&algorithm);
      }
    }
  }

  void run() {
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t told = 0;
    while (cluster_.cycle() < cycles_) {
      epoch();
      const std::uint64_t share = std::min<std::uint64_t>(20, cluster_.cycle() * 20 / cycles_);
      if (share == told) continue;
      told = share;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::printf("%3llu %%  cycle %llu, %llu calls right, %.0f s\n", static_cast<unsigned long long>(5 * share),
                  static_cast<unsigned long long>(cluster_.cycle()), static_cast<unsigned long long>(calls_),
                  took.count());
      std::fflush(stdout);
    }
  }

  void tell() {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      for (const Counter counter : kAllCounter) {
        const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
        note(hosts_[node].read(at));
        note(hosts_[node].read(at + 4));
      }
    }
    std::printf("course %016llx, %.1f %% of the engines' cycles evaluated\n", static_cast<unsigned long long>(course_),
                100 * cluster_.evaluated());
    for (std::size_t kind = 0; kind < kNames.size(); ++kind) {
      std::printf("%s %llu, ", kNames[kind], static_cast<unsigned long long>(counts_[kind]));
    }
    std::printf(
        "timeouts %llu, from kernels %llu, automatic %llu, in place %llu, v-collectives %llu, again %llu, chained "
        "%llu, "
        "programs loaded %llu, communicators made anew %llu\n",
        static_cast<unsigned long long>(timeouts_), static_cast<unsigned long long>(from_kernels_),
        static_cast<unsigned long long>(automatic_), static_cast<unsigned long long>(in_place_),
        static_cast<unsigned long long>(vectors_), static_cast<unsigned long long>(again_),
        static_cast<unsigned long long>(chained_), static_cast<unsigned long long>(loads_),
        static_cast<unsigned long long>(renewed_));
    std::printf("algorithms");
    for (const auto& [name, count] : by_algorithm_) {
      std::printf(" %s %llu", name.c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t chance) { return below(chance) == 0; }

  void create(Communicator& communicator) {
    for (std::uint32_t node = 0; node < communicator.size; ++node) {
      hosts_[node].create_communicator(communicator.place, 20 + communicator.place, communicator.size,
                                       communicator.agreed, communicator.changes);
      hosts_[node].set_window(communicator.place, sim::Node::kMemoryAddress, kAreas * rtl::CallCase::kArea);
    }
  }

  /// Calls with one limit of how many may be under way and one pace, and the end of all of them.
  void epoch() {
    // With more calls than slots and chains, calls could take the slots that older ones need on other ranks.
    constexpr std::array<std::size_t, 4> kAtOnce = {1, 3, 7, kAreas};
    at_once_ = kAtOnce[below(kAtOnce.size())];
    chains_ = at_once_ < 8;
    pause_ = one_in(3) ? 2 : 6;
    longest_ = std::array<std::uint64_t, 3>{40, 600, 3000}[below(3)];
    const std::uint64_t items = 5 + below(40);
    const std::uint64_t loading = below(2 * items);
    for (std::uint64_t i = 0; i < items;) {
      if (i == loading && under_way_.size() == std::min<std::size_t>(2, at_once_)) load_program();
      if (under_way_.size() < at_once_ && !free_.empty() && !one_in(4)) {
        add();
        ++i;
      }
      step();
    }
    while (!under_way_.empty()) step();
  }

  /// Perhaps gives one call on one rank, lets some time pass, and takes what has ended.
  void step() {
    const std::uint32_t first = static_cast<std::uint32_t>(below(kNodes));
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      const std::uint32_t node = (first + i) % kNodes;
      if (give(node)) break;
    }
    for (std::uint64_t i = one_in(pause_) ? below(longest_) : below(20); i > 0; --i) cluster_.tick();
    for (std::uint32_t node = 0; node < kNodes; ++node) take(node);
    for (auto item = under_way_.begin(); item != under_way_.end();) {
      if (!item->done()) {
        if (item->last_given != 0 && cluster_.cycle() - item->last_given > kLimit) {
          throw Wrong(describe(*item) + " does not end");
        }
        ++item;
        continue;
      }
      finish(*item);
      item = under_way_.erase(item);
    }
  }

  bool give(std::uint32_t node) {
    for (Item& item : under_way_) {
      if (!item.descriptors[node] || item.given[node]) continue;
      if (item.by_kernel) {
        if (cluster_.node(node).calling()) continue;
        place(item, node);
        cluster_.node(node).call(encode(*item.descriptors[node]));
        kernel_calls_[node][item.id] = &item;
      } else {
        place(item, node);
        hosts_[node].submit(*item.descriptors[node]);
        host_calls_[node][item.id] = &item;
      }
      item.given[node] = true;
      item.last_given = cluster_.cycle();
      log("given", item, node);
      return true;
    }
    return false;
  }

  /// What happens, if the environment asks for it; to see how a failure came about.
  void log(const char* what, const Item& item, std::uint32_t node) const {
    if (log_) std::printf("node %u %s: %s\n", node, what, describe(item).c_str());
  }

  void place(const Item& item, std::uint32_t node) {
    sim::Node& own = cluster_.node(node);
    if (item.collective) item.collective->place(own, node);
    if (item.program) {
      own.store(rtl::ProgramCase::src(address(item)), loaded_[*item.program]->inputs[node].src);
      own.store(rtl::ProgramCase::dst(address(item)), loaded_[*item.program]->inputs[node].dst);
    }
    if (item.kind == Kind::kOneSided) {
      const CallDescriptor& call = *item.descriptors[node];
      const std::vector<std::byte> nothing(item.message.size(), std::byte{0xa5});
      const bool puts = call.collective == Collective::kPut;
      own.store(puts ? call.src_address : call.dst_address, puts ? item.message : nothing);
      cluster_.node(item.target).store(item.place, puts ? nothing : item.message);
    } else if (!item.message.empty()) {
      const bool sends = item.descriptors[node]->collective == Collective::kSend;
      own.store(sends ? item.descriptors[node]->src_address : item.descriptors[node]->dst_address,
                sends ? item.message : std::vector<std::byte>(item.message.size(), std::byte{0xa5}));
    }
  }

  void take(std::uint32_t node) {
    while (cluster_.node(node).interrupt()) {
      const auto [id, code] = hosts_[node].completion(1);
      ended(node, host_calls_[node], id, code);
    }
    auto& answers = cluster_.node(node).answers();
    for (; !answers.empty(); answers.pop_front()) {
      ended(node, kernel_calls_[node], answers.front().call_id, answers.front().code);
    }
  }

  void note(std::uint64_t value) { course_ = (course_ ^ value) * 0x100000001b3 + (course_ >> 41U); }

  void ended(std::uint32_t node, std::map<std::uint32_t, Item*>& calls, std::uint32_t id, std::uint16_t code) {
    for (const std::uint64_t value : {cluster_.cycle(), std::uint64_t{node}, std::uint64_t{id}, std::uint64_t{code}}) {
      note(value);
    }
    const auto found = calls.find(id);
    if (found == calls.end()) {
      throw Wrong("node " + std::to_string(node) + " ends call " + std::to_string(id) + ", which it does not have");
    }
    Item& item = *found->second;
    calls.erase(found);
    item.ended[node] = true;
    const auto got = static_cast<ErrorCode>(code);
    log(name_of(got), item, node);
    if (item.code ? got != *item.code : got != ErrorCode::kOk && got != ErrorCode::kTimeout) {
      throw Wrong("node " + std::to_string(node) + ": " + describe(item) + " ends with " + name_of(got));
    }
    if (got == ErrorCode::kTimeout) ++timeouts_;
    if (got == ErrorCode::kOk) check(item, node);
  }

  /// What the rank has now.
  void check(const Item& item, std::uint32_t node) {
    sim::Node& own = cluster_.node(node);
    const auto complain = [&](const char* what) {
      throw Wrong("node " + std::to_string(node) + ": " + describe(item) + " " + what);
    };
    if (item.collective) {
      const auto& expected = expected_of(item);
      if (item.collective->result(own, node) != expected[node]) complain("has another result than the interpreter");
      if (!item.collective->intact(own, node)) complain("has changed what it must not");
    }
    if (item.program) {
      const auto& expected = loaded_[*item.program]->expected[node];
      std::vector<std::byte> result(expected.size());
      own.load(rtl::ProgramCase::dst(address(item)), result);
      if (result != expected) complain("has another result than the interpreter");
    }
    if (item.kind == Kind::kOneSided) {
      std::vector<std::byte> result(item.message.size());
      const CallDescriptor& call = *item.descriptors[node];
      if (call.collective == Collective::kPut) {
        cluster_.node(item.target).load(item.place, result);
      } else {
        own.load(call.dst_address, result);
      }
      if (result != item.message) complain("has brought something else");
    } else if (!item.message.empty() && item.descriptors[node]->collective == Collective::kRecv) {
      std::vector<std::byte> result(item.message.size());
      own.load(item.descriptors[node]->dst_address, result);
      if (result != item.message) complain("has received something else than was sent");
    }
  }

  /// The interpreter is asked once for each call.
  const std::vector<std::vector<std::byte>>& expected_of(const Item& item) {
    const auto found = expected_.find(item.id);
    if (found != expected_.end()) return found->second;
    return expected_.emplace(item.id, item.collective->expected()).first->second;
  }

  void finish(const Item& item) {
    ++calls_;
    ++counts_[static_cast<std::size_t>(item.kind)];
    expected_.erase(item.id);
    if (item.area) free_.push_back(*item.area);
    if (item.program) --program_use_[*item.program];
    if (!item.communicator) return;
    Communicator& communicator = communicators_[*item.communicator];
    --communicator.under_way;
    if (!communicator.closing || communicator.under_way != 0) return;
    // Its members are no longer in step: it is made anew, as a driver does, while calls on others are under way.
    ++communicator.changes;
    ++renewed_;
    if (log_) std::printf("communicator %u is made anew\n", communicator.place);
    create(communicator);
    communicator.closing = false;
  }

  std::string describe(const Item& item) const {
    std::string text = "call " + std::to_string(item.id) + " (" + kNames[static_cast<std::size_t>(item.kind)];
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      if (!item.descriptors[node]) continue;
      const CallDescriptor& call = *item.descriptors[node];
      text += std::string(", ") + name_of(call.collective) + " algorithm " + std::to_string(call.algorithm) + " " +
              name_of(call.func) + " " + name_of(call.dtype) + " count " + std::to_string(call.count) + " root " +
              std::to_string(call.root) + " communicator " + std::to_string(call.communicator) +
              (call.in_place ? " in place" : "") + " deadline " + std::to_string(call.deadline_us) + " after " +
              std::to_string(call.wait_for0);
      break;
    }
    return text + ") before cycle " + std::to_string(cluster_.cycle());
  }

  static std::uint64_t address(const Item& item) {
    return sim::Node::kMemoryAddress + *item.area * rtl::CallCase::kArea;
  }

  /// Into a slot that no call uses; the other slots' programs may run meanwhile.
  void load_program() {
    const std::size_t slot = below(kLoaded);
    if (program_use_[slot] != 0) return;
    std::optional<rtl::ProgramCase> made;
    // Of some, most moves stand in memory.
    const std::uint32_t steps = rtl::ProgramCase::kSteps + (below(3) == 0 ? static_cast<std::uint32_t>(below(100)) : 0);
    while (!made)
      made = rtl::ProgramCase::make(static_cast<std::uint32_t>(below(1U << 20U)),
                                    2 + static_cast<std::uint32_t>(below(3)), 40, steps);
    ++loads_;
    if (log_) {
      std::printf("a program of %zu ranks is loaded into slot %zu from cycle %llu on\n", made->programs.size(), slot,
                  static_cast<unsigned long long>(cluster_.cycle()));
    }
    for (std::uint32_t rank = 0; rank < made->programs.size(); ++rank) {
      const std::uint64_t rest = kRests + (std::uint64_t{slot} << 20U);
      rtl::store_rest(cluster_.node(rank), made->programs[rank], rest);
      if (!rtl::load(hosts_[rank], static_cast<std::uint32_t>(slot), made->programs[rank],
                     static_cast<std::uint32_t>(1000 + loads_), rest)) {
        throw Wrong("node " + std::to_string(rank) + " does not load a program");
      }
    }
    loaded_[slot] = std::move(made);
  }

  // -- what to call

  void add() {
    Item item;
    item.id = next_id_++;
    item.code = ErrorCode::kOk;
    const std::uint64_t what = below(100);
    bool made = false;
    if (what < 62) {
      made = collective(item);
    } else if (what < 72) {
      made = message(item);
    } else if (what < 78) {
      made = one_sided(item);
    } else if (what < 84) {
      made = program(item);
    } else if (what < 87) {
      made = nop(item);
    } else if (what < 95) {
      made = refused(item);
    } else {
      expiring();
      return;
    }
    if (made) chain(std::move(item));
  }

  /// Perhaps behind another call.
  void chain(Item item) {
    if (chains_ && !item.by_kernel && item.code == ErrorCode::kOk && item.kind != Kind::kFollower && one_in(4)) {
      std::vector<const Item*> before;
      for (const Item& other : under_way_) {
        if (!other.by_kernel && other.code == ErrorCode::kOk) before.push_back(&other);
      }
      if (!before.empty()) {
        const Item& first = *before[below(before.size())];
        for (std::uint32_t node = 0; node < kNodes; ++node) {
          if (item.descriptors[node] && first.descriptors[node]) item.descriptors[node]->wait_for0 = first.id;
        }
        ++chained_;
      }
    }
    under_way_.push_back(std::move(item));
  }

  std::optional<std::size_t> pick_communicator(bool kernels) {
    const std::size_t picked = below(communicators_.size());
    const Communicator& communicator = communicators_[picked];
    if (communicator.closing || (communicator.by_kernel && (!kernels || communicator.under_way >= 2))) {
      return std::nullopt;
    }
    return picked;
  }

  void take_area(Item& item) {
    item.area = free_.front();
    free_.pop_front();
  }

  Datatype any_datatype() {
    for (;;) {
      const Datatype dtype = kAllDatatype[below(kAllDatatype.size())];
      // Complex numbers are not in this engine.
      if (dtype != Datatype::kNone && dtype != Datatype::kComplex64 && dtype != Datatype::kComplex128) return dtype;
    }
  }

  Func any_func(Datatype dtype) {
    const bool whole = is_defined(Func::kBitwiseAnd, dtype);
    for (;;) {
      const Func func = kAllFunc[below(kAllFunc.size())];
      // A product of floating-point numbers depends on the order.
      if (func != Func::kNone && func != Func::kAvg && is_defined(func, dtype) && (whole || func != Func::kProd)) {
        return func;
      }
    }
  }

  /// Elements: mostly few, sometimes none, sometimes many segments.
  std::uint64_t any_count(Datatype dtype) {
    const std::uint64_t bytes = one_in(8) ? below(60'000) : one_in(20) ? 0 : below(3000);
    return bytes / bytes_of(dtype);
  }

  std::optional<Spec> any_spec(Kind kind) {
    if (!past_.empty() && one_in(2)) {
      const Spec& spec = past_[below(past_.size())];
      const Communicator& communicator = communicators_[spec.communicator];
      if (spec.kind == kind && !communicator.closing && !(communicator.by_kernel && communicator.under_way >= 2)) {
        ++again_;
        return spec;
      }
    }
    Spec spec;
    spec.kind = kind;
    const auto communicator = pick_communicator(true);
    if (!communicator) return std::nullopt;
    spec.communicator = *communicator;
    Call& call = spec.call;
    call.size = communicators_[spec.communicator].size;
    call.dtype = any_datatype();
    call.count = any_count(call.dtype);
    if (kind == Kind::kMessage || kind == Kind::kOneSided) {
      call.collective = kind == Kind::kMessage ? Collective::kSend : one_in(2) ? Collective::kPut : Collective::kGet;
      spec.from = static_cast<std::uint32_t>(below(call.size));
      call.root = static_cast<std::uint32_t>((spec.from + 1 + below(call.size - 1)) % call.size);
      spec.tag = static_cast<std::uint32_t>(below(3));
      // What brings nothing could not be told from what was not done.
      call.count = std::max<std::uint64_t>(1, call.count);
    } else {
      spec.algorithm = table_[below(table_.size())];
      call.collective = spec.algorithm->collective;
      const CollectiveFacts facts = facts_of(call.collective);
      if (facts.reduces) call.func = any_func(call.dtype);
      if (facts.rooted) call.root = static_cast<std::uint32_t>(below(call.size));
      if (facts.in_place) call.in_place = one_in(3);
      if (!facts.data) {
        call.dtype = Datatype::kNone;
        call.count = 0;
      }
      if (facts.vectors) {
        spec.pattern = static_cast<reference::CountPattern>(below(4));
        spec.counts_seed = random_();
        call.count /= 2;
      }
      // What stands behind the result of a reduce_scatter in place depends on the algorithm.
      spec.automatic = !facts.vectors && one_in(4) && !(call.collective == Collective::kReduceScatter && call.in_place);
      if (spec.automatic) {
        const int position = choose_algorithm(call);
        if (position < 0) return std::nullopt;
        spec.algorithm = &algorithms()[static_cast<std::size_t>(position)];
      }
    }
    if (past_.size() < 12) {
      past_.push_back(spec);
    } else {
      past_[below(past_.size())] = spec;
    }
    return spec;
  }

  bool collective(Item& item) {
    const auto spec = any_spec(Kind::kCollective);
    if (!spec) return false;
    rtl::CallCase::Binding binding;
    binding.communicator = communicators_[spec->communicator].place;
    binding.id = item.id;
    binding.seed = random_();
    binding.area = free_.front();
    binding.automatic = spec->automatic;
    binding.pattern = spec->pattern;
    binding.counts_seed = spec->counts_seed;
    item.collective = rtl::CallCase::make(*spec->algorithm, spec->call, binding);
    if (!item.collective) return false;
    item.kind = Kind::kCollective;
    take_area(item);
    join(item, spec->communicator);
    // A deadline that does not pass.
    const std::uint32_t deadline = one_in(4) ? 100'000 : 0;
    for (std::uint32_t node = 0; node < spec->call.size; ++node) {
      item.descriptors[node] = item.collective->descriptor(node);
      item.descriptors[node]->deadline_us = deadline;
    }
    automatic_ += spec->automatic;
    in_place_ += spec->call.in_place;
    vectors_ += reference::is_vector(spec->call.collective);
    ++by_algorithm_[std::string(name_of(spec->call.collective)) + "/" + spec->algorithm->name];
    return true;
  }

  void join(Item& item, std::size_t communicator) {
    item.communicator = communicator;
    ++communicators_[communicator].under_way;
    item.by_kernel = communicators_[communicator].by_kernel;
    from_kernels_ += item.by_kernel;
  }

  bool message(Item& item) {
    const auto spec = any_spec(Kind::kMessage);
    if (!spec) return false;
    item.kind = Kind::kMessage;
    take_area(item);
    join(item, spec->communicator);
    const std::uint64_t bytes = spec->call.count * bytes_of(spec->call.dtype);
    item.message = rtl::small_values(spec->call.dtype, bytes, random_());
    CallDescriptor call;
    call.dtype = spec->call.dtype;
    call.communicator = communicators_[spec->communicator].place;
    call.count = spec->call.count;
    call.tag = spec->tag;
    call.call_id = item.id;
    CallDescriptor& send = item.descriptors[spec->from].emplace(call);
    send.collective = Collective::kSend;
    send.root = spec->call.root;
    send.src_address = address(item) + 16 * below(5);
    send.src_bytes = bytes;
    CallDescriptor& receive = item.descriptors[spec->call.root].emplace(call);
    receive.collective = Collective::kRecv;
    receive.root = spec->from;
    receive.dst_address = address(item) + kPlace + 4 * below(20);
    receive.dst_bytes = bytes;
    return true;
  }

  /// The window is all memory that calls have, and a call's area is its own on every node.
  bool one_sided(Item& item) {
    const auto spec = any_spec(Kind::kOneSided);
    if (!spec) return false;
    item.kind = Kind::kOneSided;
    take_area(item);
    join(item, spec->communicator);
    const std::uint64_t bytes = spec->call.count * bytes_of(spec->call.dtype);
    item.message = rtl::small_values(spec->call.dtype, bytes, random_());
    item.target = spec->call.root;
    item.place = address(item) + kPlace + 4 * below(40);
    CallDescriptor& call = item.descriptors[spec->from].emplace();
    call.collective = spec->call.collective;
    call.dtype = spec->call.dtype;
    call.communicator = communicators_[spec->communicator].place;
    call.count = spec->call.count;
    call.root = item.target;
    call.call_id = item.id;
    call.window_offset = item.place - sim::Node::kMemoryAddress;
    const bool puts = call.collective == Collective::kPut;
    (puts ? call.src_address : call.dst_address) = address(item) + 4 * below(40);
    (puts ? call.src_bytes : call.dst_bytes) = bytes;
    if (!one_in(8)) return true;
    // No such place.
    item.code = ErrorCode::kBufferTooSmall;
    call.window_offset += kAreas * rtl::CallCase::kArea;
    return true;
  }

  bool program(Item& item) {
    const std::size_t slot = below(kLoaded);
    if (!loaded_[slot]) return false;
    const auto communicator = pick_communicator(true);
    if (!communicator || communicators_[*communicator].size != loaded_[slot]->programs.size()) return false;
    item.kind = Kind::kProgram;
    item.program = slot;
    ++program_use_[slot];
    take_area(item);
    join(item, *communicator);
    for (std::uint32_t node = 0; node < communicators_[*communicator].size; ++node) {
      item.descriptors[node] = loaded_[slot]->call(node, static_cast<std::uint32_t>(slot),
                                                   communicators_[*communicator].place, item.id, address(item));
    }
    return true;
  }

  bool nop(Item& item) {
    item.kind = Kind::kNop;
    CallDescriptor call;
    call.call_id = item.id;
    item.descriptors[below(kNodes)] = call;
    return true;
  }

  CallDescriptor sum(const Item& item, std::uint32_t place, std::uint64_t count) const {
    CallDescriptor call;
    call.collective = Collective::kAllreduce;
    call.func = Func::kSum;
    call.dtype = Datatype::kInt32;
    call.communicator = place;
    call.count = count;
    call.src_address = sim::Node::kMemoryAddress + kAreas * rtl::CallCase::kArea;
    call.dst_address = call.src_address + (1U << 20U);
    call.scratch_address = call.src_address + (2U << 20U);
    call.src_bytes = call.dst_bytes = call.scratch_bytes = 1U << 20U;
    call.call_id = item.id;
    return call;
  }

  /// On one rank; its peers do not hear of it.
  bool refused(Item& item) {
    const auto communicator = pick_communicator(false);
    if (!communicator) return false;
    const Communicator& at = communicators_[*communicator];
    item.kind = Kind::kRefused;
    const std::uint32_t node = static_cast<std::uint32_t>(below(at.size));
    CallDescriptor call = sum(item, at.place, 10);
    switch (below(9)) {
      case 0:
        call.dtype = static_cast<Datatype>(200);
        item.code = ErrorCode::kInvalidDatatype;
        break;
      case 1:
        call.func = static_cast<Func>(99);
        item.code = ErrorCode::kInvalidOp;
        break;
      case 2:
        call.collective = Collective::kBcast;
        call.func = Func::kNone;
        call.root = at.size;
        item.code = ErrorCode::kInvalidRoot;
        break;
      case 3:
        call.dst_bytes = 39;
        item.code = ErrorCode::kBufferTooSmall;
        break;
      case 4:
        call.communicator = one_in(2) ? 9 : 4000;
        item.code = ErrorCode::kFreedCommunicator;
        break;
      case 5:
        call.algorithm = 250;
        item.code = ErrorCode::kUnknownAlgorithm;
        break;
      case 6:
        call.collective = Collective::kProgram;
        call.program = kLoaded + static_cast<std::uint32_t>(below(20));
        item.code = ErrorCode::kInvalidArgument;
        break;
      case 7:
        call.func = Func::kBitwiseAnd;
        call.dtype = Datatype::kFp32;
        item.code = ErrorCode::kInvalidDatatype;
        break;
      default: {
        // One that may be known, with a buffer that is too small for it.
        std::vector<const Spec*> known;
        for (const Spec& spec : past_) {
          if (spec.kind == Kind::kCollective && spec.communicator == *communicator && spec.call.count > 0 &&
              spec.call.collective == Collective::kAllreduce) {
            known.push_back(&spec);
          }
        }
        if (known.empty()) return false;
        const Spec& spec = *known[below(known.size())];
        call.algorithm =
            spec.automatic ? std::uint8_t{0} : static_cast<std::uint8_t>(spec.algorithm - algorithms().data() + 1);
        call.func = spec.call.func;
        call.dtype = spec.call.dtype;
        call.in_place = spec.call.in_place;
        call.count = spec.call.count;
        call.dst_bytes = spec.call.count * bytes_of(spec.call.dtype) - 1;
        item.code = ErrorCode::kBufferTooSmall;
        break;
      }
    }
    item.descriptors[node] = call;
    if (one_in(2)) {
      // What waits for it ends as it does.
      Item follower;
      follower.id = next_id_++;
      follower.kind = Kind::kFollower;
      follower.code = item.code;
      CallDescriptor after;
      if (one_in(2)) after = sum(follower, at.place, 100);
      after.call_id = follower.id;
      after.wait_for0 = item.id;
      follower.descriptors[node] = after;
      under_way_.push_back(std::move(item));
      under_way_.push_back(std::move(follower));
      return false;
    }
    return true;
  }

  /// Calls of a communicator on which one rank is missing, or late. Then it is made anew.
  void expiring() {
    const auto picked = pick_communicator(true);
    if (!picked) return;
    Communicator& communicator = communicators_[*picked];
    if (communicator.under_way != 0) return;
    communicator.closing = true;
    const std::uint32_t missing = static_cast<std::uint32_t>(below(communicator.size));
    const std::uint64_t calls = communicator.by_kernel ? 1 : 1 + below(3);
    const bool late = one_in(3);
    for (std::uint64_t i = 0; i < calls; ++i) {
      Item item;
      item.id = next_id_++;
      item.kind = Kind::kExpiring;
      join(item, *picked);
      // No rank can end a sum or a barrier without all others.
      CallDescriptor call = sum(item, communicator.place, one_in(3) ? 5000 : 1 + below(300));
      if (one_in(4)) {
        call.collective = Collective::kBarrier;
        call.func = Func::kNone;
        call.dtype = Datatype::kNone;
        call.count = 0;
      }
      call.deadline_us = static_cast<std::uint32_t>(10 + below(100));
      for (std::uint32_t node = 0; node < communicator.size; ++node) {
        if (node != missing || late) item.descriptors[node] = call;
      }
      // A rank that is in time may have all it needs.
      if (!late) item.code = ErrorCode::kTimeout;
      under_way_.push_back(std::move(item));
    }
  }

  sim::Cluster cluster_;
  std::mt19937_64 random_;
  std::uint64_t cycles_;
  std::vector<sim::Host> hosts_;
  std::vector<const Algorithm*> table_;
  std::vector<Communicator> communicators_;
  std::vector<std::optional<rtl::ProgramCase>> loaded_;
  std::vector<std::uint32_t> program_use_;
  std::deque<std::uint64_t> free_;
  std::list<Item> under_way_;
  std::array<std::map<std::uint32_t, Item*>, kNodes> host_calls_, kernel_calls_;
  std::map<std::uint32_t, std::vector<std::vector<std::byte>>> expected_;
  std::vector<Spec> past_;
  std::uint32_t next_id_ = 1;
  const bool log_ = std::getenv("UNISONO_SOAK_LOG") != nullptr;
  // Of the epoch.
  std::size_t at_once_ = 1;
  bool chains_ = false;
  std::uint64_t pause_ = 2, longest_ = 40;
  std::uint64_t course_ = 0xcbf29ce484222325;
  // What has been done.
  std::uint64_t calls_ = 0, timeouts_ = 0, from_kernels_ = 0, automatic_ = 0, in_place_ = 0, vectors_ = 0, again_ = 0,
                chained_ = 0, loads_ = 0, renewed_ = 0;
  std::array<std::uint64_t, kNames.size()> counts_{};
  std::map<std::string, std::uint64_t> by_algorithm_;
};

}  // namespace

int main(int count, char** arguments) {
  const std::string last = count > 1 ? arguments[count - 1] : "";
  const bool no_skip = last == "--no-skip", check_skip = last == "--check-skip";
  if (no_skip || check_skip) --count;
  const std::uint64_t cycles = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10'000'000;
  const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  std::printf("soak: %u engines, %llu cycles, seed %llu\n", kNodes, static_cast<unsigned long long>(cycles),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  try {
    Soak soak(cycles, seed, !no_skip, check_skip);
    soak.run();
    soak.tell();
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
