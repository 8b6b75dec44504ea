#include "engine/plan.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/signature.hpp"
#include "core/user_op.hpp"
#include "engine/copy_class.hpp"
#include "engine/loans.hpp"
#include "engine/move_stream.hpp"

namespace unisono::cclo {

namespace {

LaneProgram lowered(const Algorithm& algorithm, const Program& program, std::uint32_t size, bool named,
                    double post_scale) {
  std::optional<LoweredProgram> result = lower(program, size);
  if (!result) {
    throw Error(ErrorCode::kInternal, std::string("algorithm ") + algorithm.name +
                                          " uses what lanes do not carry; it must not be one of this collective");
  }
  return {&algorithm, LastNumber::of(&algorithm, !named), short_factor_bits(post_scale), std::move(*result)};
}

/// Bytes of src and dst.
std::array<std::uint64_t, 2> bytes_of_regions(const Call& call) {
  const Footprint used = footprint_of(call);
  return {used.src * element_bytes(call), used.dst * element_bytes(call)};
}

/// Whether all messages that come to a rank are stored, and no more.
bool only_stores(const LoweredProgram& program) {
  return std::all_of(program.moves.begin(), program.moves.end(), [](const WindowedMove& move) {
    return move.from.count == 0 || (move.only_stores() && move.follows[0] == 0);
  });
}

/// The same of the other ranks, in a collective that reduces: in an exclusive scan of two ranks it is so.
bool others_only_store(const Call& call, const Algorithm& algorithm, const PlanTerms& terms) {
  constexpr std::uint32_t kMostRanks = 16;  // whose programs are worth a look
  if (call.size > kMostRanks) return false;
  Call other = call;
  for (other.rank = 0; other.rank < call.size; ++other.rank) {
    if (other.rank == call.rank) continue;
    const auto checked = check_program(record(algorithm, other), call.size, terms.capability, call.direct);
    const auto lowered = lower(checked->program, call.size);
    if (!lowered || !only_stores(*lowered)) return false;
  }
  return true;
}

/// Adds what a call on the lanes needs beside its program.
void lower_plan(Plan& plan, const Algorithm& algorithm, bool named, const PlanTerms& terms) {
  const Call& call = plan.call;
  plan.lanes = true;
  plan.must_be_direct = algorithm.direct;
  plan.least_lent = copied_from(call.collective, call.size, terms.tuning.crowded, *terms.copy_from);
  (algorithm.direct ? plan.direct : plan.plain) =
      lowered(algorithm, plan.checked->program, call.size, named, terms.post_scale);
  // How long the messages of a plan that varies are is not known.
  plan.lends = (plan.varies || plan.plain.lowered.longest_message >= Loans::kWorthIt) &&
               only_stores(plan.plain.lowered) &&
               (!facts_of(call.collective).reduces || (!plan.varies && others_only_store(call, algorithm, terms)));
  if (!named && call.size > 1) {
    Call direct = call;
    direct.direct = true;
    const int position = choose_algorithm(direct, terms.tuning);
    const Algorithm* best = position < 0 ? nullptr : &algorithms()[static_cast<std::size_t>(position)];
    if (best != nullptr && best->direct) {
      const auto checked = check_program(record(*best, direct), call.size, terms.capability, true);
      plan.direct = lowered(*best, checked->program, call.size, named, terms.post_scale);
    }
  }
  if (plan.direct.algorithm == nullptr) {
    const std::int64_t most = shm::LaneSet::small_bytes_for(call.size);
    if (!plan.varies && most >= 0 && call.count * element_bytes(call) <= static_cast<std::uint64_t>(most)) {
      plan.first_set = 0;
      plan.set_mask = shm::kSmallSets - 1;
    }
    return;
  }
  plan.shows_addresses = call.size > 1 && call.count != 0;
  plan.may_copy =
      plan.must_be_direct || call.count * element_bytes(call) >=
                                 copied_from(call.collective, call.size, terms.tuning.crowded, *terms.copy_from);
  for (std::uint32_t peer = 0; peer < call.size; ++peer) {
    Call of_peer = call;
    of_peer.rank = peer;
    plan.peer_bytes.push_back(bytes_of_regions(of_peer));
  }
  if (call.size == 1 || call.rank == call.root || call.in_place || !in_place_at_root(call.collective)) return;
  Call in_place = call;
  in_place.direct = in_place.in_place = true;
  const Algorithm& direct = *plan.direct.algorithm;
  const auto checked = check_program(record(direct, in_place), call.size, terms.capability, true);
  plan.direct_in_place = lowered(direct, checked->program, call.size, named, terms.post_scale);
  in_place.rank = call.root;
  plan.root_bytes_in_place = bytes_of_regions(in_place);
}

void sign(Plan& plan, const AgreedTerms& agreed, bool hardware_peers) {
  plan.head = head_of(plan.call) | (plan.varies ? kVaryingHead : 0);
  plan.signature = signature_of(signed_call(plan.call, hardware_peers), agreed);
  plan.post_scale = agreed.post_scale;
  plan.record = RecordEntry::of(plan.call, plan.signature, 0, plan.post_scale);
}

/// Ranks that the program of a call may name: members, and switches behind them.
std::uint32_t ranks_named(const Call& call) {
  const bool switches = call.tree != nullptr && !call.tree->stand_in;
  return call.size + (switches ? call.tree->switches : 0);
}

}  // namespace

bool carried_by_lanes(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.known && facts.kind == CallKind::kCollective;
}

std::shared_ptr<const Plan> make_plan(const Call& call, const Algorithm& algorithm, bool named,
                                      const PlanTerms& terms) {
  auto made = std::make_shared<Plan>();
  made->call = call;
  made->algorithm = &algorithm;
  made->number = static_cast<std::uint32_t>(&algorithm - algorithms().data()) + 1;
  Call generated = call;
  if (facts_of(call.collective).vectors) {
    made->varies = true;
    generated.count = largest_of_class(call.count);
    made->counts = served_with(call, named, terms.tuning);
    made->call.count = made->counts.least;
  } else {
    const auto [src, dst] = bytes_of_regions(call);
    made->src_bytes = src;
    made->dst_bytes = dst;
  }
  const auto checked = check_program(record(algorithm, generated), ranks_named(call), terms.capability, call.direct);
  made->checked = checked;
  const bool lanes = terms.copy_from != nullptr && carried_by_lanes(call.collective);
  if (lanes) lower_plan(*made, algorithm, named, terms);
  if (checked->move_count > kMostKeptMoves) {
    checked->made_by = &algorithm;
    checked->made_for = generated;
    checked->program.moves = std::vector<Move>();
  } else {
    checked->program.moves.shrink_to_fit();
  }
  // On lanes what was chosen may differ from what runs: all ranks find out together.
  sign(*made,
       {lanes && !named ? 0 : made->number, terms.eager_limit, Datatype::kNone, identity_of(call.func),
        terms.post_scale},
       terms.hardware_peers);
  return made;
}

std::shared_ptr<const Plan> make_plan(const Call& call, const std::shared_ptr<const Program>& program,
                                      const PlanTerms& terms, bool carried) {
  auto made = std::make_shared<Plan>();
  made->call = call;
  made->user = program;
  made->checked = check_program(*program, call.size, terms.capability);
  if (made->checked->sends_to_ports && terms.hardware_peers) {
    throw Error(ErrorCode::kUnsupported,
                "its moves send to stream ports of peers, which devices do not do; send a message, and let a move of "
                "the peer keep it in the port");
  }
  made->lanes = carried && terms.copy_from != nullptr;
  if (made->lanes) {
    made->plain.lowered = lower_windowed(*program, call.size);
    // What the programs of others do with it is not known here: a rank that combines it will decline.
    made->lends = made->plain.lowered.longest_message >= Loans::kWorthIt && only_stores(made->plain.lowered);
    made->least_lent = terms.copy_from->exchange;
  }
  constexpr std::uint32_t kOnLanes = ~std::uint32_t{0};  // so that ranks which go different ways find out
  sign(*made, {made->lanes ? kOnLanes : 0, terms.eager_limit, Datatype::kNone, identity_of(call.func)},
       terms.hardware_peers);
  return made;
}

std::size_t PlanCache::Hash::operator()(const Key& key) const {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.source);
  const auto mix = [&](std::uint64_t value) {
    hash ^= value;
    hash *= 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29U;
  };
  const Call& call = key.call;
  mix(head_of(call));
  mix(call.count);
  if (call.radix != 0) mix(call.radix);
  if (key.factor != 0) mix(key.factor);
  return hash;
}

std::shared_ptr<const Plan> PlanCache::find(const Key& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().plan;
}

void PlanCache::insert(const Key& key, std::shared_ptr<const Plan> plan) {
  moves_ += plan->kept_moves();
  entries_.push_front({key, std::move(plan)});
  index_[key] = entries_.begin();
}

void PlanCache::trim() {
  for (auto entry = entries_.end(); full() && entry != entries_.begin();) {
    --entry;
    if (entry->plan.use_count() != 1) continue;  // in front, or of a call in flight
    for (Past& past : past_) {
      if (past.plan.load(std::memory_order_relaxed) == entry->plan.get()) {
        past.plan.store(nullptr, std::memory_order_relaxed);
      }
    }
    moves_ -= entry->plan->kept_moves();
    index_.erase(entry->key);
    entry = entries_.erase(entry);
  }
}

Plan::Counts served_with(const Call& call, bool named, const Tuning& tuning) {
  Plan::Counts counts{least_of_class(call.count), largest_of_class(call.count)};
  if (named || call.count == kUnknownCount) return counts;
  const std::uint64_t element = element_bytes(call);
  const ByteRange alike = same_choice(call, tuning);
  counts.least = std::max(counts.least, (alike.least + element - 1) / element);
  counts.most = std::min(counts.most, alike.most / element);
  return counts;
}

PlanCache::PastLaunch PlanCache::past(std::uint32_t sequence) const {
  const Past& entry = past_[sequence % kPast];
  const Plan* plan = entry.plan.load(std::memory_order_acquire);
  if (plan == nullptr || entry.sequence.load(std::memory_order_relaxed) != sequence) return {};
  Call call = plan->call;
  if (plan->varies) call.count = entry.count.load(std::memory_order_relaxed);
  return {plan, call};
}

}  // namespace unisono::cclo
