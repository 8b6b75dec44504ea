#include "driver/factors.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/facts.hpp"
#include "driver/call_parts.hpp"
#include "engine/kernels.hpp"

namespace unisono::driver {

namespace {

/// The two stages of a call. Its input is multiplied into a copy, but for an input that the result replaces whole,
/// which is multiplied where it stands.
class Factors final : public CallHooks {
 public:
  Factors(SpareMemory& memory, double pre, double post, CheckedCall& checked)
      : scale_(cclo::scale_kernel(checked.request.call.dtype)),
        element_(bytes_of(checked.request.call.dtype)),
        pre_(pre),
        post_(post),
        parts_(parts_of(checked)),
        src_(checked.request.src),
        dst_(checked.request.dst) {
    if (pre_ == 1 || parts_.inputs.empty()) return;
    const bool from_src = parts_.inputs.front().in_src;
    if (!from_src && parts_.inputs == parts_.results) return;
    Binding& bound = from_src ? checked.request.src : checked.request.dst;
    copy_ = memory.take(bound.bytes);
    bound.data = copy_.data();
    (from_src ? input_ : output_) = copy_.data();
  }

  void before() override {
    if (pre_ == 1) return;
    for (const Range& range : parts_.inputs) {
      const std::byte* const from = at(range.in_src ? src_.data : dst_.data, range);
      scale_(from, at(range.in_src ? input_ : output_, range), range.count, pre_);
    }
  }

  void after(std::uint64_t /*received_bytes*/) override {
    for (const Range& range : parts_.results) {
      const std::byte* const from = at(output_, range);
      std::byte* const to = at(dst_.data, range);
      if (post_ != 1) {
        scale_(from, to, range.count, post_);
      } else if (from != to) {
        std::memcpy(to, from, range.count * element_);
      }
    }
  }

 private:
  std::byte* at(std::byte* begin, const Range& range) const { return begin + range.begin * element_; }

  const cclo::ScaleKernel scale_;
  const std::uint64_t element_;  ///< bytes
  const double pre_;
  const double post_;
  const CallParts parts_;
  const Binding src_;  ///< the user's
  const Binding dst_;
  std::byte* input_ = src_.data;   ///< what the call reads as src
  std::byte* output_ = dst_.data;  ///< and what it has as dst
  SpareMemory::Piece copy_;
};

const char* given_factor(const unisono_call& given) {
  return given.pre_scale != nullptr ? "pre_scale" : given.post_scale != nullptr ? "post_scale" : nullptr;
}

}  // namespace

void check_no_factors(const std::string& operation, const unisono_call& given) {
  const char* const factor = given_factor(given);
  if (factor == nullptr) return;
  throw Error(ErrorCode::kUnsupported, operation + ": " + factor +
                                           " was given, but no ranks' elements are folded; leave it out. Factors are "
                                           "for reduce, allreduce, reduce_scatter, reduce_scatterv, scan and exscan");
}

void multiply(SpareMemory& memory, const unisono_call& given, CheckedCall& checked) {
  const char* const factor = given_factor(given);
  if (factor == nullptr) return;
  CallRequest& request = checked.request;
  const CollectiveFacts facts = facts_of(request.call.collective);
  const std::string operation = name_of(request.call.collective);
  if (!facts.reduces || facts.kind != CallKind::kCollective) check_no_factors(operation, given);
  if (!has_scale(request.call.dtype)) {
    throw Error(ErrorCode::kInvalidDatatype, operation + ": " + factor + " was given for elements of " +
                                                 name_of(request.call.dtype) +
                                                 "; factors are for fp16, bf16, fp32, fp64, complex64 and complex128");
  }
  const double pre = given.pre_scale != nullptr ? *given.pre_scale : 1;
  const double post = given.post_scale != nullptr ? *given.post_scale : 1;
  if (pre == 1 && post == 1) return;
  request.hooks = std::make_shared<Factors>(memory, pre, post, checked);
  request.post_scale = post;
}

}  // namespace unisono::driver
