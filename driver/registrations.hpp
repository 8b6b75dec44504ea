// Memory of the user that is made known beforehand; see unisono_register.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/handles.hpp"
#include "driver/objects.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// A piece of memory, and what was found out about it. The memory is the user's, who keeps it until this has gone.
class Registration {
 public:
  /// `context`: the one whose arena counts for whether the memory is allocated; null: that of any. Throws Error.
  Registration(const Context* context, const std::byte* memory, std::uint64_t bytes);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  /// Throws Error if the structure is none.
  void describe(unisono_registration_state* state) const;

 private:
  const std::byte* memory_;
  std::uint64_t bytes_;
  bool kernel_copies_ = true;  ///< of no bytes: nothing is in the way
  bool allocated_ = false;
};

using Registrations = Handles<Registration, HandleKind::kRegistration>;

}  // namespace unisono::driver
