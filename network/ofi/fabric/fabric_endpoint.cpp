#include "network/ofi/fabric/fabric_endpoint.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/ofi/frame.hpp"
#include "network/secret.hpp"

namespace unisono::ofi {

namespace {

constexpr std::size_t kMostReceives = 32;
/// Completions that wait to be read: more than operations that a job's endpoint has under way as a rule. Providers take
/// it as a wish, and hold operations back where theirs is full.
constexpr std::size_t kQueueLength = 4096;
/// Keys are drawn; one that is taken is drawn again.
constexpr int kMostDraws = 8;

Posted posted(long result) {
  if (result == 0) return {};
  if (result == -FI_EAGAIN) return {0, true};
  return {static_cast<int>(-result), false};
}

}  // namespace

static_assert(sizeof(fi_context2) <= sizeof(Block::context));

void FabricEndpoint::check(long result, const char* what) const {
  if (result >= 0) return;
  throw Error(ErrorCode::kBootstrap, formatted("{} of libfabric's provider {} failed: {}", what,
                                               info_->fabric_attr->prov_name, Library::instance().text_of(result)));
}

FabricEndpoint::FabricEndpoint(Info info) : info_(std::move(info)) {
  const auto keep = [](auto& into, auto* opened) { into.reset(opened); };
  fid_fabric* fabric = nullptr;
  check(Library::instance().open_fabric(info_->fabric_attr, &fabric, nullptr), "opening the fabric");
  keep(fabric_, fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "opening the domain");
  keep(domain_, domain);
  fi_av_attr attributes{};
  attributes.type = info_->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &attributes, &addresses, nullptr), "opening the table of addresses");
  keep(addresses_, addresses);
  open_queue();
  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "opening the endpoint");
  keep(endpoint_, endpoint);
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "binding the table of addresses");
  check(fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV), "binding the queue of completions");
  check(fi_enable(endpoint), "enabling the endpoint");
  look_for_writes();
  tell_card();
  most_receives_ = std::min(kMostReceives, std::max<std::size_t>(info_->rx_attr->size, 1));
}

FabricEndpoint::~FabricEndpoint() {
  // Memory that is bound to an endpoint goes before it, other memory after it, for the endpoint may still receive
  // there.
  if ((mode() & FI_MR_ENDPOINT) != 0) memory_.clear();
}

void FabricEndpoint::open_queue() {
  fi_cq_attr attributes{};
  attributes.size = kQueueLength;
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  long result = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  if (result == 0) {
    queue_.reset(queue);
    if (fi_control(&queue->fid, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
    return;
  }
  attributes.wait_obj = FI_WAIT_NONE;
  result = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  check(result, "opening the queue of completions");
  queue_.reset(queue);
}

void FabricEndpoint::tell_card() {
  card_.provider = info_->fabric_attr->prov_name;
  card_.protocol = info_->ep_attr->protocol;
  card_.protocol_version = info_->ep_attr->protocol_version;
  card_.abilities = longest_write_ != 0 ? Card::kWrites : 0;
  std::array<std::byte, 256> address;
  std::size_t bytes = address.size();
  check(fi_getname(&endpoint_->fid, address.data(), &bytes), "asking for the endpoint's address");
  card_.address.assign(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(std::min(bytes, address.size())));
}

std::uint64_t FabricEndpoint::insert(std::span<const std::byte> address) {
  const std::lock_guard lock(mutex_);
  // The provider reads as much as its addresses have, whatever a card says.
  std::array<std::byte, 256> padded{};
  std::memcpy(padded.data(), address.data(), std::min(address.size(), padded.size() - 1));
  fi_addr_t named = FI_ADDR_UNSPEC;
  const int inserted = fi_av_insert(addresses_.get(), padded.data(), 1, &named, 0, nullptr);
  if (inserted == 1) return named;
  throw Error(ErrorCode::kBootstrap, formatted("provider {} does not take a peer's address: {}", card_.provider,
                                               inserted < 0 ? Library::instance().text_of(inserted) : "it is none"));
}

void FabricEndpoint::look_for_writes() {
  constexpr std::uint64_t kCapabilities = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
  if ((info_->caps & FI_RMA) == 0 || (info_->caps & kCapabilities & ~FI_RMA) != (kCapabilities & ~FI_RMA)) return;
  // A grant has room for keys of eight bytes.
  if (info_->domain_attr->mr_key_size > sizeof(std::uint64_t)) return;
  longest_write_ = info_->ep_attr->max_msg_size;
  orders_writes_ = (info_->tx_attr->msg_order & info_->rx_attr->msg_order & FI_ORDER_SAW) != 0;
}

std::uint64_t FabricEndpoint::next_key() const {
  std::array<std::byte, sizeof(std::uint64_t)> random;
  fill_random(random);
  std::uint64_t key = 0;
  std::memcpy(&key, random.data(), sizeof key);
  const std::size_t bytes = info_->domain_attr->mr_key_size;
  return bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

fid_mr* FabricEndpoint::open_memory(std::byte* memory, std::size_t bytes, std::uint64_t access, long& result) {
  fid_mr* registered = nullptr;
  for (int draws = 0; draws < kMostDraws; ++draws) {
    result = fi_mr_reg(domain_.get(), memory, bytes, access, 0, next_key(), 0, &registered, nullptr);
    if (result != -FI_ENOKEY) break;
  }
  if (result != 0) return nullptr;
  if ((mode() & FI_MR_ENDPOINT) == 0) return registered;
  result = fi_mr_bind(registered, &endpoint_->fid, 0);
  if (result == 0) result = fi_mr_enable(registered);
  if (result == 0) return registered;
  fi_close(&registered->fid);
  return nullptr;
}

std::optional<RegisteredPiece> FabricEndpoint::register_piece(std::byte* memory, std::size_t bytes, Access access) {
  const std::lock_guard lock(mutex_);
  long result = 0;
  fid_mr* const registered = open_memory(memory, bytes, access == Access::kTarget ? FI_REMOTE_WRITE : FI_WRITE, result);
  if (registered == nullptr) return std::nullopt;
  const bool by_address = (mode() & FI_MR_VIRT_ADDR) != 0;
  return RegisteredPiece{registered, fi_mr_desc(registered),
                         by_address ? reinterpret_cast<std::uintptr_t>(memory) : std::uintptr_t{0},
                         fi_mr_key(registered)};
}

void FabricEndpoint::deregister(const RegisteredPiece& piece) {
  const std::lock_guard lock(mutex_);
  fi_close(&static_cast<fid_mr*>(piece.handle)->fid);
}

Posted FabricEndpoint::post_write(std::uint64_t to, Block& block, const RemoteWrite& write) {
  iovec from{const_cast<std::byte*>(write.from), write.bytes};  // which it only reads
  fi_rma_iov at{write.address, write.bytes, write.key};
  void* descriptor = write.descriptor;
  fi_msg_rma message{};
  message.msg_iov = &from;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = to;
  message.rma_iov = &at;
  message.rma_iov_count = 1;
  message.context = &block.context;
  const std::uint64_t complete = orders_writes_ ? 0 : FI_DELIVERY_COMPLETE;
  const std::lock_guard lock(mutex_);
  return posted(fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | complete));
}

void* FabricEndpoint::add_memory(std::byte* memory, std::size_t bytes) {
  if (!registers_sources()) return nullptr;
  const std::lock_guard lock(mutex_);
  long result = 0;
  fid_mr* const registered = open_memory(memory, bytes, FI_SEND | FI_RECV, result);
  if (registered != nullptr) {
    memory_.emplace_back(registered);
  } else {
    throw Error(ErrorCode::kOutOfMemory, formatted("provider {} cannot register {} bytes: {}", card_.provider, bytes,
                                                   Library::instance().text_of(result)));
  }
  return fi_mr_desc(registered);
}

Posted FabricEndpoint::post_receive(Block& block, std::size_t room) {
  const std::lock_guard lock(mutex_);
  return posted(fi_recv(endpoint_.get(), block.frame(), room, block.descriptor, FI_ADDR_UNSPEC, &block.context));
}

Posted FabricEndpoint::post_send(std::uint64_t to, Block& block) {
  const std::lock_guard lock(mutex_);
  return posted(fi_send(endpoint_.get(), block.frame(), block.bytes, block.descriptor, to, &block.context));
}

std::size_t FabricEndpoint::read(std::span<Completion> completions) {
  std::array<fi_cq_msg_entry, 32> entries;
  const std::lock_guard lock(mutex_);
  const ssize_t count = fi_cq_read(queue_.get(), entries.data(), std::min(completions.size(), entries.size()));
  if (count == -FI_EAGAIN || count == -FI_EINTR) return 0;
  if (count == -FI_EAVAIL) {
    completions[0] = read_failure();
    return 1;
  }
  if (count < 0) {
    throw Error(ErrorCode::kInternal,
                formatted("provider {} has failed: {}", card_.provider, Library::instance().text_of(count)));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    // The context is the first member of its block.
    completions[i] = {static_cast<Block*>(entries[i].op_context), static_cast<std::uint32_t>(entries[i].len)};
  }
  return static_cast<std::size_t>(count);
}

Completion FabricEndpoint::read_failure() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1) return {};
  const int fault = entry.err == 0 ? FI_EOTHER : entry.err;
  return {static_cast<Block*>(entry.op_context), 0, fault, fault == FI_ETRUNC};
}

std::string FabricEndpoint::text_of(int fault) const { return Library::instance().text_of(fault); }

bool FabricEndpoint::may_sleep() {
  if (descriptor_ < 0) return true;
  const std::lock_guard lock(mutex_);
  fid* queue = &queue_->fid;
  return fi_trywait(fabric_.get(), &queue, 1) == 0;
}

void FabricEndpoint::abandon() {
  // Closing would end connections of the parent's.
  static_cast<void>(endpoint_.release());
  for (auto& registered : memory_) static_cast<void>(registered.release());
  static_cast<void>(queue_.release());
  static_cast<void>(addresses_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(fabric_.release());
}

}  // namespace unisono::ofi
