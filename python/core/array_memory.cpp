#include "python/core/array_memory.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace unisono::python {
namespace {

/// Arrays of fewer bytes come from the system: calls on them copy through lines anyway.
constexpr std::size_t kLeast = 4096;
/// Before each array, so that the array begins a cache line too.
struct alignas(64) Head {
  std::size_t bytes = 0;  ///< of the array
  bool allocated = false;
};

/// What NumPy calls, and with what. It lives as long as an array of it.
struct Source {
  PyDataMem_Handler handler{};
  unisono_context* context = nullptr;
};

void* get(void* source, std::size_t bytes) {
  if (bytes > SIZE_MAX - sizeof(Head)) return nullptr;
  const std::size_t total = sizeof(Head) + bytes;
  void* memory = nullptr;
  const bool allocated =
      bytes >= kLeast && unisono_allocate(static_cast<Source*>(source)->context, total, &memory) == 0;
  if (!allocated && posix_memalign(&memory, alignof(Head), total) != 0) return nullptr;
  return new (memory) Head{bytes, allocated} + 1;
}

void* get_zeros(void* source, std::size_t count, std::size_t element) {
  if (element != 0 && count > SIZE_MAX / element) return nullptr;
  void* memory = get(source, count * element);
  if (memory != nullptr) std::memset(memory, 0, count * element);  // it may have been used before
  return memory;
}

void give_back(void* source, void* memory, std::size_t /*bytes*/) {
  if (memory == nullptr) return;
  Head* head = static_cast<Head*>(memory) - 1;
  if (head->allocated) {
    unisono_deallocate(static_cast<Source*>(source)->context, head);  // refused in a child of fork, which has a copy
  } else {
    std::free(head);
  }
}

void* resize(void* source, void* memory, std::size_t bytes) {
  void* larger = get(source, bytes);
  if (larger == nullptr || memory == nullptr) return larger;
  std::memcpy(larger, memory, std::min(bytes, (static_cast<Head*>(memory) - 1)->bytes));
  give_back(source, memory, 0);
  return larger;
}

constexpr const char* kCapsule = "mem_handler";  // the name that NumPy asks for

void need_numpy() {
  if (PyArray_API == nullptr && PyArray_ImportNumPyAPI() != 0) throw nb::python_error();
}

}  // namespace

nb::object take_array_memory(unisono_context* context) {
  need_numpy();
  auto source = std::make_unique<Source>();
  source->context = context;
  std::strncpy(source->handler.name, "unisono", sizeof source->handler.name - 1);
  source->handler.version = 1;
  source->handler.allocator = {source.get(), get, get_zeros, resize, give_back};
  const auto destroy = [](PyObject* capsule) {
    delete static_cast<Source*>(PyCapsule_GetContext(capsule));  // NOLINT(cppcoreguidelines-owning-memory)
  };
  const auto capsule = nb::steal<nb::object>(PyCapsule_New(&source->handler, kCapsule, destroy));
  if (!capsule.is_valid() || PyCapsule_SetContext(capsule.ptr(), source.get()) != 0) throw nb::python_error();
  static_cast<void>(source.release());  // the capsule's now
  PyObject* before = PyDataMem_SetHandler(capsule.ptr());
  if (before == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(before);
}

void restore_array_memory(nb::handle before) {
  need_numpy();
  PyObject* taken = PyDataMem_SetHandler(before.ptr());
  if (taken == nullptr) throw nb::python_error();
  Py_DECREF(taken);
}

}  // namespace unisono::python
