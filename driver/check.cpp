// Everything that can be known to be wrong with a call before anything is sent.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "collectives/algorithm.hpp"
#include "collectives/algorithm_name.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/quoted.hpp"
#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "driver/compression.hpp"
#include "driver/factors.hpp"
#include "driver/neighbours.hpp"
#include "driver/objects.hpp"
#include "engine/admit.hpp"
#include "engine/stream_ports.hpp"

namespace unisono::driver {

using cclo::known;

namespace {

constexpr std::uint64_t kMaxBytes = (std::uint64_t{1} << 48U) - 1;  // what a move's byte offset can name

/// Sum of counts, and where the blocks end, of one side of a v-collective.
class Blocks {
 public:
  Blocks(Collective collective, const char* side, const std::int64_t* counts, const std::int64_t* displacements,
         std::uint32_t size, std::vector<std::uint64_t>& counts_out, std::vector<std::uint64_t>& displacements_out,
         std::uint64_t most, bool disjoint)
      : most_(most), counts_(counts_out) {
    const std::string operation = name_of(collective);
    const std::string name = std::string(side) + "_counts";
    if (counts == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, operation + ": " + name + " is null; " + who_counts(collective) +
                                                   " the counts of all " + std::to_string(size) +
                                                   " ranks, in elements" +
                                                   (counts_at_root(collective) ? " (others may leave them out)" : ""));
    }
    counts_out.resize(size);
    displacements_out.resize(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      counts_out[rank] = checked(operation, name, rank, counts[rank]);
      displacements_out[rank] = displacements == nullptr ? total_
                                                         : checked(operation, std::string(side) + "_displacements",
                                                                   rank, displacements[rank]);
      total_ += counts_out[rank];
      if (counts_out[rank] > 0) extent_ = std::max(extent_, displacements_out[rank] + counts_out[rank]);
    }
    if (total_ > most_) {
      throw Error(ErrorCode::kInvalidCount, operation + ": " + name + " add up to " + std::to_string(total_) +
                                                " elements; at most " + std::to_string(most_) + " are allowed");
    }
    if (disjoint && displacements != nullptr) check_disjoint(operation, side, displacements_out);
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t extent() const { return extent_; }

 private:
  static const char* who_counts(Collective collective) {
    return counts_at_root(collective) ? "the root gives" : "every rank gives";
  }

  std::uint64_t checked(const std::string& operation, const std::string& name, std::uint32_t rank,
                        std::int64_t value) const {
    if (value < 0 || static_cast<std::uint64_t>(value) > most_) {
      throw Error(ErrorCode::kInvalidCount, operation + ": " + name + "[" + std::to_string(rank) + "] is " +
                                                std::to_string(value) + "; allowed are 0 to " + std::to_string(most_) +
                                                " elements");
    }
    return static_cast<std::uint64_t>(value);
  }

  void check_disjoint(const std::string& operation, const char* side, const std::vector<std::uint64_t>& begins) const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t rank = 0; rank < counts_.size(); ++rank) {
      if (counts_[rank] > 0) order.push_back(rank);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return begins[a] < begins[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::uint32_t before = order[i - 1];
      if (begins[before] + counts_[before] > begins[order[i]]) {
        throw Error(ErrorCode::kOverlappingBuffers,
                    operation + ": " + side + "_displacements make the blocks of ranks " + std::to_string(before) +
                        " and " + std::to_string(order[i]) + " overlap; blocks that are written must be disjoint");
      }
    }
  }

  const std::uint64_t most_;  ///< elements
  const std::vector<std::uint64_t>& counts_;
  std::uint64_t total_ = 0;
  std::uint64_t extent_ = 0;
};

Binding bind(const std::string& operation, const char* name, const void* data, std::uint64_t given_bytes,
             std::uint64_t elements, std::uint64_t element_bytes) {
  const std::uint64_t needed = elements * element_bytes;
  if (needed == 0) return {};
  if (data == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, operation + ": " + name + " is null; the call needs " +
                                                 std::to_string(elements) + " elements (" + std::to_string(needed) +
                                                 " bytes) there");
  }
  if (given_bytes < needed) {
    throw Error(ErrorCode::kBufferTooSmall,
                operation + ": " + name + " holds " + std::to_string(given_bytes / element_bytes) + " elements (" +
                    std::to_string(given_bytes) + " bytes); the call needs " + std::to_string(elements) +
                    " elements (" + std::to_string(needed) + " bytes)");
  }
  // A program never writes what is bound to src.
  return {const_cast<std::byte*>(static_cast<const std::byte*>(data)), needed};  // NOLINT(*-const-cast)
}

void check_algorithm(const unisono_call& given, Call call, const std::string& operation, CallRequest& request,
                     const Communicator& communicator) {
  call.rank = communicator.rank;
  call.size = communicator.size;
  call.group_size = communicator.grouping.size;
  call.groups = communicator.grouping.list;
  if (given.algorithm == nullptr) return;
  const AlgorithmName written(given.algorithm);
  const std::string& name = written.name;
  if (name.empty() || name == "auto") return;
  request.algorithm = find_algorithm(call.collective, name.c_str());
  if (request.algorithm < 0) {
    std::string all;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective == call.collective) all += (all.empty() ? "" : ", ") + std::string(algorithm.name);
    }
    throw Error(ErrorCode::kUnknownAlgorithm,
                operation + ": there is no algorithm " + in_quotes(name) + "; " +
                    (all.empty() ? "the operation has none to choose from" : "there are " + all));
  }
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(request.algorithm)];
  if (const std::string wrong = written.fault(algorithm); !wrong.empty()) {
    throw Error(ErrorCode::kInvalidArgument, operation + ": " + wrong);
  }
  request.call.radix = call.radix = written.radix_of_call(algorithm);
  call.direct = algorithm.direct;
  // Which switches serve a communicator is known to its engine, which looks at it, too.
  if (!algorithm.switched) cclo::check_admits(algorithm, call, {operation.c_str()});
}

}  // namespace

std::chrono::microseconds duration_of(double seconds, const char* what, const char* zero) {
  constexpr double kMost = 10.0 * 365 * 86400;
  if (!(seconds >= 0) || seconds > kMost) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{} is {} s; allowed are 0 ({}) to 10 years", what,
                          std::isnan(seconds) ? std::string("nan") : formatted("{}", seconds), zero));
  }
  const auto microseconds = std::chrono::microseconds(std::llround(seconds * 1e6));
  return seconds > 0 ? std::max(microseconds, std::chrono::microseconds(1)) : microseconds;
}

namespace {

/// Makes bytes of the elements in which the user counts, for that is what the engine does.
void scale(CheckedCall& checked, std::uint64_t element) {
  checked.request.call.count *= element;
  checked.vectors.own *= element;
  for (auto* const list :
       {&checked.send_counts, &checked.send_displacements, &checked.recv_counts, &checked.recv_displacements}) {
    for (std::uint64_t& value : *list) value *= element;
  }
}

void check_waits(const Communicator& communicator, const unisono_call& given, const std::string& operation,
                 CheckedCall& checked) {
  CallRequest& request = checked.request;
  request.timeout = duration_of(given.timeout_seconds, "timeout");

  // Calls to wait for.
  if (given.wait_for_count > 0 && given.wait_for == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                operation + ": wait_for is null, wait_for_count is " + std::to_string(given.wait_for_count));
  }
  for (std::size_t i = 0; i < given.wait_for_count; ++i) {
    const auto before = Requests::instance().get(reinterpret_cast<std::uintptr_t>(given.wait_for[i]),
                                                 "request in wait_for", ErrorCode::kInvalidArgument);
    if (before->communicator()->context != communicator.context) {
      throw Error(ErrorCode::kInvalidArgument, operation + ": request " + std::to_string(i) +
                                                   " of wait_for belongs to another context; calls wait for calls of "
                                                   "their own context only");
    }
    checked.before.push_back(before);
  }
}

}  // namespace

void check_own_elements(const std::string& operation, const unisono_call& given, bool moves) {
  const std::string what = operation + ": element_bytes is " + std::to_string(given.element_bytes);
  if (!moves) {
    throw Error(ErrorCode::kInvalidDatatype,
                what + "; the operation works on elements of a datatype, and moves none of the user's own. Leave it 0");
  }
  if (given.datatype != UNISONO_BYTE) {
    throw Error(ErrorCode::kInvalidDatatype, what + " and datatype " + std::to_string(given.datatype) +
                                                 "; elements of the user's own are of datatype byte (" +
                                                 std::to_string(UNISONO_BYTE) + ")");
  }
  if (given.element_bytes > kMaxBytes) {
    throw Error(ErrorCode::kInvalidDatatype, what + "; allowed are 0 to " + std::to_string(kMaxBytes));
  }
}

namespace {

/// The call as one of bytes: counts are of elements of the datatype of each peer, displacements are bytes.
unisono_call in_bytes(const Communicator& communicator, const unisono_call& given, CheckedCall& checked) {
  const std::string operation = "alltoallw";
  if (given.collective != UNISONO_ALLTOALLV) {
    throw Error(ErrorCode::kInvalidArgument, "send_datatypes and recv_datatypes are for alltoallv only");
  }
  unisono_call call = given;
  call.send_datatypes = call.recv_datatypes = nullptr;
  call.datatype = UNISONO_BYTE;
  call.element_bytes = 0;
  const auto convert = [&](const char* side, const unisono_datatype* types, const std::int64_t*& counts,
                           const std::int64_t*& displacements, std::vector<std::int64_t>& lengths,
                           std::vector<std::int64_t>& places) {
    if (types == nullptr || counts == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, operation + ": " + side + (types == nullptr ? "_datatypes" : "_counts") +
                                                   " is null; every rank gives one for each of the " +
                                                   std::to_string(communicator.size) + " ranks");
    }
    std::uint64_t packed = 0;
    for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
      const std::string entry = "[" + std::to_string(rank) + "]";
      const Datatype dtype = known(types[rank], kAllDatatype, (operation + ": " + side + "_datatypes" + entry).c_str(),
                                   ErrorCode::kInvalidDatatype);
      if (dtype == Datatype::kNone) {
        throw Error(ErrorCode::kInvalidDatatype, operation + ": " + side + "_datatypes" + entry +
                                                     " is none; allowed are " +
                                                     cclo::names_of(kAllDatatype, Datatype::kNone));
      }
      const std::uint64_t most = kMaxCount / bytes_of(dtype);
      if (counts[rank] < 0 || static_cast<std::uint64_t>(counts[rank]) > most) {
        throw Error(ErrorCode::kInvalidCount, operation + ": " + side + "_counts" + entry + " is " +
                                                  std::to_string(counts[rank]) + "; allowed are 0 to " +
                                                  std::to_string(most) + " elements of " + name_of(dtype));
      }
      lengths.push_back(counts[rank] * static_cast<std::int64_t>(bytes_of(dtype)));
      places.push_back(displacements == nullptr ? static_cast<std::int64_t>(packed) : displacements[rank]);
      packed += static_cast<std::uint64_t>(lengths.back());
    }
    counts = lengths.data();
    displacements = places.data();
  };
  convert("recv", given.recv_datatypes, call.recv_counts, call.recv_displacements, checked.bytes[0], checked.bytes[1]);
  if (given.in_place == 0) {
    convert("send", given.send_datatypes, call.send_counts, call.send_displacements, checked.bytes[2],
            checked.bytes[3]);
  }
  return call;
}

}  // namespace

namespace {

/// A message of a session, whose number stands in place of a tag.
void check_session(const unisono_call& given, const std::string& operation, CallRequest& request) {
  const bool sends = given.collective == UNISONO_SEND;
  const int side = sends ? UNISONO_SRC_STREAM : UNISONO_DST_STREAM;
  if ((!sends && given.collective != UNISONO_RECV) || given.streams != (UNISONO_SESSION | side)) {
    throw Error(ErrorCode::kInvalidArgument,
                operation + ": UNISONO_SESSION is for sends from a stream port, and for receives into one");
  }
  if (given.tag < 0 || given.tag >= static_cast<std::int64_t>(kSessions)) {
    throw Error(ErrorCode::kInvalidArgument, operation + ": session " + std::to_string(given.tag) +
                                                 " was given; allowed are 0 to " + std::to_string(kSessions - 1));
  }
  request.tag = session_tag(static_cast<std::uint32_t>(given.tag));
  request.reserved_tag = true;
}

/// Ports in the place of src and dst.
void check_streams(const unisono_call& given, const std::string& operation, bool scaled, CallRequest& request) {
  constexpr int kBoth = UNISONO_SRC_STREAM | UNISONO_DST_STREAM;
  if ((given.streams & UNISONO_SESSION) != 0) check_session(given, operation, request);
  if ((given.streams & ~(kBoth | UNISONO_SESSION)) != 0) {
    throw Error(ErrorCode::kInvalidArgument, operation + ": streams is " + std::to_string(given.streams) +
                                                 "; allowed are UNISONO_SRC_STREAM (1), UNISONO_DST_STREAM (2), both "
                                                 "(3), and 0");
  }
  const auto port = [&](int which, std::uint32_t number, const void* data, const char* name, std::int8_t& to) {
    if ((given.streams & which) == 0) return;
    cclo::check_port(number, operation);
    if (data != nullptr) {
      throw Error(ErrorCode::kInvalidArgument,
                  operation + ": " + name + " is a buffer and a stream port; give one of them");
    }
    to = static_cast<std::int8_t>(number);
  };
  port(UNISONO_SRC_STREAM, given.src_port, given.src, "src", request.src_port);
  port(UNISONO_DST_STREAM, given.dst_port, given.dst, "dst", request.dst_port);
  const char* const besides = given.wire_datatype != 0      ? "wire_datatype"
                              : scaled                      ? "element_bytes"
                              : given.program != nullptr    ? "a program"
                              : given.pre_scale != nullptr  ? "pre_scale"
                              : given.post_scale != nullptr ? "post_scale"
                                                            : nullptr;
  if (besides != nullptr) {
    throw Error(ErrorCode::kUnsupported,
                operation + ": src or dst is a stream port, and " + besides + " was given; only one can be");
  }
}

}  // namespace

void check_call(const Communicator& communicator, const unisono_call& given, CheckedCall& checked) {
  const bool exchange = given.graph != nullptr || given.send_datatypes != nullptr || given.recv_datatypes != nullptr;
  if (exchange && given.wire_datatype != 0) {
    throw Error(ErrorCode::kUnsupported,
                "wire_datatype was given; exchanges along a graph, or with a datatype for each pair, travel as they "
                "are. Leave it out");
  }
  if (exchange) check_no_factors("an exchange along a graph, or with a datatype for each pair", given);
  if (exchange && given.streams != 0) {
    throw Error(ErrorCode::kUnsupported,
                "a stream port was given; exchanges along a graph, or with a datatype for each pair, have buffers");
  }
  if (given.graph != nullptr) {
    check_neighbours(communicator, given, checked);
    check_waits(communicator, given, std::string("neighbour_") + name_of(static_cast<Collective>(given.collective)),
                checked);
    return;
  }
  if (given.send_datatypes != nullptr || given.recv_datatypes != nullptr) {
    check_call(communicator, in_bytes(communicator, given, checked), checked);
    return;
  }
  const Collective collective = known(given.collective, kAllCollective, "collective", ErrorCode::kInvalidArgument);
  const std::string operation = name_of(collective);
  const cclo::Refusal refuse{name_of(collective)};
  const CollectiveFacts facts = facts_of(collective);
  const std::uint32_t size = communicator.size;
  const std::uint32_t rank = communicator.rank;
  CallRequest& request = checked.request;
  Call& call = request.call;
  request.communicator = communicator.number;
  call.collective = collective;
  call.in_place = given.in_place != 0 && collective != Collective::kBcast;  // broadcast is always in place

  // Datatype and op. What the operation does not use may be anything, but an op or a place that it does not have is a
  // misunderstanding.
  call.dtype = known(given.datatype, kAllDatatype, "datatype", ErrorCode::kInvalidDatatype);
  if (!facts.data) call.dtype = Datatype::kNone;
  call.func = known(given.op, kAllFunc, "op", ErrorCode::kInvalidOp);
  cclo::check_operands(call, refuse);
  if (!facts.reduces && call.func != Func::kNone) {
    refuse(ErrorCode::kInvalidOp,
           std::string("op ") + operator_name(call.func) + " was given, but nothing is reduced; leave it 0");
  }
  if (call.in_place && !(facts.in_place && facts.data)) {
    throw Error(ErrorCode::kInvalidArgument, operation + " has no in-place form; pass both buffers");
  }

  // Root or peer.
  const bool receives = collective == Collective::kRecv;
  request.any_source = receives && given.root == UNISONO_ANY_SOURCE;
  request.any_tag = receives && given.tag == UNISONO_ANY_TAG;
  const bool rooted = facts.rooted && facts.data;
  if (rooted && !request.any_source) {
    cclo::check_root(collective, given.root, size, refuse);
    call.root = static_cast<std::uint32_t>(given.root);
  }
  const bool is_root = rooted && call.root == rank;
  if (!request.any_tag) cclo::check_tag(given.tag, refuse, receives ? kAnyTagToo : "");
  request.tag = request.any_tag ? 0 : static_cast<std::uint32_t>(given.tag);
  request.window_offset = given.window_offset;

  // Counts.
  if (given.count < 0) {
    throw Error(ErrorCode::kInvalidCount, operation + ": count " + std::to_string(given.count) +
                                              " is negative; allowed are 0 to " + std::to_string(kMaxCount));
  }
  if (given.element_bytes != 0) check_own_elements(operation, given, facts.data && !facts.reduces);
  const std::uint64_t scaled = facts.data && given.element_bytes != 0 ? given.element_bytes : 1;
  const std::uint64_t element = bytes_of(call.dtype) * scaled;
  checked.element_bytes = std::max<std::uint64_t>(element, 1);
  const std::uint64_t most_in_all = kMaxCount / scaled;  // elements
  const std::uint32_t blocks_counted = facts.blocks ? size : 1;
  const std::uint64_t most = std::min(most_in_all, kMaxBytes / checked.element_bytes) / blocks_counted;
  if (static_cast<std::uint64_t>(given.count) > most) {
    throw Error(ErrorCode::kInvalidCount,
                operation + ": count " + std::to_string(given.count) + " is too large; allowed" +
                    (blocks_counted > 1 ? " for a block of each of " + std::to_string(size) + " ranks" : "") +
                    " are 0 to " + std::to_string(most));
  }
  const std::uint64_t n = facts.data && !facts.vectors ? static_cast<std::uint64_t>(given.count) : 0;
  call.count = n;

  VectorExtents blocks;
  const bool own_only =
      counts_at_root(collective) && !is_root && given.send_counts == nullptr && given.recv_counts == nullptr;
  if (own_only) {
    if (static_cast<std::uint64_t>(given.count) > most_in_all) {
      throw Error(ErrorCode::kInvalidCount, operation + ": count " + std::to_string(given.count) +
                                                " is too large; allowed are 0 to " + std::to_string(most_in_all));
    }
    checked.vectors.own = blocks.own = static_cast<std::uint64_t>(given.count);
  } else if (facts.receives && !facts.sends) {
    const bool disjoint = uses_of(collective, is_root, call.in_place).writes == Extent::kReceived;
    const Blocks received(collective, "recv", given.recv_counts, given.recv_displacements, size, checked.recv_counts,
                          checked.recv_displacements, most_in_all, disjoint);
    blocks = {checked.recv_counts[rank], 0, received.extent()};
    call.count = received.total();
    checked.vectors.recv_counts = checked.recv_counts.data();
    checked.vectors.recv_displacements = checked.recv_displacements.data();
  } else if (facts.sends && !facts.receives) {
    const Blocks sent(collective, "send", given.send_counts, given.send_displacements, size, checked.send_counts,
                      checked.send_displacements, most_in_all, false);
    blocks = {checked.send_counts[rank], sent.extent(), 0};
    call.count = sent.total();
    checked.vectors.send_counts = checked.send_counts.data();
    checked.vectors.send_displacements = checked.send_displacements.data();
  } else if (facts.pairwise()) {
    const Blocks received(collective, "recv", given.recv_counts, given.recv_displacements, size, checked.recv_counts,
                          checked.recv_displacements, most_in_all, true);
    blocks.recv = received.extent();
    if (call.in_place) {
      call.count = static_cast<std::uint64_t>(given.count);
      const std::uint64_t largest = *std::max_element(checked.recv_counts.begin(), checked.recv_counts.end());
      if (given.count != 0 && largest > call.count) {
        throw Error(ErrorCode::kInvalidCount, operation + ": a block has " + std::to_string(largest) +
                                                  " elements, but count, the bound of all blocks, is " +
                                                  std::to_string(call.count) + "; give at least the largest, or 0");
      }
      checked.send_counts = checked.recv_counts;
      checked.send_displacements = checked.recv_displacements;
    } else {
      const Blocks sent(collective, "send", given.send_counts, given.send_displacements, size, checked.send_counts,
                        checked.send_displacements, most_in_all, false);
      blocks.send = sent.extent();
    }
    checked.vectors = {checked.send_counts.data(), checked.send_displacements.data(), checked.recv_counts.data(),
                       checked.recv_displacements.data()};
  }
  // Elements that the call uses of src and dst, on this rank.
  call.rank = rank;
  call.size = size;
  const auto [src, dst] = footprint_of(call, blocks);
  if (facts.vectors) {
    if (std::max(src, dst) > kMaxBytes / element) {
      throw Error(ErrorCode::kInvalidCount, operation + ": the blocks end at element " +
                                                std::to_string(std::max(src, dst)) + "; the last allowed is " +
                                                std::to_string(kMaxBytes / element));
    }
    request.vectors = &checked.vectors;
  }

  // Buffers.
  if (given.streams != 0) check_streams(given, operation, scaled != 1, request);
  if (collective == Collective::kProgram) {
    if (given.program == nullptr) throw Error(ErrorCode::kInvalidArgument, "program: no program was given");
    const auto set = Programs::instance().get(reinterpret_cast<std::uintptr_t>(given.program), "program",
                                              ErrorCode::kInvalidArgument);
    if (set->ranks.size() != size) {
      throw Error(ErrorCode::kUnsupported, "program: it is for " + std::to_string(set->ranks.size()) +
                                               " ranks; the communicator has " + std::to_string(size));
    }
    request.program = set->ranks[rank];
    request.lanes_carry = set->lanes_carry;
    const auto bind_as_given = [&](const char* name, const void* data, std::uint64_t bytes, Region region) {
      const std::uint64_t needed = set->region_bytes[rank][static_cast<std::size_t>(region)];
      const std::uint64_t held = data == nullptr ? 0 : bytes;
      if (held < needed) {
        throw Error(ErrorCode::kBufferTooSmall, operation + ": " + name + " holds " + std::to_string(held) +
                                                    " bytes; the program of rank " + std::to_string(rank) + " needs " +
                                                    std::to_string(needed) + " bytes there");
      }
      return driver::bind(operation, name, data, held, held, 1);
    };
    request.src = bind_as_given("src", given.src, given.src_bytes, Region::kSrc);
    request.dst = bind_as_given("dst", given.dst, given.dst_bytes, Region::kDst);
  } else {
    if (request.src_port < 0) request.src = driver::bind(operation, "src", given.src, given.src_bytes, src, element);
    if (request.dst_port < 0) request.dst = driver::bind(operation, "dst", given.dst, given.dst_bytes, dst, element);
  }
  cclo::check_disjoint(collective, request.src, request.dst, refuse);

  if (scaled != 1) scale(checked, scaled);
  multiply(*communicator.context->spare_memory(), given, checked);
  if (given.wire_datatype != 0) {
    compress(communicator, known(given.wire_datatype, kAllDatatype, "wire_datatype", ErrorCode::kInvalidDatatype),
             checked);
    checked.element_bytes = bytes_of(call.dtype);
  }
  if (collective != Collective::kProgram) check_algorithm(given, call, operation, request, communicator);
  check_waits(communicator, given, operation, checked);
}

void resolve_before(CheckedCall& checked) {
  checked.wait_for.clear();
  for (std::size_t i = 0; i < checked.before.size(); ++i) {
    const std::shared_ptr<Flight> flight = checked.before[i]->flight();
    const std::optional<CallResult> result = flight->known();
    if (!result) {
      checked.wait_for.push_back(flight->id());
    } else if (result->code != ErrorCode::kOk) {
      throw Error(result->code, std::string(name_of(checked.request.call.collective)) + ": request " +
                                    std::to_string(i) +
                                    " of wait_for has failed, so this call was not started: " + result->message);
    }
  }
  checked.request.wait_for = checked.wait_for;
}

}  // namespace unisono::driver
