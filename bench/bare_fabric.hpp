// An endpoint of libfabric by itself, connected to one other: what a network over libfabric is compared with.
//
// It is opened as the network's own is, by the same choice of a provider. Nothing is copied: messages go from the
// caller's memory into the caller's memory. Not thread-safe.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "network/ofi/fabric/fabric_endpoint.hpp"
#include "network/ofi/fabric/library.hpp"
#include "network/ofi/fabric/provider.hpp"
#include "network/ofi/make.hpp"

namespace unisono::bench {

/// Throws std::runtime_error if a function of libfabric has failed.
inline void check_fabric(long result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + ofi::Library::instance().text_of(result));
}

class BareFabric {
 public:
  static constexpr std::size_t kMost = 32;  ///< messages in flight, each way
  static constexpr std::size_t kMostWrites = 8;
  using Name = std::array<char, 256>;

  /// `exchange` gives this end's name to the other one, and puts the other's in its place.
  BareFabric(const ofi::OfiSettings& settings, const std::function<void(Name&)>& exchange)
      : info_(ofi::choose(settings)) {
    fid_fabric* fabric = nullptr;
    check_fabric(ofi::Library::instance().open_fabric(info_->fabric_attr, &fabric, nullptr), "fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    check_fabric(fi_domain(fabric, info_.get(), &domain, nullptr), "domain");
    domain_.reset(domain);
    fi_av_attr table{};
    table.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    check_fabric(fi_av_open(domain, &table, &addresses, nullptr), "addresses");
    addresses_.reset(addresses);
    fi_cq_attr kind{};
    kind.format = FI_CQ_FORMAT_MSG;
    kind.size = 1024;
    fid_cq* queue = nullptr;
    check_fabric(fi_cq_open(domain, &kind, &queue, nullptr), "queue");
    queue_.reset(queue);
    fid_ep* endpoint = nullptr;
    check_fabric(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "endpoint");
    endpoint_.reset(endpoint);
    check_fabric(fi_ep_bind(endpoint, &addresses->fid, 0), "bind");
    check_fabric(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "bind");
    check_fabric(fi_enable(endpoint), "enable");
    Name name{};
    std::size_t bytes = name.size();
    check_fabric(fi_getname(&endpoint->fid, name.data(), &bytes), "name");
    exchange(name);
    if (fi_av_insert(addresses, name.data(), 1, &peer_, 0, nullptr) != 1) throw std::runtime_error("address");
    for (std::size_t i = 0; i < kMost; ++i) {
      free_[0].push_back(i);
      free_[1].push_back(i);
    }
  }

  /// Makes memory known to the card, if its provider wants that. It must stay until it is forgotten.
  void know(std::span<std::byte> memory) {
    if ((static_cast<std::uint64_t>(info_->domain_attr->mr_mode) & FI_MR_LOCAL) == 0) return;
    fid_mr* known = nullptr;
    check_fabric(fi_mr_reg(domain_.get(), memory.data(), memory.size(), FI_SEND | FI_RECV | FI_WRITE, 0, key_++, 0,
                           &known, nullptr),
                 "memory");
    memory_.push_back({memory, ofi::Opened<fid_mr>(known)});
  }

  void forget(const std::byte* memory) {
    std::erase_if(memory_, [&](const Known& one) { return one.bytes.data() == memory; });
  }

  /// Where the other end may write.
  struct Window {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
  };
  /// Lets the other end write there for as long as this lives.
  Window show(std::span<std::byte> memory) {
    fid_mr* shown = nullptr;
    check_fabric(fi_mr_reg(domain_.get(), memory.data(), memory.size(), FI_REMOTE_WRITE, 0, key_++, 0, &shown, nullptr),
                 "memory");
    memory_.push_back({{}, ofi::Opened<fid_mr>(shown)});
    const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
    if ((mode & FI_MR_ENDPOINT) != 0) {
      check_fabric(fi_mr_bind(shown, &endpoint_->fid, 0), "bind");
      check_fabric(fi_mr_enable(shown), "enable");
    }
    return {(mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0, fi_mr_key(shown)};
  }
  /// Writes to the other end, which does not hear of it: a message that is sent afterwards comes behind it. At most
  /// kMostWrites are under way. The memory must stay as it is until `flush`.
  void write(std::span<const std::byte> bytes, const Window& window, std::uint64_t offset) {
    while (kMost - free_[0].size() >= kMostWrites) poll();
    post(0, [&](fi_context2* context) {
      return fi_write(endpoint_.get(), bytes.data(), bytes.size(), descriptor(bytes.data()), peer_,
                      window.address + offset, window.key, context);
    });
  }

  /// The memory must stay as it is until `flush`.
  void send(std::span<const std::byte> message) {
    post(0, [&](fi_context2* context) {
      return fi_send(endpoint_.get(), message.data(), message.size(), descriptor(message.data()), peer_, context);
    });
  }
  /// The next message goes there.
  void receive(std::span<std::byte> into) {
    post(1, [&](fi_context2* context) {
      return fi_recv(endpoint_.get(), into.data(), into.size(), descriptor(into.data()), FI_ADDR_UNSPEC, context);
    });
  }
  /// Until so many more messages have come.
  void await(std::uint64_t messages) {
    while (came_ < messages) poll();
    came_ -= messages;
  }
  /// Until all that was sent has left its memory.
  void flush() {
    while (free_[0].size() != kMost) poll();
  }

 private:
  struct Known {
    std::span<std::byte> bytes;
    ofi::Opened<fid_mr> region;
  };

  void* descriptor(const std::byte* at) const {
    for (const Known& one : memory_) {
      if (at >= one.bytes.data() && at < one.bytes.data() + one.bytes.size()) return fi_mr_desc(one.region.get());
    }
    return nullptr;
  }
  template <class Begin>
  void post(std::size_t way, const Begin& begin) {
    while (free_[way].empty()) poll();
    const std::size_t i = free_[way].back();
    free_[way].pop_back();
    long result = 0;
    while ((result = begin(&contexts_[way][i])) == -FI_EAGAIN) poll();
    check_fabric(result, way == 0 ? "send" : "receive");
  }
  void poll() {
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) {
      std::this_thread::yield();
      return;
    }
    check_fabric(count, "queue");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      auto* const context = static_cast<fi_context2*>(entries[i].op_context);
      const std::size_t way = (entries[i].flags & FI_RECV) != 0 ? 1 : 0;
      came_ += way;
      free_[way].push_back(static_cast<std::size_t>(context - contexts_[way].data()));
    }
  }

  std::uint64_t came_ = 0;
  std::uint64_t key_ = 1;
  std::array<std::vector<std::size_t>, 2> free_;  ///< of contexts: of sends, of receives
  std::array<std::array<fi_context2, kMost>, 2> contexts_{};
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  ofi::Info info_;
  ofi::Opened<fid_fabric> fabric_;
  ofi::Opened<fid_domain> domain_;
  ofi::Opened<fid_av> addresses_;
  ofi::Opened<fid_cq> queue_;
  std::vector<Known> memory_;
  ofi::Opened<fid_ep> endpoint_;
};

}  // namespace unisono::bench
