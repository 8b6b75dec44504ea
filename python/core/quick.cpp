#include "python/core/quick.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <pthread.h>
#include <unistd.h>

#include <array>

#include "core/generated/spec.hpp"

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

/// What a collective is given: how many of src's and dst's elements there are for each of its count.
struct Shape {
  bool src = true, dst = true;           ///< this rank has them
  std::uint32_t src_of = 1, dst_of = 1;  ///< elements for each of count
  bool reduces = false;
};

std::optional<Shape> shape_of(Collective collective, bool is_root, std::uint32_t size) {
  switch (collective) {
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kExscan:
      return Shape{.reduces = true};
    case Collective::kReduce:
      return Shape{.dst = is_root, .reduces = true};
    case Collective::kBarrier:
      return Shape{.src = false, .dst = false};
    case Collective::kBcast:
      return Shape{.src = false};
    case Collective::kAllgather:
      return Shape{.dst_of = size};
    case Collective::kReduceScatter:
      return Shape{.src_of = size, .reduces = true};
    case Collective::kAlltoall:
      return Shape{.src_of = size, .dst_of = size};
    case Collective::kGather:
      return Shape{.dst = is_root, .dst_of = size};
    case Collective::kScatter:
      return Shape{.src = is_root, .src_of = size};
    default:
      return std::nullopt;
  }
}

std::uint32_t forks = 0;

}  // namespace

std::optional<unisono_call> quick_call(const QuickCall& given, std::uint32_t rank, std::uint32_t size) {
  if (!numpy_is_there()) return std::nullopt;
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = given.collective;
  if (!given.root.is_none()) {
    if (!PyLong_CheckExact(given.root.ptr())) return std::nullopt;
    call.root = PyLong_AsLongLong(given.root.ptr());
    if (call.root < 0 || call.root >= static_cast<std::int64_t>(size)) {
      PyErr_Clear();
      return std::nullopt;
    }
  }
  const auto shape = shape_of(static_cast<Collective>(given.collective), call.root == rank, size);
  if (!shape) return std::nullopt;
  if (shape->reduces) {
    const Func func = func_of(given.op);
    if (func == Func::kNone) return std::nullopt;
    call.op = static_cast<int>(func);
  }
  // One array as both means in place.
  const bool in_place = shape->src && shape->dst && given.src.is(given.dst);
  if (in_place && (shape->src_of != 1 || shape->dst_of != 1)) return std::nullopt;
  Elements src, dst;
  if (shape->src) {
    src = elements_of(given.src, false);
    if (src.dtype == Datatype::kNone) return std::nullopt;
    call.count = static_cast<std::int64_t>(src.count / shape->src_of);
  }
  if (shape->dst) {
    dst = elements_of(given.dst, true);
    if (dst.dtype == Datatype::kNone) return std::nullopt;
    call.count = static_cast<std::int64_t>(dst.count / shape->dst_of);
  }
  const auto count = static_cast<std::uint64_t>(call.count);
  if (shape->src && src.count != count * shape->src_of) return std::nullopt;
  if (shape->dst && dst.count != count * shape->dst_of) return std::nullopt;
  const Datatype dtype = shape->src ? src.dtype : dst.dtype;
  if (shape->src && shape->dst && src.dtype != dst.dtype) return std::nullopt;
  call.datatype = static_cast<int>(dtype);
  call.src = src.data;
  call.src_bytes = src.count * bytes_of(dtype);
  call.dst = dst.data;
  if (in_place) {
    call.in_place = 1;
    call.src = nullptr;
    call.src_bytes = 0;
  }
  call.dst_bytes = dst.count * bytes_of(dtype);
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
