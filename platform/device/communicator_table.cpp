#include "platform/device/communicator_table.hpp"

#include <algorithm>

#include "platform/device/registers.hpp"

namespace unisono {
namespace {

/// One of so many credits is left to short messages, which would have to ask without any.
constexpr std::uint32_t kBuffersPerKeptCredit = 4;

}  // namespace

void CommunicatorTable::open_session(std::uint32_t node) {
  if (sessions_[node] || node == device_.node()) return;
  device_.write(exchange::kTransport + 4 * node, registers::kSessionOpen | node);
  sessions_[node] = true;
}

void CommunicatorTable::write_state(std::uint32_t place, const cclo::Communicator& communicator, std::uint32_t flags) {
  changes_[place] = (changes_[place] + 1) & registers::kStateChanges;
  device_.write(registers::communicator(place, registers::kState),
                flags | changes_[place] << registers::kStateChangesShift | std::uint32_t{communicator.epoch} << 16U);
}

void CommunicatorTable::write(std::uint32_t place, const cclo::Communicator& communicator,
                              std::span<const std::uint32_t> nodes, std::optional<std::uint32_t> to_switch) {
  device_.write(registers::communicator(place, registers::kPathValid), 0);
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    open_session(nodes[rank]);
    const bool own = nodes[rank] == device_.node();
    device_.write(registers::member(place, rank),
                  registers::kMemberValid | (own ? static_cast<std::uint32_t>(kSelfSession) : nodes[rank]));
  }
  std::uint32_t rows = communicator.size, above = 0;
  if (to_switch) {
    above = communicator.tree->parent[communicator.rank];
    rows += communicator.tree->switches;
    open_session(*to_switch);
  }
  // Of the switches a member knows its own.
  for (std::uint32_t rank = communicator.size; rank < std::max(rows, members_[place]); ++rank) {
    const bool known = to_switch && rank == above;
    device_.write(registers::member(place, rank), known ? registers::kMemberValid | *to_switch : 0);
  }
  members_[place] = rows;
  const std::array<std::uint32_t, 7> controller{communicator.number,
                                                communicator.rank,
                                                communicator.size,
                                                communicator.grouping.size | above << registers::kAboveShift,
                                                communicator.agreed.eager_limit,
                                                communicator.capability.datatypes,
                                                communicator.capability.funcs};
  device_.write(registers::communicator(place, registers::kNumber), controller);
  const std::uint32_t buffers = communicator.agreed.rx_buffer_count;
  const std::uint32_t opens = communicator.capability.openings ? registers::kOpens : 0;
  const std::array<std::uint32_t, 6> path{
      communicator.number,
      communicator.epoch,
      communicator.agreed.eager_limit,
      communicator.segment_bytes,
      buffers | opens | (buffers / kBuffersPerKeptCredit) << registers::kKeptShift,
      rows | (to_switch ? communicator.size << registers::kMembersShift : 0) | communicator.rank << 16U};
  device_.write(registers::communicator(place, registers::kPathNumber), path);
  device_.write(registers::communicator(place, registers::kPathValid), 1);
  device_.write(registers::communicator(place, registers::kPathWindow), 0);
  write_state(place, communicator, registers::kStateValid);
}

void CommunicatorTable::set_window(std::uint32_t place, std::uint64_t address, std::uint64_t bytes) {
  const std::array<std::uint32_t, 4> words{static_cast<std::uint32_t>(address),
                                           static_cast<std::uint32_t>(address >> 32U),
                                           static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(bytes >> 32U)};
  device_.write(exchange::kWindowAddress, words);
  device_.write(registers::communicator(place, registers::kPathWindow), bytes != 0 ? 1 : 0);
}

}  // namespace unisono
