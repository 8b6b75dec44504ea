#include "driver/compression.hpp"

#include <memory>
#include <string>
#include <utility>

#include "core/facts.hpp"
#include "driver/call_parts.hpp"
#include "driver/spare_memory.hpp"
#include "engine/kernels.hpp"

namespace unisono::driver {

namespace {

constexpr std::uint64_t kWide = 4;    // bytes of fp32
constexpr std::uint64_t kNarrow = 2;  // bytes of fp16 and bf16

/// The narrow copies of a call's buffers, and the conversions.
class Compression final : public CallHooks {
 public:
  Compression(SpareMemory& memory, Datatype wire, const CheckedCall& checked)
      : narrow_(cclo::narrowing_kernel(wire)),
        widen_(cclo::widening_kernel(wire)),
        receives_(checked.request.call.collective == Collective::kRecv),
        around_(checked.request.hooks),
        src_(checked.request.src),
        dst_(checked.request.dst),
        parts_(parts_of(checked)) {
    if (const std::uint64_t bytes = dst_begin() + dst_.bytes / (kWide / kNarrow); bytes != 0) {
      piece_ = memory.take(bytes);
    }
  }

  Binding src() const { return copy_of(src_, 0); }
  Binding dst() const { return copy_of(dst_, dst_begin()); }

  void before() override {
    if (around_) around_->before();
    for (const Range& range : parts_.inputs) narrow_(wide(range), narrow(range), range.count);
  }
  void after(std::uint64_t received_bytes) override {
    for (const Range& range : parts_.results) {
      widen_(narrow(range), wide(range), receives_ ? received_bytes / kNarrow : range.count);
    }
    if (around_) around_->after(received_bytes);
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
  const bool receives_;                      ///< and may get less than its buffer holds
  const std::shared_ptr<CallHooks> around_;  ///< what is done with the wide elements before and after; or null
  const Binding src_;
  const Binding dst_;
  const CallParts parts_;
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
