#include "python/core/quick.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/facts.hpp"
#include "core/footprint.hpp"

namespace unisono::python {
namespace {

/// The elements of an array; a null type where it is not plain.
struct Elements {
  Datatype dtype = Datatype::kNone;
  std::byte* data = nullptr;
  std::uint64_t count = 0;
};

Datatype datatype_of(int number) {
  switch (number) {
    case NPY_BOOL:
      return Datatype::kBool;
    case NPY_HALF:
      return Datatype::kFp16;
    case NPY_FLOAT:
      return Datatype::kFp32;
    case NPY_DOUBLE:
      return Datatype::kFp64;
    case NPY_CFLOAT:
      return Datatype::kComplex64;
    case NPY_CDOUBLE:
      return Datatype::kComplex128;
    case NPY_BYTE:
      return Datatype::kInt8;
    case NPY_SHORT:
      return Datatype::kInt16;
    case NPY_INT:
      return Datatype::kInt32;
    case NPY_LONG:
    case NPY_LONGLONG:
      return Datatype::kInt64;
    case NPY_UBYTE:
      return Datatype::kUint8;
    case NPY_USHORT:
      return Datatype::kUint16;
    case NPY_UINT:
      return Datatype::kUint32;
    case NPY_ULONG:
    case NPY_ULONGLONG:
      return Datatype::kUint64;
    default:
      return Datatype::kNone;
  }
}
static_assert(sizeof(long) == 8 && sizeof(int) == 4);

Elements elements_of(nb::handle object, bool writable) {
  Elements found;
  if (!PyArray_CheckExact(object.ptr())) return found;
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  const int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (writable ? NPY_ARRAY_WRITEABLE : 0);
  if (!PyArray_CHKFLAGS(array, needed) || !PyArray_ISNOTSWAPPED(array)) return found;
  found.dtype = datatype_of(PyArray_TYPE(array));
  found.data = static_cast<std::byte*>(PyArray_DATA(array));
  found.count = static_cast<std::uint64_t>(PyArray_SIZE(array));
  return found;
}

/// Operators by the names that Python's literals have, which are the same objects wherever they stand.
struct NamedOp {
  PyObject* name;
  Func func;
};

const std::array<NamedOp, 4>& named_ops() {
  static const std::array<NamedOp, 4> ops{{{PyUnicode_InternFromString("sum"), Func::kSum},
                                           {PyUnicode_InternFromString("prod"), Func::kProd},
                                           {PyUnicode_InternFromString("min"), Func::kMin},
                                           {PyUnicode_InternFromString("max"), Func::kMax}}};
  return ops;
}

Func func_of(nb::handle op) {
  for (const NamedOp& known : named_ops()) {
    if (known.name == op.ptr()) return known.func;
  }
  return Func::kNone;
}

bool numpy_is_there() {
  static const bool there = [] {
    if (PyArray_ImportNumPyAPI() == 0) return true;
    PyErr_Clear();
    return false;
  }();
  return there;
}

/// What a collective is given on this rank: elements of src and dst for each of its count, 0 where it has none.
struct Shape {
  std::uint32_t src = 0, dst = 0;
};

std::uint32_t blocks_of(Extent part, std::uint32_t size) {
  return part == Extent::kNothing ? 0 : part == Extent::kAll ? size : 1;
}

std::optional<Shape> shape_of(Collective collective, bool is_root, bool in_place, std::uint32_t size) {
  const CollectiveFacts facts = facts_of(collective);
  if (facts.kind != CallKind::kCollective || facts.vectors || (in_place && !facts.in_place)) return std::nullopt;
  const Uses uses = uses_of(collective, is_root, in_place);
  return Shape{blocks_of(uses.src, size), blocks_of(uses.dst, size)};
}

PyObject* in_place_sentinel = nullptr;

bool says_in_place(nb::handle buffer) { return buffer.ptr() == in_place_sentinel; }

/// Whether nothing is given that the call has no use for.
bool is_spare(nb::handle unused, nb::handle used) {
  return unused.is_none() || says_in_place(unused) || unused.is(used);
}

/// Whether a call is in place; nothing if what says so is no plain truth value.
std::optional<bool> in_place_of(const QuickCall& given) {
  if (given.in_place.ptr() == Py_True) return true;
  if (given.in_place.ptr() != Py_False) return std::nullopt;
  return says_in_place(given.src) || says_in_place(given.dst) || (given.src.is(given.dst) && !given.src.is_none());
}

/// A whole number that is not negative.
std::optional<std::int64_t> natural(nb::handle given) {
  if (!PyLong_CheckExact(given.ptr())) return std::nullopt;
  const std::int64_t value = PyLong_AsLongLong(given.ptr());
  if (value >= 0) return value;
  PyErr_Clear();
  return std::nullopt;
}

/// The same, or the wildcard of a receive.
std::optional<std::int64_t> natural_or(nb::handle given, std::int64_t wildcard) {
  if (!PyLong_CheckExact(given.ptr())) return std::nullopt;
  const std::int64_t value = PyLong_AsLongLong(given.ptr());
  if (value >= 0 || value == wildcard) return value;
  PyErr_Clear();
  return std::nullopt;
}

/// What a call has in any case: collective, operator, root.
std::optional<unisono_call> begun(const QuickCall& given, std::uint32_t size) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = given.collective;
  if (!given.root.is_none()) {
    const auto root = natural(given.root);
    if (!root || *root >= static_cast<std::int64_t>(size)) return std::nullopt;
    call.root = *root;
  }
  if (facts_of(static_cast<Collective>(given.collective)).reduces) {
    const Func func = func_of(given.op);
    if (func == Func::kNone) return std::nullopt;
    call.op = static_cast<int>(func);
  }
  return call;
}

/// Binds the buffers; false if they are not plain, or have different elements.
bool bind(unisono_call& call, const Elements* src, const Elements* dst) {
  if (src != nullptr) {
    if (src->dtype == Datatype::kNone) return false;
    call.datatype = static_cast<int>(src->dtype);
    call.src = src->data;
    call.src_bytes = src->count * bytes_of(src->dtype);
  }
  if (dst != nullptr) {
    if (dst->dtype == Datatype::kNone || (src != nullptr && src->dtype != dst->dtype)) return false;
    call.datatype = static_cast<int>(dst->dtype);
    call.dst = dst->data;
    call.dst_bytes = dst->count * bytes_of(dst->dtype);
  }
  return true;
}

/// Entries for each rank, none of them negative; null for None. False if they are given in another way.
bool entries_of(nb::handle given, std::uint32_t size, QuickCounts& room, const std::int64_t*& entries) {
  if (given.is_none()) return true;
  if (size > QuickCounts::kMost) return false;
  entries = room.values.data();
  if (PyArray_CheckExact(given.ptr())) {
    const Elements array = elements_of(given, false);
    if (array.dtype != Datatype::kInt64 || array.count != size ||
        PyArray_NDIM(reinterpret_cast<PyArrayObject*>(given.ptr())) != 1) {
      return false;
    }
    std::memcpy(room.values.data(), array.data, size * sizeof(std::int64_t));
    return std::all_of(entries, entries + size, [](std::int64_t entry) { return entry >= 0; });
  }
  const bool is_list = PyList_CheckExact(given.ptr());
  if (!is_list && !PyTuple_CheckExact(given.ptr())) return false;
  if ((is_list ? PyList_GET_SIZE(given.ptr()) : PyTuple_GET_SIZE(given.ptr())) != static_cast<Py_ssize_t>(size)) {
    return false;
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto entry = natural(is_list ? PyList_GET_ITEM(given.ptr(), i) : PyTuple_GET_ITEM(given.ptr(), i));
    if (!entry) return false;
    room.values[i] = *entry;
  }
  return true;
}

/// What a collective with counts has on this rank.
struct CountedShape {
  bool src = false, dst = false;
  bool sends = false, receives = false;             ///< counts of which side
  bool displaces_sends = false, displaces = false;  ///< displacements count here
};

std::optional<CountedShape> counted_shape(Collective collective, bool is_root, bool in_place) {
  const CollectiveFacts facts = facts_of(collective);
  if (!facts.vectors || (in_place && !facts.in_place)) return std::nullopt;
  const Uses uses = uses_of(collective, is_root, in_place);
  const auto lies = [&](Extent by_counts) { return uses.src == by_counts || uses.dst == by_counts; };
  return CountedShape{.src = uses.src != Extent::kNothing,
                      .dst = uses.dst != Extent::kNothing,
                      .sends = facts.sends && !(facts.pairwise() && in_place),
                      .receives = facts.receives,
                      .displaces_sends = lies(Extent::kSent),
                      .displaces = lies(Extent::kReceived)};
}

std::uint32_t forks = 0;

}  // namespace

void set_in_place(nb::handle sentinel) {
  Py_INCREF(sentinel.ptr());
  in_place_sentinel = sentinel.ptr();
}

std::optional<unisono_call> quick_call(const QuickCall& given, std::uint32_t rank, std::uint32_t size) {
  if (!numpy_is_there()) return std::nullopt;
  std::optional<unisono_call> made = begun(given, size);
  const std::optional<bool> in_place = in_place_of(given);
  if (!made || !in_place) return std::nullopt;
  unisono_call& call = *made;
  const auto collective = static_cast<Collective>(given.collective);
  const auto shape = shape_of(collective, call.root == rank, *in_place, size);
  if (!shape) return std::nullopt;
  if (*in_place) {
    if ((shape->src == 0 && !is_spare(given.src, given.dst)) || (shape->dst == 0 && !is_spare(given.dst, given.src))) {
      return std::nullopt;
    }
    call.in_place = 1;
  }
  Elements src, dst;
  if (shape->src != 0) {
    src = elements_of(given.src, false);
    call.count = static_cast<std::int64_t>(src.count / shape->src);
  }
  if (shape->dst != 0) {
    dst = elements_of(given.dst, true);
    call.count = static_cast<std::int64_t>(dst.count / shape->dst);
  }
  const auto count = static_cast<std::uint64_t>(call.count);
  if (src.count != count * shape->src || dst.count != count * shape->dst) return std::nullopt;
  if (!bind(call, shape->src != 0 ? &src : nullptr, shape->dst != 0 ? &dst : nullptr)) return std::nullopt;
  return made;
}

nb::object quick_result(int collective, nb::handle src, std::uint32_t size) {
  const auto which = static_cast<Collective>(collective);
  const CollectiveFacts facts = facts_of(which);
  if (facts.rooted || facts.vectors || which == Collective::kExscan) return {};  // rank 0 gets nothing of an exscan
  const Uses uses = uses_of(which, false, false);
  if (uses.src != Extent::kN || (uses.dst != Extent::kN && uses.dst != Extent::kAll)) return {};
  if (!numpy_is_there() || elements_of(src, false).dtype == Datatype::kNone) return {};
  auto* array = reinterpret_cast<PyArrayObject*>(src.ptr());
  constexpr int kMostAxes = 32;
  const int axes = PyArray_NDIM(array);
  if (axes == 0 || axes > kMostAxes) return {};
  PyObject* base = src.ptr();
  while (base != nullptr && PyArray_Check(base)) base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(base));
  if (base != nullptr) return {};  // of somebody else's memory, which may be allocated
  std::array<npy_intp, kMostAxes + 1> shape{static_cast<npy_intp>(size)};
  const int blocks = uses.dst == Extent::kAll ? 1 : 0;
  std::copy_n(PyArray_DIMS(array), axes, shape.begin() + blocks);
  PyArray_Descr* const elements = PyArray_DESCR(array);
  Py_INCREF(elements);
  auto made = nb::steal<nb::object>(PyArray_Empty(axes + blocks, shape.data(), elements, 0));
  if (!made.is_valid()) PyErr_Clear();
  return made;
}

std::optional<unisono_call> quick_counted(const QuickCall& given, QuickLayout& layout, std::uint32_t rank,
                                          std::uint32_t size) {
  if (!numpy_is_there()) return std::nullopt;
  std::optional<unisono_call> made = begun(given, size);
  const std::optional<bool> in_place = in_place_of(given);
  if (!made || !in_place) return std::nullopt;
  unisono_call& call = *made;
  call.in_place = *in_place ? 1 : 0;
  const auto collective = static_cast<Collective>(given.collective);
  const auto shape = counted_shape(collective, call.root == rank, *in_place);
  // A rank that is not the root may know its own count only, which its buffer says.
  const bool own_only =
      counts_at_root(collective) && call.root != rank && layout.send_counts.is_none() && layout.recv_counts.is_none();
  if (!shape || (*in_place && !shape->src && !is_spare(given.src, given.dst)) ||
      (*in_place && !shape->dst && !is_spare(given.dst, given.src)) ||
      (!own_only &&
       ((shape->receives && layout.recv_counts.is_none()) || shape->sends == layout.send_counts.is_none())) ||
      (shape->displaces_sends &&
       !entries_of(layout.send_displacements, size, layout.room[1], call.send_displacements)) ||
      (shape->displaces && !entries_of(layout.recv_displacements, size, layout.room[3], call.recv_displacements)) ||
      !entries_of(layout.send_counts, size, layout.room[0], call.send_counts) ||
      !entries_of(layout.recv_counts, size, layout.room[2], call.recv_counts)) {
    return std::nullopt;
  }
  Elements src, dst;
  if (shape->src) src = elements_of(given.src, false);
  if (shape->dst) dst = elements_of(given.dst, true);
  if (own_only) call.count = static_cast<std::int64_t>(shape->src ? src.count : dst.count);
  if (!bind(call, shape->src ? &src : nullptr, shape->dst ? &dst : nullptr)) return std::nullopt;
  return made;
}

std::optional<unisono_call> quick_message(bool sends, nb::handle buffer, nb::handle peer, nb::handle tag) {
  if (!numpy_is_there()) return std::nullopt;
  const auto to = natural_or(peer, sends ? 0 : UNISONO_ANY_SOURCE);
  const auto number = natural_or(tag, sends ? 0 : UNISONO_ANY_TAG);
  const Elements array = elements_of(buffer, !sends);
  if (!to || !number || array.dtype == Datatype::kNone) return std::nullopt;
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = sends ? UNISONO_SEND : UNISONO_RECV;
  call.root = *to;
  call.tag = *number;
  call.count = static_cast<std::int64_t>(array.count);
  if (!bind(call, sends ? &array : nullptr, sends ? nullptr : &array)) return std::nullopt;
  return call;
}

std::optional<unisono_call> quick_access(bool stores, nb::handle buffer, nb::handle peer, nb::handle offset) {
  std::optional<unisono_call> call = quick_message(stores, buffer, peer, offset);
  if (!call || call->root < 0 || call->tag < 0) return std::nullopt;
  call->collective = stores ? UNISONO_PUT : UNISONO_GET;
  call->window_offset = static_cast<std::uint64_t>(std::exchange(call->tag, 0));
  return call;
}

bool is_first_thread() {
  struct Known {
    std::uint32_t forks = ~std::uint32_t{0};
    bool first = false;
  };
  thread_local Known known;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  if (known.forks != forks) known = {forks, gettid() == getpid()};
  return known.first;
}

}  // namespace unisono::python
