#include "driver/compression.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/facts.hpp"
#include "driver/spare_memory.hpp"
#include "engine/kernels.hpp"

namespace unisono::driver {

namespace {

constexpr std::uint64_t kWide = 4;    // bytes of fp32
constexpr std::uint64_t kNarrow = 2;  // bytes of fp16 and bf16

/// Elements of a buffer, where this rank's part of a call reads or writes them.
struct Range {
  bool in_src = false;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

class Ranges {
 public:
  void src(std::uint64_t begin, std::uint64_t count) { add({true, begin, count}); }
  void dst(std::uint64_t begin, std::uint64_t count) { add({false, begin, count}); }
  void either(bool dst, std::uint64_t begin, std::uint64_t count) { add({!dst, begin, count}); }
  void blocks(bool in_dst, const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& begins) {
    for (std::size_t i = 0; i < counts.size(); ++i) either(in_dst, begins[i], counts[i]);
  }
  const std::vector<Range>& all() const { return all_; }

 private:
  void add(Range range) {
    if (range.count != 0) all_.push_back(range);
  }
  std::vector<Range> all_;
};

/// docs/model.md, rules 17 to 19: where a rank's contribution stands before a call, and its results after it.
void find(const CheckedCall& checked, Ranges& inputs, Ranges& results) {
  const Call& call = checked.request.call;
  const std::uint64_t n = call.count;
  const std::uint64_t all = n * call.size;
  const std::uint32_t rank = call.rank;
  const bool root = rank == call.root;
  const bool here = call.in_place;
  switch (call.collective) {
    case Collective::kSend:
      inputs.src(0, n);
      break;
    case Collective::kRecv:
      results.dst(0, n);
      break;
    case Collective::kBcast:
      if (root) inputs.dst(0, n);
      results.dst(0, n);  // on the root too: it then has what the others have
      break;
    case Collective::kReduce:
      inputs.either(here && root, 0, n);
      if (root) results.dst(0, n);
      break;
    case Collective::kAllreduce:
    case Collective::kScan:
      inputs.either(here, 0, n);
      results.dst(0, n);
      break;
    case Collective::kExscan:
      inputs.either(here, 0, n);
      if (rank != 0) results.dst(0, n);
      break;
    case Collective::kReduceScatter:
      inputs.either(here, 0, all);
      results.dst(0, n);
      break;
    case Collective::kAllgather:
      inputs.either(here, here ? rank * n : 0, n);
      results.dst(0, all);
      break;
    case Collective::kGather:
      inputs.either(here && root, here && root ? rank * n : 0, n);
      if (root) results.dst(0, all);
      break;
    case Collective::kScatter:
      if (root) inputs.src(0, all);
      if (!here || !root) results.dst(0, n);
      break;
    case Collective::kAlltoall:
      inputs.either(here, 0, all);
      results.dst(0, all);
      break;
    case Collective::kGatherv:
      inputs.either(here && root, here && root ? checked.recv_displacements[rank] : 0, checked.recv_counts[rank]);
      if (root) results.blocks(true, checked.recv_counts, checked.recv_displacements);
      break;
    case Collective::kScatterv:
      if (root) inputs.blocks(false, checked.send_counts, checked.send_displacements);
      if (!here || !root) results.dst(0, checked.send_counts[rank]);
      break;
    case Collective::kAllgatherv:
      inputs.either(here, here ? checked.recv_displacements[rank] : 0, checked.recv_counts[rank]);
      results.blocks(true, checked.recv_counts, checked.recv_displacements);
      break;
    case Collective::kAlltoallv:
      if (here) {
        inputs.blocks(true, checked.recv_counts, checked.recv_displacements);
      } else {
        inputs.blocks(false, checked.send_counts, checked.send_displacements);
      }
      results.blocks(true, checked.recv_counts, checked.recv_displacements);
      break;
    case Collective::kReduceScatterv:
      inputs.blocks(here, checked.recv_counts, checked.recv_displacements);
      results.dst(0, checked.recv_counts[rank]);
      break;
    default:
      break;
  }
}

/// The narrow copies of a call's buffers, and the conversions.
class Compression final : public CallHooks {
 public:
  Compression(SpareMemory& memory, Datatype wire, const CheckedCall& checked)
      : narrow_(cclo::narrowing_kernel(wire)),
        widen_(cclo::widening_kernel(wire)),
        receives_(checked.request.call.collective == Collective::kRecv),
        src_(checked.request.src),
        dst_(checked.request.dst) {
    find(checked, inputs_, results_);
    if (const std::uint64_t bytes = dst_begin() + dst_.bytes / (kWide / kNarrow); bytes != 0) {
      piece_ = memory.take(bytes);
    }
  }

  Binding src() const { return copy_of(src_, 0); }
  Binding dst() const { return copy_of(dst_, dst_begin()); }

  void before() override {
    for (const Range& range : inputs_.all()) narrow_(wide(range), narrow(range), range.count);
  }
  void after(std::uint64_t received_bytes) override {
    for (const Range& range : results_.all()) {
      widen_(narrow(range), wide(range), receives_ ? received_bytes / kNarrow : range.count);
    }
  }

 private:
  /// Where the copy of dst begins: apart from that of src by a whole line.
  std::uint64_t dst_begin() const { return (src_.bytes / (kWide / kNarrow) + 63) / 64 * 64; }
  Binding copy_of(const Binding& of, std::uint64_t begin) const {
    return of.bytes == 0 ? Binding{} : Binding{piece_.data() + begin, of.bytes / (kWide / kNarrow)};
  }
  std::byte* wide(const Range& range) const { return (range.in_src ? src_ : dst_).data + range.begin * kWide; }
  std::byte* narrow(const Range& range) const {
    return piece_.data() + (range.in_src ? 0 : dst_begin()) + range.begin * kNarrow;
  }

  const cclo::ConvertKernel narrow_;
  const cclo::ConvertKernel widen_;
  const bool receives_;  ///< and may get less than its buffer holds
  const Binding src_;
  const Binding dst_;
  Ranges inputs_;
  Ranges results_;
  SpareMemory::Piece piece_;
};

}  // namespace

void compress(const Communicator& communicator, Datatype wire, CheckedCall& checked) {
  Call& call = checked.request.call;
  const std::string operation = name_of(call.collective);
  const bool compressible = facts_of(call.collective).data && (!facts_of(call.collective).local);
  if (!compressible) {
    throw Error(ErrorCode::kUnsupported, operation + ": wire_datatype " + name_of(wire) +
                                             " was given, but the call has no data that travel in messages; leave it "
                                             "out. Compressed are send, recv and the collectives");
  }
  if (call.dtype != Datatype::kFp32 || (wire != Datatype::kFp16 && wire != Datatype::kBf16)) {
    throw Error(ErrorCode::kInvalidDatatype, operation + ": " + name_of(call.dtype) + " cannot travel as " +
                                                 name_of(wire) + "; fp32 can, as fp16 or bf16");
  }
  const auto compression = std::make_shared<Compression>(*communicator.context->spare_memory(), wire, checked);
  call.dtype = wire;
  checked.request.src = compression->src();
  checked.request.dst = compression->dst();
  checked.request.hooks = compression;
}

}  // namespace unisono::driver
