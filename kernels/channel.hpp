// Channels: what the functions of unisono/smi.h do with links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kernels.hpp"
#include "kernels/link.hpp"
#include "unisono/smi.h"

namespace unisono::kernels {

class Group;

/// An opened collective on this rank, from its first element to its last. Elements are counted in calls: in each, an
/// element is given, or one is got, or both.
class AnyCollective {
 public:
  AnyCollective() = default;
  AnyCollective(const AnyCollective&) = delete;
  AnyCollective& operator=(const AnyCollective&) = delete;
  virtual ~AnyCollective() = default;

  /// Throws Error.
  virtual void run(const std::byte* send, std::byte* receive, std::uint64_t calls) = 0;
  virtual bool ended() const = 0;
  /// Of the one link that single elements may go to or come from without asking here; null: none.
  virtual unisono_smi_end* end() const = 0;
};

/// One over links of the engine's.
class CollectiveChannel final : public AnyCollective {
 public:
  CollectiveChannel(Group& group, const unisono_smi_channel& channel);

  void run(const std::byte* send, std::byte* receive, std::uint64_t calls) override;
  bool ended() const override { return done_ == calls_; }
  unisono_smi_end* end() const override { return end_; }

 private:
  void bcast(std::byte* data, std::uint64_t calls);
  void reduce(const std::byte* send, std::byte* receive, std::uint64_t calls);
  void scatter(const std::byte* send, std::byte* receive, std::uint64_t calls);
  void gather(const std::byte* send, std::byte* receive, std::uint64_t calls);
  void allreduce(const std::byte* send, std::byte* receive, std::uint64_t calls);
  void allgather(const std::byte* send, std::byte* receive, std::uint64_t calls);
  void alltoall(const std::byte* send, std::byte* receive, std::uint64_t calls);
  std::uint64_t fold(std::uint64_t most);
  void push(SendLink& link, const std::byte* from, std::uint64_t count) const;
  void pop(ReceiveLink& link, std::byte* to, std::uint64_t count) const;
  void send_to(std::uint32_t peer);
  void receive_from(std::uint32_t peer);
  template <class Step>
  void by_rank(std::uint64_t calls, Step&& step);

  Group& group_;
  const std::uint32_t port_;
  Use use_;
  std::uint64_t element_;
  std::uint64_t calls_;
  std::uint64_t done_ = 0;
  bool exact_;
  cclo::CombineKernel combine_ = nullptr;
  std::vector<SendLink*> out_;    ///< by rank; null: none
  std::vector<ReceiveLink*> in_;  ///< by rank; null: none
  unisono_smi_end* end_ = nullptr;
  std::vector<std::byte> folded_;  ///< others' elements, reduced
  std::uint64_t folded_at_ = 0;
  std::uint64_t folded_count_ = 0;
};

/// Every one within a turn of the channel's rank. Throw Error.
void push(Group& group, unisono_smi_channel& channel, const void* data, std::uint64_t count);
void flush(Group& group, unisono_smi_channel& channel);
void pop(Group& group, unisono_smi_channel& channel, void* data, std::uint64_t count);
void collective(Group& group, unisono_smi_channel& channel, const void* send, void* receive, std::uint64_t calls);

/// Throws Error if an operand or a result is null that a rank needs in some of `calls` calls after `done` others: in
/// those of its own block of an allgather, or of a scatter or gather whose root it is, it gives itself elements.
void check_own_block(const Group& group, std::uint32_t port, const Use& use, std::uint64_t done, std::uint64_t calls,
                     const void* send, const void* receive);

/// The end of channels that must be asked about.
unisono_smi_end* closed_end();
/// Bytes of an element; 0 if the type is not known.
unsigned bytes_of_type(SMI_Datatype type);

}  // namespace unisono::kernels
