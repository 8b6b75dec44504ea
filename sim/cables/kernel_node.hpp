// A Verilated node of rtl/smi for the kernels of one rank, in the process of that rank. The nodes of the other ranks
// are in theirs.
#pragma once

#include <memory>
#include <string>

#include "sim/cables/cabled_node.hpp"

class Vunisono_smi_node;
class VerilatedContext;

namespace unisono::sim {

class KernelNode final : public CabledNode {
 public:
  /// Throws std::runtime_error that says what is wrong with the routes or the memory.
  explicit KernelNode(const kernels::SmiNodeSettings& settings);
  ~KernelNode() override;

  bool broadcasts(std::uint32_t port) const override;
  bool reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const override;
  std::string strays() const override;

 private:
  void load();
  void evaluate() override;
  void drive();
  void sample();
  void put_open(bool sends, int port, const kernels::PortOpen& open);
  void put_unit(int port, const kernels::UnitOpen& open);

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_smi_node> model_;
};

}  // namespace unisono::sim
