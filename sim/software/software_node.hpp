// A node of SMI's transport in software, for the kernels of one rank: it speaks the packets of rtl/smi on the same
// cables, so nodes of both kinds are on one network. It needs no Verilator.
//
// It has the queues and the credits of the hardware, and none of its pipelines: what has come by a cable leaves by
// another, or is given to a kernel, in the same cycle.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/cables/cabled_node.hpp"
#include "sim/software/collective_unit.hpp"
#include "sim/software/receiving_end.hpp"
#include "sim/software/sending_end.hpp"
#include "sim/software/transport.hpp"

namespace unisono::sim {

class SoftwareNode final : public CabledNode {
 public:
  /// Throws std::runtime_error that says what is wrong with the settings, the routes or the memory.
  explicit SoftwareNode(const kernels::SmiNodeSettings& settings);

  bool broadcasts(std::uint32_t port) const override;
  bool reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const override;
  std::string strays() const override { return transport_.strays(); }

 private:
  /// What stands at a port.
  struct Ends {
    software::SendingEnd sender;
    software::ReceivingEnd receiver;
    software::CollectiveUnit unit;
    // The ends that the unit has opened. What kernels offer it next may say others.
    bool pushes = false;
    bool pops = false;
  };
  void evaluate() override;
  void clock(std::size_t port);

  const kernels::SmiUnits units_;
  const software::PacketFormat format_;
  software::Transport transport_;
  std::vector<Ends> ends_;  ///< by port
};

}  // namespace unisono::sim
