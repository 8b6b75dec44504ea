// The short way of a blocking call from Python: arrays of NumPy go into the call as they are.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "unisono/unisono.h"

namespace unisono::python {

namespace nb = nanobind;

/// A blocking call of a front door, in as few words as its users mostly give: no options.
struct QuickCall {
  int collective = 0;
  nb::handle src, dst;  ///< None where the collective has none
  nb::handle op;        ///< name of an operator, or None
  nb::handle root;      ///< an int, or None
};

/// The call in C, if everything about it is plain: exact NumPy arrays, C-contiguous and aligned, of elements that NumPy
/// itself has, with lengths that fit each other; a known name; a root. Nothing otherwise: the long way says what is
/// wrong, or takes it. With the GIL, which keeps the arrays as they are; the caller keeps them alive.
std::optional<unisono_call> quick_call(const QuickCall& given, std::uint32_t rank, std::uint32_t size);

/// Whether this thread is the process's first, in which alone Python handles signals. One comparison as a rule.
bool is_first_thread();

}  // namespace unisono::python
