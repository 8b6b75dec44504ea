#include "engine/admit.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/by_position.hpp"
#include "core/operators.hpp"
#include "core/reserved_tags.hpp"
#include "core/signature.hpp"
#include "core/user_op.hpp"
#include "engine/fast_path.hpp"
#include "engine/plan.hpp"
#include "engine/state.hpp"

namespace unisono::cclo {
namespace {

constexpr std::uint64_t kUnbounded = kBeyondAnyBuffer;

/// Saturating product, for sizes that no buffer has.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kUnbounded ? kUnbounded : product;
}

unsigned capability_bit(Func func) { return is_user(func) ? 15 : static_cast<unsigned>(func); }

/// One rank's admission of one call.
class Admission {
 public:
  Admission(const CallRequest& request, CallState& state)
      : request_(request),
        state_(state),
        communicator_(*state.communicator),
        call_(state.call),
        refusal_{"call", state.communicator} {}

  void run() {
    fields();
    vectors();
    buffers();
    plan();
    if (state_.streams) place_streams();
    bind();
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const { refusal_(code, what); }

  void fields() {
    call_ = request_.call;
    state_.operation = request_.operation;
    state_.post_scale = request_.post_scale;
    const Collective c = call_.collective;
    if (!is_known(c)) {
      refuse(ErrorCode::kInvalidArgument, "collective " + std::to_string(static_cast<unsigned>(c)) + " is not known");
    }
    refusal_.operation = name_of(c);
    facts_ = facts_of(c);
    call_.rank = communicator_.rank;
    call_.size = communicator_.size;
    call_.group_size = communicator_.grouping.size;
    call_.groups = communicator_.grouping.list;
    if (!is_known(call_.dtype)) {
      refuse(ErrorCode::kInvalidDatatype,
             "datatype " + std::to_string(static_cast<unsigned>(call_.dtype)) + " is not known");
    }
    if (!is_known(call_.func)) {
      refuse(ErrorCode::kInvalidOp, "op " + std::to_string(static_cast<unsigned>(call_.func)) + " is not known");
    }
    check_operands(call_, refusal_);
    if (facts_.reduces) {
      const bool supported = (communicator_.capability.datatypes >> static_cast<unsigned>(call_.dtype) & 1U) != 0 &&
                             (communicator_.capability.funcs >> capability_bit(call_.func) & 1U) != 0;
      if (!supported) {
        refuse(ErrorCode::kUnsupported,
               std::string("the engine of some member lacks ") + name_of(call_.func) + " of " + name_of(call_.dtype));
      }
    } else if (c != Collective::kProgram) {
      call_.func = Func::kNone;
    }
    if (!facts_.in_place) call_.in_place = false;
    if (facts_.rooted) {
      check_root(c, call_.root, call_.size, refusal_);
      if (in_place_at_root(c) && call_.rank != call_.root && !communicator_.hardware_peers) call_.in_place = false;
    } else {
      call_.root = 0;
    }
    if (!facts_.data && c != Collective::kProgram) {
      call_.count = 0;
      call_.dtype = Datatype::kNone;
    }
    if (call_.count > kMaxCount) {
      refuse(ErrorCode::kInvalidCount,
             "count " + std::to_string(call_.count) + " was given; allowed are 0 to " + std::to_string(kMaxCount));
    }
    if (facts_.point_to_point) {
      if (!request_.reserved_tag) check_tag(request_.tag, refusal_);
      state_.tag = request_.tag;
      if (c == Collective::kSend && request_.dst_port >= 0) {
        port(request_.dst_port);
        state_.tag = stream_tag(static_cast<std::uint32_t>(request_.dst_port));
      }
    }
    wanted();
    state_.space = facts_.point_to_point ? CallState::Space::kPointToPoint
                   : facts_.local        ? CallState::Space::kLocal
                                         : CallState::Space::kCollective;
    const bool one_sided = facts_.local && facts_.rooted;
    state_.window_offset = one_sided ? request_.window_offset : 0;
    if (state_.window_offset > kMaxWindowOffset) {
      refuse(ErrorCode::kInvalidArgument, "window offset " + std::to_string(state_.window_offset) +
                                              " was given; allowed are 0 to " + std::to_string(kMaxWindowOffset));
    }
  }

  /// Which message a receive takes.
  void wanted() const {
    const bool wild = request_.any_source || request_.any_tag;
    if ((wild || request_.probe) && call_.collective != Collective::kRecv) {
      refuse(ErrorCode::kInvalidArgument, "any source, any tag and probes are of receives only");
    }
    if (const std::string why = wildcard_in_hardware(request_); communicator_.hardware_peers && !why.empty()) {
      refuse(ErrorCode::kUnsupported, why);
    }
    state_.wanted = {call_.root, state_.tag, request_.any_source, request_.any_tag};
    state_.probe = request_.probe;
  }

  /// Elements from the begin of the buffer to the end of the last block.
  std::uint64_t extent(const std::uint64_t* counts, const std::uint64_t* displacements, const char* what) const {
    std::uint64_t packed = 0;
    std::uint64_t end = 0;
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
      if (counts[rank] > kMaxCount) {
        refuse(ErrorCode::kInvalidCount, std::string(what) + " count of rank " + std::to_string(rank) + " is " +
                                             std::to_string(counts[rank]) + "; allowed are 0 to " +
                                             std::to_string(kMaxCount));
      }
      const std::uint64_t begin = displacements != nullptr ? displacements[rank] : packed;
      if (begin > kUnbounded) {
        refuse(ErrorCode::kInvalidCount, std::string(what) + " displacement of rank " + std::to_string(rank) + " is " +
                                             std::to_string(begin) + "; allowed are 0 to " +
                                             std::to_string(kUnbounded));
      }
      packed += counts[rank];
      if (counts[rank] != 0) end = std::max(end, begin + counts[rank]);
    }
    return end;
  }

  std::uint64_t sum(const std::uint64_t* counts) const {
    std::uint64_t total = 0;
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) total += counts[rank];
    return total;
  }

  const std::uint64_t* needed(const std::uint64_t* counts, const char* what) const {
    if (counts == nullptr) refuse(ErrorCode::kInvalidArgument, std::string("it needs ") + what + " of every rank");
    return counts;
  }

  void vectors() {
    if (!facts_.vectors) return;
    const VectorSides sides = sides_of(call_.collective, call_.in_place);
    // A rank sees its own counts only. In place, the call's count is a bound of all blocks that the ranks have agreed
    // on, or kUnknownCount if they have not; the algorithms say whether they need it.
    if (!sides.own && !call_.in_place) call_.count = 0;
    if (request_.params.data != nullptr) {
      // The counts stand in the params, in the algorithm's own form. What is bound is what may be touched.
      if (!sums_up()) call_.count = kUnknownCount;
      bound_ = true;
      return;
    }
    if (request_.vectors == nullptr) refuse(ErrorCode::kInvalidArgument, "it needs counts of every rank");
    const VectorArguments& v = *request_.vectors;
    const bool elsewhere = facts_.rooted && call_.rank != call_.root;
    if (elsewhere && counts_at_root(call_.collective) && v.send_counts == nullptr && v.recv_counts == nullptr) {
      own_count(v.own);
      return;
    }
    // Where there is a root, the others know of no displacements.
    const bool places = !elsewhere;
    if (sides.send) {
      needed(v.send_counts, "send counts");
      blocks_.send = extent(v.send_counts, places ? v.send_displacements : nullptr, "send");
    }
    if (sides.recv) {
      needed(v.recv_counts, "receive counts");
      blocks_.recv = extent(v.recv_counts, places ? v.recv_displacements : nullptr, "receive");
    }
    if (sides.own) {
      const std::uint64_t* counts = sides.send ? v.send_counts : v.recv_counts;
      call_.count = sums_up() ? sum(counts) : kUnknownCount;
      blocks_.own = counts[call_.rank];
    } else if (call_.in_place && call_.count != kUnknownCount) {
      check_bound(v.recv_counts);
    }
  }

  /// Whether the sum of all counts is part of the call, so that every rank must know it. Where the root's counts are
  /// enough, it is only if the algorithm that the user named uses it: what is chosen for a call must not depend on what
  /// some ranks do not know. Engines in hardware always have it.
  bool sums_up() const {
    if (!counts_at_root(call_.collective) || communicator_.hardware_peers) return true;
    if (request_.algorithm == -1) return false;
    const Algorithm& named = algorithm(request_.algorithm);
    Call unknown = call_;
    unknown.count = kUnknownCount;
    return named.admits != nullptr && !named.admits(unknown);
  }

  /// The counts of a rank that knows its own only.
  void own_count(std::uint64_t count) {
    const std::string rank = "this rank, which is not the root, gives no count but its own";
    if (communicator_.hardware_peers) {
      refuse(ErrorCode::kUnsupported, rank + "; engines in hardware need the counts of every rank on every rank");
    }
    if (sums_up()) {
      refuse(ErrorCode::kUnsupported, rank + "; the algorithm \"" + algorithm(request_.algorithm).name +
                                          "\" needs the counts of every rank. Give them on every rank, or name no "
                                          "algorithm, or linear");
    }
    if (count > kMaxCount) {
      refuse(ErrorCode::kInvalidCount,
             "count " + std::to_string(count) + " was given; allowed are 0 to " + std::to_string(kMaxCount));
    }
    call_.count = kUnknownCount;
    blocks_.own = count;
  }

  void check_bound(const std::uint64_t* counts) const {
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
      if (counts[rank] <= call_.count) continue;
      refuse(ErrorCode::kInvalidCount, "receive count of rank " + std::to_string(rank) + " is " +
                                           std::to_string(counts[rank]) + "; the call's count, " +
                                           std::to_string(call_.count) + ", bounds the blocks");
    }
  }

  void buffer(const char* name, const Binding& given, std::uint64_t elements) const {
    const std::uint64_t bytes = times(elements, bytes_of(call_.dtype));
    if (bytes == 0) return;
    if (given.data == nullptr) {
      refuse(ErrorCode::kBufferTooSmall, std::string(name) + " is null; " + std::to_string(elements) + " elements of " +
                                             name_of(call_.dtype) + " (" + std::to_string(bytes) +
                                             " bytes) are needed");
    }
    if (given.bytes < bytes) {
      refuse(ErrorCode::kBufferTooSmall, std::string(name) + " has " + std::to_string(given.bytes) + " bytes; " +
                                             std::to_string(elements) + " elements of " + name_of(call_.dtype) + " (" +
                                             std::to_string(bytes) + " bytes) are needed");
    }
  }

  void port(std::int64_t number) const { check_port(number, refusal_.title()); }

  /// Enters a region whose elements come from a port or go to one.
  void stream(Region region, StreamSide side, std::int8_t number, std::uint64_t bytes) {
    if (number < 0) return;
    state_.streams->bounds.push_back({region, side, static_cast<std::uint8_t>(number), bytes});
  }

  /// Refuses gaps between the elements of a stream.
  void packed(const char* name, const std::uint64_t* counts, const std::uint64_t* displacements) const {
    if (counts == nullptr || displacements == nullptr) return;
    std::uint64_t at = 0;
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
      if (counts[rank] != 0 && displacements[rank] != at) {
        refuse(ErrorCode::kUnsupported, std::string(name) + " is a stream port, and the block of rank " +
                                            std::to_string(rank) + " is displaced to element " +
                                            std::to_string(displacements[rank]) + ", not to " + std::to_string(at) +
                                            "; blocks of a stream come one behind the other. Leave displacements out");
      }
      at += counts[rank];
    }
  }

  /// What of src and dst are streams; `src` and `dst` are bytes that the call uses.
  void streams(std::uint64_t src, std::uint64_t dst) {
    state_.streams = std::make_unique<CallStreams>();
    if (facts_.vectors && request_.vectors != nullptr && (!facts_.rooted || call_.rank == call_.root)) {
      const VectorArguments& v = *request_.vectors;
      const bool reduces = facts_.reduces;  // whose blocks are those of the source
      if (request_.src_port >= 0) {
        packed("src", v.send_counts, v.send_displacements);
        if (reduces) packed("src", v.recv_counts, v.recv_displacements);
      }
      if (request_.dst_port >= 0 && (!reduces || call_.in_place)) packed("dst", v.recv_counts, v.recv_displacements);
    }
    if (request_.src_port >= 0) port(request_.src_port);
    stream(Region::kSrc, StreamSide::kToEngine, request_.src_port, src);
    if (request_.dst_port < 0 || call_.collective == Collective::kSend) return;
    port(request_.dst_port);
    const Uses uses = uses_of(call_);
    // What a broadcast's root sends it has.
    const bool writes =
        uses.writes != Extent::kNothing && (call_.collective != Collective::kBcast || call_.rank != call_.root);
    if (uses.reads != Extent::kNothing) stream(Region::kDst, StreamSide::kToEngine, request_.dst_port, dst);
    if (writes) stream(Region::kDst, StreamSide::kToKernel, request_.dst_port, dst);
  }

  /// Enters the ports that the moves of a program name.
  void name_ports(const CheckedProgram& checked) {
    if (!state_.streams) state_.streams = std::make_unique<CallStreams>();
    for (std::uint32_t number = 0; number < StreamPorts::kPorts; ++number) {
      if ((checked.ports_to_engine >> number & 1U) != 0) state_.streams->use(StreamSide::kToEngine, number);
      if ((checked.ports_to_kernel >> number & 1U) != 0) state_.streams->use(StreamSide::kToKernel, number);
    }
    if (checked.sends_to_ports) state_.streams->to_ports.resize(kWindow);
  }

  /// Decides whether moves go to the ports themselves. They cannot where others are to reach the region, as over lanes,
  /// nor where the program takes elements twice, or in another order than theirs.
  void place_streams() {
    CallStreams& streams = *state_.streams;
    const CheckedProgram& checked = *state_.program;
    const bool by_messages = !state_.plan->lanes && communicator_.fast_path == nullptr;
    for (CallStreams::Bound& bound : streams.bounds) {
      const auto number = static_cast<std::size_t>(bound.region);
      const bool once = bound.side == StreamSide::kToEngine ? checked.reads_once[number] : checked.writes_once[number];
      bound.staged = !by_messages || !once || checked.writes_params || checked.extents[number] != bound.bytes;
      streams.use(bound.side, bound.port);
      Binding& region = state_.regions[number];
      region = {nullptr, bound.bytes};
      if (!bound.staged) continue;
      std::vector<std::byte>& memory = streams.memory[static_cast<std::size_t>(bound.region)];
      try {
        memory.resize(bound.bytes);
      } catch (const std::exception&) {
        refuse(ErrorCode::kOutOfMemory, std::to_string(bound.bytes) + " bytes for the elements of stream port " +
                                            std::to_string(bound.port) + " could not be had");
      }
      region.data = memory.data();
    }
  }

  void buffers() {
    if (call_.collective == Collective::kProgram || bound_) {
      if (request_.streams()) {
        refuse(ErrorCode::kUnsupported,
               "src or dst is a stream port; the moves of a program name the ports that they use, and its regions are "
               "memory");
      }
      state_.regions[static_cast<std::size_t>(Region::kSrc)] = request_.src;
      state_.regions[static_cast<std::size_t>(Region::kDst)] = request_.dst;
      check_disjoint(call_.collective, request_.src, request_.dst, refusal_);
      return;
    }
    const auto [src, dst] = footprint_of(call_, blocks_);
    const std::uint64_t element = element_bytes(call_);
    if (request_.streams()) streams(times(src, element), times(dst, element));
    if (request_.src_port < 0) buffer("src", request_.src, src);
    if (request_.dst_port < 0) buffer("dst", request_.dst, dst);
    const Binding used_src = src == 0 ? Binding{} : Binding{request_.src.data, src * element};
    const Binding used_dst = dst == 0 ? Binding{} : Binding{request_.dst.data, dst * element};
    check_disjoint(call_.collective, used_src, used_dst, refusal_);
    state_.regions[static_cast<std::size_t>(Region::kSrc)] = used_src;
    state_.regions[static_cast<std::size_t>(Region::kDst)] = used_dst;
  }

  PlanTerms terms() const {
    return {communicator_.capability,         communicator_.tuning,
            communicator_.agreed.eager_limit, communicator_.fast_path ? &communicator_.fast_path->copy_from() : nullptr,
            communicator_.hardware_peers,     post_scale()};
  }

  /// The factor of the result, as the members compare it: engines in hardware do not.
  double post_scale() const { return communicator_.hardware_peers ? 1 : request_.post_scale; }

  /// Finds the plan of the call, or makes it.
  void plan() {
    PlanCache::Key key{call_, nullptr, identity_of(call_.func), factor_bits(post_scale())};
    const Algorithm* named = nullptr;
    if (call_.collective == Collective::kProgram) {
      key.source = user_program().get();
    } else if (request_.algorithm != -1) {
      key.source = named = &algorithm(request_.algorithm);
    }
    // Of a v-collective the counts that one plan serves are in the key, for they change from call to call.
    const std::uint64_t count = call_.count;
    if (facts_.vectors) key.call.count = served_with(call_, named != nullptr, communicator_.tuning).least;
    state_.plan = communicator_.plans->find(key);
    if (state_.plan == nullptr) {
      state_.plan = call_.collective == Collective::kProgram ? plan_of_program() : plan_of_algorithm(named);
      communicator_.plans->insert(key, state_.plan);
      if (communicator_.fast_path) {
        communicator_.fast_path->trim_plans();
      } else {
        communicator_.plans->trim();
      }
    }
    const Plan& plan = *state_.plan;
    call_ = plan.call;
    state_.algorithm = plan.algorithm;
    state_.program = plan.checked;
    state_.signature = plan.signature;
    if (!plan.varies) return;
    call_.count = count;
    state_.signature =
        plan.lanes
            ? plan.signature_for(count)
            : signature_of(signed_call(call_, communicator_.hardware_peers),
                           {plan.number, communicator_.agreed.eager_limit, Datatype::kNone, key.op, plan.post_scale});
  }

  const std::shared_ptr<const Program>& user_program() const {
    if (request_.program == nullptr) refuse(ErrorCode::kInvalidArgument, "no program was given");
    if (!communicator_.capability.programs) {
      refuse(ErrorCode::kUnsupported, "the engine of some member takes no programs of the user");
    }
    if (request_.algorithm != -1) refuse(ErrorCode::kInvalidArgument, "an algorithm was given; a program has none");
    return request_.program;
  }

  std::shared_ptr<const Plan> plan_of_program() const {
    try {
      return make_plan(call_, request_.program, terms(), request_.lanes_carry);
    } catch (const Error& error) {
      refuse(error.code(), error.what());
    }
  }

  /// The algorithm of a position in the table.
  const Algorithm& algorithm(int position) const {
    const std::span<const Algorithm> table = algorithms();
    if (position < 0 || static_cast<std::size_t>(position) >= table.size() ||
        table[static_cast<std::size_t>(position)].collective != call_.collective) {
      refuse(ErrorCode::kUnknownAlgorithm,
             "algorithm number " + std::to_string(position) + " was given, which is none of this operation's");
    }
    return table[static_cast<std::size_t>(position)];
  }

  /// By the rules. The switches that serve this communicator, if some do, are among the algorithms.
  const Algorithm& automatic() {
    Call seen = call_;
    seen.tree = communicator_.tree;
    const Choice choice = choose(seen, communicator_.tuning);
    if (choice.radix != 0) call_.radix = choice.radix;
    if (choice.position < 0) refuse(ErrorCode::kUnsupported, "no algorithm admits this call");
    return algorithm(choice.position);
  }

  /// `named`: the algorithm that the user chose; null: none.
  std::shared_ptr<const Plan> plan_of_algorithm(const Algorithm* named) {
    const Algorithm& chosen = named != nullptr ? *named : automatic();
    if (chosen.switched && communicator_.tree != nullptr) call_.tree = communicator_.tree;
    if (chosen.direct && !communicator_.fast_path) {
      refuse(ErrorCode::kUnsupported, std::string("algorithm ") + chosen.name +
                                          " reaches the memory of other ranks; the members of this communicator "
                                          "share none");
    }
    call_.direct = chosen.direct;
    radix(chosen);
    check_admits(chosen, call_, refusal_);
    try {
      return make_plan(call_, chosen, named != nullptr, terms());
    } catch (const Error& error) {
      refuse(error.code(), std::string("algorithm ") + chosen.name + ": " + error.what());
    }
  }

  /// The default radix is 0, so that equal calls have equal signatures.
  void radix(const Algorithm& chosen) {
    if (call_.radix == chosen.default_radix) call_.radix = 0;
    if (call_.radix == 0) return;
    if (chosen.default_radix == 0 || call_.radix < 2) {
      refuse(ErrorCode::kInvalidArgument,
             std::string("algorithm ") + chosen.name +
                 (chosen.default_radix != 0 ? " has a radix of 2 to 255" : " has no radix") + "; " +
                 std::to_string(call_.radix) + " was given");
    }
    if (!communicator_.capability.radices) {
      refuse(ErrorCode::kUnsupported, std::string("algorithm ") + chosen.name + " with radix " +
                                          std::to_string(call_.radix) + ": the engine of some member has radix " +
                                          std::to_string(chosen.default_radix) + " only");
    }
  }

  /// Checks memory that the request brings for a region, if it brings any.
  void provided(const char* name, const Binding& given, std::uint64_t needed) const {
    if (given.data == nullptr || given.bytes >= needed) return;
    refuse(ErrorCode::kBufferTooSmall, std::string(name) + " has " + std::to_string(given.bytes) + " bytes; " +
                                           std::to_string(needed) + " are needed");
  }

  void bind() {
    const CheckedProgram& checked = *state_.program;
    const Program& program = checked.program;
    if ((checked.ports_to_engine | checked.ports_to_kernel) != 0 || checked.sends_to_ports) name_ports(checked);
    for (const Region region : {Region::kSrc, Region::kDst}) {
      const std::uint64_t bytes = checked.extents[static_cast<std::size_t>(region)];
      const Binding& bound = state_.regions[static_cast<std::size_t>(region)];
      const bool there = bound.data != nullptr || state_.streams != nullptr;
      if (bytes > (there ? bound.bytes : 0)) {
        refuse(ErrorCode::kBufferTooSmall, std::string(name_of(region)) + " has " + std::to_string(bound.bytes) +
                                               " bytes; the program uses " + std::to_string(bytes));
      }
    }
    if (program.params_bytes % 8 != 0) refuse(ErrorCode::kMalformedProgram, "params are not whole words of 8 bytes");
    const bool own_scratch = request_.scratch.data == nullptr;
    const bool own_params = request_.params.data == nullptr;
    provided("scratch", request_.scratch, program.scratch_bytes);
    provided("params", request_.params, program.params_bytes);
    try {
      if (own_scratch && state_.scratch.size() < program.scratch_bytes) state_.scratch.resize(program.scratch_bytes);
      state_.params.assign(program.params_bytes / 8, 0);
    } catch (const std::bad_alloc&) {
      refuse(ErrorCode::kOutOfMemory, std::to_string(program.scratch_bytes) + " bytes of scratch could not be had");
    }
    const Algorithm* chosen = state_.algorithm;
    if (!own_params) {
      if (program.params_bytes != 0) std::memcpy(state_.params.data(), request_.params.data, program.params_bytes);
    } else if (chosen != nullptr && chosen->fill_params != nullptr) {
      chosen->fill_params(call_, request_.vectors != nullptr ? *request_.vectors : VectorArguments{},
                          state_.params.data());
    }
    // Records and errors say how many elements this rank has, which every algorithm has at its place in the params.
    if (facts_.vectors && !sums_up()) {
      call_.count = state_.params[chosen != nullptr ? build::own_count_word(*chosen, call_) : call_.rank];
    }
    state_.regions[static_cast<std::size_t>(Region::kScratch)] = {
        own_scratch ? state_.scratch.data() : request_.scratch.data, program.scratch_bytes};
    state_.regions[static_cast<std::size_t>(Region::kParams)] = {reinterpret_cast<std::byte*>(state_.params.data()),
                                                                 program.params_bytes};
    state_.regions[static_cast<std::size_t>(Region::kWindow)] = communicator_.window;
  }

  const CallRequest& request_;
  CallState& state_;
  Communicator& communicator_;
  Call& call_;
  Refusal refusal_;
  CollectiveFacts facts_;
  VectorExtents blocks_;
  bool bound_ = false;  ///< a v-collective whose counts stand in params that were given
};

}  // namespace

std::string wildcard_in_hardware(const CallRequest& request) {
  if (!request.any_source && !request.any_tag && !request.probe) return {};
  return std::string(request.probe        ? "a probe"
                     : request.any_source ? "a receive from any source"
                                          : "a receive with any tag") +
         " is not carried out by engines in hardware; name the source and the tag of each receive, or use platform "
         "native";
}

void admit(const CallRequest& request, CallState& call) { Admission(request, call).run(); }

std::string Refusal::title() const {
  return operation + (communicator == nullptr ? std::string() : " on " + communicator->title());
}

void Refusal::operator()(ErrorCode code, const std::string& what) const { throw Error(code, title() + ": " + what); }

void check_operands(const Call& call, const Refusal& refuse) {
  const CollectiveFacts facts = facts_of(call.collective);
  if (facts.data && call.dtype == Datatype::kNone) {
    refuse(ErrorCode::kInvalidDatatype,
           "datatype none was given; allowed are " + names_of(kAllDatatype, Datatype::kNone));
  }
  if (!facts.reduces) return;
  if (call.func == Func::kNone) {
    refuse(ErrorCode::kInvalidOp, "no op was given (none); allowed are " + operators_on(call.dtype));
  }
  if (call.func == Func::kAvg && !facts.mean) {
    refuse(ErrorCode::kInvalidOp, std::string("op avg was given; it is one of ") + kTakesMean);
  }
  if (is_user(call.func) && find_user_op(call.func) == nullptr) {
    refuse(ErrorCode::kInvalidOp, "op " + std::to_string(static_cast<unsigned>(call.func)) +
                                      " is none that unisono_op_create gave and that was not freed");
  }
  if (!is_operator(call.func, call.dtype)) {
    refuse(ErrorCode::kInvalidDatatype, std::string("op ") + name_of(call.func) + " is not defined on datatype " +
                                            name_of(call.dtype) + "; it is on " + datatypes_of(call.func) + "; on " +
                                            name_of(call.dtype) + " are " + operators_on(call.dtype));
  }
}

void check_root(Collective collective, std::int64_t root, std::uint32_t size, const Refusal& refuse) {
  if (root >= 0 && root < size) return;
  const CollectiveFacts facts = facts_of(collective);
  const bool peer = facts.point_to_point || facts.local;
  refuse(ErrorCode::kInvalidRoot, std::string(peer ? "peer " : "root ") + std::to_string(root) +
                                      " was given; the communicator has ranks 0 to " + std::to_string(size - 1));
}

void check_tag(std::int64_t tag, const Refusal& refuse, const char* besides) {
  if (tag >= 0 && tag <= static_cast<std::int64_t>(kMaxUserTag)) return;
  refuse(ErrorCode::kInvalidArgument,
         "tag " + std::to_string(tag) + " was given; allowed are 0 to " + std::to_string(kMaxUserTag) + besides);
}

void check_disjoint(Collective collective, const Binding& src, const Binding& dst, const Refusal& refuse) {
  if (src.bytes == 0 || dst.bytes == 0 || src.data == nullptr || dst.data == nullptr) return;
  const auto a = reinterpret_cast<std::uintptr_t>(src.data);
  const auto b = reinterpret_cast<std::uintptr_t>(dst.data);
  if (a >= b + dst.bytes || b >= a + src.bytes) return;
  const CollectiveFacts facts = facts_of(collective);
  refuse(ErrorCode::kOverlappingBuffers, "src (" + std::to_string(src.bytes) + " bytes) and dst (" +
                                             std::to_string(dst.bytes) + " bytes) overlap; pass disjoint buffers" +
                                             (facts.in_place && facts.data ? ", or ask for the in-place form" : ""));
}

void check_admits(const Algorithm& chosen, const Call& call, const Refusal& refuse) {
  if (needs_order(call.func) && !build::keeps_order(chosen, call)) {
    refuse(ErrorCode::kUnsupported, std::string("the algorithm \"") + chosen.name +
                                        "\" does not fold in rank order, and op " + operator_name(call.func) +
                                        " does not commute");
  }
  if (chosen.admits == nullptr || chosen.admits(call)) return;
  refuse(ErrorCode::kUnsupported, std::string("the algorithm \"") + chosen.name + "\" does not admit this call (" +
                                      std::to_string(call.size) + " ranks, count " + std::to_string(call.count) +
                                      (call.in_place ? ", in place" : "") +
                                      "); its restriction: " + chosen.restriction);
}

}  // namespace unisono::cclo
