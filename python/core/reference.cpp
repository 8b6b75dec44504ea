// The reference interpreter and checker as Python functions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/record.hpp"
#include "driver/program_file.hpp"
#include "python/core/errors.hpp"
#include "python/core/memory.hpp"
#include "python/core/module.hpp"
#include "reference/checker.hpp"
#include "reference/interpreter.hpp"
#include "reference/text.hpp"

namespace unisono::python {

namespace {

/// Runs `work` without the GIL; its Error becomes a Python exception.
template <class Work>
auto without_gil(Work&& work) {
  std::optional<Error> failure;
  decltype(work()) result{};
  {
    const nb::gil_scoped_release released;
    try {
      result = work();
    } catch (const Error& error) {
      failure = error;
    }
  }
  if (failure) raise(failure->code(), failure->what());
  return result;
}

const Algorithm& algorithm_of(int collective, const std::string& name) {
  const int index = find_algorithm(static_cast<Collective>(collective), name.c_str());
  if (index >= 0) return algorithms()[static_cast<std::size_t>(index)];
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

const Algorithm& admitting(int collective, const std::string& name, const Call& call) {
  const Algorithm& algorithm = algorithm_of(collective, name);
  if (algorithm.admits != nullptr && !algorithm.admits(call)) {
    raise(ErrorCode::kUnsupported, name + " does not admit this call of " + std::to_string(call.size) +
                                       " ranks, count " + std::to_string(call.count) +
                                       "; its restriction: " + algorithm.restriction);
  }
  return algorithm;
}

/// Datatype of the first move that has one, and how far the moves reach into src and dst, in bytes.
std::tuple<Datatype, std::uint64_t, std::uint64_t> needs_of(const std::vector<Program>& programs) {
  Datatype dtype = Datatype::kByte;
  bool typed = false;
  std::uint64_t reach[2] = {0, 0};
  for (const Program& program : programs) {
    for (const Move& move : program.moves) {
      if (!typed && move.dtype != Datatype::kNone) {
        dtype = move.dtype;
        typed = true;
      }
      for (const Operand& operand : {move.op0, move.op1, move.local}) {
        if (operand.kind != OperandKind::kMemory || operand.indirect || move.count_indirect) continue;
        if (operand.region != Region::kSrc && operand.region != Region::kDst) continue;
        std::uint64_t& end = reach[operand.region == Region::kDst ? 1 : 0];
        end = std::max(end, operand.offset + move.count * bytes_of(move.dtype));
      }
    }
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  if (reach[0] > kMost || reach[1] > kMost) {
    throw Error(ErrorCode::kCapacity,
                "the program reaches beyond 1 GiB of src or dst, which is more than can be checked");
  }
  return {dtype, reach[0], reach[1]};
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
  entry["calls"] = report.calls;
  entry["same"] = report.same;
  entry["refused"] = report.refused;
  entry["moves"] = report.moves;
  entry["pairs"] = report.pairs;
  entry["schedules"] = report.schedules;
  entry["seed"] = report.seed;
  entry["ranks"] = report.ranks;
  entry["most_ranks_sampled"] = report.most_ranks_sampled;
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
         std::uint64_t seed) {
        const Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        const Algorithm& chosen = algorithm_of(collective, algorithm);
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
      "src"_a, "dst"_a, "layouts"_a, "policy"_a, "seed"_a,
      "The final dst of every rank, by the reference interpreter.");

  module.def(
      "check_algorithm",
      [](int collective, const std::string& algorithm, const std::vector<std::uint32_t>& ranks, std::uint32_t schedules,
         std::uint64_t seed) {
        const Algorithm& chosen = algorithm_of(collective, algorithm);
        reference::CheckOptions options;
        options.ranks = ranks;
        options.schedules = schedules;
        options.seed = seed;
        return report_of(without_gil([&] { return reference::check_algorithm(chosen, options); }));
      },
      "collective"_a, "algorithm"_a, "ranks"_a, "schedules"_a, "seed"_a, "The checker's report, as a dictionary.");

  module.def(
      "check_program",
      [](nb::bytes text, std::uint32_t schedules, std::uint64_t seed) {
        const std::string own(text.c_str(), text.size());
        return report_of(without_gil([&] {
          std::vector<Program> programs = driver::read_program_file(std::as_bytes(std::span(own.data(), own.size())));
          const auto [dtype, src, dst] = needs_of(programs);
          return reference::check_job(reference::make_job(std::move(programs), dtype, src, dst), schedules, seed);
        }));
      },
      "text"_a, "schedules"_a, "seed"_a, "Checks a program file, with src and dst as long as its moves reach.");

  module.def(
      "program_file",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t root, int op, int datatype,
         std::uint64_t count, bool in_place, std::uint32_t group_size) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        const Algorithm& chosen = admitting(collective, algorithm, call);
        std::vector<Program> programs;
        for (call.rank = 0; call.rank < size; ++call.rank) programs.push_back(record(chosen, call));
        return driver::write_program_file(programs, reference::describe_move);
      },
      "collective"_a, "algorithm"_a, "size"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a, "group_size"_a,
      "The programs of all ranks, as a program file.");

  module.def(
      "program_listing",
      [](int collective, const std::string& algorithm, std::uint32_t size, std::uint32_t rank, std::uint32_t root,
         int op, int datatype, std::uint64_t count, bool in_place, std::uint32_t group_size) {
        Call call = call_of(collective, op, datatype, size, root, count, in_place, group_size);
        if (rank >= size) {
          raise(ErrorCode::kInvalidRoot,
                "rank " + std::to_string(rank) + " was asked for; there are ranks 0 to " + std::to_string(size - 1));
        }
        const Algorithm& chosen = admitting(collective, algorithm, call);
        call.rank = rank;
        return reference::describe_program(record(chosen, call));
      },
      "collective"_a, "algorithm"_a, "size"_a, "rank"_a, "root"_a, "op"_a, "datatype"_a, "count"_a, "in_place"_a,
      "group_size"_a, "The moves of one rank, as text.");
}

}  // namespace unisono::python
