// Inference of a recommendation model on ten nodes, without a batch (ACCL+, OSDI '24, 6.1 and figure 16):
//
//   rank 0 ... 3   look up a quarter of the tables each, and multiply it with the upper half of FC1
//   rank 4 ... 7   multiply the same quarter with the lower half; both halves, summed over these ranks, are FC1
//   rank 8         FC2
//   rank 9         FC3, and the score
//   rank 10        may be there: a processor that sends the queries
//
// Messages of a pair of ranks and a communicator stay in order, so partial results have a communicator of their own: a
// vector that is not there yet holds up none of them.
//
// All that goes from node to node goes from stream to stream: a partial vector, a partial result, the reduction, and
// the result of FC2. `times` of a kernel gets cycles of each query, in the order that its comment says.
#include <unisono/kernel.hpp>

#include "stage.hpp"

using namespace dlrm;
using unisono::kernel::Comm;
using unisono::kernel::CommandStream;
using unisono::kernel::cycle;
using unisono::kernel::FromCclo;
using unisono::kernel::StatusStream;
using unisono::kernel::ToCclo;

namespace {

constexpr std::uint32_t kGroup = 4;  ///< nodes that look up, and that reduce
/// What goes in several calls, so that the first words are under way before the last ones are there.
constexpr std::uint32_t kBlocks = 4;        ///< of a half of FC1: a partial result, and two in the reduction
constexpr std::uint32_t kFeeder = 10;       ///< rank that sends queries
constexpr std::uint32_t kMostTables = 512;  ///< of a node
constexpr std::uint32_t kVectorPieces = 2, kNextPieces = 4;
constexpr std::uint32_t kSumsAhead = 4;

}  // namespace

/// Rank 0 to 3. `indices`: rows of its tables, of each query; `tables`: one behind the other, `row` elements a row. All
/// tables are read at once, for each has a memory bank of its own: the first word is there after `access` cycles, then
/// a word comes in each. With a `gap` queries begin at its multiples, in the same cycle on all nodes. If `fed`, rows
/// come from rank kFeeder instead, a message of whole words for each query, which begins when they are there. times:
/// lookup begins, last block is there.
int look_up(std::span<const std::int32_t> indices, std::span<const Fixed> tables, std::uint32_t row,
            std::span<const Fixed> weights, std::uint32_t queries, std::uint32_t rate, std::uint32_t access,
            std::uint32_t gap, bool fed, std::span<std::int64_t> times, Comm world, Comm side, CommandStream& commands,
            StatusStream& status, FromCclo<0> from_feeder, ToCclo<0> to_vector, ToCclo<1> to_partial) {
  const auto count = static_cast<std::uint32_t>(indices.size() / queries);  // of tables
  const std::uint32_t inputs = count * row;
  const std::size_t table_size = tables.size() / count;
  unisono::kernel::Command vectors(commands, status, world, 0), partials(commands, status, side, 1),
      feeds(commands, status, world, 0, 0);
  Outlet vector(to_vector), partial(to_partial);
  Inlet feed(from_feeder);
  BlockLayer layer(weights, inputs, kBlocks, rate);
  const std::uint32_t feed_words = (count + kLanes - 1) / kLanes;
  if (!layer.fits() || feed_words * kLanes > kMostTables) return kInvalidArgument;
  const std::uint32_t piece = inputs / kVectorPieces, peer = world.rank + kGroup;
  Calls vector_calls(queries * kVectorPieces, piece / kLanes);
  Calls partial_calls(queries * kBlocks, layer.block() / kLanes);
  Calls feed_calls(fed ? queries : 0, feed_words);
  std::array<std::int32_t, kMostTables> rows{};
  std::uint32_t come = 0;  // rows of the next query
  std::uint32_t begun = 0, blocks = 0;
  std::uint32_t element = 0;  // the next one of the lookup
  std::uint64_t due = 0;      // its cycle
  bool reads = false;
  std::uint64_t next = gap == 0 ? 0 : (cycle() / gap + 1) * gap;
  while (blocks != queries * kBlocks || !vector.empty() || !partial.empty()) {
    if (vector_calls.due(vector.moved())) vectors.send(UNISONO_INT32, piece, peer);
    if (partial_calls.due(partial.moved())) partials.send(UNISONO_INT32, layer.block(), peer);
    if (feed_calls.due(feed.moved())) feeds.recv(UNISONO_INT32, std::size_t{feed_words} * kLanes, kFeeder);
    const bool feed_comes = fed && feed.step();
    if (!reads && come < count && feed.has_word()) {
      const Lanes word = feed.take();
      std::copy(word.begin(), word.end(), rows.begin() + come);
      come += kLanes;
    }
    if (!fed && !reads && begun != queries && cycle() >= next) {
      next += gap;
      std::copy_n(&indices[std::size_t{begun} * count], count, rows.begin());
      come = count;
    }
    if (!reads && come >= count) {
      times[2 * begun] = static_cast<std::int64_t>(cycle());
      due = now() + access;
      reads = true;
    }
    if (reads && now() >= due && layer.vector().room() >= kLanes && vector.room() >= kLanes) {
      const std::uint32_t table = element / row;
      const auto found = static_cast<std::uint32_t>(rows[table]);
      const std::span word = tables.subspan(table * table_size + std::size_t{row} * found + element % row, kLanes);
      vector.put(word);
      layer.vector().put(word);
      element += kLanes;
      if (element == inputs) {
        element = 0;
        reads = false;
        come = 0;
        ++begun;
      }
    }
    if (layer.step() && partial.room() >= layer.block()) {
      times[2 * (blocks / kBlocks) + 1] = static_cast<std::int64_t>(cycle());
      partial.put(layer.result());
      ++blocks;
    }
    const bool vector_moves = vector.step(), partial_moves = partial.step();
    end_cycle(vector_moves || partial_moves || feed_comes || reads || layer.busy() || (!fed && begun != queries));
  }
  return finish(vectors, partials, feeds);
}
const unisono::kernel::Export<look_up> kLookUp{"look_up"};

/// Rank 4 to 7. The operand of the reduction: a block of its partner, one of its own, and so on. times: first input,
/// last block is there.
int reduce_half(std::span<const Fixed> weights, std::uint32_t inputs, std::uint32_t queries, std::uint32_t rate,
                std::span<std::int64_t> times, Comm world, Comm side, Comm group, CommandStream& commands,
                StatusStream& status, FromCclo<0> from_vector, FromCclo<1> from_partial, ToCclo<0> to_sum) {
  unisono::kernel::Command vectors(commands, status, world, 0, 0), partials(commands, status, side, 1, 1),
      sums(commands, status, group, 0, 0);
  Inlet vector(from_vector), partial(from_partial);
  Outlet sum(to_sum);
  BlockLayer layer(weights, inputs, kBlocks, rate);
  if (!layer.fits()) return kInvalidArgument;
  const std::uint32_t block = layer.block(), piece = inputs / kVectorPieces, peer = world.rank - kGroup;
  Calls vector_calls(queries * kVectorPieces, piece / kLanes);
  Calls partial_calls(queries * kBlocks, block / kLanes), sum_calls(2 * queries * kBlocks, block / kLanes, kSumsAhead);
  std::uint32_t begun = 0, first = 0, blocks = 0;
  std::uint32_t upper = 0;  // elements of the partner's block that have come
  while (blocks != queries * kBlocks || !sum.empty()) {
    if (vector_calls.due(vector.moved())) vectors.recv(UNISONO_INT32, piece, peer);
    if (partial_calls.due(partial.moved())) partials.recv(UNISONO_INT32, block, peer);
    if (sum_calls.due(sum.moved())) sums.reduce(UNISONO_INT32, block, UNISONO_SUM, group.size - 1);
    const bool vector_comes = vector.step(), partial_comes = partial.step();
    if (vector.has_word() && layer.vector().room() >= kLanes) {
      if (first == 0) times[2 * begun++] = static_cast<std::int64_t>(cycle());
      layer.vector().put(vector.take());
      first = (first + kLanes) % inputs;
    }
    if (upper != block && partial.has_word() && sum.room() >= kLanes) {
      sum.put(partial.take());
      upper += kLanes;
    }
    if (layer.step() && upper == block && sum.room() >= block) {
      times[2 * (blocks / kBlocks) + 1] = static_cast<std::int64_t>(cycle());
      sum.put(layer.result());
      upper = 0;
      ++blocks;
    }
    end_cycle(sum.step() || vector_comes || partial_comes || layer.busy());
  }
  return finish(vectors, partials, sums);
}
const unisono::kernel::Export<reduce_half> kReduceHalf{"reduce_half"};

/// Rank 8, root of the reduction: its operand is the bias of FC1. times: first input, result is there.
int second_layer(std::span<const Fixed> bias, std::span<const Fixed> weights, std::uint32_t queries, std::uint32_t rate,
                 std::span<std::int64_t> times, Comm world, Comm group, CommandStream& commands, StatusStream& status,
                 ToCclo<0> to_sum, FromCclo<0> from_sum, ToCclo<1> to_next) {
  const auto inputs = static_cast<std::uint32_t>(bias.size());
  unisono::kernel::Command sums(commands, status, group, 0, 0), nexts(commands, status, world, 1);
  Outlet operand(to_sum), next(to_next);
  Inlet sum(from_sum);
  Layer layer(weights, inputs, rate);
  if (!layer.fits()) return kInvalidArgument;
  const std::uint32_t block = inputs / (2 * kBlocks), piece = layer.outputs() / kNextPieces;
  Calls sum_calls(2 * queries * kBlocks, block / kLanes, kSumsAhead), next_calls(queries * kNextPieces, piece / kLanes);
  std::uint32_t begun = 0, done = 0;
  std::uint32_t first = 0, element = 0, biased = 0;
  while (done != queries || !next.empty()) {
    if (sum_calls.due(sum.moved())) sums.reduce(UNISONO_INT32, block, UNISONO_SUM, group.rank);
    if (next_calls.due(next.moved())) nexts.send(UNISONO_INT32, piece, world.rank + 1);
    if (biased != queries && operand.empty()) {
      operand.put(bias.subspan(element, kLanes));
      element += kLanes;
      if (element == inputs) {
        element = 0;
        ++biased;
      }
    }
    const bool sum_comes = sum.step();
    if (layer.done() && next.room() >= layer.outputs()) {
      times[2 * done + 1] = static_cast<std::int64_t>(cycle());
      next.put(layer.result());
      ++done;
    }
    if (layer.ready() && sum.has_word()) {
      if (first == 0) times[2 * begun] = static_cast<std::int64_t>(cycle());
      layer.take(rectified(sum.take()));
      first += kLanes;
      if (first == inputs) {
        first = 0;
        ++begun;
      }
    }
    const bool operand_moves = operand.step(), next_moves = next.step();
    end_cycle(operand_moves || next_moves || sum_comes || layer.busy());
  }
  return finish(sums, nexts);
}
const unisono::kernel::Export<second_layer> kSecondLayer{"second_layer"};

/// Rank 9. The score is a product with `last`, which takes a cycle. times: first input, score is there.
int third_layer(std::span<const Fixed> weights, std::span<const Fixed> last, std::uint32_t inputs,
                std::uint32_t queries, std::uint32_t rate, std::span<Fixed> scores, std::span<std::int64_t> times,
                Comm world, CommandStream& commands, StatusStream& status, FromCclo<0> from_layer) {
  unisono::kernel::Command layers(commands, status, world, 0, 0);
  Inlet inlet(from_layer);
  Layer layer(weights, inputs, rate);
  if (!layer.fits()) return kInvalidArgument;
  const std::uint32_t piece = inputs / kNextPieces;
  Calls calls(queries * kNextPieces, piece / kLanes);
  std::uint32_t begun = 0, done = 0, first = 0;
  while (done != queries) {
    if (calls.due(inlet.moved())) layers.recv(UNISONO_INT32, piece, world.rank - 1);
    const bool comes = inlet.step();
    if (layer.ready() && inlet.has_word()) {
      if (first == 0) times[2 * begun] = static_cast<std::int64_t>(cycle());
      layer.take(rectified(inlet.take()));
      first += kLanes;
      if (first == inputs) {
        first = 0;
        ++begun;
      }
    }
    if (layer.done()) {
      std::int64_t score = 0;
      const std::span<const Fixed> result = layer.result();
      for (std::size_t i = 0; i < result.size(); ++i) score += std::int64_t{std::max(result[i], 0)} * last[i];
      end_cycle(true);
      scores[done] = fixed_of(score);
      times[2 * done + 1] = static_cast<std::int64_t>(cycle());
      ++done;
    }
    end_cycle(comes || layer.busy());
  }
  return finish(layers);
}
const unisono::kernel::Export<third_layer> kThirdLayer{"third_layer"};
