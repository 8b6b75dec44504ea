#include "switch/endpoint/plan.hpp"

#include <bit>
#include <cstring>

namespace unisono::slots {

namespace {

using join::Blob;
using join::Packer;
using join::Unpacker;

Blob packed(const PlannedPool& pool) {
  Packer leaves;
  for (const PlannedPool::Leaf& leaf : pool.leaves) {
    leaves.add_value(leaf.address).add(leaf.name).add_value(leaf.port).add_value(leaf.generation).add(leaf.group);
  }
  return Packer()
      .add(std::span<const std::byte>(pool.id))
      .add(std::span<const std::byte>(pool.secret))
      .add_value(pool.slots)
      .add_value(pool.payload_bytes)
      .add(leaves.take())
      .add(std::as_bytes(std::span(pool.places)))
      .add(pool.tree)
      .take();
}

std::optional<PlannedPool> pool_in(std::span<const std::byte> bytes, std::uint32_t ranks) {
  Unpacker unpacker(bytes);
  PlannedPool pool;
  pool.id = unpacker.take_value<PoolId>();
  pool.secret = unpacker.take_value<Digest>();
  pool.slots = unpacker.take_value<std::uint32_t>();
  pool.payload_bytes = unpacker.take_value<std::uint16_t>();
  Unpacker leaves(unpacker.take());
  while (!leaves.empty()) {
    PlannedPool::Leaf leaf;
    leaf.address = leaves.take_value<std::uint32_t>();
    leaf.name = leaves.take_text();
    leaf.port = leaves.take_value<std::uint16_t>();
    leaf.generation = leaves.take_value<std::uint64_t>();
    leaf.group = leaves.take_text();
    pool.leaves.push_back(std::move(leaf));
  }
  const auto places = unpacker.take();
  pool.tree = unpacker.take_text();
  if (!unpacker.whole() || !leaves.whole() || places.size() != ranks * sizeof(PlannedPool::Place)) return std::nullopt;
  pool.places.resize(ranks);
  std::memcpy(pool.places.data(), places.data(), places.size());
  for (const PlannedPool::Place& place : pool.places) {
    if (place.leaf >= pool.leaves.size() || place.order >= ranks) return std::nullopt;
  }
  return pool;
}

}  // namespace

Blob packed(const Plan& plan) {
  Packer packer;
  packer.add(plan.refusal)
      .add(std::span<const std::byte>(plan.job))
      .add_value(plan.capability)
      .add_value(plan.up_to_bytes)
      .add_value(static_cast<std::uint8_t>(plan.stable));
  for (const PlannedPool& pool : plan.pools) packer.add(packed(pool));
  return packer.take();
}

std::optional<Plan> plan_in(std::span<const std::byte> bytes, std::uint32_t ranks) {
  Unpacker unpacker(bytes);
  Plan plan;
  plan.refusal = unpacker.take_text();
  plan.job = unpacker.take_value<PoolId>();
  plan.capability = unpacker.take_value<std::uint64_t>();
  plan.up_to_bytes = unpacker.take_value<std::uint64_t>();
  plan.stable = unpacker.take_value<std::uint8_t>() != 0;
  while (!unpacker.empty()) {
    std::optional<PlannedPool> pool = pool_in(unpacker.take(), ranks);
    if (!pool) return std::nullopt;
    plan.pools.push_back(*std::move(pool));
  }
  if (!unpacker.whole() || plan.pools.size() > kMostPools) return std::nullopt;
  return plan;
}

}  // namespace unisono::slots
