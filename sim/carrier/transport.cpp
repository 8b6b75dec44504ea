#include "sim/carrier/transport.hpp"

#include <Vunisono_smi_mac.h>
#include <Vunisono_smi_mac__Syms.h>
#include <verilated.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {
namespace {

constexpr unsigned kResetCycles = 8;
constexpr unsigned kFirstTrial = 16;   ///< cycles without anything seen before it is looked whether nothing changes
constexpr unsigned kMostTrial = 1024;  ///< likewise, when it was found that something does
constexpr unsigned kWords = kWordBytes / 4;

/// By number of unisono_smi_pkg::image_e.
const char* reason(unsigned number) {
  constexpr std::array<const char*, 8> kReasons = {"it did not start",
                                                   "it is no image of routes of this version",
                                                   "it is for another number of links than 4",
                                                   "it needs more than 2 virtual channels",
                                                   "it has more than 64 ranks",
                                                   "it is not for one port (--ports 1)",
                                                   "it is shorter or longer than its head says",
                                                   "its check sum is wrong"};
  return kReasons[number % kReasons.size()];
}

}  // namespace

Transport::Transport(std::uint64_t seed, std::uint32_t rank, std::span<const std::uint8_t> image, unsigned cabled)
    : context_(std::make_unique<VerilatedContext>()), cabled_(cabled) {
  context_->randReset(2);
  context_->randSeed(static_cast<int>(seed & 0x7fffffffU));
  model_ = std::make_unique<Vunisono_smi_mac>(context_.get());
  Vunisono_smi_mac& top = *model_;
  top.image_valid_i = top.mac_tx_valid_i = top.mac_rx_ready_i = 0;
  top.link_valid_i = top.link_up_i = top.link_ready_i = top.link_freed_i = 0;
  // Registers hold anything before the first edge.
  context_->assertOn(false);
  top.rst_ni = 0;
  for (unsigned i = 0; i < kResetCycles; ++i) clock();
  top.rst_ni = 1;
  context_->assertOn(true);
  load(rank, image);
  show();
  evaluated_ = 0;
}

Transport::~Transport() {
  Verilated::threadContextp(context_.get());
  model_->final();
  model_.reset();
}

void Transport::clock() {
  Verilated::threadContextp(context_.get());
  model_->clk_i = 0;
  model_->eval();
  model_->clk_i = 1;
  model_->eval();
  ++evaluated_;
}

void Transport::load(std::uint32_t rank, std::span<const std::uint8_t> image) {
  Vunisono_smi_mac& top = *model_;
  const std::size_t words = image.size() / 4;
  for (std::size_t at = 0; at < words;) {
    top.image_valid_i = 1;
    std::memcpy(&top.image_data_i, image.data() + 4 * at, 4);
    top.image_last_i = at + 1 == words;
    Verilated::threadContextp(context_.get());
    top.clk_i = 0;
    top.eval();
    if (top.image_ready_o != 0) ++at;
    top.clk_i = 1;
    top.eval();
  }
  top.image_valid_i = 0;
  constexpr unsigned kStart = 16;
  for (unsigned i = 0; i < kStart; ++i) clock();
  if (top.running_o == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("routes: the transport of rank {} refuses its image: {}", rank, reason(top.image_o)));
  }
  // All nodes have been loaded when the first word leaves one.
  top.link_up_i = static_cast<std::uint8_t>(cabled_);
  // Tables of sources are cleared, an entry per cycle.
  for (unsigned i = 0; i < kMostNodes + kStart; ++i) clock();
}

bool Transport::can_push() const { return model_->mac_tx_ready_o != 0; }

void Transport::push(const SentWord& word, std::uint32_t destination, std::uint32_t frame_bytes, bool control) {
  Vunisono_smi_mac& top = *model_;
  std::memcpy(&top.mac_tx_data_i[0], word.data, word.bytes);
  top.mac_tx_last_i = word.last;
  top.mac_tx_dest_i = static_cast<std::uint16_t>(destination);
  top.mac_tx_bytes_i = static_cast<std::uint16_t>(frame_bytes);
  top.mac_tx_control_i = control;
  pushes_ = true;
}

void Transport::show() {
  const Vunisono_smi_mac& top = *model_;
  shows_ = top.mac_rx_valid_o != 0;
  if (!shows_) return;
  std::memcpy(shown_data_.data(), &top.mac_rx_data_o[0], kWordBytes);
  shown_.data = shown_data_.data();
  shown_.bytes = static_cast<std::uint32_t>(__builtin_popcountll(top.mac_rx_keep_o));
  shown_.first = begins_;
  shown_.last = top.mac_rx_last_o != 0;
  shown_.source = top.mac_rx_source_o;
  shown_.frame_bytes = top.mac_rx_bytes_o;
  shown_.port = top.mac_rx_control_o;
}

void Transport::tick(std::uint64_t cycle, std::span<Wire* const> out, std::span<Wire* const> in) {
  Vunisono_smi_mac& top = *model_;
  bool something = pushes_ || pops_;
  std::uint32_t freed = 0, ready = 0, arrives = 0;
  for (unsigned link = 0; link < kLinks; ++link) {
    if (out[link] == nullptr) continue;
    freed |= out[link]->freed(cycle) << (link * kChannels);
    if (out[link]->ready(cycle)) ready |= 1U << link;
    if (const WireWord* word = in[link]->arriving(cycle)) {
      arrives |= 1U << link;
      const unsigned at = 2 * link;
      top.link_channel_i =
          static_cast<std::uint8_t>((top.link_channel_i & ~(3U << at)) | unsigned{word->channel} << at);
      top.link_last_i = static_cast<std::uint8_t>((top.link_last_i & ~(1U << link)) | unsigned{word->last} << link);
      std::memcpy(&top.link_data_i[kWords * link], word->words.data(), kWordBytes);
      in[link]->take();
    }
  }
  something = something || freed != 0 || arrives != 0;
  if (rests_ && !something) return;
  rests_ = false;
  top.link_freed_i = static_cast<std::uint16_t>(freed);
  top.link_ready_i = static_cast<std::uint8_t>(ready);
  top.link_valid_i = static_cast<std::uint8_t>(arrives);
  top.mac_tx_valid_i = pushes_;
  top.mac_rx_ready_i = pops_;
  if (pops_) begins_ = shown_.last;
  Verilated::threadContextp(context_.get());
  top.clk_i = 0;
  top.eval();
  const std::uint32_t sends = top.link_valid_o & ready;
  for (unsigned link = 0; link < kLinks; ++link) {
    if (out[link] == nullptr) continue;
    if ((sends >> link & 1U) != 0) {
      WireWord word;
      std::memcpy(word.words.data(), &top.link_data_o[kWords * link], kWordBytes);
      word.channel = top.link_channel_o >> (2 * link) & 3U;
      word.last = (top.link_last_o >> link & 1U) != 0;
      out[link]->send(cycle, word);
    }
    in[link]->free(cycle, top.link_freed_o >> (link * kChannels) & ((1U << kChannels) - 1U));
  }
  something = something || top.link_valid_o != 0 || top.link_freed_o != 0;
  top.clk_i = 1;
  top.eval();
  ++evaluated_;
  pushes_ = pops_ = false;
  show();
  look_whether_it_rests(something);
}

std::span<const std::byte> Transport::state() const {
  // All that the model remembers is in this one object; what it owns elsewhere (names, the context) no edge changes.
  return {reinterpret_cast<const std::byte*>(model_->rootp->vlSymsp), sizeof(Vunisono_smi_mac__Syms)};
}

void Transport::look_whether_it_rests(bool something) {
  if (something) {
    silent_ = 0;
    next_trial_ = kFirstTrial;
    remembers_ = false;
    return;
  }
  ++silent_;
  // Two cycles with the same inputs, and the same state after each: so it is after all others, until an input changes.
  const std::span<const std::byte> now = state();
  if (remembers_) {
    remembers_ = false;
    rests_ = model_->link_valid_o == 0 && std::equal(now.begin(), now.end(), before_.begin(), before_.end());
    next_trial_ = silent_ + std::min(2 * silent_, kMostTrial);
  } else if (silent_ >= next_trial_) {
    before_.assign(now.begin(), now.end());
    remembers_ = true;
  }
}

std::uint32_t Transport::strays() const { return model_->strays_o; }
std::uint32_t Transport::dropped() const { return model_->dropped_o; }

}  // namespace unisono::sim
