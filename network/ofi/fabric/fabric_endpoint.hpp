// An endpoint of libfabric.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "network/ofi/endpoint.hpp"
#include "network/ofi/fabric/library.hpp"

namespace unisono::ofi {

/// Closes what libfabric has opened.
struct Close {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using Opened = std::unique_ptr<Object, Close>;

class FabricEndpoint final : public Endpoint {
 public:
  /// Can be reached from here on. Throws Error(kBootstrap).
  explicit FabricEndpoint(Info info);
  ~FabricEndpoint() override;

  Card card() const override { return card_; }
  std::uint64_t insert(std::span<const std::byte> address) override;
  void* add_memory(std::byte* memory, std::size_t bytes) override;
  std::size_t most_receives() const override { return most_receives_; }
  Posted post_receive(Block& block, std::size_t room) override;
  Posted post_send(std::uint64_t to, Block& block) override;
  std::uint64_t longest_write() const override { return longest_write_; }
  bool orders_writes() const override { return orders_writes_; }
  bool registers_sources() const override { return (mode() & FI_MR_LOCAL) != 0; }
  std::optional<RegisteredPiece> register_piece(std::byte* memory, std::size_t bytes, Access access) override;
  void deregister(const RegisteredPiece& piece) override;
  Posted post_write(std::uint64_t to, Block& block, const RemoteWrite& write) override;
  std::size_t read(std::span<Completion> completions) override;
  std::string text_of(int fault) const override;
  int descriptor() const override { return descriptor_; }
  bool may_sleep() override;
  void abandon() override;

 private:
  void check(long result, const char* what) const;
  void open_queue();
  void tell_card();
  void look_for_writes();
  std::uint64_t mode() const { return static_cast<std::uint64_t>(info_->domain_attr->mr_mode); }
  /// Null, and a number of libfabric's in `result`, if the provider refuses. The memory is its caller's to close.
  fid_mr* open_memory(std::byte* memory, std::size_t bytes, std::uint64_t access, long& result);
  /// A key that no other piece has; where the provider chooses, it does not look at it.
  std::uint64_t next_key() const;
  /// The operation that failed.
  Completion read_failure();

  Info info_;
  /// The provider leaves it to its user that one thread is at a domain at a time (FI_THREAD_DOMAIN), and memory may be
  /// deregistered by any.
  std::mutex mutex_;
  // Closed from the last one: each needs those before it.
  Opened<fid_fabric> fabric_;
  Opened<fid_domain> domain_;
  Opened<fid_av> addresses_;
  Opened<fid_cq> queue_;
  std::vector<Opened<fid_mr>> memory_;
  Opened<fid_ep> endpoint_;
  Card card_;
  std::size_t most_receives_ = 0;
  std::uint64_t longest_write_ = 0;
  bool orders_writes_ = false;
  int descriptor_ = -1;
};

}  // namespace unisono::ofi
