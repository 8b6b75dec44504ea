#include "sim/cluster/host.hpp"

#include <stdexcept>

#include "core/generated/spec.hpp"
#include "core/text.hpp"

namespace unisono::sim {
namespace {

constexpr int kLongestAccess = 5000;  ///< cycles; the members are cleared for 1024 after a reset

}  // namespace

std::uint32_t Host::read(std::uint32_t offset) {
  AnyNode& node = cluster_.any_node(node_);
  node.begin({false, offset, 0});
  for (int cycle = 0; node.busy(); ++cycle) {
    if (cycle == kLongestAccess) throw std::runtime_error("a read is not answered");
    cluster_.tick();
  }
  if (!node.accepted()) throw std::runtime_error(formatted("the engine refused a read of {}", offset));
  return node.value();
}

void Host::write(std::uint32_t offset, std::uint32_t value) {
  AnyNode& node = cluster_.any_node(node_);
  node.begin({true, offset, value});
  for (int cycle = 0; node.busy(); ++cycle) {
    if (cycle == kLongestAccess) throw std::runtime_error("a write is not answered");
    cluster_.tick();
  }
  if (!node.accepted()) throw std::runtime_error(formatted("the engine refused a write to {}", offset));
}

void Host::run() {
  if (read(exchange::kIdentity) != 0x554e4953U) throw std::runtime_error("this is no engine");
  write(exchange::kControl, 2);
  for (int i = 0; (read(exchange::kStatus) & 1U) == 0; ++i) {
    if (i == kLongestAccess) throw std::runtime_error("the engine does not become ready");
  }
}

void Host::create_communicator(std::uint32_t place, std::uint32_t number, std::uint32_t size, const Agreed& agreed,
                               std::uint32_t changes) {
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const bool own = rank == node_;
    if (!own) write(exchange::kTransport + 4 * rank, 1U << 31U | rank);
    write(exchange::kMembers + 256 * place + 4 * rank, 1U << 31U | (own ? kSelfSession : rank));
  }
  const std::uint32_t entry = exchange::kCommunicators + 64 * place;
  const std::uint32_t words[16] = {1U | (changes + 1) << 3U,
                                   number,
                                   node_,
                                   size,
                                   0,
                                   agreed.eager_limit,
                                   0xffffffU,
                                   0x7fffU,
                                   number,
                                   changes,
                                   agreed.eager_limit,
                                   agreed.segment_bytes,
                                   agreed.rx_buffers | agreed.kept << 16U | (agreed.opens ? 1U << 31U : 0),
                                   size | node_ << 16U,
                                   1,
                                   0};
  write(entry + 4 * 14, 0);  // not valid while it changes
  for (std::uint32_t i = 0; i < 15; ++i) write(entry + 4 * i, words[i]);
}

void Host::set_window(std::uint32_t place, std::uint64_t address, std::uint64_t bytes) {
  write(exchange::kWindowAddress, static_cast<std::uint32_t>(address));
  write(exchange::kWindowAddress + 4, static_cast<std::uint32_t>(address >> 32U));
  write(exchange::kWindowBytes, static_cast<std::uint32_t>(bytes));
  write(exchange::kWindowBytes + 4, static_cast<std::uint32_t>(bytes >> 32U));
  write(exchange::kCommunicators + 64 * place + 4 * 15, bytes != 0 ? 1 : 0);
}

void Host::submit(const CallDescriptor& call) {
  // The call before may still be waiting for an entry.
  for (int i = 0; (read(exchange::kStatus) & 4U) != 0; ++i) {
    if (i == kLongestAccess) throw std::runtime_error("the engine does not take the call before");
  }
  const auto words = encode(call);
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    write(exchange::kCallSlot + 8 * i, static_cast<std::uint32_t>(words[i]));
    write(exchange::kCallSlot + 8 * i + 4, static_cast<std::uint32_t>(words[i] >> 32U));
  }
  write(exchange::kDoorbell, 1);
}

std::pair<std::uint32_t, std::uint16_t> Host::completion(std::uint64_t cycles) {
  for (std::uint64_t cycle = 0; !cluster_.any_node(node_).interrupt(); ++cycle) {
    if (cycle == cycles) throw std::runtime_error(formatted("node {} completes nothing", node_));
    cluster_.tick();
  }
  const std::uint32_t id = read(exchange::kCompleted);
  return {id, static_cast<std::uint16_t>(read(exchange::kCompletedCode))};
}

}  // namespace unisono::sim
