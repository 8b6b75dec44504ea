// Random programs of several ranks that race and deadlock nowhere.
//
// A program set is made step by step in one global order, and every rank has at most one move in a step.
// Moves depend on what last touched the memory they touch. So the earliest unfinished step can always go
// on: no set deadlocks or races, whatever the engine's buffers.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "collectives/build.hpp"
#include "core/arithmetic.hpp"
#include "core/program.hpp"

namespace unisono::test {

using build::Build;
using build::Place;

inline constexpr std::uint32_t kBlocks = 5;              ///< of src, dst and scratch each
inline constexpr std::uint32_t kCounts[] = {0, 7, 150};  ///< what params hold

class Generator {
 public:
  /// Blocks have `block` elements; counts are read from params only if that is 150.
  Generator(std::uint32_t seed, std::uint32_t size, std::uint32_t block = 150, bool indirect = true)
      : random_(seed), size_(size), block_(block), indirect_(indirect), ranks_(size), programs_(size) {
    const Datatype dtypes[] = {Datatype::kInt32,     Datatype::kFp16,  Datatype::kInt64, Datatype::kFp32,
                               Datatype::kBf16,      Datatype::kFp64,  Datatype::kUint8, Datatype::kComplex64,
                               Datatype::kFp64Int32, Datatype::kInt16, Datatype::kBool,  Datatype::kUint64};
    dtype_ = dtypes[seed % std::size(dtypes)];
    for (Program& program : programs_) {
      program.scratch_bytes = kBlocks * block_ * bytes_of(dtype_);
      program.params_bytes = sizeof(std::uint64_t) * std::size(kCounts);
    }
  }

  std::vector<Program> run(std::uint32_t steps) {
    if (dtype_ == Datatype::kInt64 && indirect_) load_counts();
    for (std::uint32_t s = 0; s < steps; ++s) {
      tag_ = s;
      switch (draw(11)) {
        case 0:
        case 1:
          local();
          break;
        case 2:
        case 3:
          message();
          break;
        case 4:
          chain();
          break;
        case 5:
          multicast();
          break;
        case 6:
          fan_in();
          break;
        case 7:
          signal();
          break;
        case 8:
          pipeline();
          break;
        case 9:
          relay();
          break;
        case 10:
          exchange();
          break;
        default:
          break;
      }
    }
    return programs_;
  }

  Datatype dtype() const { return dtype_; }
  std::uint64_t bytes() const { return kBlocks * block_ * bytes_of(dtype_); }
  std::uint64_t src_bytes() const { return bytes() + (dtype_ == Datatype::kInt64 ? 8 * std::size(kCounts) : 0); }

  /// Positive and finite, and different everywhere.
  std::vector<std::byte> data(std::uint32_t rank, std::uint32_t which) const {
    std::vector<std::byte> made(which == 0 ? src_bytes() : bytes());
    for (std::uint64_t i = 0; i < bytes() / bytes_of(dtype_); ++i) {
      const std::uint32_t value = (static_cast<std::uint32_t>(i) * 7 + rank * 31 + which * 13) % 97 + 1;
      std::byte* at = made.data() + i * bytes_of(dtype_);
      const auto put = [&](auto element) { std::memcpy(at, &element, sizeof element); };
      switch (dtype_) {
        case Datatype::kInt32:
          put(static_cast<std::int32_t>(value));
          break;
        case Datatype::kInt64:
          put(static_cast<std::int64_t>(value));
          break;
        case Datatype::kFp32:
          put(static_cast<float>(value) / 3);
          break;
        case Datatype::kFp64:
          put(static_cast<double>(value) / 3);
          break;
        case Datatype::kFp16:
          put(static_cast<std::uint16_t>(0x3000 + value * 11));
          break;
        case Datatype::kBf16:
          put(static_cast<std::uint16_t>(0x3f00 + value));
          break;
        default:
          for (std::uint32_t byte = 0; byte < bytes_of(dtype_); ++byte) {
            at[byte] = static_cast<std::byte>((value * (byte + 3)) % 64);
          }
          break;
      }
    }
    if (which == 0 && dtype_ == Datatype::kInt64) {
      for (std::size_t w = 0; w < std::size(kCounts); ++w) {
        const std::uint64_t count = kCounts[w];
        std::memcpy(made.data() + bytes() + 8 * w, &count, 8);
      }
    }
    return made;
  }

 private:
  struct Cell {
    int writer = -1;           ///< move that wrote it last
    std::vector<int> readers;  ///< since
    bool written = false;
  };
  struct RankState {
    Cell cells[3][kBlocks];  ///< src, dst, scratch
    int count_writer[std::size(kCounts)] = {-1, -1, -1};
  };
  struct Block {
    std::uint32_t region;
    std::uint32_t index;
  };
  /// Length of a step: elements, or a word of params.
  struct Length {
    std::uint64_t elements;
    int word = -1;
  };

  std::uint32_t draw(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }

  Length length() {
    if (dtype_ == Datatype::kInt64 && indirect_ && draw(3) == 0) {
      const int word = static_cast<int>(draw(std::size(kCounts)));
      return {kCounts[word], word};
    }
    return {draw(8) == 0 ? 0 : 1 + draw(block_)};
  }
  Func func() {
    // Products would leave the range of floating point, and all be the same then.
    const bool whole = is_defined(Func::kBitwiseAnd, dtype_);
    for (;;) {
      const Func any = kAllFunc[draw(static_cast<std::uint32_t>(kAllFunc.size()))];
      if (is_defined(any, dtype_) && (whole || any != Func::kProd)) return any;
    }
  }
  /// Something that may be read: scratch only where all of it has been written.
  Block source(std::uint32_t rank) {
    for (;;) {
      const Block block{draw(3), draw(kBlocks)};
      if (block.region < 2 || ranks_[rank].cells[2][block.index].written) return block;
    }
  }
  Block target() { return {1 + draw(2), draw(kBlocks)}; }
  Place place(Block block) const {
    return {static_cast<Region>(block.region), block.index * block_ * bytes_of(dtype_)};
  }
  Cell& cell(std::uint32_t rank, Block block) { return ranks_[rank].cells[block.region][block.index]; }

  Build begin(Func f = Func::kNone) const {
    Call call;
    call.dtype = dtype_;
    call.func = f;
    return Build(call);
  }
  int next(std::uint32_t rank) const { return static_cast<int>(programs_[rank].moves.size()); }
  void after(std::uint32_t rank, Build& move, int earlier) const {
    if (earlier >= 0) move.after(static_cast<std::uint32_t>(next(rank) - earlier));
  }
  void reads(std::uint32_t rank, Build& move, Block block) {
    after(rank, move, cell(rank, block).writer);
    cell(rank, block).readers.push_back(next(rank));
  }
  void writes(std::uint32_t rank, Build& move, Block block, std::uint64_t elements) {
    Cell& c = cell(rank, block);
    if (c.writer != next(rank)) after(rank, move, c.writer);
    for (const int reader : c.readers) {
      if (reader != next(rank)) after(rank, move, reader);
    }
    c.readers.clear();
    c.writer = next(rank);
    c.written = c.written || elements == block_;
  }
  void sized(std::uint32_t rank, Build& move, Length n) {
    if (n.word < 0) {
      move.count(n.elements);
      return;
    }
    move.count_at(static_cast<std::uint32_t>(n.word));
    after(rank, move, ranks_[rank].count_writer[n.word]);
  }
  /// Operands and local result of one rank's move. Operand and result are the same place or different blocks.
  void finish(std::uint32_t rank, Build& move, Length n, bool take, bool keep) {
    sized(rank, move, n);
    if (take) {
      const Block from = source(rank);
      move.take(place(from));
      reads(rank, move, from);
    }
    if (keep) {
      const Block to = target();
      move.keep(place(to));
      writes(rank, move, to, n.word < 0 ? n.elements : 0);
    }
    programs_[rank].moves.push_back(move);
  }
  std::uint32_t other(std::uint32_t rank) { return size_ == 1 ? rank : (rank + 1 + draw(size_ - 1)) % size_; }

  void load_counts() {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      for (std::uint32_t w = 0; w < std::size(kCounts); ++w) {
        ranks_[rank].count_writer[w] = next(rank);
        programs_[rank].moves.push_back(
            begin().take({Region::kSrc, bytes() + 8 * w}).keep({Region::kParams, 8 * w}).count(1));
      }
    }
  }
  void local() {
    const std::uint32_t rank = draw(size_);
    const bool two = draw(2) == 0;
    Build move = begin(func());
    if (two) {
      const Block second = source(rank);
      move.with(place(second)).arrival_first(draw(2) == 0);
      reads(rank, move, second);
    }
    finish(rank, move, length(), true, true);
  }
  void message() {
    const std::uint32_t from = draw(size_), to = other(from);
    const Length n = length();
    Build out = begin();
    finish(from, out.send(to, tag_), n, true, draw(3) == 0);
    Build in = begin(func());
    in.arrive(from, tag_).arrival_first(draw(2) == 0);
    finish(to, in, n, draw(2) == 0, true);
  }
  void chain() {
    if (size_ < 3) return;
    std::vector<std::uint32_t> path(size_);
    for (std::uint32_t r = 0; r < size_; ++r) path[r] = r;
    std::shuffle(path.begin(), path.end(), random_);
    const Length n = length();
    const Func f = func();
    for (std::uint32_t i = 0; i < size_; ++i) {
      Build move = begin(f);
      if (i > 0) move.arrive(path[i - 1], tag_);
      if (i + 1 < size_) move.send(path[i + 1], tag_);
      finish(path[i], move, n, i == 0 || draw(2) == 0, i + 1 == size_ || draw(2) == 0);
    }
  }
  std::uint32_t list(std::uint32_t rank, const std::vector<std::uint32_t>& peers) {
    auto& pool = programs_[rank].pool;
    const auto index = static_cast<std::uint32_t>(pool.size());
    pool.push_back(static_cast<std::uint32_t>(peers.size()));
    pool.insert(pool.end(), peers.begin(), peers.end());
    return index;
  }
  std::vector<std::uint32_t> some_others(std::uint32_t rank) {
    std::vector<std::uint32_t> peers;
    for (std::uint32_t r = 0; r < size_; ++r) {
      if (r != rank && draw(3) != 0) peers.push_back(r);
    }
    if (peers.empty()) peers.push_back(other(rank));
    std::shuffle(peers.begin(), peers.end(), random_);
    return peers;
  }
  void multicast() {
    const std::uint32_t from = draw(size_);
    if (size_ == 1) return;
    const std::vector<std::uint32_t> peers = some_others(from);
    const Length n = length();
    Build out = begin();
    finish(from, out.send(PeerMode::kList, list(from, peers), tag_), n, true, draw(2) == 0);
    for (const std::uint32_t to : peers) {
      Build in = begin(func());
      finish(to, in.arrive(from, tag_), n, draw(2) == 0, true);
    }
  }
  /// Some of those that are neither `rank` nor among `without`; perhaps nobody.
  std::vector<std::uint32_t> some_others_without(std::uint32_t rank, const std::vector<std::uint32_t>& without) {
    std::vector<std::uint32_t> peers;
    for (const std::uint32_t r : some_others(rank)) {
      if (std::find(without.begin(), without.end(), r) == without.end()) peers.push_back(r);
    }
    return peers;
  }
  /// What arrives goes on to several, perhaps combined, perhaps kept as well. Not back: a rank that receives into what
  /// it sends would wait for itself.
  void relay() {
    if (size_ == 1) return;
    const std::uint32_t middle = draw(size_), from = other(middle);
    const std::vector<std::uint32_t> peers = some_others_without(middle, {from});
    if (peers.empty()) return;
    const Length n = length();
    Build out = begin();
    finish(from, out.send(middle, tag_), n, true, false);
    Build pass = begin(func());
    pass.arrive(from, tag_).arrival_first(draw(2) == 0).send(PeerMode::kList, list(middle, peers), tag_);
    finish(middle, pass, n, draw(2) == 0, draw(2) == 0);
    for (const std::uint32_t to : peers) {
      Build in = begin(func());
      finish(to, in.arrive(middle, tag_), n, draw(2) == 0, true);
    }
  }
  /// Several send to one, which combines what they sent and sends the result to several.
  void exchange() {
    if (size_ == 1) return;
    const std::uint32_t middle = draw(size_);
    const std::vector<std::uint32_t> sources = some_others(middle), peers = some_others_without(middle, sources);
    if (peers.empty()) return;
    const Length n = length();
    for (const std::uint32_t from : sources) {
      Build out = begin();
      finish(from, out.send(middle, tag_), n, true, false);
    }
    Build pass = begin(func());
    pass.arrive(PeerMode::kList, list(middle, sources), tag_)
        .arrival_first(draw(2) == 0)
        .send(PeerMode::kList, list(middle, peers), tag_);
    finish(middle, pass, n, draw(2) == 0, draw(2) == 0);
    for (const std::uint32_t to : peers) {
      Build in = begin(func());
      finish(to, in.arrive(middle, tag_), n, draw(2) == 0, true);
    }
  }
  void fan_in() {
    const std::uint32_t to = draw(size_);
    if (size_ == 1) return;
    const std::vector<std::uint32_t> peers = some_others(to);
    const Length n = length();
    for (const std::uint32_t from : peers) {
      Build out = begin();
      finish(from, out.send(to, tag_), n, true, false);
    }
    Build in = begin(func());
    in.arrive(PeerMode::kList, list(to, peers), tag_).arrival_first(draw(2) == 0);
    finish(to, in, n, draw(2) == 0, true);
  }
  void signal() {
    const std::uint32_t from = draw(size_), to = other(from);
    programs_[from].moves.push_back(begin().send(to, tag_).signal());
    programs_[to].moves.push_back(begin().arrive(from, tag_).signal());
  }
  /// A message, and on its receiver a move that follows it segment by segment and passes it on.
  void pipeline() {
    if (size_ < 3) return;
    const std::uint32_t from = draw(size_), middle = other(from);
    std::uint32_t last = other(middle);
    while (last == from) last = other(middle);
    const Length n{1 + draw(block_)};
    Build out = begin();
    finish(from, out.send(middle, tag_), n, true, false);
    const Block stop{2, draw(kBlocks)};
    Build in = begin();
    in.arrive(from, tag_).keep(place(stop));
    sized(middle, in, n);
    writes(middle, in, stop, n.elements);
    programs_[middle].moves.push_back(in);
    Build pass = begin();
    pass.take(place(stop)).send(last, tag_).stream_after(1);
    cell(middle, stop).readers.push_back(next(middle));
    sized(middle, pass, n);
    programs_[middle].moves.push_back(pass);
    Build end = begin(func());
    finish(last, end.arrive(middle, tag_), n, draw(2) == 0, true);
  }

  std::mt19937 random_;
  std::uint32_t size_;
  std::uint32_t block_;
  bool indirect_;
  Datatype dtype_;
  std::uint32_t tag_ = 0;
  std::vector<RankState> ranks_;
  std::vector<Program> programs_;
};

}  // namespace unisono::test
