// Values of a run are expressions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/fifo.hpp"
#include "reference/interpreter.hpp"

namespace unisono::reference {

/// Memory is an array of cells per region. All that is given must outlive this.
class SymbolDomain {
 public:
  using Unit = Symbol;

  SymbolDomain(const Lowered& lowered, SymbolTable& table, const SymbolLeaves& leaves, SymbolRun& run)
      : lowered_(lowered), table_(table), run_(run) {
    const Job& job = lowered_.job();
    run_.memory.resize(job.size());
    std::vector<Symbol> whole;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      for (const Region region : kAllRegion) {
        const auto r = static_cast<std::size_t>(region);
        const std::uint64_t cell = lowered_.cell_bytes(region);
        std::vector<Symbol>& cells = run_.memory[rank][r];
        cells.assign((job.region_bytes[rank][r] + cell - 1) / cell, kUninitialised);
        if (region == Region::kScratch) continue;
        if (region == Region::kParams) {
          const std::uint32_t parts = static_cast<std::uint32_t>(8 / cell);
          for (std::size_t word = 0; word < job.params[rank].size(); ++word) {
            const Symbol value = table_.constant(job.params[rank][word]);
            for (std::uint32_t p = 0; p < parts && word * parts + p < cells.size(); ++p) {
              cells[word * parts + p] = parts == 1 ? value : table_.part(value, p, parts);
            }
          }
          continue;
        }
        const std::uint32_t parts = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, bytes_of(job.dtype)) / cell);
        const Symbol first = leaves.memory[rank][r];
        for (std::size_t i = 0; i < cells.size(); ++i) {
          const Symbol leaf = first + static_cast<Symbol>(i / parts);
          cells[i] = parts == 1 ? leaf : table_.part(leaf, static_cast<std::uint32_t>(i % parts), parts);
        }
      }
    }
    inputs_.resize(job.streams.size());
    const std::uint32_t element = std::max<std::uint32_t>(1, bytes_of(job.dtype));
    for (std::size_t i = 0; i < job.streams.size(); ++i) {
      const std::size_t count = job.streams[i].bytes.size() / element;
      for (std::size_t k = 0; k < count; ++k) {
        const Symbol leaf = leaves.streams[i] + static_cast<Symbol>(k);
        inputs_[i].push(&leaf, 1);
      }
    }
  }

  static std::size_t units(std::uint32_t) { return 1; }

  bool read(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
            Symbol* out) {
    const std::uint64_t cell = lowered_.cell_bytes(region);
    const auto parts = static_cast<std::uint32_t>(element / cell);
    const Symbol* cells = run_.memory[rank][static_cast<std::size_t>(region)].data() + offset / cell;
    bool written = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = parts == 1 ? cells[i] : table_.join(cells + i * parts, parts);
      written = written && out[i] != kUninitialised;
    }
    return written;
  }
  void write(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
             const Symbol* values) {
    const std::uint64_t cell = lowered_.cell_bytes(region);
    const auto parts = static_cast<std::uint32_t>(element / cell);
    Symbol* cells = run_.memory[rank][static_cast<std::size_t>(region)].data() + offset / cell;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::uint32_t p = 0; p < parts; ++p) {
        cells[i * parts + p] = parts == 1 ? values[i] : table_.part(values[i], p, parts);
      }
    }
  }
  bool parameter(std::uint32_t rank, std::uint64_t offset, std::uint64_t& value) {
    Symbol symbol = kUninitialised;
    read(rank, Region::kParams, offset, 8, 1, &symbol);
    if (!table_.is_constant(symbol)) return false;
    value = table_.constant_value(symbol);
    return true;
  }

  /// Whether arrivals in any order are put in an order of symbols: the same expression then stands for all orders.
  bool arranges() const { return run_.all_orders; }
  /// `operands`: of `arrivals` arrivals, one after the other, the same number of elements each.
  void arrange(std::vector<Symbol>& operands, std::size_t arrivals) {
    const std::size_t count = operands.size() / arrivals;
    column_.resize(arrivals);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t a = 0; a < arrivals; ++a) column_[a] = operands[a * count + i];
      std::sort(column_.begin(), column_.end());
      for (std::size_t a = 0; a < arrivals; ++a) operands[a * count + i] = column_[a];
    }
  }

  void fold_begin(Datatype, std::vector<Symbol>& value, std::uint64_t) { folded_ = &value; }
  void fold_step(Func func, Datatype, bool swap, const std::vector<Symbol>& operand, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Symbol& value = (*folded_)[i];
      value = swap ? table_.combine(func, operand[i], value) : table_.combine(func, value, operand[i]);
    }
  }
  void fold_end(Datatype, std::vector<Symbol>&, std::uint64_t) {}
  void divide(Datatype, std::vector<Symbol>& value, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) value[i] = table_.divide(value[i]);
  }

  std::size_t stream_units(std::uint32_t rank, std::uint64_t port) const {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].size();
    }
    return 0;
  }
  void pop_stream(std::uint32_t rank, std::uint64_t port, Symbol* out, std::size_t count) {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].pop(out, count);
    }
  }
  void push_stream(std::uint32_t rank, std::uint64_t port, const Symbol* values, std::size_t count) {
    for (auto& stream : run_.streams) {
      if (stream.rank == rank && stream.port == port) {
        stream.values.insert(stream.values.end(), values, values + count);
        return;
      }
    }
    run_.streams.push_back({rank, static_cast<std::uint32_t>(port), {values, values + count}});
  }

 private:
  const Lowered& lowered_;
  SymbolTable& table_;
  SymbolRun& run_;
  std::vector<Fifo<Symbol>> inputs_;
  std::vector<Symbol>* folded_ = nullptr;
  std::vector<Symbol> column_;
};

}  // namespace unisono::reference
