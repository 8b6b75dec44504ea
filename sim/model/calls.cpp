#include "sim/model/calls.hpp"

#include <numeric>

#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "sim/network/unit_tree.hpp"

namespace unisono::sim {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, "model: " + what); }

const Algorithm& algorithm_of(const std::string& collective, const std::string& name) {
  for (const Algorithm& one : algorithms()) {
    if (collective == name_of(one.collective) && name == one.name) return one;
  }
  refuse(formatted("there is no algorithm {}/{}; `unisono algorithms` lists those that there are", collective, name));
}

}  // namespace

Call plain_call(Collective collective, std::uint32_t ranks, std::uint64_t bytes, Datatype dtype) {
  const CollectiveFacts facts = facts_of(collective);
  Call call;
  call.collective = collective;
  call.size = ranks;
  call.dtype = facts.data ? dtype : Datatype::kNone;
  if (facts.reduces) call.func = Func::kSum;
  if (!facts.data) return call;
  call.count = bytes / bytes_of(dtype);
  if (call.count * bytes_of(dtype) != bytes) {
    refuse(formatted("{} bytes are no whole number of {} ({} bytes)", bytes, name_of(dtype), bytes_of(dtype)));
  }
  return call;
}

ModelledCall call_of(const Topology& topology, const Algorithm& algorithm, Call call) {
  ModelledCall made;
  made.members = call.size;
  made.addresses.resize(call.size);
  std::iota(made.addresses.begin(), made.addresses.end(), 0U);
  const char* const collective = name_of(call.collective);
  if (algorithm.switched) {
    const UnitTree tree = lay_tree(topology, made.addresses);
    if (!tree.reason.empty()) {
      refuse(formatted("{}/{} needs a tree of units: {}", collective, algorithm.name, tree.reason));
    }
    call.tree = parse_tree(tree.text, false);
    for (const std::uint32_t used : tree.units) made.addresses.push_back(topology.units[used].address);
  }
  if (algorithm.direct || algorithm.params_words != nullptr ||
      (algorithm.admits != nullptr && !algorithm.admits(call))) {
    refuse(formatted("{}/{} does not run here: {}", collective, algorithm.name,
                     algorithm.restriction[0] != '\0' ? algorithm.restriction : "it needs counts of each rank"));
  }
  for (std::uint32_t rank = 0; rank < made.addresses.size(); ++rank) {
    call.rank = rank;
    made.programs.push_back(record(algorithm, call));
  }
  return made;
}

ModelledCall call_of(const NetworkConfig& network, const std::string& collective, const std::string& algorithm,
                     std::uint32_t ranks, std::uint64_t bytes) {
  const Algorithm& chosen = algorithm_of(collective, algorithm);
  const std::uint64_t blocks = facts_of(chosen.collective).blocks ? ranks : 1;
  const std::uint64_t unit = bytes_of(Datatype::kFp32) * blocks;
  const std::uint64_t whole = (bytes + unit - 1) / unit * bytes_of(Datatype::kFp32);
  return call_of(make_topology(network), chosen, plain_call(chosen.collective, ranks, whole, Datatype::kFp32));
}

}  // namespace unisono::sim
