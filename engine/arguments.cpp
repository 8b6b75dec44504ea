#include "engine/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/operators.hpp"
#include "core/signature.hpp"
#include "engine/program_cache.hpp"

namespace unisono::cclo {
namespace {

constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 62U;
/// Offsets travel in 48 bits, and the largest put has 2^43 bytes.

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
      : request_(request), state_(state), communicator_(*state.communicator), call_(state.call) {}

  void run() {
    fields();
    vectors();
    buffers();
    algorithm();
    bind();
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    throw Error(code, std::string(is_known(call_.collective) ? name_of(call_.collective) : "call") + " on " +
                          communicator_.title() + ": " + what);
  }

  void fields() {
    call_ = request_.call;
    if (!is_known(call_.collective)) {
      refuse(ErrorCode::kInvalidArgument,
             "operation " + std::to_string(static_cast<unsigned>(request_.call.collective)) + " is not known");
    }
    const CollectiveFacts facts = facts_of(call_.collective);
    call_.rank = communicator_.rank;
    call_.size = communicator_.size;
    call_.group_size = communicator_.group_size;
    if (!is_known(call_.dtype)) {
      refuse(ErrorCode::kInvalidDatatype,
             "datatype " + std::to_string(static_cast<unsigned>(call_.dtype)) + " is not known");
    }
    if (!is_known(call_.func)) {
      refuse(ErrorCode::kInvalidOp, "operator " + std::to_string(static_cast<unsigned>(call_.func)) + " is not known");
    }
    if (facts.data && call_.dtype == Datatype::kNone) {
      refuse(ErrorCode::kInvalidDatatype, "datatype none was given; a datatype with elements is needed");
    }
    if (facts.reduces) {
      if (call_.func == Func::kNone) {
        refuse(ErrorCode::kInvalidOp, "operator none was given; allowed are " + operators_on(call_.dtype));
      }
      if (call_.func == Func::kAvg && !facts.mean) {
        refuse(ErrorCode::kInvalidOp, std::string("operator avg was given; it is one of ") + kTakesMean);
      }
      if (!is_operator(call_.func, call_.dtype)) {
        refuse(ErrorCode::kInvalidDatatype, std::string("operator ") + name_of(call_.func) +
                                                " is not defined on datatype " + name_of(call_.dtype) +
                                                "; allowed there are " + operators_on(call_.dtype));
      }
      const bool supported = (communicator_.capability.datatypes >> static_cast<unsigned>(call_.dtype) & 1U) != 0 &&
                             (communicator_.capability.funcs >> capability_bit(call_.func) & 1U) != 0;
      if (!supported) {
        refuse(ErrorCode::kUnsupported,
               std::string("the engine of some member lacks ") + name_of(call_.func) + " of " + name_of(call_.dtype));
      }
    } else if (facts.kind != CallKind::kProgram) {
      call_.func = Func::kNone;
    }
    if (!facts.in_place) call_.in_place = false;
    if (facts.rooted) {
      if (call_.root >= call_.size) {
        refuse(ErrorCode::kInvalidRoot, "root or peer " + std::to_string(call_.root) + " was given; ranks are 0 to " +
                                            std::to_string(call_.size - 1));
      }
    } else {
      call_.root = 0;
    }
    if (!facts.data && facts.kind != CallKind::kProgram) {
      call_.count = 0;
      call_.dtype = Datatype::kNone;
    }
    if (call_.count > kMaxCount) {
      refuse(ErrorCode::kInvalidCount,
             "count " + std::to_string(call_.count) + " was given; allowed are 0 to " + std::to_string(kMaxCount));
    }
    if (facts.point_to_point) {
      if (request_.tag > kMaxUserTag && !request_.reserved_tag) {
        refuse(ErrorCode::kInvalidArgument,
               "tag " + std::to_string(request_.tag) + " was given; allowed are 0 to " + std::to_string(kMaxUserTag));
      }
      state_.tag = request_.tag;
    }
    state_.space = facts.point_to_point ? CallState::Space::kPointToPoint
                   : facts.local        ? CallState::Space::kLocal
                                        : CallState::Space::kCollective;
    state_.window_offset = facts.kind == CallKind::kAccess ? request_.window_offset : 0;
    if (state_.window_offset > kMaxWindowOffset) {
      refuse(ErrorCode::kInvalidArgument, "window offset " + std::to_string(state_.window_offset) +
                                              " was given; allowed are 0 to " + std::to_string(kMaxWindowOffset));
    }
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
    const CollectiveFacts facts = facts_of(call_.collective);
    if (!facts.vectors) return;
    if (request_.params.data != nullptr) {
      // The counts stand in the params, in the algorithm's own form. What is bound is what may be touched.
      if (facts.pairwise() && !call_.in_place) call_.count = 0;
      bound_ = true;
      return;
    }
    if (request_.vectors == nullptr) refuse(ErrorCode::kInvalidArgument, "it needs counts of every rank");
    const VectorArguments& v = *request_.vectors;
    // Displacements count where the blocks lie.
    const Uses uses = uses_of(call_);
    const auto lies = [&](Extent part) { return uses.src == part || uses.dst == part; };
    if (facts.sends && !(facts.pairwise() && call_.in_place)) {
      needed(v.send_counts, "send counts");
      send_extent_ = extent(v.send_counts, lies(Extent::kSent) ? v.send_displacements : nullptr, "send");
    }
    if (facts.receives) {
      needed(v.recv_counts, "receive counts");
      recv_extent_ = extent(v.recv_counts, lies(Extent::kReceived) ? v.recv_displacements : nullptr, "receive");
    }
    if (facts.pairwise()) {
      // A rank sees its own counts only. In place, the call's count is a bound of all blocks that the ranks
      // have agreed on, or kUnknownCount if they have not; the algorithms say whether they need it.
      if (!call_.in_place) call_.count = 0;
      for (std::uint32_t rank = 0; call_.in_place && call_.count != kUnknownCount && rank < call_.size; ++rank) {
        if (v.recv_counts[rank] <= call_.count) continue;
        refuse(ErrorCode::kInvalidCount, "receive count of rank " + std::to_string(rank) + " is " +
                                             std::to_string(v.recv_counts[rank]) + "; the call's count, " +
                                             std::to_string(call_.count) + ", bounds the blocks");
      }
    } else {
      call_.count = sum(facts.sends ? v.send_counts : v.recv_counts);
      own_count_ = facts.sends ? v.send_counts[call_.rank] : v.recv_counts[call_.rank];
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

  void buffers() {
    if (call_.collective == Collective::kProgram || bound_) {
      state_.regions[static_cast<std::size_t>(Region::kSrc)] = request_.src;
      state_.regions[static_cast<std::size_t>(Region::kDst)] = request_.dst;
      distinct(request_.src, request_.src.bytes, request_.dst, request_.dst.bytes);
      return;
    }
    const auto [src, dst] = footprint_of(call_, {own_count_, send_extent_, recv_extent_});
    buffer("src", request_.src, src);
    buffer("dst", request_.dst, dst);
    const std::uint64_t element = bytes_of(call_.dtype);
    distinct(request_.src, src * element, request_.dst, dst * element);
    if (src != 0) state_.regions[static_cast<std::size_t>(Region::kSrc)] = {request_.src.data, src * element};
    if (dst != 0) state_.regions[static_cast<std::size_t>(Region::kDst)] = {request_.dst.data, dst * element};
  }

  void distinct(const Binding& src, std::uint64_t src_bytes, const Binding& dst, std::uint64_t dst_bytes) const {
    if (src_bytes == 0 || dst_bytes == 0 || src.data == nullptr || dst.data == nullptr) return;
    const auto a = reinterpret_cast<std::uintptr_t>(src.data);
    const auto b = reinterpret_cast<std::uintptr_t>(dst.data);
    if (a < b + dst_bytes && b < a + src_bytes) {
      refuse(ErrorCode::kOverlappingBuffers,
             "src (" + std::to_string(src_bytes) + " bytes) and dst (" + std::to_string(dst_bytes) +
                 " bytes) overlap; pass disjoint buffers" +
                 (facts_of(call_.collective).in_place ? ", or ask for the in-place form" : ""));
    }
  }

  void algorithm() {
    if (call_.collective == Collective::kProgram) {
      if (request_.program == nullptr) refuse(ErrorCode::kInvalidArgument, "no program was given");
      if (!communicator_.capability.programs) {
        refuse(ErrorCode::kUnsupported, "the engine of some member takes no programs of the user");
      }
      if (request_.algorithm != -1) refuse(ErrorCode::kInvalidArgument, "an algorithm was given; a program has none");
      try {
        state_.program = communicator_.cache->get(request_.program, call_, communicator_.capability);
      } catch (const Error& error) {
        refuse(error.code(), error.what());
      }
      return;
    }
    const std::span<const Algorithm> table = algorithms();
    int position = request_.algorithm;
    if (position == -1) {
      const Choice choice = choose(call_, communicator_.tuning);
      position = choice.position;
      if (choice.radix != 0) call_.radix = choice.radix;
      if (position < 0) refuse(ErrorCode::kUnsupported, "no algorithm admits this call");
    }
    if (position < 0 || static_cast<std::size_t>(position) >= table.size() ||
        table[static_cast<std::size_t>(position)].collective != call_.collective) {
      refuse(ErrorCode::kUnknownAlgorithm,
             "algorithm number " + std::to_string(position) + " was given, which is none of this operation's");
    }
    const Algorithm& chosen = table[static_cast<std::size_t>(position)];
    if (chosen.direct && !communicator_.express) {
      refuse(ErrorCode::kUnsupported, std::string("algorithm ") + chosen.name +
                                          " reaches the memory of other ranks; the members of this communicator "
                                          "share none");
    }
    call_.direct = chosen.direct;
    radix(chosen);
    if (chosen.admits != nullptr && !chosen.admits(call_)) {
      refuse(ErrorCode::kUnsupported,
             std::string("algorithm ") + chosen.name + " does not admit this call: " + chosen.restriction);
    }
    if (needs_order(call_.func) && !chosen.ordered) {
      refuse(ErrorCode::kUnsupported, std::string("algorithm ") + chosen.name +
                                          " does not fold in rank order, and op " + operator_name(call_.func) +
                                          " does not commute");
    }
    state_.algorithm = &chosen;
    number_ = static_cast<std::uint32_t>(position) + 1;
    try {
      state_.program = communicator_.cache->get(chosen, call_, communicator_.capability);
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
    for (const Region region : {Region::kSrc, Region::kDst}) {
      const std::uint64_t bytes = checked.extents[static_cast<std::size_t>(region)];
      const Binding& bound = state_.regions[static_cast<std::size_t>(region)];
      if (bytes > (bound.data == nullptr ? 0 : bound.bytes)) {
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
    state_.regions[static_cast<std::size_t>(Region::kScratch)] = {
        own_scratch ? state_.scratch.data() : request_.scratch.data, program.scratch_bytes};
    state_.regions[static_cast<std::size_t>(Region::kParams)] = {reinterpret_cast<std::byte*>(state_.params.data()),
                                                                 program.params_bytes};
    state_.regions[static_cast<std::size_t>(Region::kWindow)] = communicator_.window;
    state_.signature = signature_of(
        call_, AgreedTerms{number_, communicator_.agreed.eager_limit, Datatype::kNone, identity_of(call_.func)});
  }

  const CallRequest& request_;
  CallState& state_;
  Communicator& communicator_;
  Call& call_;
  std::uint32_t number_ = 0;  ///< algorithm number
  std::uint64_t send_extent_ = 0;
  std::uint64_t recv_extent_ = 0;
  std::uint64_t own_count_ = 0;
  bool bound_ = false;  ///< a v-collective whose counts stand in params that were given
};

}  // namespace

void admit(const CallRequest& request, CallState& call) { Admission(request, call).run(); }

}  // namespace unisono::cclo
