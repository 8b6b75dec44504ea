// The reference interpreter and checker as Python functions.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/algorithm_name.hpp"
#include "collectives/record.hpp"
#include "core/program_file.hpp"
#include "core/tree_table.hpp"
#include "driver/lowered_check.hpp"
#include "python/core/errors.hpp"
#include "python/core/memory.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "reference/checker.hpp"
#include "reference/interpreter.hpp"
#include "reference/meaning.hpp"
#include "reference/space_time.hpp"
#include "reference/text.hpp"

namespace unisono::python {

namespace {

/// The algorithm of a name, which may bring a radix.
const Algorithm& algorithm_of(int collective, const std::string& text, std::uint8_t* radix = nullptr) {
  const AlgorithmName written(text);
  const std::string& name = written.name;
  const int index = find_algorithm(static_cast<Collective>(collective), name.c_str());
  if (index >= 0) {
    const Algorithm& found = algorithms()[static_cast<std::size_t>(index)];
    if (const std::string wrong = written.fault(found); !wrong.empty()) {
      raise(ErrorCode::kInvalidArgument, std::string(name_of(static_cast<Collective>(collective))) + ": " + wrong);
    }
    if (radix != nullptr) *radix = written.radix_of_call(found);
    return found;
  }
  std::string known;
  for (const Algorithm& algorithm : algorithms()) {
    if (static_cast<int>(algorithm.collective) == collective)
      known += (known.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  raise(ErrorCode::kUnknownAlgorithm, std::string(name_of(static_cast<Collective>(collective))) +
                                          ": there is no algorithm \"" + name + "\"; there are " + known);
}

Call call_of(int collective, int op, int datatype, std::uint32_t size, std::uint32_t root, std::uint64_t count,
             bool in_place, std::uint32_t group_size) {
  Call call;
  call.collective = static_cast<Collective>(collective);
  call.func = reference::is_reduction(call.collective) ? static_cast<Func>(op) : Func::kNone;
  call.dtype = static_cast<Datatype>(datatype);
  call.size = size;
  call.root = root;
  call.count = count;
  call.in_place = in_place;
  call.group_size = group_size;
  if (size == 0 || size > 4096) {
    raise(ErrorCode::kInvalidArgument, std::to_string(size) + " ranks were given; allowed are 1 to 4096");
  }
  if (root >= size) {
    raise(ErrorCode::kInvalidRoot,
          "root " + std::to_string(root) + " was given; there are ranks 0 to " + std::to_string(size - 1));
  }
  return call;
}

/// The tree that is written so; none for an empty text.
void give_tree(Call& call, const std::string& text, bool stand_in) {
  if (text.empty()) return;
  call.tree = without_gil([&] { return parse_tree(text, stand_in); });
  if (call.tree->members != call.size) {
    raise(ErrorCode::kInvalidArgument, "the tree " + text + " has " + std::to_string(call.tree->members) +
                                           " members; the call has " + std::to_string(call.size) + " ranks");
  }
}

reference::Policy policy_of(const std::string& name, std::uint64_t seed) {
  if (name == "generous") return reference::Policy::generous();
  if (name == "least_permissive") return reference::Policy::least_permissive();
  if (name == "random") return reference::Policy::random(seed);
  raise(ErrorCode::kInvalidArgument, "policy is \"" + name + "\"; allowed are generous, least_permissive and random");
}

using Counts = std::vector<std::uint64_t>;

std::vector<std::byte> bytes_of_object(nb::handle object) {
  const Memory memory(object, "an input", false);
  std::vector<std::byte> bytes(memory.bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), memory.data(), bytes.size());
  return bytes;
}

/// Counts and displacements by rank: send counts, send displacements, receive counts, receive displacements.
std::vector<reference::VectorCounts> vectors_of(const std::vector<std::vector<Counts>>& given) {
  std::vector<reference::VectorCounts> vectors;
  for (const std::vector<Counts>& rank : given) {
    if (rank.size() != 4) raise(ErrorCode::kInvalidArgument, "a rank's layout has four lists");
    vectors.push_back({rank[0], rank[1], rank[2], rank[3]});
  }
  return vectors;
}

/// The named algorithm; `call` becomes a direct one if that is what the algorithm is for.
const Algorithm& admitting(int collective, const std::string& name, Call& call) {
  const Algorithm& algorithm = algorithm_of(collective, name, &call.radix);
  call.direct = algorithm.direct;
  if (call.tree != nullptr && !algorithm.switched) {
    raise(ErrorCode::kInvalidArgument, name + " of " + name_of(algorithm.collective) +
                                           " has no switches; a tree goes with the algorithms named \"switch\"");
  }
  if (algorithm.admits != nullptr && !algorithm.admits(call)) {
    raise(ErrorCode::kUnsupported, name + " does not admit this call of " + std::to_string(call.size) +
                                       " ranks, count " + std::to_string(call.count) +
                                       "; its restriction: " + algorithm.restriction);
  }
  return algorithm;
}

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

ProgramFile file_of(const std::string& bytes) {
  return parse_program_file(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

nb::bytes bytes_of_file(const ProgramFile& file) {
  const std::vector<std::byte> bytes = without_gil([&] { return write_program_file(file); });
  return nb::bytes(bytes.data(), bytes.size());
}

constexpr std::uint64_t kMostOnSymbols = std::uint64_t{1} << 30U;

/// Gives each stream port what the moves of its rank take from it.
void give_streams(reference::Job& job) {
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    std::array<std::uint64_t, kMaxStreamPorts> bytes{};
    for (const Move& move : job.programs[rank].moves) {
      if (move.op0.kind != OperandKind::kStream || move.count_indirect || move.op0.offset >= bytes.size()) continue;
      bytes[move.op0.offset] += move.count * bytes_of(move.dtype);
    }
    for (std::uint32_t port = 0; port < bytes.size(); ++port) {
      if (bytes[port] == 0) continue;
      if (bytes[port] > kMostOnSymbols) {
        throw Error(ErrorCode::kCapacity, "the program of rank " + std::to_string(rank) + " takes " +
                                              std::to_string(bytes[port]) + " bytes from stream port " +
                                              std::to_string(port) + "; at most " + std::to_string(kMostOnSymbols) +
                                              " can be run on symbols");
      }
      job.streams.push_back({rank, port, std::vector<std::byte>(bytes[port], std::byte{1})});
    }
  }
}

/// The job that a program file describes; params, which a file does not hold, are zero.
reference::Job job_of(ProgramFile file) {
  Datatype dtype = Datatype::kByte;
  bool typed = false;
  for (std::size_t rank = 0; rank < file.programs.size(); ++rank) {
    for (const Move& move : file.programs[rank].moves) {
      if (typed || move.dtype == Datatype::kNone) continue;
      dtype = move.dtype;
      typed = true;
    }
    for (const std::uint64_t bytes : file.region_bytes[rank]) {
      if (bytes > kMostOnSymbols) {
        throw Error(ErrorCode::kCapacity, "the program of rank " + std::to_string(rank) + " runs on a region of " +
                                              std::to_string(bytes) + " bytes; at most " +
                                              std::to_string(kMostOnSymbols) + " can be run on symbols");
      }
    }
  }
  reference::Job job = reference::make_job(std::move(file.programs), dtype, 0, 0);
  job.region_bytes = std::move(file.region_bytes);
  for (std::uint32_t rank = 0; rank < job.size(); ++rank)
    job.params[rank].assign(job.bytes(rank, Region::kParams) / 8, 0);
  give_streams(job);
  return job;
}

reference::Job job_of(const Algorithm& algorithm, const Call& call) {
  return reference::make_job(algorithm, call,
                             reference::is_vector(call.collective)
                                 ? reference::example_counts(call, reference::CountPattern::kUniform, 1)
                                 : std::vector<reference::VectorCounts>{});
}

/// One rank: encoded moves, constant pool, bytes of each region.
using RankProgram = std::tuple<nb::bytes, std::vector<std::uint32_t>, std::array<std::uint64_t, 5>>;

ProgramFile file_of_parts(const std::vector<RankProgram>& ranks) {
  ProgramFile file;
  for (const auto& [encoded, pool, region_bytes] : ranks) {
    if (encoded.size() % kMoveBytes != 0) {
      raise(ErrorCode::kMalformedProgram,
            std::to_string(encoded.size()) + " bytes of moves; each has " + std::to_string(kMoveBytes));
    }
    Program program;
    for (std::size_t at = 0; at < encoded.size(); at += kMoveBytes) {
      std::array<std::uint64_t, kMoveWords> words{};
      std::memcpy(words.data(), encoded.c_str() + at, kMoveBytes);
      if (!well_formed_move(words)) {
        raise(ErrorCode::kMalformedProgram, "rank " + std::to_string(file.programs.size()) + ", move " +
                                                std::to_string(program.moves.size()) +
                                                ": a reserved bit is set or an enumerator unknown");
      }
      program.moves.push_back(decode_move(words));
    }
    program.pool = pool;
    program.scratch_bytes = region_bytes[static_cast<std::size_t>(Region::kScratch)];
    program.params_bytes = region_bytes[static_cast<std::size_t>(Region::kParams)];
    file.programs.push_back(std::move(program));
    file.region_bytes.push_back(region_bytes);
  }
  return file;
}

/// What a program is meant as: collective, op, root, in place, count, counts by rank.
using Meaning =
    std::tuple<int, int, std::optional<std::uint32_t>, bool, std::optional<std::uint64_t>, std::vector<std::uint64_t>>;

reference::Meaning meaning_of(const Meaning& given) {
  const auto& [collective, op, root, in_place, count, counts] = given;
  return {static_cast<Collective>(collective), static_cast<Func>(op), root, in_place, count, counts};
}

nb::object text_or_none(const std::optional<reference::Finding>& finding) {
  if (!finding) return nb::none();
  nb::dict entry;
  entry["kind"] = reference::name_of(finding->kind);
  entry["rank"] = finding->rank == reference::kNowhere ? nb::object(nb::none()) : nb::object(nb::int_(finding->rank));
  entry["move"] = finding->move == reference::kNowhere ? nb::object(nb::none()) : nb::object(nb::int_(finding->move));
  entry["text"] = finding->text;
  return entry;
}

nb::dict report_of(const reference::CheckReport& report) {
  nb::dict entry;
  entry["ok"] = report.ok();
  entry["subject"] = report.subject;
  entry["text"] = report.text();
  entry["where"] = report.where;
  entry["finding"] = text_or_none(report.finding);
  entry["compared"] = report.compared.empty() ? nb::object(nb::none()) : nb::cast(report.compared);
  entry["calls"] = report.calls;
  entry["same"] = report.same;
  entry["refused"] = report.refused;
  entry["moves"] = report.moves;
  entry["pairs"] = report.pairs;
  entry["schedules"] = report.schedules;
  entry["mixed"] = report.mixed;
  entry["trees"] = report.trees;
  entry["any"] = report.any;
  entry["seed"] = report.seed;
  entry["ranks"] = report.ranks;
  entry["most_ranks_sampled"] = report.most_ranks_sampled;
  entry["lowered"] = 0;
  entry["lowered_runs"] = 0;
  entry["not_carried"] = 0;
  entry["svg"] = nb::none();
  if (report.failing_job) {
    const std::string svg = without_gil([&] {
      return reference::draw_job(*report.failing_job, reference::Policy::least_permissive(), report.finding);
    });
    entry["svg"] = svg;
  }
  return entry;
}

}  // namespace

void bind_reference(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  module.def(
      "interpret",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t root, int op, int datatype,
         std::uint64_t count, bool in_place, std::uint32_t group_size, const std::vector<nb::object>& src,
         const std::vector<nb::object>& dst, const std::vector<std::vector<Counts>>& layouts, const std::string& policy,
         std::uint64_t seed, const std::string& tree) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        const Algorithm& chosen = algorithm_of(collective, algorithm, &call.radix);
        call.direct = chosen.direct;
        give_tree(call, tree, true);
        const reference::Policy how = policy_of(policy, seed);
        if (src.size() != size || dst.size() != size) {
          raise(ErrorCode::kInvalidArgument, "src and dst are lists of one buffer, or None, for each rank");
        }
        std::vector<reference::RankInput> inputs(size);
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          inputs[rank].src = bytes_of_object(src[rank]);
          inputs[rank].dst = bytes_of_object(dst[rank]);
        }
        const std::vector<reference::VectorCounts> vectors = vectors_of(layouts);
        const auto results = without_gil([&] {
          const reference::Job job = reference::make_job(chosen, call, vectors);
          return reference::interpret(job, inputs, how);
        });
        nb::list list;
        for (const std::vector<std::byte>& bytes : results) list.append(nb::bytes(bytes.data(), bytes.size()));
        return list;
      },
      "collective"_a, "algorithm"_a, "size"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a, "group_size"_a,
      "src"_a, "dst"_a, "layouts"_a, "policy"_a, "seed"_a, "tree"_a = "",
      "The final dst of every rank, by the reference interpreter. `tree`: members stand in for its switches.");

  module.def(
      "tree_nodes",
      [](const std::string& tree) {
        const CallTree* const found = without_gil([&] { return parse_tree(tree, false); });
        return std::tuple(found->members, found->switches);
      },
      "tree"_a, "Members and switches of a tree that is written in brackets.");

  module.def(
      "check_algorithm",
      [](int collective, const std::string& algorithm, const std::vector<std::uint32_t>& ranks, std::uint32_t schedules,
         std::uint64_t seed, std::uint32_t mixes, const std::vector<std::uint32_t>& switches, const std::string& tree) {
        std::uint8_t radix = 0;
        const Algorithm& chosen = algorithm_of(collective, algorithm, &radix);
        reference::CheckOptions options;
        if (radix != 0) options.radices = {radix};
        options.ranks = ranks;
        options.schedules = schedules;
        options.seed = seed;
        options.mixes = mixes;
        options.switches = switches;
        if (!tree.empty() && chosen.switched) options.tree = without_gil([&] { return parse_tree(tree, false); });
        driver::LoweredChecker lowered;
        options.also = [&](const reference::Job& job) { return lowered.check(job); };
        nb::dict entry = report_of(without_gil([&] { return reference::check_algorithm(chosen, options); }));
        entry["lowered"] = lowered.calls();
        entry["lowered_runs"] = lowered.runs();
        entry["not_carried"] = lowered.not_carried();
        return entry;
      },
      "collective"_a, "algorithm"_a, "ranks"_a, "schedules"_a, "seed"_a, "mixes"_a = reference::CheckOptions{}.mixes,
      "switches"_a = std::vector<std::uint32_t>{}, "tree"_a = "", "The checker's report, as a dictionary.");

  module.def(
      "check_program",
      [](const nb::bytes& file, std::uint32_t schedules, std::uint64_t seed, const std::optional<Meaning>& meaning,
         std::uint32_t mixes) {
        const std::string own = text_of(file);
        return report_of(without_gil([&] {
          reference::Job job = job_of(file_of(own));
          if (meaning) job = reference::meant_as(std::move(job), meaning_of(*meaning));
          return reference::check_job(job, schedules, seed, mixes);
        }));
      },
      "file"_a, "schedules"_a, "seed"_a, "meaning"_a.none(), "mixes"_a = reference::CheckOptions{}.mixes,
      "Checks a program file: on the regions that it names, or as a call of the collective that it is meant as.");

  module.def(
      "program_file",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t root, int op, int datatype,
         std::uint64_t count, bool in_place, std::uint32_t group_size, const std::string& tree, bool stand_in) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        give_tree(call, tree, stand_in);
        const Algorithm& chosen = admitting(collective, algorithm, call);
        if (reference::is_vector(call.collective)) {
          raise(ErrorCode::kUnsupported, algorithm + " of " + name_of(call.collective) +
                                             " reads its counts from params, and a program file holds no data; allowed "
                                             "are collectives without counts by rank");
        }
        reference::Job job = without_gil([&] { return job_of(chosen, call); });
        return bytes_of_file({std::move(job.programs), std::move(job.region_bytes)});
      },
      "collective"_a, "algorithm"_a, "size"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a, "group_size"_a,
      "tree"_a = "", "stand_in"_a = false, "The programs of all ranks, as a program file.");

  module.def(
      "build_program", [](const std::vector<RankProgram>& ranks) { return bytes_of_file(file_of_parts(ranks)); },
      "ranks"_a, "A program file of each rank's encoded moves, constant pool and region sizes.");

  module.def(
      "program_file_listings",
      [](const nb::bytes& file) {
        const ProgramFile parsed = without_gil([own = text_of(file)] { return file_of(own); });
        std::vector<std::string> texts;
        for (const Program& program : parsed.programs) texts.push_back(reference::describe_program(program));
        return texts;
      },
      "file"_a, "The moves of every rank of a program file, as text.");

  module.def(
      "draw_algorithm",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t root, int op, int datatype,
         std::uint64_t count, bool in_place, std::uint32_t group_size, const std::string& tree, bool stand_in) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        give_tree(call, tree, stand_in);
        const Algorithm& chosen = admitting(collective, algorithm, call);
        return without_gil([&] { return reference::draw_job(job_of(chosen, call), reference::Policy::generous()); });
      },
      "collective"_a, "algorithm"_a, "size"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a, "group_size"_a,
      "tree"_a = "", "stand_in"_a = false, "A picture of a run of all ranks, as SVG.");

  module.def(
      "draw_program",
      [](const nb::bytes& file) {
        const std::string own = text_of(file);
        return without_gil([&] { return reference::draw_job(job_of(file_of(own)), reference::Policy::generous()); });
      },
      "file"_a, "A picture of a run of a program file, as SVG.");

  module.def(
      "program_listing",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t rank, std::uint32_t root,
         int op, int datatype, std::uint64_t count, bool in_place, std::uint32_t group_size, const std::string& tree,
         bool stand_in) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        give_tree(call, tree, stand_in);
        const std::uint32_t switches = call.tree == nullptr || stand_in ? 0 : call.tree->switches;
        if (rank >= size + switches) {
          raise(ErrorCode::kInvalidRoot, "rank " + std::to_string(rank) + " was asked for; there are ranks 0 to " +
                                             std::to_string(size + switches - 1));
        }
        const Algorithm& chosen = admitting(collective, algorithm, call);
        call.rank = rank;
        return reference::describe_program(record(chosen, call));
      },
      "collective"_a, "algorithm"_a, "size"_a, "rank"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a,
      "group_size"_a, "tree"_a = "", "stand_in"_a = false, "The moves of one rank, or of a switch, as text.");
}

}  // namespace unisono::python
