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

ModelledCall call_of(const NetworkConfig& network, const std::string& collective, const std::string& algorithm,
                     std::uint32_t ranks, std::uint64_t bytes) {
  const Algorithm& chosen = algorithm_of(collective, algorithm);
  const Topology topology = make_topology(network);
  ModelledCall made;
  made.members = ranks;
  made.addresses.resize(ranks);
  std::iota(made.addresses.begin(), made.addresses.end(), 0U);
  Call call;
  call.collective = chosen.collective;
  call.size = ranks;
  const CollectiveFacts facts = facts_of(chosen.collective);
  call.dtype = facts.data ? Datatype::kFp32 : Datatype::kNone;
  if (facts.reduces) call.func = Func::kSum;
  const std::uint64_t unit = bytes_of(Datatype::kFp32) * std::uint64_t{facts.blocks ? ranks : 1};
  if (facts.data) call.count = (bytes + unit - 1) / unit;
  if (chosen.switched) {
    const UnitTree tree = lay_tree(topology, made.addresses);
    if (!tree.reason.empty()) refuse(formatted("{}/{} needs a tree of units: {}", collective, algorithm, tree.reason));
    call.tree = parse_tree(tree.text, false);
    for (const std::uint32_t used : tree.units) made.addresses.push_back(topology.units[used].address);
  }
  if (chosen.direct || chosen.params_words != nullptr || (chosen.admits != nullptr && !chosen.admits(call))) {
    refuse(formatted("{}/{} does not run here: {}", collective, algorithm,
                     chosen.restriction[0] != '\0' ? chosen.restriction : "it needs counts of each rank"));
  }
  for (std::uint32_t rank = 0; rank < made.addresses.size(); ++rank) {
    call.rank = rank;
    made.programs.push_back(record(chosen, call));
  }
  return made;
}

}  // namespace unisono::sim
