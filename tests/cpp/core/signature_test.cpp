#include "core/signature.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace unisono {
namespace {

Call sample() {
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.rank = 3;
  call.size = 8;
  call.count = 1000;
  return call;
}

TEST(Signature, IsTheSameOnEveryRank) {
  Call call = sample();
  const std::uint32_t expected = signature_of(call, {2, 4096, Datatype::kNone});
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    EXPECT_EQ(signature_of(call, {2, 4096, Datatype::kNone}), expected) << "on rank " << call.rank;
  }
  EXPECT_NE(expected, 0U);
}

TEST(Signature, TellsEveryAgreedFieldApart) {
  struct Change {
    std::string name;
    std::function<void(Call&, AgreedTerms&)> apply;
  };
  const std::vector<Change> changes{
      {"nothing", [](Call&, AgreedTerms&) {}},
      {"collective", [](Call& c, AgreedTerms&) { c.collective = Collective::kReduce; }},
      {"func", [](Call& c, AgreedTerms&) { c.func = Func::kMax; }},
      {"dtype", [](Call& c, AgreedTerms&) { c.dtype = Datatype::kInt32; }},
      {"in_place", [](Call& c, AgreedTerms&) { c.in_place = true; }},
      {"direct", [](Call& c, AgreedTerms&) { c.direct = true; }},
      {"both", [](Call& c, AgreedTerms&) { c.in_place = c.direct = true; }},
      {"size", [](Call& c, AgreedTerms&) { c.size = 9; }},
      {"root", [](Call& c, AgreedTerms&) { c.root = 1; }},
      {"group_size", [](Call& c, AgreedTerms&) { c.group_size = 4; }},
      {"radix", [](Call& c, AgreedTerms&) { c.radix = 3; }},
      {"count", [](Call& c, AgreedTerms&) { c.count = 1001; }},
      {"count, high half", [](Call& c, AgreedTerms&) { c.count += std::uint64_t{1} << 32U; }},
      {"algorithm", [](Call&, AgreedTerms& a) { a.algorithm = 3; }},
      {"eager limit", [](Call&, AgreedTerms& a) { a.eager_limit = 8192; }},
      {"operator of the user", [](Call&, AgreedTerms& a) { a.op = 77; }},
      {"wire datatype", [](Call&, AgreedTerms& a) { a.wire_dtype = Datatype::kBf16; }},
      {"factor", [](Call&, AgreedTerms& a) { a.post_scale = 0.5; }},
      {"factor 0", [](Call&, AgreedTerms& a) { a.post_scale = 0; }},
      {"factor -0", [](Call&, AgreedTerms& a) { a.post_scale = -0.0; }},
      {"factor, last bit", [](Call&, AgreedTerms& a) { a.post_scale = 0.5 + 0x1p-53; }},
  };
  std::set<std::uint32_t> seen;
  for (const Change& change : changes) {
    Call call = sample();
    AgreedTerms terms{2, 4096, Datatype::kNone};
    change.apply(call, terms);
    EXPECT_TRUE(seen.insert(signature_of(call, terms)).second) << change.name << " makes no difference";
  }
}

TEST(Signature, OfSendAndItsReceiveIsOne) {
  Call send = sample();
  send.collective = Collective::kSend;
  send.root = 5;  // sends to rank 5
  Call recv = send;
  recv.collective = Collective::kRecv;
  recv.rank = 5;
  recv.root = 3;
  recv.count = 4000;  // may be longer
  EXPECT_EQ(signature_of(send, {1, 4096, Datatype::kNone}), signature_of(recv, {2, 1024, Datatype::kNone}));
  recv.dtype = Datatype::kInt64;
  EXPECT_NE(signature_of(send, {}), signature_of(recv, {}));
  EXPECT_NE(signature_of(send, {}), signature_of(sample(), {}));
}

TEST(Signature, AgreesByLowBits) {
  EXPECT_TRUE(signatures_agree(0x12345678, 0x12345678));
  EXPECT_FALSE(signatures_agree(0x02345678, 0x12345678));
  EXPECT_TRUE(signatures_agree(0x00345678, 0x12345678, 24));
  EXPECT_FALSE(signatures_agree(0x00345679, 0x12345678, 24));
  EXPECT_TRUE(signatures_agree(0x00345679, 0, 24)) << "an unknown call agrees with any";
}

}  // namespace
}  // namespace unisono
