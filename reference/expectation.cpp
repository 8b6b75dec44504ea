#include "reference/expectation.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::reference {
namespace {

constexpr auto kSrc = static_cast<std::uint32_t>(Region::kSrc);
constexpr auto kDst = static_cast<std::uint32_t>(Region::kDst);
constexpr auto kWindowRegion = static_cast<std::uint32_t>(Region::kWindow);

Expected copy(Leaf leaf) { return {Expected::Kind::kCopy, leaf, 0, 0}; }
Expected reduce(std::uint64_t index, std::uint32_t begin, std::uint32_t end) {
  return {Expected::Kind::kReduce, {0, 0, index}, begin, end};
}

// The block that element `index` lies in, by counts and displacements; false in a gap.
bool find_block(const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& displacements,
                std::uint64_t index, std::uint32_t& block, std::uint64_t& within) {
  for (block = 0; block < counts.size(); ++block) {
    if (index >= displacements[block] && index - displacements[block] < counts[block]) {
      within = index - displacements[block];
      return true;
    }
  }
  return false;
}

Expected expected_dst(const Job& job, std::uint32_t rank, std::uint64_t i) {
  const Call& call = job.call;
  const Expected untouched{Expected::Kind::kUntouched, {rank, kDst, i}, 0, 0};
  const std::uint64_t n = call.count;
  const std::uint32_t size = call.size;
  const VectorCounts none;
  const VectorCounts& counts = job.vectors.empty() ? none : job.vectors[rank];
  std::uint32_t block = 0;
  std::uint64_t within = 0;
  switch (call.collective) {
    case Collective::kNop:
    case Collective::kBarrier:
    case Collective::kPut:
      return untouched;
    case Collective::kProgram:
      return {};
    case Collective::kCopy:
      return copy({rank, kSrc, i});
    case Collective::kCombine:
      return {Expected::Kind::kCombine, {rank, kSrc, i}, 0, 0};
    case Collective::kSend:
      return copy({call.rank, kSrc, i});
    case Collective::kRecv:
      return copy({call.root, kSrc, i});
    case Collective::kGet:
      return copy({call.root, kWindowRegion, i});
    case Collective::kBcast:
      return copy({call.root, kDst, i});
    case Collective::kReduce:
    case Collective::kAllreduce:
      return reduce(i, 0, size);
    case Collective::kScan:
      return reduce(i, 0, rank + 1);
    case Collective::kExscan:
      return rank == 0 ? untouched : reduce(i, 0, rank);
    case Collective::kReduceScatter:
      return i < n ? reduce(rank * n + i, 0, size) : Expected{};
    case Collective::kReduceScatterv:
      if (i >= counts.recv_counts[rank]) return {};
      return reduce(counts.recv_displacements[rank] + i, 0, size);
    case Collective::kAllgather:
    case Collective::kGather:
      return copy(input_leaf(job, static_cast<std::uint32_t>(i / n), i % n));
    case Collective::kScatter:
      return copy(input_leaf(job, call.root, rank * n + i));
    case Collective::kAlltoall:
      return copy(input_leaf(job, static_cast<std::uint32_t>(i / n), rank * n + i % n));
    case Collective::kGatherv:
    case Collective::kAllgatherv:
      if (!find_block(counts.recv_counts, counts.recv_displacements, i, block, within)) return untouched;
      return copy(input_leaf(job, block, within));
    case Collective::kScatterv:
      return copy(input_leaf(job, call.root, counts.send_displacements[rank] + i));
    case Collective::kAlltoallv:
      if (!find_block(counts.recv_counts, counts.recv_displacements, i, block, within)) return untouched;
      return copy(input_leaf(job, block, job.vectors[block].send_displacements[rank] + within));
  }
  return {};
}

// Whether func(a, a) is a, so that an input may stand in a reduction several times.
bool idempotent(Func func) {
  switch (func) {
    case Func::kMin:
    case Func::kMax:
    case Func::kLogicalAnd:
    case Func::kLogicalOr:
    case Func::kBitwiseAnd:
    case Func::kBitwiseOr:
    case Func::kMinloc:
    case Func::kMaxloc:
      return true;
    default:
      return false;
  }
}

// "element 3 of dst of rank 1": of this the report is. The expression itself names elements as symbols do.
std::string place_text(std::uint32_t rank, Region region, std::uint64_t index) {
  return formatted("element {} of {} of rank {}", index, unisono::name_of(region), rank);
}

std::string element_text(std::uint32_t rank, std::uint32_t region, std::uint64_t index) {
  return formatted("r{}.{}[{}]", rank, unisono::name_of(static_cast<Region>(region)), index);
}

std::string expected_text(const Job& job, const Expected& want) {
  switch (want.kind) {
    case Expected::Kind::kAnything:
      return "anything";
    case Expected::Kind::kUntouched:
      return "what it was before";
    case Expected::Kind::kCopy:
      return element_text(want.leaf.rank, want.leaf.region, want.leaf.index);
    case Expected::Kind::kCombine:
      return std::string(unisono::name_of(job.call.func)) + " of " +
             element_text(want.leaf.rank, want.leaf.region, want.leaf.index) + " and itself";
    case Expected::Kind::kReduce:
      break;
  }
  return formatted("{} over ranks {} to {} of element {} of their inputs{}", unisono::name_of(job.call.func),
                   want.begin, want.end - 1, want.leaf.index,
                   job.ordered()               ? ", in rank order"
                   : idempotent(job.call.func) ? ", none left out"
                                               : ", each exactly once");
}

// The last move of `rank` that wrote the element, for the report.
void blame(const Lowered& lowered, const SymbolRun& run, std::uint32_t rank, Region region, std::uint64_t offset,
           Finding& finding) {
  Node last = kNowhere;
  for (Node n = 0; n < lowered.size(); ++n) {
    const auto& node = lowered.node(n);
    const Move& move = *node.move;
    const MoveOutcome& out = run.outcomes[n];
    const std::uint64_t bytes = out.count * bytes_of(move.dtype);
    const bool local = node.rank == rank && move.local.kind == OperandKind::kMemory && move.local.region == region &&
                       offset >= out.local && offset - out.local < bytes;
    const auto stores = lowered.stores(node);
    const bool remote = std::find(stores.begin(), stores.end(), rank) != stores.end() &&
                        move.remote_address.result_region == region && offset >= move.remote_address.offset &&
                        offset - move.remote_address.offset < bytes;
    if ((local || remote) && (last == kNowhere || out.finish > run.outcomes[last].finish)) last = n;
  }
  finding.rank = rank;
  if (last == kNowhere) {
    finding.text += "\n  no move writes it";
    return;
  }
  finding.rank = lowered.node(last).rank;
  finding.move = lowered.node(last).index;
  finding.text += "\n  last written by " + lowered.place(last);
}

// The function that joins the inputs.
Func folded_by(const Call& call) { return call.func == Func::kAvg ? Func::kSum : call.func; }

// A move that computes in another datatype than the call, on elements of the same size: symbols do not tell them apart.
std::optional<Finding> find_other_datatype(const Lowered& lowered) {
  const Job& job = lowered.job();
  if (!job.meant || !is_reduction(job.call.collective)) return std::nullopt;
  for (Node n = 0; n < lowered.size(); ++n) {
    const Move& move = *lowered.node(n).move;
    if (move.kind != MoveKind::kMove || move.func == Func::kNone || move.dtype == job.dtype) continue;
    if (!move.count_indirect && move.count == 0) continue;
    return lowered.at(FindingKind::kWrongResult, n,
                      std::string("the move computes in ") + unisono::name_of(move.dtype) + ", but the " +
                          unisono::name_of(job.call.collective) + " is one of " + unisono::name_of(job.dtype) +
                          ", which other moves compute in\n  " + lowered.place(n));
  }
  return std::nullopt;
}

// Fingerprints of reductions over a prefix of the ranks, computed once per element.
class PrefixFingerprints {
 public:
  PrefixFingerprints(const Job& job) : job_(job) {}
  // The reduction of element `index` over ranks [0, end).
  const Fingerprint& get(std::uint64_t index, std::uint32_t end) {
    Row& row = rows_.size() > index ? rows_[index] : (rows_.resize(index + 1), rows_[index]);
    if (row.ends.empty() || row.ends.back() < end) {
      Fingerprint sum;
      std::uint32_t from = 0;
      if (!row.ends.empty()) {
        sum = row.prints.back();
        from = row.ends.back();
      }
      for (std::uint32_t rank = from; rank < end; ++rank) {
        const Fingerprint leaf = SymbolTable::leaf_fingerprint(input_leaf(job_, rank, index));
        sum = rank == 0 ? leaf : sum.then(folded_by(job_.call), leaf);
      }
      row.ends.push_back(end);
      row.prints.push_back(sum);
    }
    for (std::size_t i = row.ends.size(); i-- > 0;) {
      if (row.ends[i] == end) return row.prints[i];
    }
    // A shorter prefix than one already kept, asked for out of order.
    rows_[index] = {};
    return get(index, end);
  }

 private:
  struct Row {
    std::vector<std::uint32_t> ends;
    std::vector<Fingerprint> prints;
  };
  const Job& job_;
  std::vector<Row> rows_;
};

}  // namespace

Leaf input_leaf(const Job& job, std::uint32_t rank, std::uint64_t index) {
  const Call& call = job.call;
  if (call.collective == Collective::kBcast) return {rank, kDst, index};
  if (!call.in_place) return {rank, kSrc, index};
  switch (call.collective) {
    case Collective::kReduce:
      return {rank, rank == call.root ? kDst : kSrc, index};
    case Collective::kGather:
      return rank == call.root ? Leaf{rank, kDst, rank * call.count + index} : Leaf{rank, kSrc, index};
    case Collective::kGatherv:
      return rank == call.root ? Leaf{rank, kDst, job.vectors[rank].recv_displacements[rank] + index}
                               : Leaf{rank, kSrc, index};
    case Collective::kAllgather:
      return {rank, kDst, rank * call.count + index};
    case Collective::kAllgatherv:
      return {rank, kDst, job.vectors[rank].recv_displacements[rank] + index};
    case Collective::kScatter:
    case Collective::kScatterv:
      return {rank, kSrc, index};
    default:
      return {rank, kDst, index};
  }
}

Expected expected(const Job& job, std::uint32_t rank, Region region, std::uint64_t index) {
  if (job.call.collective == Collective::kProgram) return {};
  if (region == Region::kDst) return expected_dst(job, rank, index);
  if (region == Region::kWindow && job.call.collective == Collective::kPut && rank == job.call.root) {
    return copy({job.call.rank, kSrc, index});
  }
  return {Expected::Kind::kUntouched, {rank, static_cast<std::uint32_t>(region), index}, 0, 0};
}

std::optional<Finding> compare_with_expectation(Interpreter& interpreter, const SymbolRun& run) {
  const Lowered& lowered = interpreter.lowered();
  const Job& job = lowered.job();
  SymbolTable& symbols = interpreter.symbols();
  if (!job.promises()) return std::nullopt;
  if (auto other = find_other_datatype(lowered)) return other;
  const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(job.dtype));
  PrefixFingerprints prefixes(job);
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (const Region region : {Region::kDst, Region::kSrc, Region::kWindow}) {
      const auto& cells = run.memory[rank][static_cast<std::size_t>(region)];
      const std::uint64_t cell = lowered.cell_bytes(region);
      const auto parts = static_cast<std::uint32_t>(element / cell);
      const std::uint64_t count = job.bytes(rank, region) / element;
      for (std::uint64_t i = 0; i < count; ++i) {
        const Expected want = expected(job, rank, region, i);
        if (want.kind == Expected::Kind::kAnything) continue;
        const Symbol got = parts == 1 ? cells[i] : symbols.join(cells.data() + i * parts, parts);
        bool right = false;
        if (want.kind == Expected::Kind::kReduce) {
          const Fingerprint& print = symbols.fingerprint(got);
          const Fingerprint& sum = prefixes.get(want.leaf.index, want.end);
          const Fingerprint due = job.call.func == Func::kAvg ? sum.divided() : sum;
          right = job.ordered() ? print.same_sequence(due) : print.same_multiset(due);
          if (!right && !job.ordered() && idempotent(job.call.func)) {
            std::vector<Leaf> leaves;
            for (std::uint32_t r = want.begin; r < want.end; ++r) leaves.push_back(input_leaf(job, r, want.leaf.index));
            right = symbols.folds(got, job.call.func, leaves);
          }
        } else if (want.kind == Expected::Kind::kCombine) {
          const Fingerprint due = SymbolTable::leaf_fingerprint(want.leaf).then(
              job.call.func, SymbolTable::leaf_fingerprint({rank, static_cast<std::uint32_t>(region), i}));
          right = symbols.fingerprint(got).same_sequence(due);
        } else {
          Leaf leaf;
          right = symbols.is_leaf(got, leaf) && leaf.rank == want.leaf.rank && leaf.region == want.leaf.region &&
                  leaf.index == want.leaf.index;
        }
        if (right) continue;
        Finding finding;
        finding.kind = want.kind == Expected::Kind::kUntouched ? FindingKind::kOverwritten : FindingKind::kWrongResult;
        finding.text =
            place_text(rank, region, i) + " is " + symbols.text(got) + ", but must be " + expected_text(job, want);
        blame(lowered, run, rank, region, i * element, finding);
        return finding;
      }
    }
  }
  return std::nullopt;
}

NumberExpectation expected_numbers(const Job& job, const std::vector<RankInput>& inputs) {
  if (!job.promises() || inputs.size() != job.members()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted(
            "expected numbers need a job that promises something, and inputs of all of its {} ranks; given were {}",
            job.members(), inputs.size()));
  }
  const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(job.dtype));
  const auto at = [&](const Leaf& leaf) {
    const RankInput& input = inputs[leaf.rank];
    const auto& bytes = leaf.region == kSrc ? input.src : (leaf.region == kDst ? input.dst : input.window);
    std::vector<std::byte> value(element);
    if ((leaf.index + 1) * element <= bytes.size()) std::memcpy(value.data(), &bytes[leaf.index * element], element);
    return value;
  };
  NumberExpectation result;
  for (std::uint32_t rank = 0; rank < job.members(); ++rank) {
    const std::uint64_t count = job.bytes(rank, Region::kDst) / element;
    std::vector<std::byte> dst(count * element);
    std::vector<bool> defined(count, true);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Expected want = expected(job, rank, Region::kDst, i);
      std::vector<std::byte> value(element);
      switch (want.kind) {
        case Expected::Kind::kAnything:
          defined[i] = false;
          break;
        case Expected::Kind::kUntouched:
        case Expected::Kind::kCopy:
          value = at(want.leaf);
          break;
        case Expected::Kind::kCombine: {
          value = at(want.leaf);
          const auto own = at({rank, kDst, i});
          combine(job.call.func, job.dtype, value.data(), own.data(), value.data(), 1);
          break;
        }
        case Expected::Kind::kReduce: {
          std::vector<std::byte> sum(accumulator_bytes(job.dtype));
          fold_begin(job.dtype, at(input_leaf(job, want.begin, want.leaf.index)).data(), sum.data(), 1);
          for (std::uint32_t r = want.begin + 1; r < want.end; ++r) {
            fold_step(folded_by(job.call), job.dtype, false, sum.data(), at(input_leaf(job, r, want.leaf.index)).data(),
                      1);
          }
          fold_end(job.dtype, sum.data(), value.data(), 1);
          if (job.call.func == Func::kAvg) mean(job.dtype, value.data(), value.data(), 1, job.members());
          break;
        }
      }
      std::memcpy(&dst[i * element], value.data(), element);
    }
    result.dst.push_back(std::move(dst));
    result.defined.push_back(std::move(defined));
  }
  return result;
}

}  // namespace unisono::reference
