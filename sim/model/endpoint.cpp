#include "sim/model/endpoint.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/text.hpp"
#include "sim/model/peers.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kWord = 64;

std::uint32_t words_of(std::uint64_t bytes) { return static_cast<std::uint32_t>((bytes + kWord - 1) / kWord); }

template <class State>
bool takes_from(const State& state, std::uint32_t rank) {
  return std::any_of(state.sources.begin(), state.sources.end(), [&](const auto& one) { return one.rank == rank; });
}
template <class State>
bool sends_to(const State& state, std::uint32_t rank) {
  return std::any_of(state.destinations.begin(), state.destinations.end(),
                     [&](const auto& one) { return one.rank == rank; });
}

/// What each message takes that a switch folds, one behind the other; what only passes is as quick as an integer.
std::uint32_t child_of(const EndpointCosts& costs, const Move& move, std::size_t messages) {
  if (messages < 2) return costs.child;
  if (move.func == Func::kProd) return costs.child_product;
  if (move.func != Func::kSum) return costs.child;
  switch (move.dtype) {
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kFp32:
    case Datatype::kFp64:
    case Datatype::kComplex64:
    case Datatype::kComplex128:
      return costs.child_sum;
    default:
      return costs.child;
  }
}

}  // namespace

Endpoint::Endpoint(std::uint32_t rank, const Program& program, const EndpointCosts& costs, Outlet& outlet,
                   std::uint32_t switches)
    : rank_(rank), program_(program), costs_(costs), outlet_(outlet), switches_(switches) {
  plan();
}

void Endpoint::plan() {
  std::map<std::uint32_t, std::uint32_t> sent, taken;
  for (std::uint32_t i = 0; i < program_.moves.size(); ++i) {
    const Move& move = program_.moves[i];
    State state;
    const bool local = move.op1.kind != OperandKind::kRemoteMemory && move.remote.kind != RemoteKind::kMemory;
    if (!local || move.count_indirect || move.remote.kind == RemoteKind::kStream) {
      throw Error(ErrorCode::kUnsupported,
                  formatted("rank {}, move {}: endpoints of the model have neither remote memory nor params nor "
                            "streams; name another algorithm",
                            rank_, i));
    }
    state.bytes = move.count * bytes_of(move.dtype);
    state.exists = is_work(move);
    if (takes(move)) {
      for (const std::uint32_t peer : ranks_of(program_, move.arrival.mode, move.arrival.peer)) {
        state.sources.push_back({peer, taken[peer]++});
      }
    }
    if (sends(move)) {
      for (const std::uint32_t peer : ranks_of(program_, move.remote.mode, move.remote.peer)) {
        state.destinations.push_back({peer, sent[peer]++});
      }
    }
    const auto is_member = [this](const Peer& peer) { return peer.rank < switches_; };
    const bool among_members = rank_ < switches_ &&
                               std::all_of(state.sources.begin(), state.sources.end(), is_member) &&
                               std::all_of(state.destinations.begin(), state.destinations.end(), is_member);
    const bool message = !state.sources.empty() || !state.destinations.empty();
    state.segment = message && among_members ? costs_.segment_of(state.bytes) : costs_.segment;
    state.segments =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (state.bytes + state.segment - 1) / state.segment));
    if (costs_.lists_ascend) {
      std::sort(state.destinations.begin(), state.destinations.end(),
                [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
    }
    states_.push_back(std::move(state));
  }
}

std::uint32_t Endpoint::segment_bytes(const State& state, std::uint32_t segment) const {
  return static_cast<std::uint32_t>(std::min(state.segment, state.bytes - segment * state.segment));
}

void Endpoint::post(std::uint64_t cycle, What what, std::uint32_t move, const ModelHeader& header, std::uint32_t rank) {
  events_.push({cycle, order_++, what, move, header, rank});
}

void Endpoint::start(std::uint64_t now) {
  started_ = true;
  answered_ = now + costs_.first_move + costs_.answer;
  if (!states_.empty()) post(now + costs_.first_move, What::kGive, 0);
}

void Endpoint::receive(const ModelHeader& header, std::uint64_t now) {
  if (header.kind == ModelHeader::Kind::kGrant) {
    post(in_rx_.gap(now) + costs_.grant_in, What::kGranted, 0, header);
    return;
  }
  if (header.kind == ModelHeader::Kind::kRequest) {
    // It keeps what comes until it is wanted, so it grants at once.
    post(now + costs_.grant_in, What::kGrant, 0, {ModelHeader::Kind::kGrant, rank_, header.message, header.segments, 0},
         header.source);
    return;
  }
  // Rx looks at a header when the words of the frame before it have left. Each port of a switch has its own.
  const std::uint64_t offer = std::max(now + costs_.arrive, costs_.parallel_ports ? 0 : rx_free_);
  rx_free_ = offer + words_of(header.bytes) + costs_.behind;
  if (!costs_.parallel_ports) in_rx_.add(now, offer + words_of(header.bytes) - costs_.arrive + costs_.leave);
  post(offer, What::kOffer, 0, header);
}

void Endpoint::room(std::uint64_t now) { post(now + 1, What::kLook, 0); }

void Endpoint::run(std::uint64_t now) {
  // What takes no time may cause more in this cycle.
  do {
    settle(now);
    look(now);
  } while (due() <= now);
}

void Endpoint::settle(std::uint64_t now) {
  while (!events_.empty() && events_.top().cycle <= now) {
    const Event event = events_.top();
    events_.pop();
    switch (event.what) {
      case What::kGive: {
        if (event.move >= states_.size() || states_[event.move].given) break;
        if (event.move >= retired_ + 32) break;  // comes again when a move retires
        states_[event.move].given = true;
        states_[event.move].ready = now + costs_.issue;  // the earliest issue, for now
        ++given_;
        post(now + costs_.issue, What::kLook, 0);
        const bool known = states_.size() <= costs_.known_moves;
        post(now + (known ? costs_.next_move : costs_.firmware_move), What::kGive, event.move + 1);
        break;
      }
      case What::kMade: {
        State& state = states_[event.move];
        ++state.made;
        if (state.made == state.segments) state.complete = true;
        while (retired_ < given_ && states_[retired_].complete) {
          ++retired_;
          if (given_ < states_.size() && given_ < retired_ + 32) post(now + 1, What::kGive, given_);
        }
        if (finished()) answered_ = now + costs_.answer;
        break;
      }
      case What::kLeave:
        reserved_words_ -= (costs_.instant ? 0 : words_of(event.header.bytes)) + 1;
        outlet_.send(event.rank, event.header);
        break;
      case What::kOffer: {
        const std::uint64_t behind =
            costs_.buffered + std::uint64_t{costs_.buffered_word} * words_of(event.header.bytes);
        inbox_[{event.header.source, event.header.message}].push_back({now, now + behind});
        post(now + behind, What::kLook, 0);
        break;
      }
      case What::kGranted: {
        std::uint32_t& granted = granted_to_us_[{event.header.source, event.header.message}];
        granted = std::max(granted, event.header.segments);
        break;
      }
      case What::kGrant:
        if (const std::uint64_t later = in_tx_.gap(now); later > now && event.move == 0) {
          post(later + 1, What::kGrant, 1, event.header, event.rank);
        } else {
          outlet_.send(event.rank, event.header);
        }
        break;
      case What::kLook:
        break;
    }
  }
}

bool Endpoint::may_issue(std::uint32_t index, std::uint64_t now) const {
  const State& state = states_[index];
  const Move& move = program_.moves[index];
  if (!state.given || state.issued || state.ready > now) return false;
  for (std::uint32_t bits = move.dependencies; bits != 0; bits &= bits - 1) {
    const auto back = static_cast<std::uint32_t>(std::countr_zero(bits)) + 1;
    if (!states_[index - back].complete) return false;
  }
  for (const std::uint32_t back : {move.segment_dependency0, move.segment_dependency1}) {
    if (back != 0 && !states_[index - back].issued) return false;
  }
  // Messages of a pair are sent one after the other; of arrivals, one takes what comes and one more waits.
  for (const Peer& peer : state.destinations) {
    for (std::uint32_t i = retired_; i < index; ++i) {
      if (states_[i].next < states_[i].segments && sends_to(states_[i], peer.rank)) return false;
    }
  }
  for (const Peer& peer : state.sources) {
    std::uint32_t before = 0;
    for (std::uint32_t i = retired_; i < index; ++i) {
      if (states_[i].next < states_[i].segments && takes_from(states_[i], peer.rank)) ++before;
    }
    if (before > 1) return false;
  }
  return true;
}

void Endpoint::grant_more(State& state, std::uint64_t now) {
  if (state.bytes <= costs_.eager_limit || costs_.grants_when_asked) return;
  for (const Peer& peer : state.sources) {
    std::uint32_t& granted = granted_by_us_[{peer.rank, peer.message}];
    if (granted >= state.segments) continue;
    if (granted != 0 && granted - state.next > costs_.granted_next) continue;
    granted = std::min(state.segments, granted == 0 ? costs_.granted_first : granted + costs_.granted_next);
    post(now + costs_.grant_out, What::kGrant, 0, {ModelHeader::Kind::kGrant, rank_, peer.message, granted, 0},
         peer.rank);
  }
}

void Endpoint::issue(std::uint32_t index, std::uint64_t now) {
  State& state = states_[index];
  state.issued = true;
  state.ready = now + costs_.job;
  dispatcher_free_ = now + (state.sources.empty() ? costs_.take_move : costs_.take_arrival);
  post(dispatcher_free_, What::kLook, 0);
  if (!state.exists) {
    state.next = state.segments;
    state.made = state.segments - 1;
    post(now + costs_.retire, What::kMade, index);
    return;
  }
  grant_more(state, now);
  for (const Peer& peer : state.destinations) {
    if (state.bytes <= costs_.eager_limit || peer.rank < switches_) continue;
    post(now + costs_.grant_out, What::kGrant, 0, {ModelHeader::Kind::kRequest, rank_, peer.message, state.segments, 0},
         peer.rank);
  }
  post(state.ready, What::kLook, 0);
}

std::uint64_t Endpoint::try_job(std::uint32_t index, std::uint64_t now) {
  State& state = states_[index];
  const Move& move = program_.moves[index];
  if (state.ready > now) return kNever;  // a look is due then
  const std::uint32_t segment = state.next;
  const std::uint32_t bytes = segment_bytes(state, segment), words = costs_.instant ? 0 : words_of(bytes);
  for (const std::uint32_t back : {move.segment_dependency0, move.segment_dependency1}) {
    if (back != 0 && states_[index - back].made <= segment) return kNever;
  }
  for (const Peer& peer : state.sources) {
    for (std::uint32_t i = retired_; i < index; ++i) {
      if (states_[i].next < states_[i].segments && takes_from(states_[i], peer.rank)) return kNever;
    }
  }
  // What has come: past the buffers if it can go at once, else from them.
  const bool stored_only = state.sources.size() > 1 || state.destinations.size() > 1;
  bool from_buffer = false;
  std::uint64_t later = 0;
  for (const Peer& peer : state.sources) {
    const auto found = inbox_.find({peer.rank, peer.message});
    if (found == inbox_.end() || found->second.size() <= segment) return kNever;
    const Segment& come = found->second[segment];
    constexpr std::uint64_t kOffer = 12;  // cycles in which a segment at the head of Rx can still go past
    const bool past = !stored_only && now <= come.ready + kOffer;
    if (past) continue;
    from_buffer = true;
    later = std::max(later, come.stored);
  }
  if (later > now) return later;
  for (const Peer& peer : state.destinations) {
    if (state.bytes <= costs_.eager_limit) continue;
    const auto granted = granted_to_us_.find({peer.rank, peer.message});
    if (granted == granted_to_us_.end() || granted->second <= segment) return kNever;
  }
  if (!state.destinations.empty() && outlet_.waiting_words() + reserved_words_ + words + 1 > costs_.transport_words &&
      outlet_.waiting_words() + reserved_words_ != 0) {
    return kNever;
  }

  const bool op0 = move.op0.kind == OperandKind::kMemory && bytes != 0;
  const bool reads = op0 || move.op1.kind == OperandKind::kMemory || from_buffer;
  const bool folds = (op0 && move.op1.kind != OperandKind::kNone) || state.sources.size() > 1;
  const bool local = move.local.kind == OperandKind::kMemory && bytes != 0;
  const bool send_lane = state.sources.empty() && !folds && !local;
  std::uint64_t& lane = costs_.parallel_ports ? state.lane : send_lane ? send_free_ : compute_free_;
  std::uint64_t first = now + (reads ? costs_.read : costs_.pass);
  if (!state.sources.empty() && !state.destinations.empty()) first += costs_.onward;
  if (state.sources.empty() && move.segment_dependency0 != 0) first += costs_.follow;
  if (!state.destinations.empty() && segment == 0 && state.bytes > costs_.eager_limit) first += costs_.granted;
  std::uint64_t time = std::max(first, lane);
  const auto jobs_for = [this](const std::vector<Peer>& peers) {
    return costs_.parallel_ports || peers.empty() ? 1U : static_cast<std::uint32_t>(peers.size());
  };
  const std::uint32_t inputs = jobs_for(state.sources), outputs = jobs_for(state.destinations);
  std::uint64_t end = time;
  const std::uint64_t pace = bytes == 0 ? costs_.list_signal : outputs > 1 ? costs_.list_job : costs_.fan_in_job;
  for (std::uint32_t o = 0; o < outputs; ++o) {
    // A list is a job for each of its peers, one behind the other; an accumulator goes through the operator once for
    // each message.
    for (std::uint32_t i = 0; i < inputs; ++i) {
      time = std::max(time, first + (std::uint64_t{o} * inputs + i) * pace) + words;
    }
    end = time + (folds ? costs_.fold : 0) + child_of(costs_, move, state.sources.size()) * state.sources.size();
    const std::size_t last = costs_.parallel_ports ? state.destinations.size() : o + 1;
    for (std::size_t p = o; p < std::min(last, state.destinations.size()); ++p) {
      reserved_words_ += words + 1;
      if (!costs_.parallel_ports) in_tx_.add(now + costs_.announce, end + costs_.leave);
      post(end + costs_.leave, What::kLeave, 0,
           {ModelHeader::Kind::kData, rank_, state.destinations[p].message, 0, bytes}, state.destinations[p].rank);
    }
  }
  lane = time;
  std::uint64_t done = end + (state.destinations.empty() ? 0 : costs_.leave);
  if (local) {
    const std::uint64_t burst = words == 0 ? 0 : (words - 1) % costs_.burst_words + 1;
    done = std::max(done, end + burst + costs_.write + (words > costs_.burst_words ? costs_.further_burst : 0));
  }
  post(done + costs_.retire, What::kMade, index);
  ++state.next;
  const std::uint64_t jobs = std::uint64_t{inputs} * outputs;
  dispatcher_free_ = now + costs_.dispatch + (jobs - 1) * pace;
  post(dispatcher_free_, What::kLook, 0);
  grant_more(state, now);
  return 0;
}

void Endpoint::look(std::uint64_t now) {
  if (dispatcher_free_ > now) return;  // a look is due then
  const std::uint32_t end = std::min<std::uint32_t>(given_, retired_ + 32);
  std::uint64_t again = kNever;
  for (std::uint32_t i = retired_; i < end; ++i) {
    State& state = states_[i];
    if (may_issue(i, now)) return issue(i, now);
    if (!state.issued || state.next == state.segments) continue;
    const std::uint64_t when = try_job(i, now);
    if (when == 0) return;
    again = std::min(again, when);
  }
  if (again != kNever) post(again, What::kLook, 0);
}

}  // namespace unisono::sim
