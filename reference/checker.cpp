#include "reference/checker.hpp"

#include <algorithm>
#include <random>
#include <sstream>
#include <unordered_set>

#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/group_table.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "reference/expectation.hpp"
#include "reference/interpreter.hpp"
#include "reference/meaning.hpp"
#include "reference/mixed_run.hpp"
#include "reference/races.hpp"
#include "reference/switch_check.hpp"
#include "reference/trees.hpp"

namespace unisono::reference {
namespace {

// What a call of this meaning binds, for programs that reach beyond.
std::string buffers_of(const Job& job) {
  std::string text = "\n  in " + describe_promise(job) + ", src and dst hold";
  for (std::uint32_t rank = 0; rank < job.size() && rank < 8; ++rank) {
    text += formatted("{}{} and {} bytes on rank {}", rank == 0 ? " " : ", ", job.bytes(rank, Region::kSrc),
                      job.bytes(rank, Region::kDst), rank);
  }
  if (job.size() > 8) text += ", ...";
  if (job.call.collective == Collective::kBcast) text += "; the data of a broadcast stand in dst on every rank";
  return text;
}

// How much of a job is sampled, and by which seed.
struct Samples {
  std::uint32_t schedules = 0;
  std::optional<std::uint32_t> mixes;  // those that are drawn; without: none at all
  std::uint64_t seed = 0;
};

void check_into(CheckReport& report, const Job& job, const Samples& samples,
                const std::function<std::optional<Finding>(const Job&)>& also) {
  Interpreter interpreter(job);
  const auto fail = [&](Finding finding, const std::string& schedule) {
    finding.text += schedule;
    if (job.meant && finding.kind == FindingKind::kOutOfBounds) finding.text += buffers_of(job);
    report.finding = std::move(finding);
    report.where = describe(job);
    report.failing_call = job.call;
    report.failing_job = job;
  };
  SymbolRun least = interpreter.run_symbols(Policy::least_permissive());
  // What the programs show as they stand needs no schedule.
  const bool stands = interpreter.lowered().finding().has_value();
  if (least.finding) return fail(std::move(*least.finding), stands ? "" : "\n  (least permissive schedule)");
  bool segment_dependencies = false;
  for (const Program& program : job.programs) {
    for (const Move& move : program.moves)
      segment_dependencies |= move.segment_dependency0 != 0 || move.segment_dependency1 != 0;
  }
  if (segment_dependencies) {
    SymbolRun full = interpreter.run_symbols(Policy::least_permissive(true));
    if (full.finding) {
      return fail(std::move(*full.finding), "\n  (least permissive schedule, segment dependencies read as full)");
    }
  }
  std::uint64_t pairs = 0;
  std::optional<Finding> race = find_race(interpreter.lowered(), least, &pairs);
  if (race) return fail(std::move(*race), "");
  if (auto wrong = compare_with_expectation(interpreter, least)) return fail(std::move(*wrong), "");
  if (job.promises() && job.call.collective == Collective::kBarrier) {
    if (auto early = find_early_exit(interpreter.lowered(), least)) return fail(std::move(*early), "");
  }
  if (also) {
    if (auto finding = also(job)) return fail(std::move(*finding), "");
  }
  std::optional<SymbolRun> all;
  if (auto loose = check_any(interpreter, least, all, report.any)) return fail(std::move(*loose), "");
  if (has_switches(job)) {
    if (auto wrong = check_switches(interpreter, least)) return fail(std::move(*wrong), "");
    ++report.trees;
  }
  // What other schedules leave is compared with: the very expressions of all orders at once, if there are several.
  const SymbolRun& right = all ? *all : least;
  for (std::uint32_t i = 0; i < samples.schedules; ++i) {
    const std::uint64_t schedule_seed = samples.seed * 1000003 + i;
    SymbolRun run = interpreter.run_symbols(Policy::random(schedule_seed).with_all_orders());
    ++report.schedules;
    report.most_ranks_sampled = std::max(report.most_ranks_sampled, job.size());
    const std::string schedule = formatted("\n  (random schedule {})", schedule_seed);
    if (run.finding) return fail(std::move(*run.finding), schedule);
    if (auto differs = interpreter.compare(right, run, formatted("random schedule {}", schedule_seed))) {
      return fail(std::move(*differs), "");
    }
  }
  if (samples.mixes) {
    if (auto finding = check_mixes(interpreter, right, *samples.mixes, samples.seed, report.mixed)) {
      return fail(std::move(*finding), "");
    }
  }
  // Only now has the call been proven: what fails above leaves no count behind.
  ++report.calls;
  report.pairs += pairs;
  report.moves += interpreter.lowered().size();
}

// A hash of everything that decides what a job does, to leave out calls that come to the same.
std::uint64_t hash_of(const Job& job) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29U;
  };
  add(static_cast<std::uint64_t>(job.call.collective));
  add(job.call.in_place);
  add(job.call.direct);
  add(job.call.root);
  add(job.call.rank);
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (const Move& move : job.programs[rank].moves) {
      for (const std::uint64_t word : encode(move)) add(word);
    }
    for (const std::uint32_t word : job.programs[rank].pool) add(word);
    for (const std::uint64_t bytes : job.region_bytes[rank]) add(bytes);
    for (const std::uint64_t word : job.params[rank]) add(word);
    if (!job.vectors.empty()) {
      for (const auto* values : {&job.vectors[rank].send_counts, &job.vectors[rank].send_displacements,
                                 &job.vectors[rank].recv_counts, &job.vectors[rank].recv_displacements}) {
        for (const std::uint64_t value : *values) add(value);
      }
    }
  }
  return hash;
}

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Whether `count` is that of one block of P, so that small counts already make long vectors.
bool counts_blocks(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.blocks || facts.vectors;
}

std::vector<Grouping> groupings_to_check(const Algorithm& algorithm, std::uint32_t size, const CheckOptions& options) {
  std::vector<std::uint32_t> sizes = options.group_sizes;
  if (sizes.empty()) {
    sizes.push_back(0);
    if (size >= 4) {
      std::uint32_t square = 2;
      while ((square + 1) * (square + 1) <= size) ++square;
      sizes.insert(sizes.end(), {2, 3, square});
    }
    sort_unique(sizes);
  }
  std::vector<Grouping> groupings;
  groupings.reserve(sizes.size());
  for (const std::uint32_t of : sizes) groupings.push_back({of, nullptr});
  if (!algorithm.grouped || !(options.group_lists || options.group_sizes.empty())) return groupings;
  // As hosts are: of several sizes, ranks dealt to two or three of them, and anyhow.
  std::mt19937_64 random(options.seed * 1000 + size);
  const auto group_in = [&](int kind, std::uint32_t rank) -> std::uint64_t {
    if (kind == 0) return (rank + 2) / 3;
    if (kind == 1 || kind == 2) return rank % static_cast<std::uint32_t>(kind + 1);
    return random() % 3;
  };
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<std::uint64_t> numbers;
    for (std::uint32_t rank = 0; rank < size; ++rank) numbers.push_back(group_in(kind, rank));
    const Grouping made = find_groups(numbers);
    if (made.list != nullptr) groupings.push_back(made);
  }
  return groupings;
}

}  // namespace

std::vector<CheckedCall> calls_to_check(const Algorithm& algorithm, std::uint32_t size, const CheckOptions& options) {
  const Collective collective = algorithm.collective;
  const CollectiveFacts facts = facts_of(collective);
  const bool point = facts.kind == CallKind::kMessage || facts.kind == CallKind::kAccess;
  std::vector<std::uint64_t> counts = options.counts;
  if (!facts.data) {
    counts = {0};
  } else if (counts.empty()) {
    const std::uint64_t p = size;
    if (is_vector(collective)) {
      counts = {3};
    } else if (counts_blocks(collective)) {
      counts = size <= 9 ? std::vector<std::uint64_t>{0, 1, 2, 5} : std::vector<std::uint64_t>{1, 3};
    } else {
      counts = size <= 17 ? std::vector<std::uint64_t>{0, 1, p - 1, p, 2 * p + 1}
                          : std::vector<std::uint64_t>{1, p - 1, 2 * p + 1};
    }
  }
  if (algorithm.direct && options.counts.empty() && size <= 17) {
    // Direct algorithms cut at cache lines: counts on both sides of a line, of a line for each rank, and of two.
    const std::uint64_t line = std::max<std::uint64_t>(1, 64 / std::max<std::uint32_t>(1, bytes_of(options.dtype)));
    const std::uint64_t parts = counts_blocks(collective) ? std::min<std::uint64_t>(size, 3) : size;
    counts.insert(counts.end(), {line - 1, line, line + 1, line * (parts - 1) + 1, line * parts, line * parts + 1,
                                 2 * line * parts + line / 2});
  }
  sort_unique(counts);
  std::vector<std::uint32_t> roots{0};
  if (is_rooted(collective)) {
    roots.clear();
    if (!options.roots.empty()) {
      for (const std::uint32_t root : options.roots) {
        if (root < size) roots.push_back(root);
      }
    } else if (size <= 8) {
      for (std::uint32_t root = 0; root < size; ++root) roots.push_back(root);
    } else if (size <= 17) {
      roots = {0, 1, size / 2, size - 1};
    } else {
      roots = {0, size / 2 + 1};
    }
    sort_unique(roots);
  }
  std::vector<std::uint8_t> radices{0};
  if (algorithm.default_radix != 0)
    radices = options.radices.empty() ? std::vector<std::uint8_t>{0, 2, 3, 5, 8} : options.radices;
  const std::vector<Grouping> groupings =
      algorithm.switched ? std::vector<Grouping>(1) : groupings_to_check(algorithm, size, options);
  struct CallForm {
    bool in_place;
    std::uint8_t radix;
    std::optional<bool> elsewhere = std::nullopt;
  };
  std::vector<CallForm> forms;
  for (const std::uint8_t radix : radices) {
    forms.insert(forms.end(), {{false, radix}, {true, radix}});
    // Direct algorithms run the form that the root has shown (engine/plan.hpp), which all ranks then know.
    if (in_place_at_root(collective) && !algorithm.direct) {
      forms.insert(forms.end(), {{false, radix, true}, {true, radix, false}});
    }
  }
  std::vector<CheckedCall> calls;
  std::vector<const CallTree*> trees{nullptr};
  std::vector<const CallTree*> orders;  // trees that are not sampled, and checked with one count each
  if (algorithm.switched) {
    trees.clear();
    if (options.tree != nullptr) trees = {find_tree(*options.tree, false), find_tree(*options.tree, true)};
    std::vector<std::uint32_t> numbers = options.switches;
    if (numbers.empty()) numbers = {1, 2};
    if (options.tree != nullptr) numbers.clear();
    for (const std::uint32_t switches : numbers) {
      std::vector<const CallTree*> some = trees_to_check(size, switches, options.seed);
      if (options.switches.empty() && size > kMembersOfAllTrees) some.resize(2);
      for (const CallTree* const tree : some) {
        trees.insert(trees.end(), {tree, find_tree(*tree, true)});
      }
      if (options.switches.empty()) continue;
      for (const CallTree* const tree : trees_in_all_orders(size, switches)) {
        orders.insert(orders.end(), {tree, find_tree(*tree, true)});
      }
    }
    // Shapes are many, and what counts change is the same for all of them.
    if (options.counts.empty() && facts.data) counts = {0, 1, 3};
  }
  for (const std::uint64_t count : counts) {
    for (const std::uint32_t root : roots) {
      for (const Grouping& grouping : groupings) {
        for (const auto& [in_place, radix, elsewhere] : forms) {
          if ((in_place || elsewhere.value_or(false)) && (!options.in_place || !has_in_place(collective))) continue;
          Call call;
          call.collective = collective;
          call.func = is_reduction(collective) ? options.func : Func::kNone;
          call.dtype = facts.data ? options.dtype : Datatype::kNone;
          call.in_place = in_place;
          call.direct = algorithm.direct;
          call.size = size;
          call.root = root;
          call.group_size = grouping.size;
          call.groups = grouping.list;
          call.radix = radix;
          call.count = count;
          if (point) {
            // The origin is the rank before its peer; a rank is no peer of its own.
            if (size < 2) continue;
            call.rank = (root + size - 1) % size;
          }
          if (!is_vector(collective)) {
            const auto add = [&, elsewhere = elsewhere](const CallTree* tree, bool sampled) {
              call.tree = tree;
              calls.push_back({call, {}, elsewhere, sampled});
              if (tree == nullptr || tree->stand_in || !folds_in_any_order(call.func, Datatype::kInt32)) return;
              // Switches fold these in any order.
              CheckedCall exact = calls.back();
              exact.call.dtype = Datatype::kInt32;
              calls.push_back(std::move(exact));
            };
            for (const CallTree* const tree : trees) add(tree, true);
            if (count != counts.back() || elsewhere) continue;
            for (const CallTree* const tree : orders) add(tree, false);
            continue;
          }
          std::vector<CountPattern> patterns{CountPattern::kVaried, CountPattern::kOneRank};
          if (size <= 17) patterns.insert(patterns.end(), {CountPattern::kZero, CountPattern::kUniform});
          for (const CountPattern pattern : patterns) {
            calls.push_back({call, example_counts(call, pattern, options.seed + count), elsewhere});
            if (pattern == CountPattern::kVaried && size <= 9) {
              calls.push_back({call, example_counts(call, pattern, options.seed + count + 7), elsewhere});
            }
          }
        }
      }
    }
  }
  return calls;
}

CheckReport check_job(const Job& job, std::uint32_t schedules, std::uint64_t seed, std::uint32_t mixes) {
  CheckReport report;
  report.subject = describe(job);
  report.compared = describe_promise(job);
  report.seed = seed;
  report.ranks = {job.size()};
  check_into(report, job, {schedules, mixes, seed}, {});
  return report;
}

CheckReport check_algorithm(const Algorithm& algorithm, const CheckOptions& options) {
  CheckReport report;
  report.subject = std::string(name_of(algorithm.collective)) + " " + algorithm.name;
  report.compared = name_of(algorithm.collective);
  report.seed = options.seed;
  report.ranks = options.ranks;
  if (report.ranks.empty()) {
    for (std::uint32_t p = 1; p <= 17; ++p) report.ranks.push_back(p);
    report.ranks.insert(report.ranks.end(), {24, 32, 33, 64});
  }
  if (options.tree != nullptr && algorithm.switched) report.ranks = {options.tree->members};
  for (const std::uint32_t size : report.ranks) {
    std::unordered_set<std::uint64_t> seen;
    for (const CheckedCall& checked : calls_to_check(algorithm, size, options)) {
      if (algorithm.admits != nullptr) {
        Call shared = checked.call;
        shared.rank = 0;
        if (!algorithm.admits(shared)) {
          ++report.refused;
          continue;
        }
      }
      Job job;
      try {
        job = make_job(algorithm, checked.call, checked.vectors, checked.in_place_elsewhere);
      } catch (const Error& error) {
        report.finding = Finding{FindingKind::kMalformed, kNowhere, kNowhere, kNowhere, kNowhere, error.what()};
        report.failing_call = checked.call;
        return report;
      }
      if (!seen.insert(hash_of(job)).second) {
        ++report.same;
        continue;
      }
      Samples samples{0, std::nullopt, options.seed + report.calls};
      const bool many = algorithm.switched && options.switches.empty() && options.tree == nullptr;
      if (checked.sampled && size <= options.sampled_ranks && !(many && report.calls % 16 != 0)) {
        samples = {options.schedules, options.mixes, samples.seed};
      }
      check_into(report, job, samples, options.also);
      if (report.finding) return report;
    }
  }
  return report;
}

std::string CheckReport::text() const {
  std::ostringstream out;
  out << subject << ": " << (ok() ? "ok" : "FAILED") << '\n';
  out << "  ranks:";
  for (const std::uint32_t p : ranks) out << ' ' << p;
  out << '\n';
  if (calls != 0) {
    out << (ok() ? "  proven: " : "  proven before that: ") << calls << (calls == 1 ? " call, " : " calls, ") << moves
        << " moves: " << (compared.empty() ? "" : "right result, ")
        << "no deadlock on any engine, messages match, within bounds, no race (" << pairs
        << " pairs of accesses ordered)\n";
  }
  if (compared.empty() && ok()) out << "  result not compared with anything\n";
  if (same != 0) out << "  same programs as a proven call: " << same << " calls\n";
  if (refused != 0) out << "  not admitted by the algorithm: " << refused << " calls\n";
  if (schedules != 0) {
    out << "  sampled: " << schedules << " random schedules (seed " << seed << ", up to " << most_ranks_sampled
        << " ranks)\n";
  }
  if (trees != 0) {
    out << "  switches: " << trees
        << " calls, also with one slot and shared ports, in the order of members that stand in for them\n";
  }
  if (any != 0) out << "  any order: " << any << " arrivals, proven by normal form\n";
  if (mixed != 0) {
    out << "  mixed: " << mixed << " runs on lanes, credits and grants, first, last and in random order (seed " << seed
        << ")\n";
  }
  if (finding) {
    out << "  counterexample: " << where << '\n';
    out << "  " << name_of(finding->kind) << ": " << finding->text << '\n';
  }
  std::string lines = out.str();
  lines.pop_back();  // each line has ended with a new one
  return lines;
}

}  // namespace unisono::reference
