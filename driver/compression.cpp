#include "driver/compression.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/facts.hpp"
#include "core/footprint.hpp"
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
  void add(bool in_src, std::uint64_t begin, std::uint64_t count) {
    if (count != 0) all_.push_back({in_src, begin, count});
  }
  void blocks(bool in_src, const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& begins) {
    for (std::size_t i = 0; i < counts.size(); ++i) add(in_src, begins[i], counts[i]);
  }
  const std::vector<Range>& all() const { return all_; }

 private:
  std::vector<Range> all_;
};

/// Adds the elements of a part of a buffer.
void find(const CheckedCall& checked, bool in_src, Extent part, Ranges& ranges) {
  const Call& call = checked.request.call;
  const bool receives = facts_of(call.collective).receives;
  const auto& counts = receives ? checked.recv_counts : checked.send_counts;
  const auto& displacements = receives ? checked.recv_displacements : checked.send_displacements;
  const bool by_counts = facts_of(call.collective).vectors;
  switch (part) {
    case Extent::kNothing:
      return;
    case Extent::kN:
      return ranges.add(in_src, 0, call.count);
    case Extent::kAll:
      return ranges.add(in_src, 0, call.count * call.size);
    case Extent::kOwn:
      return ranges.add(in_src, 0, counts.empty() ? checked.vectors.own : counts[call.rank]);
    case Extent::kBlock:
      return by_counts ? ranges.add(in_src, displacements[call.rank], counts[call.rank])
                       : ranges.add(in_src, call.rank * call.count, call.count);
    case Extent::kSent:
      return ranges.blocks(in_src, checked.send_counts, checked.send_displacements);
    case Extent::kReceived:
      return ranges.blocks(in_src, checked.recv_counts, checked.recv_displacements);
  }
}

/// docs/model.md, rules 17 to 19: where a rank's contribution stands before a call, and its results after it. Of a
/// broadcast the root has a result, too: it then has what the others have.
void find(const CheckedCall& checked, Ranges& inputs, Ranges& results) {
  const Uses uses = uses_of(checked.request.call);
  find(checked, true, uses.src, inputs);
  find(checked, false, uses.reads, inputs);
  find(checked, false, uses.writes, results);
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
