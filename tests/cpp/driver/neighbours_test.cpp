// The programs of exchanges along graphs, proven and run on random graphs.
#include "driver/neighbours.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "reference/checker.hpp"
#include "reference/interpreter.hpp"

namespace unisono::driver {
namespace {

/// Edges of all ranks, `count` of them at random; the ends of those between two ranks are named in order.
std::vector<Edges> random_graph(std::uint32_t size, std::uint32_t count, std::mt19937_64& random) {
  std::vector<Edges> graph(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    graph[rank].rank = rank;
    graph[rank].size = size;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % size);
    const auto to = static_cast<std::uint32_t>(random() % size);
    graph[from].destinations.push_back(to);
    graph[to].sources.push_back(from);
  }
  return graph;
}

/// A job of the exchange in which the n-th edge from a to b carries a number of elements that follows from a, b and n;
/// some carry none.
reference::Job job_of(const std::vector<Edges>& graph) {
  const auto length = [](std::uint32_t from, std::uint32_t to, std::uint32_t nth) -> std::uint64_t {
    return (from + 2 * to + 3 * nth) % 4;
  };
  constexpr std::uint64_t kElement = 4;
  std::vector<Program> programs;
  programs.reserve(graph.size());
  for (const Edges& edges : graph) programs.push_back(neighbour_program(edges, Datatype::kFp32));
  reference::Job job = reference::make_job(std::move(programs), Datatype::kFp32, 0, 0);
  for (const Edges& edges : graph) {
    const EdgeParams params(edges);
    std::vector<std::uint64_t>& words = job.params[edges.rank];
    std::uint64_t sent = 0;
    for (const Edge& edge : edges_out(edges)) {
      words[params.send_count(edge.index)] = length(edges.rank, edges.destinations[edge.index], edge.nth);
      words[params.send_offset(edge.index)] = sent * kElement;
      sent += words[params.send_count(edge.index)];
    }
    std::uint64_t received = 0;
    for (const Edge& edge : edges_in(edges)) {
      words[params.recv_count(edge.index)] = length(edges.sources[edge.index], edges.rank, edge.nth);
      words[params.recv_offset(edge.index)] = received * kElement;
      received += words[params.recv_count(edge.index)];
    }
    job.bytes(edges.rank, Region::kSrc) = sent * kElement;
    job.bytes(edges.rank, Region::kDst) = received * kElement;
  }
  return job;
}

TEST(NeighbourPrograms, AreProvenOnRandomGraphs) {
  std::mt19937_64 random(7);
  for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U, 17U}) {
    // Up to many more edges at a rank than its window has room for.
    for (const std::uint32_t edges : {0U, 1U, size, 4 * size, 60 * size}) {
      for (int sample = 0; sample < 3; ++sample) {
        const reference::Job job = job_of(random_graph(size, edges, random));
        const reference::CheckReport report = reference::check_job(job, 4, sample + 1);
        EXPECT_TRUE(report.ok()) << size << " ranks, " << edges << " edges: " << report.text();
      }
    }
  }
}

TEST(NeighbourPrograms, BringEveryBlockToItsPlace) {
  std::mt19937_64 random(11);
  const std::vector<Edges> graph = random_graph(6, 80, random);
  const reference::Job job = job_of(graph);
  std::vector<reference::RankInput> inputs(6);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    for (std::uint64_t i = 0; i < job.bytes(rank, Region::kSrc); ++i) {
      inputs[rank].src.push_back(static_cast<std::byte>(random()));
    }
    inputs[rank].dst.resize(job.bytes(rank, Region::kDst));
  }
  const auto got = reference::interpret(job, inputs, reference::Policy::random(3));
  std::size_t compared = 0;
  for (const Edges& edges : graph) {
    const EdgeParams params(edges);
    for (const Edge& edge : edges_in(edges)) {
      const std::uint32_t from = edges.sources[edge.index];
      const Edges& other = graph[from];
      std::uint32_t nth = 0;
      for (std::uint32_t out = 0; out < other.destinations.size(); ++out) {
        if (other.destinations[out] != edges.rank || nth++ != edge.nth) continue;
        const std::uint64_t there = job.params[from][EdgeParams(other).send_offset(out)];
        const std::uint64_t here = job.params[edges.rank][params.recv_offset(edge.index)];
        for (std::uint64_t i = 0; i < 4 * job.params[edges.rank][params.recv_count(edge.index)]; ++i, ++compared) {
          ASSERT_EQ(got[edges.rank][here + i], inputs[from].src[there + i]);
        }
      }
    }
  }
  EXPECT_GT(compared, 200U);
}

}  // namespace
}  // namespace unisono::driver
