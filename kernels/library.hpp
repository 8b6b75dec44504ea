// A library of kernels, loaded: unisono/kernel_library.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "unisono/kernel_library.h"

namespace unisono::kernels {

/// Stays loaded as long as the process lives. Thread-safe once it is made.
class Library {
 public:
  /// Throws Error(kInvalidArgument) that says what is wrong with the file.
  Library(const std::string& path, const unisono_kernel_services& services);

  const std::string& path() const { return path_; }
  std::span<const unisono_kernel_entry> kernels() const { return {library_->kernels, library_->kernels_count}; }
  /// Throws Error(kInvalidArgument), which names those that there are.
  const unisono_kernel_entry& find(std::string_view name) const;

 private:
  std::string path_;
  const unisono_kernel_library* library_ = nullptr;
};

/// "float32", "const float32*", "communicator"
std::string words_of(const unisono_kernel_parameter& parameter);
/// "axpy(float32, const float32*, communicator)"
std::string words_of(const unisono_kernel_entry& kernel);

}  // namespace unisono::kernels
