// Where a collective puts the moves it generates. Freestanding.
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono {

/// Receiver of generated moves: a program being recorded, a window being filled, a microcontroller's
/// move port. Plain function pointers, so that a collective is the same object code for all of them.
struct EmitSink {
  void* context = nullptr;
  void (*move)(void* context, const Move& move) = nullptr;
  void (*pool_word)(void* context, std::uint32_t word) = nullptr;  ///< appends to the constant pool
};

/// Changes what passes through an Emit: for programs that are written in other terms than the call's.
struct EmitRewrite {
  const void* context = nullptr;
  void (*move)(const void* context, Move& move) = nullptr;
  std::uint32_t (*peer)(const void* context, std::uint32_t peer) = nullptr;  ///< of lists
};

/// Handed to `Algorithm::step`. Counts what was emitted, so that steps need no state of their own.
class Emit {
 public:
  constexpr explicit Emit(EmitSink sink) : sink_(sink) {}

  /// Appends one move to the program.
  void operator()(const Move& move) {
    if (rewrite_ != nullptr) {
      Move changed = move;
      rewrite_->move(rewrite_->context, changed);
      sink_.move(sink_.context, changed);
    } else {
      sink_.move(sink_.context, move);
    }
    ++moves_;
  }

  /// Begins a peer list of `count` ranks in the constant pool and returns its index, to be used as the
  /// `peer` of an arrival or remote result whose mode is list or any. Must be followed by exactly
  /// `count` calls of `peer`. Pool layout: count, rank, rank, ...
  std::uint32_t begin_list(std::uint32_t count) {
    const std::uint32_t index = pool_words_;
    push(count);
    return index;
  }
  void peer(std::uint32_t rank) { push(rewrite_ != nullptr ? rewrite_->peer(rewrite_->context, rank) : rank); }

  std::uint32_t moves() const { return moves_; }

  /// From now on; null: as they are.
  void rewrite_by(const EmitRewrite* rewrite) { rewrite_ = rewrite; }

 private:
  void push(std::uint32_t word) {
    sink_.pool_word(sink_.context, word);
    ++pool_words_;
  }

  EmitSink sink_;
  const EmitRewrite* rewrite_ = nullptr;
  std::uint32_t moves_ = 0;
  std::uint32_t pool_words_ = 0;
};

}  // namespace unisono
