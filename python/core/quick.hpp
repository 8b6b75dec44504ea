// The short way of a blocking call from Python: arrays of NumPy go into the call as they are.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>

#include "unisono/unisono.h"

namespace unisono::python {

namespace nb = nanobind;

/// A blocking collective of a front door, in as few words as its users mostly give: no options.
struct QuickCall {
  int collective = 0;
  nb::handle src, dst;  ///< None where the collective has none; what stands for in place
  nb::handle op;        ///< name of an operator, or None
  nb::handle root;      ///< an int, or None
  nb::handle in_place;  ///< a bool: said beside src and dst, by rooted collectives
};

/// The call in C, if everything about it is plain: exact NumPy arrays, C-contiguous and aligned, of elements that NumPy
/// itself has, with lengths that fit each other; a known name; a root. Nothing otherwise: the long way says what is
/// wrong, or takes it. With the GIL, which keeps the arrays as they are; the caller keeps them alive.
std::optional<unisono_call> quick_call(const QuickCall& given, std::uint32_t rank, std::uint32_t size);

/// A new array for the result of a collective that writes as many elements as `src` has, or so many of each rank, on
/// all ranks. Invalid if it is not such a collective, if `src` is not plain or has no axes, where the result is a
/// number, or is allocated, so that the result is to be, too; and where there is no memory, which the long way says.
nb::object quick_result(int collective, nb::handle src, std::uint32_t size);

/// Counts or displacements of a call, on the stack of its caller.
struct QuickCounts {
  static constexpr std::size_t kMost = 64;  ///< ranks
  std::array<std::int64_t, kMost> values;
};

/// What a collective with counts has beside the rest: lists, tuples, arrays of int64, or None.
struct QuickLayout {
  nb::handle send_counts, send_displacements, recv_counts, recv_displacements;
  std::array<QuickCounts, 4> room;
};

/// As `quick_call`, of a collective with counts for each rank. The call points into `layout`.
std::optional<unisono_call> quick_counted(const QuickCall& given, QuickLayout& layout, std::uint32_t rank,
                                          std::uint32_t size);

/// A send, or a receive, of all of an array. Nothing if something about it is not plain.
std::optional<unisono_call> quick_message(bool sends, nb::handle buffer, nb::handle peer, nb::handle tag);

/// A put, or a get, of all of an array, from byte `offset` of the peer's window on. Nothing if something is not plain.
std::optional<unisono_call> quick_access(bool stores, nb::handle buffer, nb::handle peer, nb::handle offset);

/// What Python's front door takes for the buffer that an in-place call does not use. To be called once.
void set_in_place(nb::handle sentinel);

/// Whether this thread is the process's first, in which alone Python handles signals. One comparison as a rule.
bool is_first_thread();

}  // namespace unisono::python
