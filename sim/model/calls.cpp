#include "sim/model/calls.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "collectives/record.hpp"
#include "core/error.hpp"
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

constexpr std::array<Collective, 5> kOfBlocks = {Collective::kScatter, Collective::kGather, Collective::kAllgather,
                                                 Collective::kAlltoall, Collective::kReduceScatter};

bool reduces(Collective collective) {
  constexpr std::array<Collective, 5> kReducing = {Collective::kReduce, Collective::kAllreduce,
                                                   Collective::kReduceScatter, Collective::kScan, Collective::kExscan};
  return std::find(kReducing.begin(), kReducing.end(), collective) != kReducing.end();
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
  call.dtype = chosen.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  if (reduces(chosen.collective)) call.func = Func::kSum;
  constexpr std::uint64_t kElement = 4;
  const bool blocks = std::find(kOfBlocks.begin(), kOfBlocks.end(), chosen.collective) != kOfBlocks.end();
  const std::uint64_t unit = blocks ? kElement * ranks : kElement;
  if (chosen.collective != Collective::kBarrier) call.count = (bytes + unit - 1) / unit;
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
