#include "sim/memory/axi_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/text.hpp"

namespace unisono::sim {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::string hex(std::uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + text;
}

}  // namespace

AxiMemory::AxiMemory(const AxiMemoryConfig& config) : config_(config), tlb_(config.tlb) {
  const auto refuse = [](const char* what) { throw std::invalid_argument(std::string("AxiMemory: ") + what); };
  if (config.channels == 0) refuse("there must be a channel");
  if (!std::has_single_bit(config.beat_bytes) || config.beat_bytes > kMostBeatBytes) {
    refuse("beat_bytes must be a power of two, up to 64");
  }
  if (config.read_latency == 0 || config.write_latency == 0) refuse("latencies are at least 1");
  if (config.bandwidth_beats == 0 || config.bandwidth_beats > config.bandwidth_cycles) {
    refuse("the bandwidth must be above 0 and at most 1 beat per cycle");
  }
  if (config.outstanding == 0) refuse("outstanding must be at least 1");
  channels_.resize(config.channels);
  pages_.resize(config.one_memory ? 1 : config.channels);
  for (unsigned number = 0; number < config.channels; ++number) {
    channels_[number].random = config.seed * 0x9E3779B97F4A7C15ULL + number;
    for (unsigned warm = 0; warm < 4; ++warm) next(channels_[number]);
  }
}

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t AxiMemory::next(Channel& channel) const {
  std::uint64_t z = channel.random += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

bool AxiMemory::stalls(Channel& channel, unsigned of_256) const { return of_256 != 0 && next(channel) % 256 < of_256; }

std::uint64_t AxiMemory::due(Channel& channel, unsigned latency) const {
  // An answer that is offered after edge n can be taken at edge n + 1.
  const std::uint64_t more = config_.jitter == 0 ? 0 : next(channel) % (config_.jitter + 1);
  return channel.counters.cycles + latency - 1 + more;
}

AxiMemory::Burst AxiMemory::burst(Channel& channel, std::uint32_t id, std::uint64_t address, unsigned length,
                                  unsigned size, unsigned kind, const char* what) const {
  const auto refuse = [&](const std::string& why) {
    throw AxiViolation(
        formatted("{} of {} beats at {}: {} (cycle {})", what, length + 1, hex(address), why, channel.counters.cycles));
  };
  if (kind != 1) refuse("only INCR bursts");
  if (size >= 8 || (1U << size) != config_.beat_bytes) refuse("only whole beats");
  const std::uint64_t aligned = address & ~static_cast<std::uint64_t>(config_.beat_bytes - 1);
  if (aligned % 4096 + static_cast<std::uint64_t>(length + 1) * config_.beat_bytes > 4096) refuse("crosses 4 KiB");
  return Burst{.id = id, .address = aligned, .beats = length + 1, .due = 0};
}

void AxiMemory::check_stable(const Channel& channel, const AxiInputs& inputs) const {
  const AxiInputs& before = channel.before;
  const auto refuse = [&](const char* what) {
    throw AxiViolation(formatted("{} changed before it was taken (cycle {})", what, channel.counters.cycles));
  };
  // `before` keeps an offer only while it was not taken.
  if (before.arvalid && (!inputs.arvalid || inputs.araddr != before.araddr || inputs.arid != before.arid ||
                         inputs.arlen != before.arlen)) {
    refuse("a read request");
  }
  if (before.awvalid && (!inputs.awvalid || inputs.awaddr != before.awaddr || inputs.awid != before.awid ||
                         inputs.awlen != before.awlen)) {
    refuse("a write request");
  }
  if (before.wvalid && (!inputs.wvalid || inputs.wstrb != before.wstrb || inputs.wlast != before.wlast ||
                        inputs.wdata != before.wdata)) {
    refuse("write data");
  }
}

AxiResponse AxiMemory::response(unsigned channel, std::uint64_t address) const {
  for (const Failure& failure : failures_) {
    if (failure.channel == channel && address <= failure.high && address + (config_.beat_bytes - 1) >= failure.low) {
      return failure.response;
    }
  }
  return AxiResponse::kOkay;
}

/// Puts a burst into memory; its worst response.
AxiResponse AxiMemory::store(unsigned number, const Burst& burst) {
  AxiResponse worst = AxiResponse::kOkay;
  std::uint64_t address = burst.address;
  for (const Beat& beat : burst.data) {
    const AxiResponse here = response(number, address);
    worst = std::max(worst, here);
    if (here == AxiResponse::kOkay) {
      // Stretches of strobes, because a page is looked up once per stretch.
      for (unsigned i = 0; i < config_.beat_bytes;) {
        const unsigned skip = static_cast<unsigned>(std::countr_zero(beat.strobe >> i));
        i = beat.strobe >> i == 0 ? config_.beat_bytes : i + skip;
        if (i >= config_.beat_bytes) break;
        const unsigned run = std::min(static_cast<unsigned>(std::countr_one(beat.strobe >> i)), config_.beat_bytes - i);
        pages(number).write(address + i, std::span(beat.data).subspan(i, run));
        i += run;
        if (i >= 64) break;
      }
    }
    address += config_.beat_bytes;
  }
  return worst;
}

/// The burst to go on with: the first one, or any that is the first of its id; none when none is due.
std::size_t AxiMemory::choose(Channel& channel, const std::deque<Burst>& bursts) const {
  if (!config_.reorder) return !bursts.empty() && bursts.front().due <= channel.counters.cycles ? 0 : kNone;
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    const auto same = [&](const Burst& other) { return other.id == bursts[i].id; };
    const bool first = std::none_of(bursts.begin(), bursts.begin() + static_cast<std::ptrdiff_t>(i), same);
    if (first && bursts[i].due <= channel.counters.cycles) due.push_back(i);
  }
  return due.empty() ? kNone : due[next(channel) % due.size()];
}

/// What the edge takes, by what both sides drive.
void AxiMemory::take(unsigned number, Channel& channel, const AxiInputs& inputs) {
  AxiOutputs& out = channel.out;
  if (out.rvalid && inputs.rready) {
    out.rvalid = false;
    ++channel.counters.read_beats;
    Burst& burst = channel.reads[channel.reading];
    if (++burst.at == burst.beats)
      channel.reads.erase(channel.reads.begin() + static_cast<std::ptrdiff_t>(channel.reading));
  }
  if (out.bvalid && inputs.bready) {
    out.bvalid = false;
    channel.writes.erase(channel.writes.begin() + static_cast<std::ptrdiff_t>(channel.writing));
  }
  if (inputs.arvalid && out.arready) {
    Burst taken = burst(channel, inputs.arid, inputs.araddr, inputs.arlen, inputs.arsize, inputs.arburst, "read");
    taken.due = due(channel, config_.read_latency) + tlb_.wait(channel.counters.cycles, taken.address);
    channel.reads.push_back(std::move(taken));
    ++channel.counters.read_bursts;
  }
  if (inputs.awvalid && out.awready) {
    channel.requests.push_back(
        burst(channel, inputs.awid, inputs.awaddr, inputs.awlen, inputs.awsize, inputs.awburst, "write"));
    ++channel.counters.write_bursts;
  }
  if (inputs.wvalid && out.wready) {
    channel.data.push_back({inputs.wdata, inputs.wstrb});
    channel.ends.push_back(inputs.wlast);
    ++channel.counters.write_beats;
    unsigned& credit = config_.shared_bus ? channel.read_credit : channel.write_credit;
    credit -= std::min(credit, config_.bandwidth_cycles);
  }
  while (!channel.requests.empty() && !channel.data.empty()) {
    Burst& burst = channel.requests.front();
    burst.data.push_back(channel.data.front());
    const bool end = burst.data.size() == burst.beats;
    if (channel.ends.front() != end) {
      throw AxiViolation(formatted("wlast is {} with beat {} of {} (channel {}, cycle {})", channel.ends.front(),
                                   burst.data.size(), burst.beats, number, channel.counters.cycles));
    }
    channel.data.pop_front();
    channel.ends.pop_front();
    if (end) {
      burst.due = due(channel, config_.write_latency) + tlb_.wait(channel.counters.cycles, burst.address);
      channel.writes.push_back(std::move(burst));
      channel.requests.pop_front();
    }
  }
}

/// What the memory drives after the edge.
void AxiMemory::offer(unsigned number, Channel& channel) {
  AxiOutputs& out = channel.out;
  const unsigned full = config_.bandwidth_cycles;
  unsigned& read_credit = channel.read_credit;
  unsigned& write_credit = config_.shared_bus ? channel.read_credit : channel.write_credit;
  // Credit for one beat is kept, so that a pause does not count as bandwidth lost for ever, nor saved up.
  read_credit = std::min(read_credit + config_.bandwidth_beats, full + config_.bandwidth_beats - 1);
  if (!config_.shared_bus) {
    write_credit = std::min(write_credit + config_.bandwidth_beats, full + config_.bandwidth_beats - 1);
  }

  // On a shared bus a write beat that is awaited has its turn with the reads.
  const bool write_first = config_.shared_bus && (channel.counters.cycles & 1U) != 0 && !channel.requests.empty();

  if (!out.rvalid && !stalls(channel, config_.stall_r) && read_credit >= full && !write_first) {
    const std::size_t chosen = choose(channel, channel.reads);
    if (chosen != kNone) {
      const Burst& burst = channel.reads[chosen];
      const std::uint64_t address = burst.address + static_cast<std::uint64_t>(burst.at) * config_.beat_bytes;
      channel.reading = chosen;
      read_credit -= full;
      out.rvalid = true;
      out.rid = burst.id;
      out.rresp = response(number, address);
      out.rlast = burst.at + 1 == burst.beats;
      if (out.rresp == AxiResponse::kOkay) {
        pages(number).read(address, std::span(out.rdata).first(config_.beat_bytes));
      } else {
        out.rdata.fill(0xEE);
      }
    }
  }
  if (!out.bvalid && !stalls(channel, config_.stall_b)) {
    const std::size_t chosen = choose(channel, channel.writes);
    if (chosen != kNone) {
      channel.writing = chosen;
      out.bvalid = true;
      out.bid = channel.writes[chosen].id;
      out.bresp = store(number, channel.writes[chosen]);
    }
  }
  out.arready = channel.reads.size() < config_.outstanding && !stalls(channel, config_.stall_ar);
  out.awready =
      channel.requests.size() + channel.writes.size() < config_.outstanding && !stalls(channel, config_.stall_aw);
  // Data may run ahead of its request by a burst at most.
  out.wready = write_credit >= full && channel.data.size() < 256 && !stalls(channel, config_.stall_w);
}

void AxiMemory::tick(unsigned number, const AxiInputs& inputs) {
  Channel& channel = channels_.at(number);
  check_stable(channel, inputs);
  channel.before = inputs;
  channel.before.arvalid = inputs.arvalid && !channel.out.arready;
  channel.before.awvalid = inputs.awvalid && !channel.out.awready;
  channel.before.wvalid = inputs.wvalid && !channel.out.wready;
  take(number, channel, inputs);
  AxiMemoryCounters& counters = channel.counters;
  counters.most_reads = std::max<std::uint64_t>(counters.most_reads, channel.reads.size());
  counters.most_writes = std::max<std::uint64_t>(counters.most_writes, channel.requests.size() + channel.writes.size());
  offer(number, channel);
  ++counters.cycles;
}

bool AxiMemory::idle() const {
  return std::all_of(channels_.begin(), channels_.end(), [](const Channel& channel) {
    return channel.reads.empty() && channel.requests.empty() && channel.writes.empty() && channel.data.empty();
  });
}

bool AxiMemory::can_skip() const {
  const bool pauses = (config_.stall_ar | config_.stall_r | config_.stall_aw | config_.stall_w | config_.stall_b) != 0;
  return !pauses && idle() && std::none_of(channels_.begin(), channels_.end(), [](const Channel& channel) {
    return channel.out.rvalid || channel.out.bvalid;
  });
}

void AxiMemory::skip(std::uint64_t edges) {
  if (edges == 0) return;
  const AxiInputs nothing;
  // As edge after edge would: credit grows up to its bound, and nothing else does.
  const std::uint64_t stepped = std::min<std::uint64_t>(edges, config_.bandwidth_cycles + 1);
  for (unsigned number = 0; number < config_.channels; ++number) {
    for (std::uint64_t edge = 0; edge < stepped; ++edge) tick(number, nothing);
    channels_[number].counters.cycles += edges - stepped;
  }
}

void AxiMemory::read(unsigned channel, std::uint64_t address, std::span<std::uint8_t> bytes) const {
  if (channel >= config_.channels) throw std::out_of_range("AxiMemory: no such channel");
  pages(channel).read(address, bytes);
}

void AxiMemory::write(unsigned channel, std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (channel >= config_.channels) throw std::out_of_range("AxiMemory: no such channel");
  pages(channel).write(address, bytes);
}

void AxiMemory::fail(unsigned channel, std::uint64_t low, std::uint64_t high, AxiResponse response) {
  failures_.push_back({channel, low, high, response});
}

InterleavedMemory::InterleavedMemory(AxiMemory& memory, std::uint64_t interleave_bytes)
    : memory_(memory), block_(interleave_bytes) {
  if (!std::has_single_bit(interleave_bytes)) {
    throw std::invalid_argument("InterleavedMemory: interleave_bytes must be a power of two");
  }
}

InterleavedMemory::Place InterleavedMemory::place(std::uint64_t address) const {
  const std::uint64_t channels = memory_.config().channels;
  const std::uint64_t number = address / block_;
  const std::uint64_t within = address % block_;
  return {.channel = static_cast<unsigned>(number % channels),
          .address = number / channels * block_ + within,
          .bytes = static_cast<std::size_t>(block_ - within)};
}

void InterleavedMemory::read(std::uint64_t address, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const Place here = place(address);
    const std::size_t part = std::min(bytes.size(), here.bytes);
    memory_.read(here.channel, here.address, bytes.first(part));
    bytes = bytes.subspan(part);
    address += part;
  }
}

void InterleavedMemory::write(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const Place here = place(address);
    const std::size_t part = std::min(bytes.size(), here.bytes);
    memory_.write(here.channel, here.address, bytes.first(part));
    bytes = bytes.subspan(part);
    address += part;
  }
}

}  // namespace unisono::sim
