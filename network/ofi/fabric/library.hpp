// libfabric, which is loaded where it is asked for only.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

namespace unisono::ofi {

/// Its functions; all others of its interface are reached through what these give.
struct Library {
  decltype(&::fi_getinfo) get_info = nullptr;
  decltype(&::fi_freeinfo) free_info = nullptr;
  decltype(&::fi_dupinfo) duplicate_info = nullptr;
  decltype(&::fi_fabric) open_fabric = nullptr;
  decltype(&::fi_strerror) text_of_error = nullptr;
  decltype(&::fi_version) version = nullptr;

  /// Loads it, once for the process. Throws Error(kBootstrap) that says what to install.
  static const Library& instance();

  /// Its words for a fault.
  std::string text_of(long fault) const;

 private:
  Library();
  template <class Function>
  void find(void* handle, const char* name, const char* since, Function& into);

  std::string fault_;  ///< why it is not there
};

/// Version of the interface that is asked for: what is used here is there from then on.
inline constexpr std::uint32_t kInterface = FI_VERSION(1, 17);

struct FreeInfo {
  void operator()(fi_info* info) const { Library::instance().free_info(info); }
};
/// What a provider offers, or what is wanted of it.
using Info = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace unisono::ofi
