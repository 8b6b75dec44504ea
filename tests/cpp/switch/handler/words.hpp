// Handlers written by hand, a word at a time.
#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "switch/handler/interpreter.hpp"
#include "switch/handler/operator.hpp"
#include "switch/handler/program.hpp"

namespace unisono::handler {

inline Instruction registers(Op op, Element element, std::uint32_t rd, std::uint32_t ra, std::uint32_t rb = 0,
                             std::uint32_t rc = 0, std::uint32_t aux = 0) {
  return {op,
          false,
          element,
          false,
          static_cast<std::uint8_t>(aux),
          static_cast<std::uint8_t>(rd),
          static_cast<std::uint8_t>(ra),
          rb | rc << 8U};
}

inline Instruction vector(Instruction word) {
  word.vector = true;
  return word;
}

/// With a number, an offset or a word to go on at.
inline Instruction numbered(Op op, std::uint32_t rd, std::uint32_t ra, std::uint32_t imm,
                            Element element = Element::kI64, std::uint32_t aux = 0) {
  return {op,
          false,
          element,
          false,
          static_cast<std::uint8_t>(aux),
          static_cast<std::uint8_t>(rd),
          static_cast<std::uint8_t>(ra),
          imm};
}

inline Instruction immediate(Op op, Element element, std::uint32_t rd, std::uint32_t ra, std::uint32_t imm,
                             std::uint32_t aux = 0) {
  return {op,
          false,
          element,
          true,
          static_cast<std::uint8_t>(aux),
          static_cast<std::uint8_t>(rd),
          static_cast<std::uint8_t>(ra),
          imm};
}

inline Instruction end(std::uint32_t verdict = 0) { return immediate(Op::kEnd, Element::kI64, 0, 0, verdict); }

/// A handler whose payload function is these words.
inline Program payload_of(std::vector<Instruction> words, std::uint32_t memory_bytes = 4096) {
  Program program;
  program.lines.assign(words.size(), 0);
  program.words = std::move(words);
  program.entries[static_cast<std::size_t>(Function::kPayload)] = 0;
  program.memory_bytes = memory_bytes;
  program.source = "by hand";
  return program;
}

/// An operator: left[i] += right[i], of 64-bit integers.
inline Program adds_elements() {
  constexpr std::uint32_t kRight = 128 + 4096;
  std::vector<Instruction> words{
      numbered(Op::kEnter, 0, 0, 511),
      numbered(Op::kLoad, 2, 1, 128),
      numbered(Op::kLoad, 3, 1, kRight),
      registers(Op::kAdd, Element::kI64, 2, 2, 3),
      numbered(Op::kStore, 2, 1, 128),
      immediate(Op::kAdd, Element::kI64, 1, 1, 8),
      immediate(Op::kAdd, Element::kI64, 4, 4, 1),
      numbered(Op::kInfo, 5, 0, static_cast<std::uint32_t>(Info::kLength)),
      registers(Op::kCompare, Element::kI64, 6, 4, 5, 0, 1),
      numbered(Op::kAgain, 0, 6, 1),
      end(),
  };
  Program program = payload_of(std::move(words), kRight + 4096);
  const std::uint32_t shape[] = {kOperatorMagic, 8, 512, 128, kRight};
  program.data.resize(sizeof shape);
  std::memcpy(program.data.data(), shape, sizeof shape);
  return program;
}

/// What a handler runs in.
struct Room {
  explicit Room(const Program& program) : memory(program.memory_bytes), output(kMostOutputBytes) {}

  Outcome run(const Program& program, std::uint64_t budget = 1U << 20U) {
    const Surroundings around{info, payload, memory, output};
    return Code(program).run(Function::kPayload, around, budget);
  }
  template <class T>
  T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  T written(std::size_t index) const {
    T value;
    std::memcpy(&value, output.data() + index * sizeof value, sizeof value);
    return value;
  }

  std::array<std::uint32_t, kInfos> info{};
  std::vector<std::byte> payload;
  std::vector<std::byte> memory;
  std::vector<std::byte> output;
};

}  // namespace unisono::handler
