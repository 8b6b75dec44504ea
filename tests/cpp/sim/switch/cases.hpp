// What members of a tree call, and what they must get: for switches in C++ and in hardware.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "core/facts.hpp"
#include "members.hpp"

namespace unisono::sim {

inline constexpr Collective kCarried[] = {Collective::kBarrier,   Collective::kBcast,         Collective::kReduce,
                                          Collective::kAllreduce, Collective::kReduceScatter, Collective::kAllgather,
                                          Collective::kGather,    Collective::kScatter};

inline std::vector<std::byte> bytes_of_values(const std::vector<float>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// What rank gives: sums of these round, so their order shows.
inline std::vector<float> values_of(std::uint32_t rank, std::size_t count, std::uint64_t salt) {
  std::vector<float> values(count);
  std::mt19937_64 dice(1000 * salt + rank);
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(dice() % 2'000'003) / 7.0 - 100'000.0) *
            (dice() % 3 == 0 ? 1e-6F : 1.0F);
  }
  return values;
}

/// The fold at a node of the tree, as the switch there makes it.
inline std::vector<float> folded(const CallTree& tree, std::uint32_t node,
                                 const std::vector<std::vector<float>>& given) {
  if (node < tree.members) return given[node];
  std::vector<std::vector<float>> below;
  const std::uint32_t s = node - tree.members;
  for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i)
    below.push_back(folded(tree, tree.children[i], given));
  std::vector<float> result = below[0];
  for (std::size_t i = 1; i < below.size(); ++i) {
    for (std::size_t k = 0; k < result.size(); ++k) result[k] += below[i][k];
  }
  return result;
}

inline std::uint32_t top_of(const CallTree& tree) {
  std::uint32_t node = 0;
  while (tree.parent[node] != kNoNode) node = tree.parent[node];
  return node;
}

inline Call call_of(Collective collective, std::size_t count, std::uint32_t root, const CallTree& tree) {
  Call call;
  call.collective = collective;
  const CollectiveFacts facts = facts_of(collective);
  call.func = facts.reduces ? Func::kSum : Func::kNone;
  call.dtype = facts.data ? Datatype::kFp32 : Datatype::kNone;
  call.count = facts.data ? count : 0;
  call.root = facts.rooted ? root : 0;
  call.size = tree.members;
  return call;
}

struct Case {
  Collective collective;
  std::size_t count;
  std::uint32_t root;
};

template <class Job>
void begin_on(Job& job, std::uint32_t rank, const Case& one, std::uint64_t salt) {
  const std::uint32_t size = job.tree->members;
  const Call call = call_of(one.collective, one.count, one.root, *job.tree);
  std::vector<float> mine = values_of(rank, one.count, salt);
  std::vector<float> src = mine, dst(one.count, -1.0F);
  switch (one.collective) {
    case Collective::kBcast:
      src.clear();
      if (rank == one.root) dst = mine;
      break;
    case Collective::kScatter:
      src.clear();
      for (std::uint32_t r = 0; r < size && rank == one.root; ++r) {
        const std::vector<float> block = values_of(r, one.count, salt);
        src.insert(src.end(), block.begin(), block.end());
      }
      break;
    case Collective::kReduceScatter:
      for (std::uint32_t r = 1; r < size; ++r) {
        const std::vector<float> block = values_of(rank + 100 * r, one.count, salt);
        src.insert(src.end(), block.begin(), block.end());
      }
      break;
    case Collective::kGather:
    case Collective::kAllgather:
      dst.assign(one.count * size, -1.0F);
      break;
    default:
      break;
  }
  job.members[rank]->call(call, 4711 + static_cast<std::uint32_t>(salt), bytes_of_values(src), bytes_of_values(dst));
}

template <class Job>
void expect_of(const Job& job, std::uint32_t rank, std::size_t position, const Case& one, std::uint64_t salt) {
  const std::uint32_t size = job.tree->members;
  std::vector<std::vector<float>> given;
  for (std::uint32_t r = 0; r < size; ++r) {
    given.push_back(
        values_of(one.collective == Collective::kReduceScatter && rank > 0 ? r + 100 * rank : r, one.count, salt));
  }
  std::vector<float> wanted;
  switch (one.collective) {
    case Collective::kReduce:
      if (rank != one.root) return;
      [[fallthrough]];
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
      wanted = folded(*job.tree, top_of(*job.tree), given);
      break;
    case Collective::kBcast:
      wanted = given[one.root];
      break;
    case Collective::kScatter:
      wanted = given[rank];
      break;
    case Collective::kGather:
      if (rank != one.root) return;
      [[fallthrough]];
    case Collective::kAllgather:
      for (const std::vector<float>& block : given) wanted.insert(wanted.end(), block.begin(), block.end());
      break;
    default:
      return;
  }
  const std::span<const std::byte> dst = job.members[rank]->dst(position);
  const std::vector<std::byte> bytes = bytes_of_values(wanted);
  ASSERT_GE(dst.size(), bytes.size());
  EXPECT_EQ(std::memcmp(dst.data(), bytes.data(), bytes.size()), 0)
      << name_of(one.collective) << " of " << one.count << ", root " << one.root << ", rank " << rank;
}

/// A sound header of any kind, to switches 0 to 2 of five members, as no member that keeps to the protocol would send
/// it, and a payload of the length that it says.
inline std::pair<Header, std::vector<std::byte>> drawn_message(std::mt19937_64& dice) {
  const auto pick = [&](std::initializer_list<std::uint64_t> of) { return *(of.begin() + dice() % of.size()); };
  Header header = make_header(static_cast<MessageType>(pick({0, 0, 0, 1, 2, 3, 4, 5, 6, 7})));
  header.communicator = kCommunicator;
  header.epoch = kEpoch;
  header.source = static_cast<std::uint32_t>(dice() % 8);
  header.destination = static_cast<std::uint32_t>(5 + dice() % 3);
  header.sequence = static_cast<std::uint32_t>(pick({1, 2, 3}));
  header.signature = static_cast<std::uint32_t>(pick({1, 1, 1, 2}));
  header.dtype = static_cast<Datatype>(pick({0, 3, 9, 10, 11, 12}));
  header.tag = static_cast<std::uint32_t>(pick({82, 83, 82, dice() & kMaxTag}));
  header.message_bytes = pick({0, 4, 64, 256, 260, 100'000, std::uint64_t{1} << 40U});
  header.offset = pick({0, 0, 0, 512, 99'000});
  header.token_slot = static_cast<std::uint16_t>(pick({0, 1, 2, 9}));
  header.token_generation = static_cast<std::uint16_t>(pick({0, 1, 2, 3}));
  header.first = header.offset == 0;
  std::vector<std::byte> payload(pick({0, 4, 64, 256, 512, 8000}));
  header.last = header.offset + payload.size() == header.message_bytes;
  header.segment_bytes = static_cast<std::uint32_t>(payload.size());
  return {header, std::move(payload)};
}

}  // namespace unisono::sim
