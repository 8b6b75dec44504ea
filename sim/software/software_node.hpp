// A node of SMI's transport in software, for the kernels of one rank: it speaks the packets of rtl/smi on the same
// cables, so nodes of both kinds are on one network. It needs no Verilator.
//
// It has the queues and the credits of the hardware, and none of its pipelines: what has come by a cable leaves by
// another, or is given to a kernel, in the same cycle. Units of collectives it has none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cables/cabled_node.hpp"
#include "sim/software/receiving_end.hpp"
#include "sim/software/sending_end.hpp"
#include "sim/software/transport.hpp"

namespace unisono::sim {

class SoftwareNode final : public CabledNode {
 public:
  /// Throws std::runtime_error that says what is wrong with the settings, the routes or the memory.
  explicit SoftwareNode(const kernels::SmiNodeSettings& settings);

  bool broadcasts(std::uint32_t /*port*/) const override { return false; }
  bool reduces(std::uint32_t /*port*/, std::uint32_t /*dtype*/, std::uint32_t /*func*/) const override { return false; }
  std::string strays() const override { return transport_.strays(); }

 private:
  void evaluate() override;

  const software::PacketFormat format_;
  software::Transport transport_;
  std::vector<software::SendingEnd> senders_;
  std::vector<software::ReceivingEnd> receivers_;
};

}  // namespace unisono::sim
