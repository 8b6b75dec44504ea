// The Verilated model of an engine, by itself: made, reset, and its whole state at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class VerilatedContext;
class Vunisono_cclo_frame;

namespace unisono::sim {

class Model {
 public:
  /// In reset until `reset` has been called. Two with the same seed and firmware are the same, register by register.
  Model(std::uint64_t seed, const std::string& firmware);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Vunisono_cclo_frame& top() { return *top_; }
  const Vunisono_cclo_frame& top() const { return *top_; }
  VerilatedContext& context() { return *context_; }

  /// Some cycles in reset; all inputs are 0, or what an idle neighbour drives.
  void reset();
  /// Before this thread evaluates the model: a thread has one context at a time.
  void enter();

  /// Looks whether a rising edge changes anything: registers, memories, wires. The clock is low, before and after. If
  /// something has changed the state is what it was before.
  bool edge_changes_nothing();

 private:
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_cclo_frame> top_;
  std::vector<std::byte> before_;  ///< for `edge_changes_nothing`
};

}  // namespace unisono::sim
