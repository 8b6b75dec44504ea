#include "tests/rtl/core/core_node.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "engine/plugins.hpp"
#include "tests/rtl/core/bits.hpp"

namespace unisono::rtl {
namespace {

template <class Wide>
void put_word(Wide& wide, const Word& word) {
  std::memcpy(&wide[0], word.data(), kWord);
}
template <class Wide>
Word get_word(const Wide& wide) {
  Word word;
  std::memcpy(word.data(), &wide[0], kWord);
  return word;
}

}  // namespace

CoreNode::CoreNode(std::uint32_t rank, std::uint32_t size, const MachineSettings& settings)
    : context_(std::make_unique<VerilatedContext>()),
      rank_(rank),
      size_(size),
      settings_(settings),
      random_(settings.seed * 977 + rank),
      memory_(std::size_t{10} << 20U),
      credits_(size, settings.rx_buffers) {
  context_->randReset(2);
  context_->randSeed(static_cast<int>(settings.seed + rank + 1));
  top_ = std::make_unique<Vunisono_cclo_core>(context_.get());
  top_->rst_ni = 0;
  top_->move_valid_i = 0;
  top_->pool_write_i = 0;
  top_->clear_valid_i = top_->clear_failed_i = 0;
  top_->begins_valid_i = top_->send_error_valid_i = 0;
  top_->read_error_i = 0;
  top_->credit_back_ready_i = 1;
  top_->active_i = 0;
  top_->src_stream_i = top_->dst_stream_i = 0;
  top_->src_port_i = top_->dst_port_i = 0;
  top_->stream_in_valid_i = top_->stream_in_last_i = top_->stream_out_ready_i = 0;
  top_->received_valid_i = 0;
  top_->payload_valid_i = 0;
  top_->read_valid_i = 0;
  top_->written_valid_i = 0;
  top_->written_error_i = 0;
  top_->result_valid_i = 0;
  top_->credit_event_valid_i = 0;
  top_->credit_answer_i = 0;
  top_->space_answer_i = 0;
  // After its reset the engine goes through the records of all pairs, two cycles each.
  constexpr int kReset = 4;
  constexpr int kRecords = 2 * 8 * 64;
  for (int i = 0; i < kReset + kRecords; ++i) {
    top_->rst_ni = static_cast<std::uint8_t>(i >= kReset);
    top_->clk_i = 0;
    top_->eval();
    top_->clk_i = 1;
    top_->eval();
  }
}

/// What is offered once stays on offer until it is taken.
bool CoreNode::offers(bool& offered, bool available) {
  offered = available && (offered || !stalls());
  return offered;
}

bool CoreNode::stalls() { return settings_.stall_percent != 0 && random_() % 100 < settings_.stall_percent; }

void CoreNode::begin(std::uint32_t slot, const Call& call, const Program& program, std::uint32_t sequence,
                     const std::array<std::pair<std::uint64_t, std::uint64_t>, 5>& regions, std::uint32_t tag) {
  const bool pair = call.collective == Collective::kSend || call.collective == Collective::kRecv;
  Step clear;
  clear.slot = slot;
  steps_.push_back(clear);
  Step activate;
  activate.kind = Step::Kind::kActivate;
  activate.slot = slot;
  set_bits(activate.context, 4, 1, pair);
  set_bits(activate.context, 5, 6, static_cast<std::uint64_t>(call.dtype));
  set_bits(activate.context, 11, 32, sequence);
  set_bits(activate.context, 43, 32, tag);
  set_bits(activate.context, 75, 32, pair ? 0x5151U : 0x1234'0000U + sequence);  // signature
  activate.regions = regions;
  activate.local = call.collective == Collective::kPut || call.collective == Collective::kGet;
  activate.streams = streams_[slot];
  streams_[slot] = {};
  steps_.push_back(activate);
  for (std::size_t i = 0; i < program.pool.size(); ++i) {
    Step word;
    word.kind = Step::Kind::kPool;
    word.slot = slot;
    word.index = static_cast<std::uint32_t>(i);
    word.word = program.pool[i];
    steps_.push_back(word);
  }
  Step moves;
  moves.kind = Step::Kind::kMoves;
  moves.slot = slot;
  for (const Move& move : program.moves) moves.moves.push_back({encode(move), false});
  moves.moves.push_back({{}, true});
  steps_.push_back(std::move(moves));
  finished_[slot] = false;
  failed_[slot] = 0;
}

void CoreNode::abandon(std::uint32_t slot) {
  if (!steps_.empty()) throw std::runtime_error("a call is abandoned before it has begun");
  moves_[slot].clear();
  std::erase(starting_, slot);
  if (offers_move_ && top_->move_slot_i == slot) offers_move_ = false;
  Step clear;
  clear.slot = slot;
  clear.failed = true;
  steps_.push_back(clear);
}

/// The next step's inputs, for the cycle that begins.
void CoreNode::begin_step() {
  Vunisono_cclo_core& top = *top_;
  // A clear is taken back for a cycle after it is done.
  const bool cleared = top.clear_valid_i != 0 && top.clear_done_o != 0;
  if (cleared) steps_.pop_front();
  top.clear_valid_i = 0;
  top.pool_write_i = 0;
  if (steps_.empty() || cleared) return;
  Step& step = steps_.front();
  switch (step.kind) {
    case Step::Kind::kClear:
      top.clear_valid_i = 1;
      top.clear_slot_i = static_cast<std::uint8_t>(step.slot);
      top.clear_failed_i = step.failed;
      top.active_i = static_cast<std::uint8_t>(top.active_i & ~(1U << step.slot));
      return;
    case Step::Kind::kActivate: {
      auto& context = top.contexts_i[step.slot];
      for (std::size_t i = 0; i < step.context.size(); ++i) context[i] = step.context[i];
      auto& communicator = top.communicators_i[step.slot];
      std::fill_n(&communicator[0], 6, 0U);
      set_bits(communicator, 0, 6, rank_);
      set_bits(communicator, 13, 7, size_);
      set_bits(communicator, 20, 15, settings_.kept);
      set_bits(communicator, 35, 1, settings_.opens ? 1 : 0);
      set_bits(communicator, 36, 16, settings_.rx_buffers);
      set_bits(communicator, 52, 32, settings_.segment_bytes);
      set_bits(communicator, 84, 32, settings_.eager_limit);
      regions_[step.slot] = step.regions;
      const auto others = static_cast<std::uint8_t>(~(1U << step.slot));
      top.src_stream_i = static_cast<std::uint8_t>((top.src_stream_i & others) | step.streams[0] << step.slot);
      top.dst_stream_i = static_cast<std::uint8_t>((top.dst_stream_i & others) | step.streams[1] << step.slot);
      // Four bits for the port of each slot's src and dst.
      for (unsigned region = 0; region < 2; ++region) {
        auto& ports = region == 0 ? top.src_port_i : top.dst_port_i;
        const auto port = static_cast<std::uint32_t>(step.regions[region].first & 15U);
        ports = (ports & ~(15U << 4 * step.slot)) | port << 4 * step.slot;
      }
      if (!step.local) top.active_i = static_cast<std::uint8_t>(top.active_i | 1U << step.slot);
      break;
    }
    case Step::Kind::kPool:
      top.pool_write_i = 1;
      top.pool_write_slot_i = static_cast<std::uint8_t>(step.slot);
      top.pool_write_index_i = static_cast<std::uint16_t>(step.index);
      top.pool_write_word_i = static_cast<std::uint8_t>(step.word);
      break;
    case Step::Kind::kMoves:
      moves_[step.slot] = std::move(step.moves);
      starting_.push_back(step.slot);
      break;
  }
  steps_.pop_front();
}

bool CoreNode::finished(std::uint32_t slot) const { return finished_[slot]; }

void CoreNode::deliver(Packet packet) {
  if (packet.header.type == MessageType::kCredit) {
    credits_[packet.from] += packet.header.credits;
    credit_events_.push_back(packet.from);
    return;
  }
  arrived_.push_back(std::move(packet));
}

Beat CoreNode::read_beat(const Command& command, std::uint64_t done) const {
  Beat beat;
  const std::uint64_t bytes = std::min<std::uint64_t>(kWord, command.bytes - done);
  if (command.address + done + bytes > memory_.size()) throw std::runtime_error("a read beyond memory");
  std::memcpy(beat.data.data(), memory_.data() + command.address + done, bytes);
  beat.keep = bytes == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
  beat.last = done + bytes == command.bytes;
  return beat;
}

Beat CoreNode::compute() const {
  Beat beat;
  beat.keep = top_->plugin_keep_o;
  beat.last = top_->plugin_last_o != 0;
  const Word a = get_word(top_->plugin_op0_o), b = get_word(top_->plugin_op1_o);
  const auto func = static_cast<Func>(top_->plugin_func_o);
  if (func == Func::kNone) {
    beat.data = top_->plugin_use0_o != 0 ? a : b;
  } else {
    cclo::plugin_combine(func, static_cast<Datatype>(top_->plugin_dtype_o), top_->plugin_swap_o != 0,
                         reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()),
                         reinterpret_cast<std::byte*>(beat.data.data()), kWord);
  }
  return beat;
}

void CoreNode::tick(std::uint64_t cycle, std::deque<Packet>& network) {
  Vunisono_cclo_core& top = *top_;

  // --- what the machine offers in this cycle
  begin_step();
  bool offers_move = offers_move_;
  for (std::uint32_t i = 0; i < 8 && !offers_move; ++i) {
    const std::uint32_t slot = (next_slot_ + i) % 8;
    if (moves_[slot].empty()) continue;
    // Calls begin in their order. A slot whose window is full gets no move, as in the call front end; what is on its
    // way to the window is there after some cycles.
    const bool starts = std::find(starting_.begin(), starting_.end(), slot) != starting_.end();
    const std::uint64_t room = top.room_o >> (6 * slot) & 63U;
    if ((starts && slot != starting_.front()) || room == 0 || (room < 4 && since_move_ < 40)) continue;
    offers_move = true;
    top.move_slot_i = static_cast<std::uint8_t>(slot);
    const Emitted& move = moves_[slot].front();
    std::memcpy(&top.move_i[0], move.words.data(), sizeof move.words);
    top.move_end_i = move.end;
  }
  top.move_valid_i = offers(offers_move_, offers_move);

  std::array<Beat, 3> read{};
  top.read_valid_i = 0;
  top.read_command_ready_i = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    Reader& reader = readers_[i];
    if (reader.commands.size() < 8 && !stalls()) top.read_command_ready_i |= static_cast<std::uint8_t>(1U << i);
    if (!offers(reader.offered, !reader.commands.empty() && reader.commands.front().ready <= cycle)) continue;
    read[i] = read_beat(reader.commands.front(), reader.done);
    put_word(top.read_data_i[i], read[i].data);
    top.read_keep_i[i] = read[i].keep;
    const bool broken = reader.commands.front().broken && read[i].last;
    top.read_error_i = static_cast<std::uint8_t>((top.read_error_i & ~(1U << i)) | (broken ? 1U << i : 0));
    top.read_last_i = static_cast<std::uint8_t>((top.read_last_i & ~(1U << i)) | (read[i].last ? 1U << i : 0));
    top.read_valid_i |= static_cast<std::uint8_t>(1U << i);
  }
  top.write_command_ready_i = 0;
  top.write_ready_i = 0;
  top.written_valid_i = top.written_error_i = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    Writer& writer = writers_[i];
    if (writer.commands.size() < 8 && !stalls()) top.write_command_ready_i |= static_cast<std::uint8_t>(1U << i);
    if (!writer.commands.empty() && !stalls()) top.write_ready_i |= static_cast<std::uint8_t>(1U << i);
    if (!writer.answers.empty() && writer.answers.front().first <= cycle) {
      if (writer.answers.front().second) top.written_error_i |= static_cast<std::uint8_t>(1U << i);
      writer.answers.pop_front();
      top.written_valid_i |= static_cast<std::uint8_t>(1U << i);
    }
  }
  top.plugin_ready_i = results_.size() < 32 && !stalls();
  top.result_valid_i = !results_.empty() && results_.front().ready <= cycle;
  if (top.result_valid_i != 0) {
    put_word(top.result_data_i, results_.front().beat.data);
    top.result_keep_i = results_.front().beat.keep;
    top.result_last_i = results_.front().beat.last;
  }
  top.transmit_ready_i = 0;
  top.send_ready_i = 0;
  // As Tx, which sends one packet after the other and takes commands by turns.
  const std::size_t first = cycle % 2;
  const std::size_t sender = sending_[0] ? 0 : sending_[1] ? 1 : 2;
  if (sender != 2 && !stalls()) top.send_ready_i = static_cast<std::uint8_t>(1U << sender);
  if (sender == 2 && !stalls()) top.transmit_ready_i = static_cast<std::uint8_t>(1U << first);
  top.control_ready_i = !stalls();

  const bool has_arrival = !arrived_.empty();
  top.received_valid_i = offers(offers_header_, has_arrival && !header_taken_);
  if (has_arrival) {
    const Packet& packet = arrived_.front();
    const auto words = encode(packet.header);
    for (std::size_t i = 0; i < 8; ++i) set_bits(top.received_i, 10 + 64 * i, 64, words[i]);
    set_bits(top.received_i, 0, 6, packet.from);
    set_bits(top.received_i, 6, 4, 0);
    set_bits(top.received_i, 522, 16, packet.from);
    // Payload may be offered with its header.
    top.payload_valid_i = offers(offers_payload_, payload_done_ < packet.payload.size());
    if (top.payload_valid_i != 0) {
      const Beat& beat = packet.payload[payload_done_];
      put_word(top.payload_data_i, beat.data);
      top.payload_keep_i = beat.keep;
      top.payload_last_i = beat.last;
    }
  } else {
    top.payload_valid_i = 0;
  }
  top.stream_in_valid_i = top.stream_in_last_i = top.stream_out_ready_i = 0;
  for (std::size_t port = 0; port < kStreamPorts; ++port) {
    KernelPort& kernel = kernels_[port];
    const auto bit = static_cast<std::uint8_t>(1U << port);
    if (kernel.reads && !stalls()) top.stream_out_ready_i |= bit;
    if (!offers(kernel.offered, !kernel.gives.empty())) continue;
    const Beat& beat = kernel.gives.front();
    std::memcpy(&top.stream_in_data_i[16 * port], beat.data.data(), kWord);
    set_bits(top.stream_in_keep_i, 64 * port, 64, beat.keep);
    top.stream_in_valid_i |= bit;
    if (beat.last) top.stream_in_last_i |= bit;
  }
  top.credit_answer_i = credit_asked_;
  top.credit_granted_i = credit_granted_;
  top.space_answer_i = space_asked_;
  top.space_granted_i = space_granted_;
  credit_asked_ = space_asked_ = false;
  top.credit_event_valid_i = !credit_events_.empty();
  if (!credit_events_.empty()) top.credit_event_peer_i = static_cast<std::uint8_t>(credit_events_.front());
  top.credit_event_communicator_i = 0;
  for (std::size_t i = 0; i < 2; ++i) top.peer_i[i] = 1U << 16U | peer_asked_[i];
  set_bits(top.binding_i, 0, 64, binding_.first);
  set_bits(top.binding_i, 64, 48, binding_.second);
  set_bits(top.window_i, 0, 64, window_.first);
  set_bits(top.window_i, 64, 48, window_.second);
  top.window_segment_i = static_cast<std::uint16_t>(settings_.segment_bytes);
  top.notice_ready_i = !stalls();
  top.credit_ready_i = 1;
  top.space_ready_i = 1;
  top.owed_ready_i = !stalls();

  top.clk_i = 0;
  top.eval();

  // --- what is exchanged in this cycle
  ++since_move_;
  free_buffers_ = top.free_buffers_o;
  if (top.credit_back_o != 0) {
    ++credits_[top.credit_peer_o];
    credit_events_.push_back(top.credit_peer_o);
  }
  if (top.move_valid_i != 0 && top.move_ready_o != 0) {
    moves_[top.move_slot_i].pop_front();
    if (!starting_.empty() && starting_.front() == top.move_slot_i) starting_.pop_front();
    since_move_ = 0;
    next_slot_ = (top.move_slot_i + 1U) % 8;
    offers_move_ = false;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint8_t bit = static_cast<std::uint8_t>(1U << i);
    Reader& reader = readers_[i];
    if ((top.read_valid_i & top.read_ready_o & bit) != 0) {
      reader.offered = false;
      reader.done += kWord;
      if (read[i].last) {
        reader.commands.pop_front();
        reader.done = 0;
      }
    }
    if ((top.read_command_valid_o & top.read_command_ready_i & bit) != 0) {
      reader.commands.push_back(
          {top.read_command_address_o[i], top.read_command_bytes_o[i], cycle + settings_.memory_latency, broken_[i]});
      broken_[i] = false;
    }
    if (i == 2) continue;
    Writer& writer = writers_[i];
    if ((top.write_valid_o & top.write_ready_i & bit) != 0) {
      const Command& command = writer.commands.front();
      const Word word = get_word(top.write_data_o[i]);
      const auto bytes = static_cast<std::uint64_t>(__builtin_popcountll(top.write_keep_o[i]));
      if (command.address + writer.done + bytes > memory_.size()) throw std::runtime_error("a write beyond memory");
      std::memcpy(memory_.data() + command.address + writer.done, word.data(), bytes);
      writer.done += bytes;
      if ((top.write_last_o & bit) != 0) {
        if (writer.done != command.bytes) throw std::runtime_error("a write of another length than its command");
        writer.answers.emplace_back(cycle + settings_.memory_latency, command.broken);
        writer.commands.pop_front();
        writer.done = 0;
      }
    }
    if ((top.write_command_valid_o & top.write_command_ready_i & bit) != 0) {
      writer.commands.push_back({top.write_command_address_o[i], top.write_command_bytes_o[i], cycle, broken_[3 + i]});
      broken_[3 + i] = false;
      if (i == 1) ++counters_.buffered_segments;
    }
  }
  for (std::size_t port = 0; port < kStreamPorts; ++port) {
    KernelPort& kernel = kernels_[port];
    if ((top.stream_in_valid_i & top.stream_in_ready_o & 1U << port) != 0) {
      kernel.gives.pop_front();
      kernel.offered = false;
    }
    if ((top.stream_out_valid_o & top.stream_out_ready_i & 1U << port) == 0) continue;
    Beat beat;
    std::memcpy(beat.data.data(), &top.stream_out_data_o[16 * port], kWord);
    beat.keep = get_bits(top.stream_out_keep_o, 64 * port, 64);
    beat.last = (top.stream_out_last_o & 1U << port) != 0;
    kernel.got.push_back(beat);
    kernel.cut.push_back((top.stream_out_cut_o & 1U << port) != 0);
  }
  if (top.result_valid_i != 0 && top.result_ready_o != 0) results_.pop_front();
  if (top.plugin_valid_o != 0 && top.plugin_ready_i != 0) {
    results_.push_back({compute(), cycle + settings_.plugin_latency});
    ++counters_.plugin_words;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if ((top.send_valid_o & top.send_ready_i & 1U << i) == 0) continue;
    Beat beat;
    for (std::size_t word = 0; word < 8; ++word) {
      const std::uint64_t part = get_bits(top.send_data_o, 512 * i + 64 * word, 64);
      std::memcpy(beat.data.data() + 8 * word, &part, 8);
    }
    beat.keep = get_bits(top.send_keep_o, 64 * i, 64);
    beat.last = (top.send_last_o & 1U << i) != 0;
    outgoing_[i].payload.push_back(beat);
    ++counters_.sent_words;
    if (beat.last) {
      outgoing_[i].ready = cycle + settings_.network_latency;
      network.push_back(std::move(outgoing_[i]));
      outgoing_[i] = {};
      sending_[i] = false;
    }
  }
  const auto packet_of = [&](const auto& transmit, std::size_t lane = 0) {
    const std::size_t lo = lane * 539;
    Packet packet;
    std::array<std::uint64_t, 8> words{};
    for (std::size_t i = 0; i < 8; ++i) words[i] = get_bits(transmit, lo + 27 + 64 * i, 64);
    packet.header = decode_header(words);
    packet.from = rank_;
    packet.to = static_cast<std::uint32_t>(get_bits(transmit, lo + 17, 6));
    if (get_bits(transmit, lo + 1, 16) != packet.to) throw std::runtime_error("a session that is not the peer's");
    packet.ready = cycle + settings_.network_latency;
    return packet;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    if ((top.transmit_valid_o & top.transmit_ready_i & 1U << i) == 0) continue;
    outgoing_[i] = packet_of(top.transmit_o, i);
    if (outgoing_[i].header.segment_bytes == 0) {
      network.push_back(std::move(outgoing_[i]));
      outgoing_[i] = {};
    } else {
      sending_[i] = true;
    }
  }
  if (top.control_valid_o != 0 && top.control_ready_i != 0) network.push_back(packet_of(top.control_o));
  if (top.notice_valid_o != 0 && top.notice_ready_i != 0) {
    const auto& notice = top.notice_o;
    Packet packet;
    packet.header = make_header(MessageType::kControl);
    packet.header.first = packet.header.last = true;
    packet.header.token_generation = static_cast<std::uint16_t>(get_bits(notice, 0, 16));
    packet.header.token_slot = static_cast<std::uint16_t>(get_bits(notice, 16, 16));
    packet.header.offset = get_bits(notice, 32, 48);
    packet.header.message_bytes = get_bits(notice, 80, 48);
    packet.header.sequence = static_cast<std::uint32_t>(get_bits(notice, 128, 32));
    packet.header.dtype = static_cast<Datatype>(get_bits(notice, 160, 6));
    packet.header.tag = static_cast<std::uint32_t>(get_bits(notice, 166, 4));
    packet.from = rank_;
    packet.to = static_cast<std::uint32_t>(get_bits(notice, 170, 6));
    packet.ready = cycle + settings_.network_latency;
    network.push_back(std::move(packet));
  }
  if (top.received_valid_i != 0 && top.received_ready_o != 0) {
    header_taken_ = true;
    offers_header_ = false;
  }
  if (top.payload_valid_i != 0 && top.payload_ready_o != 0) {
    ++payload_done_;
    offers_payload_ = false;
  }
  if (has_arrival && header_taken_ && payload_done_ == arrived_.front().payload.size()) {
    arrived_.pop_front();
    header_taken_ = false;
    payload_done_ = 0;
  }
  if (top.credit_take_o != 0) {
    credit_asked_ = true;
    std::uint32_t& left = credits_[top.credit_peer_o];
    credit_granted_ = left > top.credit_keep_o;
    if (credit_granted_) --left;
  }
  if (top.credit_event_valid_i != 0 && top.credit_event_ready_o != 0) credit_events_.pop_front();
  binding_ = regions_[top.binding_slot_o][top.binding_region_o];
  if (top.finished_valid_o != 0) finished_[top.finished_slot_o] = true;
  if (top.owed_valid_o != 0 && top.owed_ready_i != 0) {
    Packet credit;
    credit.header = make_header(MessageType::kCredit);
    credit.header.credits = 1;
    credit.from = rank_;
    credit.to = top.owed_peer_o;
    credit.ready = cycle + settings_.network_latency;
    network.push_back(std::move(credit));
  }
  if (top.space_valid_o != 0) {
    space_asked_ = true;
    space_granted_ = !stalls();
  }
  if (top.fail_valid_o != 0 && failed_[top.fail_slot_o] == 0) failed_[top.fail_slot_o] = top.fail_code_o;
  for (std::size_t i = 0; i < 2; ++i) peer_asked_[i] = top.peer_rank_o[i];

  top.clk_i = 1;
  top.eval();
}

}  // namespace unisono::rtl
