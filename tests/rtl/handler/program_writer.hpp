// Writes random programs that the handlers' loader accepts, of all instructions (tests/rtl/handler).
//
// Which NaN an operation gives is nobody's promise, so that none may be seen: what is computed in floating point is
// followed by a choice that puts 1 in the place of NaN, and tables of floating point hold finite numbers only.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "reference/dice.hpp"
#include "switch/handler/program.hpp"

namespace unisono::handler {

/// Memory of a random program: tables of floating point first, of each element one; then what loads and stores use.
inline constexpr std::uint32_t kTables = 2048;
inline constexpr std::uint32_t kMemory = 4096;

class ProgramWriter {
 public:
  /// With floating point, or without any.
  ProgramWriter(reference::Dice& dice, bool has_reals) : dice_(dice), has_reals_(has_reals) {}

  Program write();

 private:
  // Registers: those of integers are below, then those that hold no NaN; the uppermost are constants.
  static constexpr std::uint8_t kIntegers = 40;
  static constexpr std::uint8_t kReals = 13;
  static constexpr std::uint8_t kTemporary = 58;
  static constexpr std::uint8_t kZero = 60;
  static constexpr std::uint8_t kOne32 = 61;
  static constexpr std::uint8_t kOne64 = 62;
  static constexpr std::uint8_t kVectors = 20;
  static constexpr std::uint8_t kTemporaryVector = 28;
  static constexpr std::uint8_t kVectorOne32 = 30;
  static constexpr std::uint8_t kVectorOne64 = 31;

  std::uint32_t up_to(std::uint32_t end) { return static_cast<std::uint32_t>(dice_.below(end)); }
  bool one_of(std::uint32_t n) { return up_to(n) == 0; }
  template <class T>
  T any(std::initializer_list<T> values) {
    return *(values.begin() + up_to(static_cast<std::uint32_t>(values.size())));
  }
  std::uint8_t integer() { return static_cast<std::uint8_t>(up_to(kIntegers)); }
  std::uint8_t scalar() { return static_cast<std::uint8_t>(up_to(kTemporary)); }
  std::uint8_t vector() { return static_cast<std::uint8_t>(up_to(kTemporaryVector)); }
  Element whole() { return static_cast<Element>(up_to(4)); }
  Element real() { return any({Element::kFp32, Element::kFp64}); }
  std::uint32_t bits();
  std::uint64_t operand();

  static std::uint32_t pair(std::uint32_t rb, std::uint32_t rc = 0) { return rb | rc << 8U; }
  void put(Op op, Element element, bool vector, std::uint8_t rd, std::uint8_t ra, std::uint32_t imm,
           bool immediate = false, std::uint8_t aux = 0) {
    words_.push_back({op, vector, element, immediate, aux, rd, ra, imm});
  }

  void function(std::uint32_t statements);
  void arithmetic();
  void flood();
  void block(std::uint32_t statements, std::uint32_t depth);
  void statement(std::uint32_t depth);
  void loop(std::uint32_t depth);
  void integers(bool vector);
  void reals(bool vector);
  void convert(bool vector);
  std::uint8_t half_way(Element to, Element from, bool vector, std::uint8_t of);
  void no_nan(Element element, bool vector, std::uint8_t to);
  std::uint8_t address(std::uint32_t bytes);
  void memory();
  void payload();
  void output();
  void table();
  void meets(std::uint32_t table);
  void landed(std::uint8_t rd, bool vector);
  void dense();
  void neighbours();
  void lanes();

  reference::Dice& dice_;
  bool has_reals_;
  std::vector<Instruction> words_;
  std::vector<std::size_t> ahead_;  ///< jumps of this function whose targets are to be chosen
  std::uint8_t loops_ = 0;
  bool has_payload_ = false;
};

}  // namespace unisono::handler
