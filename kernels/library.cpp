#include "kernels/library.hpp"

#include <dlfcn.h>

#include "core/error.hpp"
#include "core/generated/spec.hpp"
#include "core/text.hpp"

namespace unisono::kernels {

Library::Library(const std::string& path, const unisono_kernel_services& services) : path_(path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, "kernels: " + path + ": " + why);
  };
  // A name without a slash would be looked for elsewhere.
  void* const handle =
      dlopen((path.find('/') == std::string::npos ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
    refuse(why == nullptr ? "it cannot be loaded" : why);
  }
  const auto open =
      reinterpret_cast<unisono_kernel_library_open_function>(dlsym(handle, "unisono_kernel_library_open"));
  if (open == nullptr) refuse("it is no library of kernels; `unisono kernel build -o FILE.so` makes one");
  library_ = open(&services);
  if (library_ == nullptr || library_->version != UNISONO_KERNEL_LIBRARY_VERSION) {
    refuse("it was made by another version of Unisono; build it anew (`unisono kernel build`)");
  }
}

const unisono_kernel_entry& Library::find(std::string_view name) const {
  std::string known;
  for (const unisono_kernel_entry& one : kernels()) {
    if (name == one.name) return one;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Error(ErrorCode::kInvalidArgument, formatted("there is no kernel {} in {}; it has {}", std::string(name), path_,
                                                     known.empty() ? std::string("none") : known));
}

std::string words_of(const unisono_kernel_parameter& parameter) {
  if (parameter.kind == UNISONO_KERNEL_COMMUNICATOR) return "communicator";
  if (parameter.kind == UNISONO_KERNEL_CALL) return "prepared call";
  std::string element = name_of(static_cast<Datatype>(parameter.datatype));
  if (parameter.kind == UNISONO_KERNEL_SCALAR) return element;
  return (parameter.writes != 0 ? "" : "const ") + element + "*";
}

std::string words_of(const unisono_kernel_entry& kernel) {
  std::string text = std::string(kernel.name) + "(";
  for (std::uint32_t i = 0; i < kernel.parameters_count; ++i) {
    text += (i == 0 ? "" : ", ") + words_of(kernel.parameters[i]);
  }
  return text + ")";
}

}  // namespace unisono::kernels
