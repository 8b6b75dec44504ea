#include "tests/rtl/cclo/call_case.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "core/facts.hpp"

namespace unisono::rtl {
namespace {

constexpr std::size_t kGuard = 64;  ///< bytes before and after dst

/// Half of the guards' bytes differ from what memory has at first.
std::array<std::byte, kGuard> guard(std::uint32_t id, std::uint32_t rank) {
  std::array<std::byte, kGuard> bytes{};
  for (std::size_t i = 0; i < kGuard; ++i) bytes[i] = static_cast<std::byte>(id * 7 + rank * 31 + i * 5 + 1);
  return bytes;
}

}  // namespace

std::vector<std::byte> small_values(Datatype dtype, std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  std::mt19937_64 random(seed);
  // Four of these, added in any order, are whole numbers that bf16 holds.
  std::uniform_int_distribution<std::int32_t> values(-60, 60);
  arithmetic::with_element(dtype, [&](auto kind) {
    using Element = decltype(kind);
    for (std::size_t i = 0; i + sizeof(Element) <= data.size(); i += sizeof(Element)) {
      const std::int32_t value = values(random);
      Element element{};
      if constexpr (std::is_arithmetic_v<Element>) {
        element = static_cast<Element>(value);
      } else if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
        element = arithmetic::narrow_fp16(static_cast<float>(value));
      } else if constexpr (std::is_same_v<Element, arithmetic::Bf16>) {
        element = arithmetic::narrow_bf16(static_cast<float>(value));
      } else if constexpr (std::is_same_v<Element, arithmetic::Bool>) {
        element.byte = static_cast<std::uint8_t>(value & 1);
      } else if constexpr (requires { element.index; }) {
        element.value = static_cast<decltype(element.value)>(value);
        element.index = static_cast<decltype(element.index)>(values(random));
      } else {
        // A byte, or a part of a complex number.
        std::memcpy(static_cast<void*>(&element), &value, std::min(sizeof element, sizeof value));
      }
      std::memcpy(&data[i], &element, sizeof element);
    }
  });
  return data;
}

std::vector<const Algorithm*> CallCase::algorithms() {
  std::vector<const Algorithm*> list;
  for (const Algorithm& algorithm : unisono::algorithms()) {
    const bool pair = algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv ||
                      algorithm.collective == Collective::kPut || algorithm.collective == Collective::kGet;
    // What a nop has in the field `algorithm` says what it is for; counts of each rank need params.
    if (!pair && algorithm.collective != Collective::kNop && !algorithm.direct &&
        !reference::is_vector(algorithm.collective)) {
      list.push_back(&algorithm);
    }
  }
  return list;
}

std::optional<CallCase> CallCase::make(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count,
                                       Datatype dtype, std::uint32_t communicator, std::uint32_t id, std::uint64_t seed,
                                       std::uint64_t area) {
  Call call;
  call.collective = algorithm.collective;
  call.func = reference::is_reduction(algorithm.collective) ? Func::kSum : Func::kNone;
  call.dtype = dtype;
  call.size = ranks;
  call.root = reference::is_rooted(algorithm.collective) ? ranks - 1 : 0;
  call.count = algorithm.collective == Collective::kBarrier ? 0 : count;
  Binding binding;
  binding.communicator = communicator;
  binding.id = id;
  binding.seed = seed;
  binding.area = area;
  return make(algorithm, call, binding);
}

std::optional<CallCase> CallCase::make(const Algorithm& algorithm, const Call& call, const Binding& binding) {
  CallCase made;
  made.algorithm_ = &algorithm;
  made.binding_ = binding;
  if (reference::is_vector(call.collective)) {
    const auto counts = reference::example_counts(call, binding.pattern, binding.counts_seed);
    if (algorithm.admits != nullptr && !algorithm.admits(call)) return std::nullopt;
    made.job_ = reference::make_job(algorithm, call, counts);
  } else {
    if (algorithm.admits != nullptr && !algorithm.admits(call)) return std::nullopt;
    made.job_ = reference::make_job(algorithm, call);
  }
  if (binding.automatic) {
    // The firmware may ask for more than the algorithm that is taken.
    Call own = made.job_.call;
    for (std::uint32_t rank = 0; rank < call.size; ++rank) {
      own.rank = rank;
      for (const Algorithm& other : unisono::algorithms()) {
        if (other.collective != call.collective || other.direct || other.scratch_bytes == nullptr) continue;
        if (other.admits != nullptr && !other.admits(own)) continue;
        auto& scratch = made.job_.region_bytes[rank][static_cast<std::size_t>(Region::kScratch)];
        scratch = std::max(scratch, other.scratch_bytes(own));
      }
    }
  }
  made.inputs_.resize(call.size);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    const auto& bytes = made.job_.region_bytes[rank];
    made.inputs_[rank].src = small_values(call.dtype, bytes[0], binding.seed * 64 + 2 * rank);
    made.inputs_[rank].dst = small_values(call.dtype, bytes[1], binding.seed * 64 + 2 * rank + 1);
  }
  return made;
}

std::uint64_t CallCase::address(std::uint32_t rank, std::size_t region) const {
  // Odd places, so that nothing relies on alignment to words.
  return sim::Node::kMemoryAddress + binding_.area * kArea + region * (kArea / 4) + 16 * (region + rank);
}

CallDescriptor CallCase::descriptor(std::uint32_t rank) const {
  const Call& call = job_.call;
  CallDescriptor descriptor;
  descriptor.collective = call.collective;
  if (!binding_.automatic) {
    descriptor.algorithm = static_cast<std::uint8_t>(algorithm_ - unisono::algorithms().data() + 1);
  }
  descriptor.func = call.func;
  descriptor.dtype = call.dtype;
  descriptor.in_place = call.in_place;
  descriptor.communicator = binding_.communicator;
  descriptor.root = call.root;
  descriptor.count = call.count;
  descriptor.call_id = binding_.id;
  const auto& bytes = job_.region_bytes[rank];
  descriptor.src_address = address(rank, 0);
  descriptor.src_bytes = bytes[0];
  descriptor.dst_address = address(rank, 1);
  descriptor.dst_bytes = bytes[1];
  descriptor.scratch_address = address(rank, 2);
  descriptor.scratch_bytes = bytes[2];
  descriptor.params_address = address(rank, 3);
  descriptor.params_bytes = bytes[3];
  return descriptor;
}

void CallCase::place(sim::AnyNode& node, std::uint32_t rank) const {
  node.store(address(rank, 0), inputs_[rank].src);
  node.store(address(rank, 1) - kGuard, guard(binding_.id, rank));
  node.store(address(rank, 1), inputs_[rank].dst);
  node.store(address(rank, 1) + inputs_[rank].dst.size(), guard(binding_.id, rank));
  node.store(address(rank, 3), std::as_bytes(std::span(job_.params[rank])));
}

std::vector<std::vector<std::byte>> CallCase::expected() const { return reference::interpret(job_, inputs_); }

std::vector<std::byte> CallCase::result(const sim::AnyNode& node, std::uint32_t rank) const {
  std::vector<std::byte> dst(job_.region_bytes[rank][1]);
  node.load(address(rank, 1), dst);
  return dst;
}

bool CallCase::intact(const sim::AnyNode& node, std::uint32_t rank) const {
  std::vector<std::byte> src(inputs_[rank].src.size());
  node.load(address(rank, 0), src);
  std::array<std::byte, kGuard> before{}, after{};
  node.load(address(rank, 1) - kGuard, before);
  node.load(address(rank, 1) + inputs_[rank].dst.size(), after);
  const auto wanted = guard(binding_.id, rank);
  return src == inputs_[rank].src && before == wanted && after == wanted;
}

}  // namespace unisono::rtl
