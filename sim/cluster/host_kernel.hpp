// A kernel whose work its host does: words for the engine's streams, and words from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "sim/cluster/kernel.hpp"

namespace unisono::sim {

/// A port moves one word in a cycle; the host's own work takes no time. Between cycles: `offer`, `withdraw`, `want` and
/// `taken`.
class HostKernel final : public Kernel {
 public:
  ToEngine evaluate(const FromEngine& engine) override;
  void edge() override;

  /// Bytes for a port, in place of those that were offered and have not begun to go.
  void offer(unsigned port, std::span<const std::byte> bytes);
  /// Of these, how many have not begun to go; they are forgotten. A word that is offered stays so until it is taken.
  std::size_t withdraw(unsigned port);
  std::size_t offered(unsigned port) const { return give_[port].size(); }
  /// Takes words of a port until there are so many bytes.
  void want(unsigned port, std::size_t bytes) { want_[port] = bytes; }
  std::size_t there(unsigned port) const { return taken_[port].size(); }
  /// How many cycles ago the last word of a port came.
  std::uint64_t silence(unsigned port) const { return silence_[port]; }
  /// Moves up to `into.size()` bytes that have come.
  std::size_t take(unsigned port, std::span<std::byte> into);
  /// Nothing is offered, and nothing wanted.
  bool idle() const;

 private:
  void load(unsigned port);

  std::array<std::deque<std::byte>, kKernelStreams> give_, taken_;
  std::array<KernelWord, kKernelStreams> word_{};  ///< offered to the engine
  std::array<std::size_t, kKernelStreams> want_{};
  std::array<std::uint64_t, kKernelStreams> silence_{};
  FromEngine seen_;  ///< in this cycle
  ToEngine driven_;
};

}  // namespace unisono::sim
