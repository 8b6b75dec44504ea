#include "sim/cluster/node.hpp"

#include <Vunisono_cclo_frame.h>

#include <cstring>
#include <span>

#include "core/error.hpp"
#include "core/text.hpp"
#ifdef UNISONO_WAVE
#include <verilated_fst_c.h>
#endif

namespace unisono::sim {
namespace {

constexpr unsigned kIdBits = 4;
constexpr unsigned kCallBeats = 2;            ///< of a descriptor on a kernel's stream
constexpr std::uint64_t kPicoseconds = 4000;  ///< of a cycle at 250 MHz, for waveforms

}  // namespace

#ifdef UNISONO_WAVE
class Node::Wave {
 public:
  Wave(VerilatedContext& context, Vunisono_cclo_frame& top, const std::string& file) : context_(context) {
    context.traceEverOn(true);
    top.trace(&trace_, kLevels);
    trace_.open(file.c_str());
  }
  ~Wave() { trace_.close(); }
  void dump() {
    trace_.dump(context_.time());
    context_.timeInc(kPicoseconds / 2);
  }

 private:
  static constexpr int kLevels = 99;
  VerilatedContext& context_;
  VerilatedFstC trace_;
};
#else
class Node::Wave {
 public:
  Wave(VerilatedContext& /*context*/, Vunisono_cclo_frame& /*top*/, const std::string& /*file*/) {
    throw Error(ErrorCode::kUnsupported, "this build of the cluster has no waveforms; use the one that has");
  }
  void dump() {}
};
#endif

Node::Node(const NodeConfig& config, Carrier& network)
    : model_(config.seed * 1024 + config.node + 1, config.firmware),
      top_(model_.top()),
      node_(config.node),
      network_(network),
      memory_(config.memory),
      skips_(config.skip && config.wave.empty()),
      trusts_(config.trust_silence),
      trace_(config.trace),
      log_(config.node) {
  sent_.data = sent_data_.data();
  if (!config.wave.empty()) wave_ = std::make_unique<Wave>(model_.context(), top_, config.wave);
  bind_read_pins(pins_, top_, kIdBits, 64, kWordBytes);
  bind_write_pins(pins_, top_, kIdBits, 64, kWordBytes);
  model_.reset();
  if (config.kernels != nullptr) {
    const KernelMemory memory{memory_.window(0, kMemoryAddress, kMemoryBytes), kMemoryAddress,
                              kMemoryBytes - kKernelScratchBytes, kKernelScratchBytes};
    kernels_ = std::make_unique<FibreKernels>(*config.kernels, config.node, config.clock_khz, memory);
  }
  if (config.check_skip) twin_ = std::make_unique<Twin>(config.seed * 1024 + config.node + 1, config.firmware, top_);
}

Node::~Node() = default;

void Node::begin(const RegisterAccess& access) {
  Vunisono_cclo_frame& top = top_;
  end_rest();
  access_ = access;
  busy_ = true;
  if (trace_ && access.write) log_.write(access.offset, access.value);
  if (access.write) {
    top.s_axi_awaddr = static_cast<std::uint16_t>(access.offset);
    top.s_axi_wdata = access.value;
    top.s_axi_wstrb = 0xf;
    top.s_axi_awvalid = top.s_axi_wvalid = 1;
  } else {
    top.s_axi_araddr = static_cast<std::uint16_t>(access.offset);
    top.s_axi_arvalid = 1;
  }
}

void Node::call(const std::array<std::uint64_t, 16>& descriptor) {
  end_rest();
  calling_ = descriptor;
  beats_left_ = kCallBeats;
  offer_beat();
}

void Node::offer_beat() {
  Vunisono_cclo_frame& top = top_;
  top.call_valid_i = beats_left_ != 0;
  if (beats_left_ == 0) return;
  std::memcpy(&top.call_data_i[0], &calling_[8 * (kCallBeats - beats_left_)], kWordBytes);
  top.call_keep_i = ~std::uint64_t{0};
  top.call_last_i = beats_left_ == 1;
}

bool Node::interrupt() const { return top_.interrupt_o != 0; }

void Node::store(std::uint64_t address, std::span<const std::byte> bytes) {
  memory_.write(0, address, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void Node::load(std::uint64_t address, std::span<std::byte> bytes) const {
  memory_.read(0, address, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
}

void Node::receive() {
  Vunisono_cclo_frame& top = top_;
  const ReceivedWord* word = word_;
  top.mac_rx_valid_i = word != nullptr;
  if (word == nullptr) return;
  std::memcpy(&top.mac_rx_data_i[0], word->data, word->bytes);
  top.mac_rx_keep_i = word->bytes == kWordBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << word->bytes) - 1;
  top.mac_rx_last_i = word->last;
  top.mac_rx_source_i = static_cast<std::uint16_t>(word->source);
  top.mac_rx_bytes_i = static_cast<std::uint16_t>(word->frame_bytes);
  top.mac_rx_control_i = word->port != 0;
  top.mac_rx_error_i = word->damaged;
}

void Node::leave_streams() {
  if (kernel_ != &host_kernel_ || !host_kernel_.idle()) return;
  attach(nullptr);
  top_.stream_in_valid_i = top_.stream_in_last_i = top_.stream_out_ready_i = 0;
}

void Node::start_kernel(std::uint32_t number, const device::KernelStart& start) {
  leave_streams();
  if (kernel_ != nullptr && kernel_ != kernels_.get()) {
    return kernels_->refuse(number,
                            "words that the host has given stand at a stream port of this engine; a call must "
                            "take them before a kernel begins");
  }
  attach(kernels_.get());
  kernels_->start(number, start, network_.cycle());
}

void Node::leave_kernels() {
  if (kernels_ == nullptr || kernel_ != kernels_.get() || !kernels_->idle()) return;
  attach(nullptr);
  top_.call_valid_i = 0;
  top_.stream_in_valid_i = top_.stream_in_last_i = top_.stream_out_ready_i = 0;
}

void Node::join_kernel() {
  Vunisono_cclo_frame& top = top_;
  FromEngine engine;
  engine.call_ready = top.call_ready_o != 0;
  engine.answer_valid = top.answer_valid_o != 0;
  engine.answer = top.answer_data_o;
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    engine.in_ready[port] = (top.stream_in_ready_o >> port & 1U) != 0;
    KernelWord& word = engine.out[port];
    word.valid = (top.stream_out_valid_o >> port & 1U) != 0;
    word.last = (top.stream_out_last_o >> port & 1U) != 0;
    std::memcpy(&word.keep, &top.stream_out_keep_o[2 * port], sizeof word.keep);
    std::memcpy(word.data.data(), &top.stream_out_data_o[16 * port], kWordBytes);
  }
  const ToEngine kernel = kernel_->evaluate(engine);
  if (beats_left_ == 0) {
    top.call_valid_i = kernel.call.valid;
    std::memcpy(&top.call_data_i[0], kernel.call.data.data(), kWordBytes);
    top.call_keep_i = kernel.call.keep;
    top.call_last_i = kernel.call.last;
  }
  top.stream_in_valid_i = top.stream_in_last_i = top.stream_out_ready_i = 0;
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    const KernelWord& word = kernel.in[port];
    const auto bit = static_cast<std::uint8_t>(1U << port);
    if (word.valid) top.stream_in_valid_i |= bit;
    if (word.last) top.stream_in_last_i |= bit;
    if (kernel.out_ready[port]) top.stream_out_ready_i |= bit;
    std::memcpy(&top.stream_in_keep_i[2 * port], &word.keep, sizeof word.keep);
    std::memcpy(&top.stream_in_data_i[16 * port], word.data.data(), kWordBytes);
  }
  top.eval();
}

void Node::look() {
  word_ = network_.front(node_);
  top_.mac_tx_ready_i = network_.can_push(node_);
}

void Node::commit() {
  if (sends_) {
    if (first_sent_ == 0 && sent_.port == 0) first_sent_ = network_.cycle();
    if (const Pushed result = network_.push(node_, sent_); result != Pushed::kTaken) {
      throw Error(ErrorCode::kInternal, formatted("node {}: the network refused a word to node {}: {}", node_,
                                                  sent_.destination, name_of(result)));
    }
  }
  if (pops_) network_.pop(node_);
}

void Node::evaluate() {
  Vunisono_cclo_frame& top = top_;
  model_.enter();
  if (resting_) {
    if (!disturbed()) return rest();
    end_rest();
  }
  receive();
  ++evaluated_;
  top.clk_i = 0;
  const bool tries = may_rest();
  if (tries) top.cycles_i = 0;
  top.eval();
  if (tries) {
    ++evaluated_;
    if (begin_rest()) return rest();
    top.cycles_i = 1;
    top.eval();
  }
  if (kernel_ != nullptr) join_kernel();
  if (wave_) wave_->dump();
  if (twin_) {
    twin_->step(node_, network_.cycle());
    model_.enter();
  }

  pops_ = top.mac_rx_valid_i != 0 && top.mac_rx_ready_o != 0;
  sends_ = top.mac_tx_valid_o != 0 && top.mac_tx_ready_i != 0;
  if (sends_) {
    std::memcpy(sent_data_.data(), &top.mac_tx_data_o[0], kWordBytes);
    sent_.bytes = static_cast<std::uint32_t>(__builtin_popcountll(top.mac_tx_keep_o));
    sent_.last = top.mac_tx_last_o != 0;
    sent_.destination = top.mac_tx_dest_o;
    sent_.frame_bytes = top.mac_tx_bytes_o;
    sent_.port = top.mac_tx_control_o;
  }
  for (unsigned port = 0; port < kMemoryPorts; ++port) memory_.tick(port, pins_.sample(port));

  const bool call_taken = beats_left_ != 0 && top.call_valid_i != 0 && top.call_ready_o != 0;
  if (trace_ && top.call_valid_i != 0 && top.call_ready_o != 0) {
    const bool last = top.call_last_i != 0;
    std::memcpy(&kernel_call_[last ? kernel_call_.size() / 2 : 0], &top.call_data_i[0], kWordBytes);
    if (last) log_.call(kernel_call_);
  }
  if (top.answer_valid_o != 0) {
    answers_.push_back({static_cast<std::uint32_t>(top.answer_data_o),
                        static_cast<std::uint16_t>(top.answer_data_o >> 32U), network_.cycle()});
  }
  count_silence();
  events_ = top.events_o;
  if (trace_ && top.record_valid_o != 0) {
    std::array<std::uint64_t, kMoveRecordWords> words{};
    std::memcpy(words.data(), &top.record_o[0], sizeof words);
    records_.push_back(decode_move_record(words));
  }
  const bool address_taken = top.s_axi_awready != 0;
  const bool data_taken = top.s_axi_wready != 0;
  const bool read_taken = top.s_axi_arready != 0;
  if (busy_ && access_.write && top.s_axi_bvalid != 0) {
    busy_ = false;
    accepted_ = top.s_axi_bresp == 0;
  } else if (busy_ && !access_.write && top.s_axi_rvalid != 0) {
    busy_ = false;
    accepted_ = top.s_axi_rresp == 0;
    value_ = top.s_axi_rdata;
  }

  top.clk_i = 1;
  top.eval();
  if (wave_) wave_->dump();
  if (kernel_ != nullptr) kernel_->edge();
  if (call_taken) {
    --beats_left_;
    offer_beat();
  }
  if (address_taken) top.s_axi_awvalid = 0;
  if (data_taken) top.s_axi_wvalid = 0;
  if (read_taken) top.s_axi_arvalid = 0;
  for (unsigned port = 0; port < kMemoryPorts; ++port) pins_.drive(port, memory_.outputs(port));
}

}  // namespace unisono::sim
