#include "sim/switch/switch_communicator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "collectives/switch_tag.hpp"
#include "core/error.hpp"
#include "core/header.hpp"
#include "core/program.hpp"
#include "core/text.hpp"
#include "engine/kernels.hpp"

namespace unisono::sim {

namespace {

const Algorithm* switched_algorithm(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.switched && algorithm.collective == collective) return &algorithm;
  }
  return nullptr;
}

/// The ranks that a peer field names.
std::vector<std::uint32_t> ranks_of(const Program& program, PeerMode mode, std::uint32_t peer) {
  if (mode == PeerMode::kRank) return {peer};
  const auto first = program.pool.begin() + peer + 1;
  return {first, first + program.pool[peer]};
}

}  // namespace

/// The receiving end of one message.
struct SwitchCommunicator::Input {
  std::uint32_t neighbour = 0;
  bool whole = false;    ///< all of it has come
  bool eager = false;    ///< it took a receive buffer
  bool granted = false;  ///< `slot` and `generation` are its token
  std::uint16_t slot = 0, generation = 0;
  std::uint64_t limit = 0;
  ByteRing ring;
};

/// One move: a fold of what comes, or the one thing that comes, and to whom it goes.
struct SwitchCommunicator::Flow {
  struct Output {
    std::uint32_t neighbour = 0;
    std::uint64_t sent = 0;
    bool asked = false;  ///< a switch was asked to grant it
    bool done = false;
  };

  const Move* move = nullptr;
  std::uint64_t bytes = 0;  ///< of each message
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  ByteRing result;
  cclo::ReduceKernel kernel = nullptr;  ///< null: nothing is folded
  bool folded = false;                  ///< all of the result has been made

  std::uint64_t least_sent() const {
    std::uint64_t least = bytes;
    for (const Output& output : outputs) least = std::min(least, output.done ? bytes : output.sent);
    return least;
  }
  bool done() const {
    return folded && std::all_of(outputs.begin(), outputs.end(), [](const Output& one) { return one.done; });
  }
};

/// One call.
struct SwitchCommunicator::Run {
  /// What goes between this switch and a neighbour in the call, in the order of the program: flows by number.
  struct Pair {
    std::vector<std::uint32_t> in, out;
    std::size_t received = 0, sent = 0;  ///< messages that are over
    std::deque<Grant> grants;            ///< of messages that have not been sent, the oldest first
  };

  std::uint32_t sequence = 0, signature = 0;
  Call call;
  Program program;
  std::vector<Flow> flows;
  std::vector<Pair> pairs;  ///< by neighbour
  bool failed = false;

  bool done() const {
    return std::all_of(flows.begin(), flows.end(), [](const Flow& flow) { return flow.done(); });
  }
  /// The input of a flow that is this neighbour's.
  static Input& input_of(Flow& flow, std::uint32_t neighbour) {
    return *std::find_if(flow.inputs.begin(), flow.inputs.end(),
                         [&](const Input& one) { return one.neighbour == neighbour; });
  }
};

SwitchCommunicator::SwitchCommunicator(SwitchEntry entry, SwitchOutlet& outlet)
    : entry_(std::move(entry)), outlet_(outlet), rank_(entry_.tree->members + entry_.number) {
  const CallTree& tree = *entry_.tree;
  const std::uint32_t nodes = tree.members + tree.switches;
  if (entry_.number >= tree.switches || entry_.addresses.size() != nodes || tree.members > kTagPlaces ||
      entry_.segment_bytes < 64 || entry_.segment_bytes % 64 != 0 || entry_.eager_limit > entry_.segment_bytes ||
      entry_.rx_buffers == 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted("communicator {} at switch {}: {} addresses, segments of {} bytes, eager messages up to {} and "
                  "{} receive buffers; allowed are an address for each of {} nodes, segments of a multiple of "
                  "64, eager messages up to a segment, and at least 1",
                  entry_.communicator, entry_.number, entry_.addresses.size(), entry_.segment_bytes, entry_.eager_limit,
                  entry_.rx_buffers, nodes));
  }
  const auto add = [&](std::uint32_t rank) {
    neighbours_.push_back({rank, entry_.addresses[rank], entry_.rx_buffers, 0});
  };
  for (std::uint32_t i = tree.first[entry_.number]; i < tree.first[entry_.number + 1]; ++i) add(tree.children[i]);
  if (tree.parent[rank_] != kNoNode) add(tree.parent[rank_]);
}

SwitchCommunicator::~SwitchCommunicator() {
  for (const auto& [sequence, run] : runs_) {
    for (const Flow& flow : run->flows) {
      for (const Input& input : flow.inputs) {
        if (input.granted && !input.whole) outlet_.give_token(input.slot);
      }
    }
  }
}

bool SwitchCommunicator::is_neighbour(std::uint32_t address) const {
  return std::any_of(neighbours_.begin(), neighbours_.end(),
                     [&](const Neighbour& one) { return one.address == address; });
}

std::optional<std::uint32_t> SwitchCommunicator::neighbour_of(std::uint32_t rank) const {
  for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
    if (neighbours_[i].rank == rank) return i;
  }
  return std::nullopt;
}

SwitchCommunicator::Run* SwitchCommunicator::find(std::uint32_t sequence) {
  const auto found = runs_.find(sequence);
  return found == runs_.end() ? nullptr : found->second.get();
}

void SwitchCommunicator::take(std::uint32_t address, const Header& header, std::span<const std::byte> payload) {
  const std::optional<std::uint32_t> from = neighbour_of(header.source);
  if (!from || neighbours_[*from].address != address || header.destination != rank_ || header.point_to_point) {
    ++counters_.faults;
    return;
  }
  neighbours_[*from].credit += header.credits;
  Run* run = find(header.sequence);
  switch (header.type) {
    case MessageType::kGrant: {
      const Grant given{header.token_slot, header.token_generation, header.message_bytes};
      if (run == nullptr) {
        early_.push_back({header.sequence, *from, header.signature, given});
      } else if (header.signature != run->signature) {
        fail(*run);
      } else {
        granted(*run, *from, given);
      }
      break;
    }
    case MessageType::kEager:
    case MessageType::kRequest:
      if (run == nullptr) run = begin(*from, header);
      [[fallthrough]];
    case MessageType::kWrite:
      if (run == nullptr) {
        ++counters_.faults;
        return;
      }
      data(*run, *from, header, payload);
      break;
    default:  // credits, and what engines say to each other about their calls
      break;
  }
  // Credit, too, may let something go on, in any call: the oldest first.
  for (auto next = runs_.begin(); next != runs_.end();) {
    Run& one = *next->second;
    if (!one.failed) advance(one);
    const bool over = !one.failed && one.done();
    if (over) ++counters_.calls;
    next = over ? runs_.erase(next) : std::next(next);
  }
}

/// The call that a message belongs to, as the first thing that comes of it says. Always a run; one that failed if the
/// message says nothing that a switch carries.
SwitchCommunicator::Run* SwitchCommunicator::begin(std::uint32_t neighbour, const Header& header) {
  auto made = std::make_unique<Run>();
  Run& run = *made;
  runs_[header.sequence] = std::move(made);
  run.sequence = header.sequence;
  run.signature = header.signature;
  run.pairs.resize(neighbours_.size());
  const SwitchTag tag = decode_switch_tag(header.tag);
  const Algorithm* const algorithm = switched_algorithm(tag.opcode);
  const CollectiveFacts facts = facts_of(tag.opcode);
  const std::uint64_t element = bytes_of(header.dtype);
  Call& call = run.call;
  call.collective = tag.opcode;
  call.func = facts.reduces ? tag.func : Func::kNone;
  call.dtype = header.dtype;
  call.rank = rank_;
  call.size = entry_.tree->members;
  call.tree = entry_.tree;
  if (algorithm == nullptr || (header.message_bytes != 0 && (element == 0 || header.message_bytes % element != 0)) ||
      (facts.reduces && header.message_bytes != 0 &&
       (is_user(tag.func) || cclo::reduce_kernel(tag.func, header.dtype) == nullptr)) ||
      (facts.rooted && tag.place >= call.size)) {
    ++counters_.faults;
    fail(run);
    return &run;
  }
  call.count = element == 0 ? 0 : header.message_bytes / element;
  // Of scatter the place is a block's; the root is where what comes, comes from. Its program asks for the root only to
  // tell what comes from above, so any member on the other side will do.
  call.root = 0;
  if (facts.rooted) {
    call.root = entry_.tree->order[tag.place];
    if (tag.opcode == Collective::kScatter) {
      std::uint32_t node = neighbours_[neighbour].rank;
      const bool above = node == entry_.tree->parent[rank_];
      if (!above) {
        while (node >= call.size) node = entry_.tree->children[entry_.tree->first[node - call.size]];
        call.root = node;
      } else {
        for (std::uint32_t member = 0; member < call.size; ++member) {
          std::uint32_t up = member;
          while (up != kNoNode && up != rank_) up = entry_.tree->parent[up];
          if (up == kNoNode) call.root = member;
        }
      }
    }
  }
  run.program = record(*algorithm, call);
  const std::uint64_t window = std::uint64_t{kWindowSegments} * entry_.segment_bytes;
  for (const Move& move : run.program.moves) {
    Flow& flow = run.flows.emplace_back();
    flow.move = &move;
    flow.bytes = move.count * bytes_of(move.dtype);
    const std::uint64_t room = std::min(window, (flow.bytes + 63) / 64 * 64);
    const auto number = static_cast<std::uint32_t>(run.flows.size() - 1);
    for (const std::uint32_t rank : ranks_of(run.program, move.arrival.mode, move.arrival.peer)) {
      Input& input = flow.inputs.emplace_back();
      input.neighbour = neighbour_of(rank).value();
      input.ring = ByteRing(room);
      run.pairs[input.neighbour].in.push_back(number);
    }
    if (move.remote.kind == RemoteKind::kMessage) {
      for (const std::uint32_t rank : ranks_of(run.program, move.remote.mode, move.remote.peer)) {
        flow.outputs.push_back({.neighbour = neighbour_of(rank).value()});
        run.pairs[flow.outputs.back().neighbour].out.push_back(number);
      }
    }
    flow.result = ByteRing(room);
    if (flow.inputs.size() > 1 && flow.bytes != 0) flow.kernel = cclo::reduce_kernel(move.func, move.dtype);
  }
  for (auto next = early_.begin(); next != early_.end();) {
    if (next->sequence != run.sequence) {
      ++next;
      continue;
    }
    const EarlyGrant one = *next;
    next = early_.erase(next);
    if (run.failed) continue;
    if (one.signature != run.signature) {
      fail(run);
    } else {
      granted(run, one.neighbour, one.grant);
    }
  }
  return &run;
}

void SwitchCommunicator::granted(Run& run, std::uint32_t neighbour, const Grant& given) {
  if (run.failed) return;
  std::deque<Grant>& grants = run.pairs[neighbour].grants;
  for (Grant& known : grants) {
    if (known.slot != given.slot || known.generation != given.generation) continue;
    known.limit = std::max(known.limit, given.limit);
    return;
  }
  grants.push_back(given);
}

void SwitchCommunicator::data(Run& run, std::uint32_t neighbour, const Header& header,
                              std::span<const std::byte> payload) {
  if (run.failed || header.signature != run.signature) {
    fail(run);
    swallow(neighbour, header);
    return;
  }
  Run::Pair& pair = run.pairs[neighbour];
  const bool expected = pair.received < pair.in.size();
  Flow* const flow = expected ? &run.flows[pair.in[pair.received]] : nullptr;
  if (flow == nullptr || header.message_bytes != flow->bytes || header.tag != flow->move->arrival.tag ||
      header.dtype != run.call.dtype) {
    ++counters_.faults;
    fail(run);
    swallow(neighbour, header);
    return;
  }
  Input& input = Run::input_of(*flow, neighbour);
  if (header.type == MessageType::kRequest && !input.granted && payload.empty()) {
    input.granted = true;
    input.slot = outlet_.take_token();
    input.generation = ++generation_;
    input.limit = 0;
    grant(run, *flow, input);
    return;
  }
  const bool write = header.type == MessageType::kWrite;
  const bool sound = write ? input.granted && header.token_slot == input.slot &&
                                 header.token_generation == input.generation && header.offset == input.ring.end() &&
                                 header.offset + payload.size() <= input.limit
                           : !input.granted && header.first && header.last && payload.size() == flow->bytes &&
                                 payload.size() <= entry_.eager_limit;
  if (!sound) {
    ++counters_.faults;
    fail(run);
    swallow(neighbour, header);
    return;
  }
  input.eager = !write;
  input.ring.append(payload);
  counters_.bytes += payload.size();
  if (input.ring.end() != flow->bytes) return;
  input.whole = true;
  ++counters_.messages;
  ++pair.received;
  if (write) outlet_.give_token(input.slot);
}

/// An eager message that nobody needs holds no buffer.
void SwitchCommunicator::swallow(std::uint32_t neighbour, const Header& header) {
  if (header.type == MessageType::kEager) give_credit(neighbour);
}

void SwitchCommunicator::give_credit(std::uint32_t neighbour) {
  Neighbour& to = neighbours_[neighbour];
  ++to.owed;
  // Less than half of all is not worth a message of its own; it goes with the next one.
  if (to.owed >= std::max(1U, entry_.rx_buffers / 2)) put(neighbour, true, header_to(neighbour, MessageType::kCredit));
}

/// Lets the sender of a long message send as far as there is room, at once for all of the window or half of it.
void SwitchCommunicator::grant(const Run& run, const Flow& flow, Input& input) {
  const std::uint64_t window = std::uint64_t{kWindowSegments} * entry_.segment_bytes;
  const std::uint64_t most =
      std::min(flow.bytes, input.ring.begin() / entry_.segment_bytes * entry_.segment_bytes + window);
  if (input.limit != 0 && (most == input.limit || (most < flow.bytes && most - input.limit < window / 2))) return;
  input.limit = most;
  Header header = header_to(run, flow, input.neighbour, MessageType::kGrant);
  header.tag = flow.move->arrival.tag;
  header.message_bytes = most;
  header.token_slot = input.slot;
  header.token_generation = input.generation;
  put(input.neighbour, true, header);
}

void SwitchCommunicator::advance(Run& run) {
  for (bool any = true; any && !run.failed;) {
    any = false;
    for (Flow& flow : run.flows) {
      while (fold(run, flow)) any = true;
      while (send(run, flow)) any = true;
    }
  }
}

/// Makes a piece of the result, as far as all inputs are there. False: nothing could be made.
bool SwitchCommunicator::fold(Run& run, Flow& flow) {
  if (flow.folded) return false;
  if (flow.bytes == 0) {
    if (!std::all_of(flow.inputs.begin(), flow.inputs.end(), [](const Input& one) { return one.whole; })) return false;
    flow.folded = true;
    for (const Input& input : flow.inputs) {
      if (input.eager) give_credit(input.neighbour);
    }
    return true;
  }
  const std::uint64_t at = flow.result.end();
  std::uint64_t bytes = std::min<std::uint64_t>(flow.result.room(), flow.bytes - at);
  std::array<const std::byte*, 256> few{};
  std::vector<const std::byte*> many(flow.inputs.size() > few.size() ? flow.inputs.size() : 0);
  const std::byte** const sources = many.empty() ? few.data() : many.data();
  for (std::size_t i = 0; i < flow.inputs.size(); ++i) {
    const std::span<const std::byte> there = flow.inputs[i].ring.from(at);
    sources[i] = there.data();
    bytes = std::min<std::uint64_t>(bytes, there.size());
  }
  const std::span<std::byte> to = flow.result.space();
  const std::uint64_t element = bytes_of(flow.move->dtype);
  const std::uint64_t count = std::min<std::uint64_t>(bytes, to.size()) / element;
  if (count == 0) return false;
  std::byte* out = to.data();
  if (flow.kernel != nullptr) {
    flow.kernel(sources, static_cast<std::uint32_t>(flow.inputs.size()), &out, 1, count, false);
  } else {
    cclo::copy_bytes(out, sources[0], count * element, false);
  }
  flow.result.produced(count * element);
  flow.folded = flow.result.end() == flow.bytes;
  use(run, flow, flow.result.end());
  return true;
}

/// Inputs are not needed any more up to there.
void SwitchCommunicator::use(Run& run, Flow& flow, std::uint64_t up_to) {
  for (Input& input : flow.inputs) {
    input.ring.used(up_to);
    if (up_to == flow.bytes) {
      if (input.eager) give_credit(input.neighbour);
    } else if (input.granted && input.limit < flow.bytes) {
      grant(run, flow, input);
    }
  }
}

/// Sends a message, or a segment, of the result. False: nothing could be sent.
bool SwitchCommunicator::send(Run& run, Flow& flow) {
  bool any = false;
  const auto number = static_cast<std::uint32_t>(&flow - run.flows.data());
  for (Flow::Output& output : flow.outputs) {
    Run::Pair& pair = run.pairs[output.neighbour];
    if (output.done || pair.out[pair.sent] != number) continue;
    Header header = header_to(run, flow, output.neighbour, MessageType::kEager);
    header.tag = flow.move->remote.tag;
    std::uint64_t bytes = flow.bytes;
    Neighbour& to = neighbours_[output.neighbour];
    const bool is_short = flow.bytes <= entry_.eager_limit;
    if (is_short && !flow.folded) continue;
    // Credit may be held by messages that the peer takes only after this one, of later calls, so it is not waited for.
    if (!output.asked && (is_short ? to.credit == 0 : to.rank >= entry_.tree->members)) {
      output.asked = true;
      header.type = MessageType::kRequest;
      header.first = header.last = true;
      put(output.neighbour, false, header);
    }
    if (is_short && !output.asked) {
      --to.credit;
    } else {
      header.type = MessageType::kWrite;
      bytes = std::min<std::uint64_t>(entry_.segment_bytes, flow.bytes - output.sent);
      if (pair.grants.empty() || pair.grants.front().limit < output.sent + bytes ||
          flow.result.end() < output.sent + bytes) {
        continue;
      }
      header.token_slot = pair.grants.front().slot;
      header.token_generation = pair.grants.front().generation;
    }
    header.offset = output.sent;
    header.segment_bytes = static_cast<std::uint32_t>(bytes);
    header.first = output.sent == 0;
    header.last = output.sent + bytes == flow.bytes;
    put(output.neighbour, false, header,
        bytes == 0 ? std::span<const std::byte>() : flow.result.from(output.sent).first(bytes));
    output.sent += bytes;
    any = true;
    if (!header.last) continue;
    output.done = true;
    ++pair.sent;
    if (header.type == MessageType::kWrite) pair.grants.pop_front();
  }
  if (any) flow.result.used(std::min(flow.least_sent(), flow.result.end()));
  return any;
}

/// The members do not make this call alike. A message whose signature is nobody's ends it on all of them; what still
/// comes is thrown away.
void SwitchCommunicator::fail(Run& run) {
  if (run.failed) return;
  run.failed = true;
  ++counters_.mismatches;
  for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
    Header header = header_to(i, MessageType::kGrant);
    header.sequence = run.sequence;
    header.signature = ~run.signature;
    const bool has_credit = neighbours_[i].credit != 0;
    if (has_credit) {
      --neighbours_[i].credit;
      header.type = MessageType::kEager;
      header.first = header.last = true;
    }
    put(i, !has_credit, header);
  }
}

Header SwitchCommunicator::header_to(std::uint32_t neighbour, MessageType type) {
  Header header = make_header(type);
  header.communicator = entry_.communicator;
  header.epoch = entry_.epoch;
  header.source = rank_;
  header.destination = neighbours_[neighbour].rank;
  return header;
}

Header SwitchCommunicator::header_to(const Run& run, const Flow& flow, std::uint32_t neighbour, MessageType type) {
  Header header = header_to(neighbour, type);
  header.dtype = run.call.dtype;
  header.sequence = run.sequence;
  header.signature = run.signature;
  header.message_bytes = flow.bytes;
  return header;
}

void SwitchCommunicator::put(std::uint32_t neighbour, bool control, Header header, std::span<const std::byte> payload) {
  Neighbour& to = neighbours_[neighbour];
  if (control) header.first = header.last = true;
  header.credits = static_cast<std::uint16_t>(std::min(to.owed, 0xffffU));
  to.owed -= header.credits;
  outlet_.send(to.address, control, header, payload);
}

std::string SwitchCommunicator::waiting() const {
  std::string text;
  for (const auto& [sequence, run] : runs_) {
    text += formatted("call {} {}: ", sequence, name_of(run->call.collective));
    if (run->failed) {
      text += "ranks called different operations\n";
      continue;
    }
    std::vector<std::uint32_t> missing;
    for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
      if (run->pairs[i].received < run->pairs[i].in.size()) missing.push_back(neighbours_[i].rank);
    }
    if (missing.empty()) text += "its results are on their way";
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const bool is_switch = missing[i] >= entry_.tree->members;
      text += i == 0 ? "waits for " : ", ";
      text += is_switch ? formatted("switch {}", missing[i] - entry_.tree->members) : formatted("rank {}", missing[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace unisono::sim
