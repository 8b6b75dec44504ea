#include "network/ofi/fabric/library.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

namespace {

constexpr const char* kLibrary = "libfabric.so.1";

}  // namespace

template <class Function>
void Library::find(void* handle, const char* name, const char* since, Function& into) {
  // The version that these headers belong to, as a program would get that was linked with it; a library that does not
  // have it any more has another one by default.
  void* found = dlvsym(handle, name, since);
  if (found == nullptr) found = dlsym(handle, name);
  into = reinterpret_cast<Function>(found);
  if (into == nullptr) fault_ = formatted("it has no function {}", name);
}

Library::Library() {
  // Never closed: providers may have threads.
  void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    fault_ = why == nullptr ? "not found" : why;
    return;
  }
  find(handle, "fi_getinfo", "FABRIC_1.3", get_info);
  find(handle, "fi_freeinfo", "FABRIC_1.3", free_info);
  find(handle, "fi_dupinfo", "FABRIC_1.3", duplicate_info);
  find(handle, "fi_fabric", "FABRIC_1.1", open_fabric);
  find(handle, "fi_strerror", "FABRIC_1.0", text_of_error);
  find(handle, "fi_version", "FABRIC_1.0", version);
  if (fault_.empty() && FI_VERSION_LT(version(), kInterface)) {
    fault_ = formatted("it is version {}.{}, and {}.{} or later is needed", FI_MAJOR(version()), FI_MINOR(version()),
                       FI_MAJOR(kInterface), FI_MINOR(kInterface));
  }
}

const Library& Library::instance() {
  static const Library library;
  if (library.fault_.empty()) return library;
  throw Error(ErrorCode::kBootstrap,
              formatted("libfabric cannot be loaded: {}. Install it (Debian: libfabric1), or add its folder to "
                        "LD_LIBRARY_PATH",
                        library.fault_));
}

std::string Library::text_of(long fault) const { return text_of_error(static_cast<int>(std::labs(fault))); }

}  // namespace unisono::ofi
