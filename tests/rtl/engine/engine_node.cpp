#include "tests/rtl/engine/engine_node.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/rtl/core/bits.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kSelfSession = 64;

}  // namespace

EngineNode::EngineNode(std::uint32_t node, sim::Network& network, const sim::AxiMemoryConfig& memory)
    : context_(std::make_unique<VerilatedContext>()), node_(node), network_(network), memory_(memory) {
  context_->randReset(2);
  context_->randSeed(static_cast<int>(node + 1));
  top_ = std::make_unique<Vunisono_cclo_engine_frame>(context_.get());
  Vunisono_cclo_engine_frame& top = *top_;
  sim::bind_read_pins(pins_, top, 4, 64, 64);
  sim::bind_write_pins(pins_, top, 4, 64, 64);
  top.move_valid_i = top.pool_write_i = top.clear_valid_i = top.clear_failed_i = top.context_valid_i = 0;
  top.context_local_i = 0;
  top.fetch_command_valid_i = top.fetch_ready_i = 0;
  top.cycle_i = 0;
  top.stream_in_valid_i = top.stream_in_last_i = top.stream_out_ready_i = 0;
  top.src_stream_i = top.dst_stream_i = 0;
  top.src_port_i = top.dst_port_i = 0;
  top.reg_valid_i = top.poe_reg_valid_i = 0;
  top.mac_tx_ready_i = top.mac_rx_valid_i = 0;
  top.m_axi_arready = top.m_axi_rvalid = top.m_axi_awready = top.m_axi_wready = top.m_axi_bvalid = 0;
  top.rst_ni = 0;
  // After its reset the engine goes through the records of all pairs, two cycles each.
  constexpr int kReset = 4;
  constexpr int kRecords = 2 * 8 * 64;
  for (int i = 0; i < kReset + kRecords; ++i) {
    top.rst_ni = static_cast<std::uint8_t>(i >= kReset);
    top.clk_i = 0;
    top.eval();
    top.clk_i = 1;
    top.eval();
  }
}

void EngineNode::write_register(std::uint32_t word, std::uint32_t value) {
  Vunisono_cclo_engine_frame& top = *top_;
  top.reg_valid_i = 1;
  top.reg_write_i = 1;
  top.reg_word_i = static_cast<std::uint16_t>(word);
  top.reg_data_i = value;
  for (bool taken = false; !taken; tick()) {
    top.clk_i = 0;
    top.eval();
    taken = top.reg_ready_o != 0;
  }
  top.reg_valid_i = 0;
}

void EngineNode::write_poe_register(std::uint16_t address, std::uint32_t value) {
  Vunisono_cclo_engine_frame& top = *top_;
  top.poe_reg_valid_i = 1;
  top.poe_reg_write_i = 1;
  top.poe_reg_addr_i = address;
  top.poe_reg_wdata_i = value;
  for (bool taken = false; !taken; tick()) {
    top.clk_i = 0;
    top.eval();
    taken = top.poe_reg_ready_o != 0;
  }
  top.poe_reg_valid_i = 0;
}

void EngineNode::create_communicator(std::uint32_t index, std::uint32_t number, std::uint32_t size,
                                     const Agreed& agreed) {
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (rank != node_) write_poe_register(static_cast<std::uint16_t>(rank), 1U << 31U | rank);
    write_register(1024 + 64 * index + rank, (rank == node_ ? kSelfSession : rank) | 1U << 31U);
  }
  write_register(8 * index + 0, number);
  write_register(8 * index + 1, 0);
  write_register(8 * index + 2, agreed.eager_limit);
  write_register(8 * index + 3, agreed.segment_bytes);
  write_register(8 * index + 4, agreed.rx_buffers | agreed.kept << 16U | (agreed.opens ? 1U << 31U : 0));
  write_register(8 * index + 5, size | node_ << 16U);
  write_register(8 * index + 6, 1);
  for (int i = 0; i < 100; ++i) tick();
}

void EngineNode::bind_window(std::uint32_t index, std::uint64_t address, std::uint64_t bytes) {
  top_->window_address_i = address;
  top_->window_bytes_i = bytes;
  write_register(8 * index + 7, bytes != 0);
  // They are looked at in that cycle only.
  top_->window_address_i = top_->window_bytes_i = ~std::uint64_t{0};
}

void EngineNode::begin(std::uint32_t slot, std::uint32_t communicator, const Call& call, const Program& program,
                       std::uint32_t sequence, const std::array<Place, 5>& regions, std::uint32_t tag) {
  Vunisono_cclo_engine_frame& top = *top_;
  clear(slot, false);
  regions_[slot] = regions;
  finished_[slot] = false;
  failed_[slot] = 0;
  std::fill_n(&top.context_i[0], 4, 0U);
  set_bits(top.context_i, 0, 4, communicator);
  const bool pair = call.collective == Collective::kSend || call.collective == Collective::kRecv;
  set_bits(top.context_i, 4, 1, pair);
  set_bits(top.context_i, 5, 6, static_cast<std::uint64_t>(call.dtype));
  set_bits(top.context_i, 11, 32, sequence);
  set_bits(top.context_i, 43, 32, tag);
  set_bits(top.context_i, 75, 32, pair ? 0x5151U : 0x1234'0000U + sequence);  // signature
  top.context_local_i = call.collective == Collective::kPut || call.collective == Collective::kGet;
  top.context_slot_i = static_cast<std::uint8_t>(slot);
  top.context_valid_i = 1;
  tick();
  top.context_valid_i = 0;
  for (std::size_t i = 0; i < program.pool.size(); ++i) {
    top.pool_write_i = 1;
    top.pool_write_slot_i = static_cast<std::uint8_t>(slot);
    top.pool_write_index_i = static_cast<std::uint16_t>(i);
    top.pool_write_word_i = static_cast<std::uint8_t>(program.pool[i]);
    tick();
  }
  top.pool_write_i = 0;
  for (const Move& move : program.moves) moves_[slot].push_back({encode(move), false});
  moves_[slot].push_back({{}, true});
  starting_.push_back(slot);
}

void EngineNode::clear(std::uint32_t slot, bool failed) {
  Vunisono_cclo_engine_frame& top = *top_;
  moves_[slot].clear();
  std::erase(starting_, slot);
  if (offers_ && top.move_slot_i == slot) offers_ = false;
  top.clear_valid_i = 1;
  top.clear_slot_i = static_cast<std::uint8_t>(slot);
  top.clear_failed_i = failed;
  do {
    tick();
  } while (top.clear_done_o == 0);
  top.clear_valid_i = 0;
  tick();
}

void EngineNode::tick() {
  Vunisono_cclo_engine_frame& top = *top_;

  if (!offers_) {
    for (std::uint32_t i = 0; i < 8 && !offers_; ++i) {
      const std::uint32_t slot = (next_slot_ + i) % 8;
      if (moves_[slot].empty()) continue;
      // Calls begin in their order; a slot whose window is full gets no move.
      const bool starts = std::find(starting_.begin(), starting_.end(), slot) != starting_.end();
      const std::uint64_t room = top.room_o >> (6 * slot) & 63U;
      if ((starts && slot != starting_.front()) || room == 0 || (room < 4 && since_move_ < 200)) continue;
      offers_ = true;
      const Emitted& move = moves_[slot].front();
      top.move_slot_i = static_cast<std::uint8_t>(slot);
      std::memcpy(&top.move_i[0], move.words.data(), sizeof move.words);
      top.move_end_i = move.end;
    }
  }
  top.move_valid_i = offers_;
  set_bits(top.binding_i, 0, 64, binding_.first);
  set_bits(top.binding_i, 64, 48, binding_.second);
  top.mac_tx_ready_i = network_.can_push(node_);
  const sim::ReceivedWord* word = network_.front(node_);
  top.mac_rx_valid_i = word != nullptr;
  if (word != nullptr) {
    std::memcpy(&top.mac_rx_data_i[0], word->data, word->bytes);
    top.mac_rx_keep_i = word->bytes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << word->bytes) - 1;
    top.mac_rx_last_i = word->last;
    top.mac_rx_source_i = static_cast<std::uint16_t>(word->source);
    top.mac_rx_bytes_i = static_cast<std::uint16_t>(word->frame_bytes);
    top.mac_rx_control_i = word->port != 0;
    top.mac_rx_error_i = word->damaged;
  }

  top.clk_i = 0;
  top.eval();

  if (top.move_valid_i != 0 && top.move_ready_o != 0) {
    moves_[top.move_slot_i].pop_front();
    if (!starting_.empty() && starting_.front() == top.move_slot_i) starting_.pop_front();
    since_move_ = 0;
    next_slot_ = (top.move_slot_i + 1U) % 8;
    offers_ = false;
  }
  binding_ = regions_[top.binding_slot_o][std::min<std::size_t>(top.binding_region_o, 4)];
  ++since_move_;
  free_buffers_ = top.free_buffers_o;
  if (top.finished_valid_o != 0) finished_[top.finished_slot_o] = true;
  if (top.fail_valid_o != 0 && failed_[top.fail_slot_o] == 0) failed_[top.fail_slot_o] = top.fail_code_o;
  if (top.rx_fault_valid_o != 0) rx_fault_ = top.rx_fault_code_o;
  if (top.mac_tx_valid_o != 0 && top.mac_tx_ready_i != 0) {
    std::array<std::byte, 64> data;
    std::memcpy(data.data(), &top.mac_tx_data_o[0], 64);
    sim::SentWord sent;
    sent.data = data.data();
    sent.bytes = static_cast<std::uint32_t>(__builtin_popcountll(top.mac_tx_keep_o));
    sent.last = top.mac_tx_last_o != 0;
    sent.destination = top.mac_tx_dest_o;
    sent.frame_bytes = top.mac_tx_bytes_o;
    sent.port = top.mac_tx_control_o;
    if (network_.push(node_, sent) != sim::Pushed::kTaken) throw std::runtime_error("the network refused a word");
  }
  if (word != nullptr && top.mac_rx_ready_o != 0) network_.pop(node_);
  for (unsigned port = 0; port < kPorts; ++port) memory_.tick(port, pins_.sample(port));

  top.clk_i = 1;
  top.eval();
  for (unsigned port = 0; port < kPorts; ++port) pins_.drive(port, memory_.outputs(port));
}

}  // namespace unisono::rtl
