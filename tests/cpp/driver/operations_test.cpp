// The C++ interface: every operation with different data on every rank, and the C program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "c_program.h"
#include "ranks.hpp"

namespace unisono::test {
namespace {

constexpr std::uint32_t kRanks = 3;

std::vector<std::int64_t> values_of(std::uint32_t rank, std::size_t n) {
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int64_t>(i * 10 + rank + 1);
  return values;
}

std::vector<std::int64_t> sum_of_all(std::size_t n) {
  std::vector<std::int64_t> sum(n, 0);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < n; ++i) sum[i] += values_of(rank, n)[i];
  }
  return sum;
}

TEST(CInterface, WorksFromC) {
  std::int32_t results[2][3];
  ASSERT_EQ(sum_on_two_ranks(results), 0);
  for (const auto& result : results)
    EXPECT_EQ(std::vector<std::int32_t>(result, result + 3), (std::vector<std::int32_t>{3, 30, 300}));
}

TEST(Operations, Reductions) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const auto mine = values_of(r, 7);
    std::vector<std::int64_t> out(7, -1);
    world.allreduce(mine, out, Op::kSum);
    EXPECT_EQ(out, sum_of_all(7));
    auto in_place = mine;
    world.allreduce(kInPlace, in_place, Op::kMax, {.algorithm = "ring"});
    EXPECT_EQ(in_place, values_of(kRanks - 1, 7));
    std::fill(out.begin(), out.end(), -1);
    world.reduce(mine, out, Op::kSum, 1);
    EXPECT_EQ(out, r == 1 ? sum_of_all(7) : std::vector<std::int64_t>(7, -1));
    auto rooted = mine;
    world.reduce_in_place(rooted, Op::kSum, 2);
    EXPECT_EQ(rooted, r == 2 ? sum_of_all(7) : mine);
    world.scan(mine, out, Op::kMax);
    EXPECT_EQ(out, mine);
    std::fill(out.begin(), out.end(), -1);
    world.exscan(mine, out, Op::kMax);
    EXPECT_EQ(out, r == 0 ? std::vector<std::int64_t>(7, -1) : values_of(r - 1, 7));
    std::vector<std::int64_t> block(2);
    world.reduce_scatter(values_of(r, 6), block, Op::kSum);
    const auto whole = sum_of_all(6);
    EXPECT_EQ(block, std::vector<std::int64_t>(whole.begin() + r * 2, whole.begin() + r * 2 + 2));
  });
}

TEST(Operations, Movements) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    auto buffer = values_of(r, 4);
    world.bcast(buffer, 1);
    EXPECT_EQ(buffer, values_of(1, 4));

    std::vector<std::int64_t> all;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (const std::int64_t value : values_of(rank, 2)) all.push_back(value);
    }
    std::vector<std::int64_t> gathered(6, -1);
    world.allgather(values_of(r, 2), gathered);
    EXPECT_EQ(gathered, all);
    std::fill(gathered.begin(), gathered.end(), -1);
    world.gather(values_of(r, 2), gathered, 2);
    EXPECT_EQ(gathered, r == 2 ? all : std::vector<std::int64_t>(6, -1));
    std::vector<std::int64_t> block(2);
    world.scatter(gathered, block, 2);
    EXPECT_EQ(block, values_of(r, 2));
    std::vector<std::int64_t> turned(3);
    world.alltoall(values_of(r, 3), turned);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(turned[rank], values_of(rank, 3)[r]);
    Buffer<float> from(5), to(5);
    std::iota(from.begin(), from.end(), static_cast<float>(r));
    world.copy(from, to);
    world.combine(from, to, Op::kProd);
    for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], from[i] * from[i]);
    world.barrier();
  });
}

TEST(Operations, VectorCollectives) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const std::vector<std::int64_t> counts{2, 0, 3};
    const std::vector<std::int64_t> displacements{4, 0, 0};
    const auto mine = values_of(r, static_cast<std::size_t>(counts[r]));
    std::vector<std::int64_t> gathered(6, -1);
    world.gatherv(mine, gathered, {counts, displacements}, 0);
    const auto two = values_of(2, 3);
    const auto zero = values_of(0, 2);
    const std::vector<std::int64_t> placed{two[0], two[1], two[2], -1, zero[0], zero[1]};
    EXPECT_EQ(gathered, r == 0 ? placed : std::vector<std::int64_t>(6, -1));
    std::vector<std::int64_t> block(mine.size());
    world.scatterv(gathered, block, {counts, displacements}, 0);
    EXPECT_EQ(block, mine);
    std::vector<std::int64_t> packed(5);
    world.allgatherv(mine, packed, {counts});
    EXPECT_EQ(packed, (std::vector<std::int64_t>{zero[0], zero[1], two[0], two[1], two[2]}));
    const std::vector<std::int64_t> sends(kRanks, r + 1);
    const std::vector<std::int64_t> receives{1, 2, 3};
    std::vector<std::int64_t> turned(6);
    world.alltoallv(std::vector<std::int64_t>(kRanks * (r + 1), r), turned, {sends}, {receives});
    EXPECT_EQ(turned, (std::vector<std::int64_t>{0, 1, 1, 2, 2, 2}));
    std::vector<std::int64_t> folded(mine.size());
    const std::vector<std::int64_t> parts{1 + r, 10, 100 * r, 7, 3};
    world.reduce_scatterv(parts, folded, {counts}, Op::kSum);
    const std::vector<std::int64_t> sums{6, 30, 300, 21, 9};
    EXPECT_EQ(folded, r == 0   ? (std::vector<std::int64_t>{sums[0], sums[1]})
                      : r == 1 ? std::vector<std::int64_t>{}
                               : (std::vector<std::int64_t>{sums[2], sums[3], sums[4]}));
    std::vector<std::int64_t> all = parts;
    world.reduce_scatterv_async(kInPlace, all, {counts, std::vector<std::int64_t>{3, 0, 0}}, Op::kMax).wait();
    all.resize(static_cast<std::size_t>(counts[r]));
    const std::vector<std::int64_t> largest[] = {{7, 3}, {}, {3, 10, 200}};
    EXPECT_EQ(all, largest[r]);
  });
}

TEST(Operations, Neighbours) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const std::uint32_t right = (r + 1) % kRanks;
    const std::uint32_t left = (r + kRanks - 1) % kRanks;
    // A ring in which every rank also has an edge to itself, between the other two.
    const std::vector<std::int64_t> sources{left, r, left};
    const std::vector<std::int64_t> destinations{right, r, right};
    const Graph graph = world.graph(sources, destinations);
    std::vector<std::int32_t> own{static_cast<std::int32_t>(r), 5};
    std::vector<std::int32_t> heard(6);
    world.neighbour_allgather(graph, own, heard);
    const auto from = static_cast<std::int32_t>(left);
    const auto self = static_cast<std::int32_t>(r);
    EXPECT_EQ(heard, (std::vector<std::int32_t>{from, 5, self, 5, from, 5}));

    const std::vector<std::int32_t> three{10 * self, 10 * self + 1, 10 * self + 2};
    std::vector<std::int32_t> turned(3);
    world.neighbour_alltoall_async(graph, three, turned).wait();
    EXPECT_EQ(turned, (std::vector<std::int32_t>{10 * from, 10 * self + 1, 10 * from + 2}));

    // To the right 2, then 0 elements; to itself 1.
    const std::vector<std::int64_t> lengths{2, 1, 0};
    std::vector<std::int32_t> varied(4, -1);
    const std::vector<std::int64_t> places{2, 0, 0};
    world.neighbour_alltoallv(graph, three, varied, {lengths}, {lengths, places});
    EXPECT_EQ(varied, (std::vector<std::int32_t>{10 * self + 2, -1, 10 * from, 10 * from + 1}));

    // What a rank tells its neighbours is r+1 elements long.
    const std::vector<std::int64_t> told{left + 1, r + 1, left + 1};
    std::vector<std::int32_t> all(2 * (left + 1) + r + 1);
    world.neighbour_allgatherv(graph, std::vector<std::int32_t>(r + 1, self), all, {told});
    std::vector<std::int32_t> expected(left + 1, from);
    expected.insert(expected.end(), r + 1, self);
    expected.insert(expected.end(), left + 1, from);
    EXPECT_EQ(all, expected);

    const Graph none = world.graph({}, {});
    world.neighbour_allgather(none, own, std::vector<std::int32_t>{});
  });
}

TEST(Operations, EveryPairWithADatatypeOfItsOwn) {
  on_ranks(2, [](const Communicator& world) {
    // To rank 0 go doubles, to rank 1 int16.
    const std::uint32_t r = world.rank();
    struct Message {
      double real[2];
      std::int16_t whole[4];
    };
    const Message out{{r + 0.5, r + 1.5}, {static_cast<std::int16_t>(r), 7, 8, static_cast<std::int16_t>(r + 20)}};
    const std::vector<unisono_datatype> types{UNISONO_FP64, UNISONO_INT16};
    const std::vector<std::int64_t> counts{2, 4};
    const std::vector<unisono_datatype> mine(2, types[r]);
    const std::vector<std::int64_t> received(2, counts[r]);
    const auto bytes = [](const auto& object) {
      return std::span(reinterpret_cast<const std::uint8_t*>(&object), sizeof object);
    };
    if (r == 0) {
      std::array<double, 4> in{};
      world.alltoallw(bytes(out), std::as_writable_bytes(std::span(in)), {counts, {}, types}, {received, {}, mine});
      EXPECT_EQ(in, (std::array<double, 4>{0.5, 1.5, 1.5, 2.5}));
    } else {
      std::array<std::int16_t, 8> in{};
      world.alltoallw(bytes(out), std::as_writable_bytes(std::span(in)), {counts, {}, types}, {received, {}, mine});
      EXPECT_EQ(in, (std::array<std::int16_t, 8>{0, 7, 8, 20, 1, 7, 8, 21}));
    }
  });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(Operations, TheOrderOfArgumentsOfEarlierVersions) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::int64_t r = world.rank();
    const std::vector<std::int64_t> sends(kRanks, r + 1);
    const std::vector<std::int64_t> receives{1, 2, 3};
    const std::vector<std::int64_t> mine(static_cast<std::size_t>(kRanks * (r + 1)), r);
    const std::vector<std::int64_t> expected{0, 1, 1, 2, 2, 2};
    const Layout out{sends};
    std::vector<std::int64_t> turned(6);
    world.alltoallv(mine, {sends}, turned, {receives});
    EXPECT_EQ(turned, expected);
    std::vector<std::int64_t> later(6);
    world.alltoallv_async(mine, out, later, Layout{receives}).wait();
    EXPECT_EQ(later, expected);

    const std::vector<unisono_datatype> types(kRanks, UNISONO_INT64);
    std::vector<std::int64_t> typed(6);
    world.alltoallw(std::as_bytes(std::span(mine)), {sends, {}, types}, std::as_writable_bytes(std::span(typed)),
                    {receives, {}, types});
    EXPECT_EQ(typed, expected);
    typed.assign(6, 0);
    world
        .alltoallw_async(std::as_bytes(std::span(mine)), {sends, {}, types}, std::as_writable_bytes(std::span(typed)),
                         {receives, {}, types})
        .wait();
    EXPECT_EQ(typed, expected);

    const std::vector<std::int64_t> next{(r + 1) % kRanks};
    const std::vector<std::int64_t> last{(r + kRanks - 1) % kRanks};
    const Graph ring = world.graph(last, next);
    const std::vector<std::int64_t> two{2};
    std::vector<std::int64_t> heard(2, -1);
    world.neighbour_alltoallv(ring, std::vector<std::int64_t>(2, r), {two}, heard, {two});
    EXPECT_EQ(heard, std::vector<std::int64_t>(2, last[0]));
    heard.assign(2, -1);
    const std::vector<std::int64_t> told(2, r);
    world.neighbour_alltoallv_async(ring, told, {two}, heard, {two}).wait();
    EXPECT_EQ(heard, std::vector<std::int64_t>(2, last[0]));
  });
}
#pragma GCC diagnostic pop

TEST(Operations, AlgorithmsWithARadix) {
  on_ranks(5, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    for (const char* name : {"knomial", "knomial:2", "knomial:3", "knomial:255"}) {
      std::vector<std::int64_t> data(9, r);
      world.bcast(data, 3, {.algorithm = name});
      EXPECT_EQ(data, std::vector<std::int64_t>(9, 3)) << name;
      EXPECT_EQ(world.last_algorithm().name, "knomial");
    }
    // A radix written out that is the usual one is the same call.
    std::vector<std::int64_t> data(9, r);
    world.bcast(data, 2, {.algorithm = r % 2 == 0 ? "knomial" : "knomial:4"});
    EXPECT_EQ(data, std::vector<std::int64_t>(9, 2));
  });
  // Another radix is another call.
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> data(9, world.rank());
    try {
      world.bcast(data, 0, {.algorithm = world.rank() == 0 ? "knomial:2" : "knomial:3"});
      world.barrier();
      ADD_FAILURE() << "the ranks did not call the same";
    } catch (const Error& error) {
      const std::string name = error.name();
      EXPECT_TRUE(name == "mismatched_call" || name == "revoked") << error.what();
    }
  });
}

TEST(Operations, MessagesWindowsAndRequests) {
  on_ranks(kRanks, [](Communicator world) {
    const std::uint32_t r = world.rank();
    const std::uint32_t right = (r + 1) % kRanks;
    const std::uint32_t left = (r + kRanks - 1) % kRanks;
    std::vector<std::int64_t> in(9), total(4), largest(4);
    Request receive = world.recv_async(in, left, 5);
    world.send(values_of(r, r + 2), right, 5);
    receive.wait();
    EXPECT_EQ(receive.received(), left + 2);
    in.resize(left + 2);
    EXPECT_EQ(in, values_of(left, left + 2));

    const auto mine = values_of(r, 4);
    Request first = world.allreduce_async(mine, total, Op::kSum);
    Request second = world.allreduce_async(total, largest, Op::kMax, {.after = {&first}});
    second.wait();
    EXPECT_TRUE(first.test());
    EXPECT_EQ(largest, sum_of_all(4));

    std::vector<std::int32_t> window(4, 0);
    world.window(std::span(window));
    world.put(std::vector<std::int32_t>(2, static_cast<std::int32_t>(r) + 1), right, 8);
    world.barrier();
    EXPECT_EQ(window, (std::vector<std::int32_t>{0, 0, static_cast<std::int32_t>(left) + 1,
                                                 static_cast<std::int32_t>(left) + 1}));
    std::vector<std::int32_t> got(1);
    world.get(got, right, 8);
    EXPECT_EQ(got[0], static_cast<std::int32_t>(r) + 1);
    world.window(std::span<std::int32_t>());
  });
}

TEST(Operations, RootedInPlace) {
  on_ranks(4, [](const Communicator& world) {
    const auto r = static_cast<int>(world.rank());
    for (std::uint32_t root = 0; root < 4; ++root) {
      const bool here = world.rank() == root;
      std::vector<int> held = here ? std::vector<int>(8, -1) : std::vector<int>{10 * r, 10 * r + 1};
      if (here) held[2 * root] = 10 * r, held[2 * root + 1] = 10 * r + 1;
      world.gather_in_place(held, root);
      if (here) {
        EXPECT_EQ(held, (std::vector<int>{0, 1, 10, 11, 20, 21, 30, 31}));
      }
      for (int& value : held) value += 5;
      if (!here) held = {-1, -1};
      world.scatter_in_place_async(held, root).wait();
      if (!here) {
        EXPECT_EQ(held, (std::vector<int>{10 * r + 5, 10 * r + 6}));
      }

      // Rank r has r elements.
      const std::vector<std::int64_t> counts{0, 1, 2, 3}, places{0, 7, 4, 1};
      std::vector<int> ragged(here ? 8 : world.rank(), here ? -1 : r);
      if (here) std::fill_n(ragged.begin() + places[root], counts[root], r);
      world.gatherv_in_place(ragged, {counts, places}, root);
      if (here) {
        EXPECT_EQ(ragged, (std::vector<int>{-1, 3, 3, 3, 2, 2, -1, 1}));
      }
      for (int& value : ragged) value += 100;
      if (!here) std::fill(ragged.begin(), ragged.end(), -1);
      world.scatterv_in_place(ragged, {counts, places}, root);
      if (!here) {
        EXPECT_EQ(ragged, std::vector<int>(world.rank(), r + 100));
      }
    }
  });
}

TEST(Operations, TravelCompressed) {
  on_ranks(3, [](const Communicator& world) {
    // 2^11 + 1 has a bit more than fp16 can hold; the sum is made of what arrived.
    std::vector<float> mine(1000, 2049.0F), sum(1000);
    world.allreduce(mine, sum, Op::kSum, {.wire_datatype = UNISONO_FP16});
    EXPECT_EQ(sum, std::vector<float>(1000, 3 * 2048.0F));
    EXPECT_EQ(mine[999], 2049.0F);
    std::vector<float> from_root(10, static_cast<float>(world.rank()) + 1.0F / 1024);
    world.bcast(from_root, 1, {.wire_datatype = UNISONO_BF16});
    EXPECT_EQ(from_root, std::vector<float>(10, 1.0F));
  });
}

TEST(Operations, HaveFactors) {
  on_ranks(3, [](const Communicator& world) {
    // All of it can be written exactly: 1/2 * 2 + 1/4 * 4 + 1/8 * 8 = 3, and a quarter of it.
    const std::uint32_t r = world.rank();
    const std::vector<float> mine(1000, std::ldexp(2.0F, static_cast<int>(r)));
    const double pre = std::ldexp(0.5, -static_cast<int>(r));
    std::vector<float> out(1000);
    world.allreduce(mine, out, Op::kSum, {.pre_scale = pre, .post_scale = 0.25});
    EXPECT_EQ(out, std::vector<float>(1000, 0.75F));
    EXPECT_EQ(mine[999], std::ldexp(2.0F, static_cast<int>(r)));
    auto in_place = mine;
    world.allreduce(kInPlace, in_place, Op::kMax, {.pre_scale = pre * (r + 1)});
    EXPECT_EQ(in_place, std::vector<float>(1000, 3.0F));
    // A factor of 0 is one.
    world.allreduce(mine, out, Op::kSum, {.pre_scale = r == 1 ? 1.0 : 0.0});
    EXPECT_EQ(out, std::vector<float>(1000, 4.0F));
    EXPECT_THROW(world.bcast(out, 1, {.pre_scale = 2.0}), Error);
    std::vector<std::int64_t> whole(3, 1);
    EXPECT_THROW(world.allreduce(kInPlace, whole, Op::kSum, {.post_scale = 2.0}), Error);
    EXPECT_EQ(whole, std::vector<std::int64_t>(3, 1));
  });
}

TEST(Operations, SplitOrdersByKey) {
  on_ranks(4, [](const Communicator& world) {
    const std::int64_t colour = world.rank() == 3 ? -1 : static_cast<std::int64_t>(world.rank() % 2);
    const Communicator part = world.split(colour, -static_cast<std::int64_t>(world.rank()));
    if (world.rank() == 3) {
      EXPECT_FALSE(part);
      return;
    }
    EXPECT_EQ(part.size(), world.rank() == 1 ? 1U : 2U);
    EXPECT_EQ(part.rank(), world.rank() == 0 ? 1U : 0U);
    std::vector<std::int32_t> sum(1);
    part.allreduce(std::vector<std::int32_t>{static_cast<std::int32_t>(world.rank()) + 1}, sum, Op::kSum);
    EXPECT_EQ(sum[0], world.rank() == 1 ? 2 : 4);
  });
}

}  // namespace
}  // namespace unisono::test
