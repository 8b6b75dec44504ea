#include "tests/rtl/cclo/call_case.hpp"

#include <cstring>
#include <random>

namespace unisono::rtl {

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
  CallCase made;
  Call& call = made.call_;
  call.collective = algorithm.collective;
  call.func = reference::is_reduction(algorithm.collective) ? Func::kSum : Func::kNone;
  call.dtype = dtype;
  call.size = ranks;
  call.root = reference::is_rooted(algorithm.collective) ? ranks - 1 : 0;
  call.count = algorithm.collective == Collective::kBarrier ? 0 : count;
  if (algorithm.admits != nullptr && !algorithm.admits(call)) return std::nullopt;
  made.algorithm_ = &algorithm;
  made.job_ = reference::make_job(algorithm, call);
  made.communicator_ = communicator;
  made.id_ = id;
  made.area_ = area;
  made.inputs_.resize(ranks);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int32_t> values(-1000, 1000);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    made.inputs_[rank].src.resize(made.job_.region_bytes[rank][0]);
    made.inputs_[rank].dst.resize(made.job_.region_bytes[rank][1]);
    for (auto* data : {&made.inputs_[rank].src, &made.inputs_[rank].dst}) {
      for (std::size_t i = 0; i + 4 <= data->size(); i += 4) {
        const std::int32_t integer = values(random);
        const auto real = static_cast<float>(integer);
        if (dtype == Datatype::kFp32) {
          std::memcpy(&(*data)[i], &real, sizeof real);
        } else {
          std::memcpy(&(*data)[i], &integer, sizeof integer);
        }
      }
    }
  }
  return made;
}

std::uint64_t CallCase::address(std::uint32_t rank, std::size_t region) const {
  // Odd places, so that nothing relies on alignment to words.
  return sim::Node::kMemoryAddress + area_ * kArea + region * (kArea / 4) + 16 * (region + rank);
}

CallDescriptor CallCase::descriptor(std::uint32_t rank) const {
  CallDescriptor descriptor;
  descriptor.collective = call_.collective;
  descriptor.algorithm = static_cast<std::uint8_t>(algorithm_ - unisono::algorithms().data() + 1);
  descriptor.func = call_.func;
  descriptor.dtype = call_.dtype;
  descriptor.communicator = communicator_;
  descriptor.root = call_.root;
  descriptor.count = call_.count;
  descriptor.call_id = id_;
  const auto& bytes = job_.region_bytes[rank];
  descriptor.src_address = address(rank, 0);
  descriptor.src_bytes = bytes[0];
  descriptor.dst_address = address(rank, 1);
  descriptor.dst_bytes = bytes[1];
  descriptor.scratch_address = address(rank, 2);
  descriptor.scratch_bytes = bytes[2];
  return descriptor;
}

void CallCase::place(sim::AnyNode& node, std::uint32_t rank) const {
  node.store(address(rank, 0), inputs_[rank].src);
  node.store(address(rank, 1), inputs_[rank].dst);
}

std::vector<std::vector<std::byte>> CallCase::expected() const { return reference::interpret(job_, inputs_); }

std::vector<std::byte> CallCase::result(const sim::AnyNode& node, std::uint32_t rank) const {
  std::vector<std::byte> dst(job_.region_bytes[rank][1]);
  node.load(address(rank, 1), dst);
  return dst;
}

}  // namespace unisono::rtl
