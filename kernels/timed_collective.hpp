// Collectives over channels between two ranks, for kernels at the ports of a node in hardware: each call is code of the
// kernel that makes it, over one sending and one receiving end.
//
// Where the port has the units for it, broadcast and reduction go through them, along a tree of nodes, and kernels push
// or pop alone. Elsewhere, and in strict mode, kernels pass elements on from rank to rank. A reduction combines in the
// order of ranks with the root's own last, as natively, so bits are the same; its tree is a chain. What the root itself
// gives, its kernel combines, which has a result as soon as those of the others have come. Scatter and gather are
// linear: the root is connected with one rank after the other (SMI, section 4.4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/channel.hpp"
#include "kernels/smi_node.hpp"

namespace unisono::kernels {

class TimedCollective final : public AnyCollective {
 public:
  /// `use`: what was checked of the channel.
  TimedCollective(Group& group, std::uint32_t port, const Use& use);
  void run(const std::byte* send, std::byte* receive, std::uint64_t calls) override;
  bool ended() const override { return done_ == calls_; }
  unisono_smi_end* end() const override { return nullptr; }

 private:
  void step(const std::byte* send, std::byte* receive, std::uint64_t count);
  void reduce(const std::byte* send, std::byte* receive, std::uint64_t count);
  void allreduce(const std::byte* send, std::byte* receive);
  void by_rank(std::uint32_t peer, const std::byte* send, std::byte* receive, std::uint64_t count);
  void order(const std::vector<std::uint32_t>& ranks);
  bool by_units() const;
  void open_bcast();
  void open_reduce(const std::vector<std::uint32_t>& ranks);
  UnitOpen unit_of(UnitOpen::Kind kind) const;
  std::uint32_t in_job(std::uint32_t rank) const;
  std::uint32_t in_group(std::uint32_t rank) const;
  void open_to(std::uint32_t peer, std::uint64_t count);
  void open_from(std::uint32_t peer, std::uint64_t count);

  Group& group_;
  const std::uint32_t port_;
  Use use_;
  std::uint64_t element_;
  std::uint64_t calls_;  ///< of this rank
  std::uint64_t done_ = 0;
  cclo::CombineKernel combine_ = nullptr;
  SendLink* to_ = nullptr;  ///< the next rank of the order
  ReceiveLink* from_ = nullptr;
  std::array<std::byte, kPortWordBytes> word_{};
};

}  // namespace unisono::kernels
