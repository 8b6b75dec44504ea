#include "network/ofi/fabric/provider.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/ofi/frame.hpp"

namespace unisono::ofi {

namespace {

/// In this order, unless one is named: cards first, for these carry data without the processor; then what every host
/// has. Providers that are not here are taken only by name.
constexpr std::array<const char*, 4> kPreferred{"cxi", "efa", "verbs;ofi_rxm", "tcp;ofi_rxm"};

/// Providers whose endpoints have addresses of the internet; others must not be asked for one.
bool has_internet_address(const std::string& provider) {
  return provider.find("ofi_rx") != std::string::npos || provider == "tcp" || provider == "sockets" ||
         provider == "net" || provider.empty();
}

/// What a provider offers, first that of the interface with the address `source`, if it has one; null if nothing.
Info offers(const std::string& provider, const std::string& source, Writes writes = Writes::kNone) {
  const Library& library = Library::instance();
  const Info hints = wanted(provider, writes);
  fi_info* found = nullptr;
  if (!source.empty() && has_internet_address(provider) &&
      library.get_info(kInterface, source.c_str(), nullptr, FI_SOURCE, hints.get(), &found) == 0) {
    return Info(found);
  }
  found = nullptr;
  if (library.get_info(kInterface, nullptr, nullptr, 0, hints.get(), &found) == 0) return Info(found);
  return {};
}

/// The first that can carry the longest frame.
const fi_info* usable(const Info& offered) {
  const fi_info* info = offered.get();
  while (info != nullptr && info->ep_attr->max_msg_size < kLongestFrame) info = info->next;
  return info;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

}  // namespace

Info wanted(const std::string& provider, Writes writes) {
  Info hints(Library::instance().duplicate_info(nullptr));
  if (hints == nullptr) throw Error(ErrorCode::kOutOfMemory, "libfabric has no memory for a question");
  hints->caps = writes == Writes::kNone ? FI_MSG : FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  // Memory is registered while its owner keeps it, and keys travel in eight bytes: no way of registering is in the way.
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  const std::uint64_t order = writes == Writes::kOrdered ? FI_ORDER_SAS | FI_ORDER_SAW : FI_ORDER_SAS;
  hints->tx_attr->msg_order = order;
  hints->rx_attr->msg_order = order;
  // Belongs to the hints: freed with them.
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

std::vector<std::string> providers() {
  std::vector<std::string> names;
  const Info all = offers({}, {});
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    if (info->ep_attr->max_msg_size < kLongestFrame) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const auto place = [](const std::string& name) { return std::find(kPreferred.begin(), kPreferred.end(), name); };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& one, const std::string& other) { return place(one) < place(other); });
  return names;
}

Info choose(const OfiSettings& settings) {
  std::vector<std::string> names(kPreferred.begin(), kPreferred.end());
  if (!settings.provider.empty()) names = {settings.provider};
  for (const std::string& name : names) {
    for (const Writes writes : {Writes::kOrdered, Writes::kAny, Writes::kNone}) {
      const Info offered = offers(name, settings.source, writes);
      if (const fi_info* const info = usable(offered); info != nullptr) {
        return Info(Library::instance().duplicate_info(info));
      }
    }
  }
  throw Error(ErrorCode::kBootstrap,
              formatted("libfabric's provider {} offers no reliable datagrams here. Those that do: {}; name one by "
                        "UNISONO_OFI_PROVIDER",
                        settings.provider.empty() ? list_of(names) : settings.provider, list_of(providers())));
}

}  // namespace unisono::ofi
