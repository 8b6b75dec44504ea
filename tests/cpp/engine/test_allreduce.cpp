#include <gtest/gtest.h>

#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

TEST(Allreduce, RingSumsDifferentVectors) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U}) {
    for (const std::uint64_t count : {0U, 1U, 3U, 17U, 1023U, 100'003U}) {
      run_ranks(size, quick_settings(), [&](Rank& self) {
        std::vector<std::int64_t> src(count), dst(count, -1);
        for (std::uint64_t i = 0; i < count; ++i) src[i] = static_cast<std::int64_t>((self.rank + 1) * 1000 + i);
        CallRequest r = request<std::int64_t>(Collective::kAllreduce, count, 0, Func::kSum);
        r.algorithm = find_algorithm(Collective::kAllreduce, "ring");
        r.src = bind(src);
        r.dst = bind(dst);
        self.run(r);
        for (std::uint64_t i = 0; i < count; ++i) {
          ASSERT_EQ(dst[i], static_cast<std::int64_t>(size * (size + 1) / 2 * 1000 + size * i)) << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace unisono::test
