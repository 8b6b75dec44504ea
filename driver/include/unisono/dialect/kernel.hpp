// What sources of kernels in SMI's dialect of OpenCL C are compiled with, before their first line: `unisono kernel
// build` has the compiler include it. Single-work-item kernels only. C++ here, OpenCL C there: the types of vectors,
// channels and the functions that the dialect has beyond C.
#ifndef UNISONO_DIALECT_KERNEL_HPP
#define UNISONO_DIALECT_KERNEL_HPP

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "unisono/dialect/table.h"
#include "unisono/dialect/vector.hpp"
#include "unisono/smi.h"

namespace unisono::dialect {

/// A channel of the dialect: a queue between kernels of one rank.
template <class Element, unsigned long long kDepth>
class Channel {
 public:
  void name(const char* text) { queue_.name = text; }
  void write(const Element& element) {
    if (timed_) timed_ = unisono_kernel_queue_turn(&queue_, 1, 1) >= 0;
    if (queue_.written - queue_.read == kSlots) unisono_kernel_queue_wait(&queue_, 1);
    put(element);
  }
  bool try_write(const Element& element) {
    const bool early = is_early(1);
    if (early || queue_.written - queue_.read == kSlots) {
      unisono_kernel_yield(1);
      return false;
    }
    put(element);
    return true;
  }
  Element read() {
    if (timed_) timed_ = unisono_kernel_queue_turn(&queue_, 0, 1) >= 0;
    if (queue_.written == queue_.read) unisono_kernel_queue_wait(&queue_, 0);
    return get();
  }
  Element try_read(bool& valid) {
    const bool early = is_early(0);
    valid = !early && queue_.written != queue_.read;
    if (valid) return get();
    unisono_kernel_yield(1);
    return Element{};
  }

 private:
  // One of no depth has a register at least.
  static constexpr unsigned long long kSlots = kDepth == 0 ? 1 : kDepth;

  bool is_early(int writes) {
    if (!timed_) return false;
    const int turn = unisono_kernel_queue_turn(&queue_, writes, 0);
    timed_ = turn >= 0;
    return turn == 0;
  }
  void put(const Element& element) {
    elements_[queue_.written % kSlots] = element;
    ++queue_.written;
    if (queue_.reader_waits != 0) unisono_kernel_queue_wake(&queue_, 0);
  }
  Element get() {
    const Element element = elements_[queue_.read % kSlots];
    ++queue_.read;
    if (queue_.writer_waits != 0) unisono_kernel_queue_wake(&queue_, 1);
    return element;
  }

  unisono_kernel_queue queue_{"?", 0, 0, kSlots, nullptr, nullptr, 0, 0};
  bool timed_ = true;  // until the library says no
  Element elements_[kSlots];
};

/// Gives a channel, or each of an array of them, its name.
struct Naming {
  template <class Element, unsigned long long kDepth>
  Naming(Channel<Element, kDepth>& channel, const char* text) {
    channel.name(text);
  }
  template <class Of, std::size_t kCount>
  Naming(Of (&channels)[kCount], const char* text) {
    for (Of& channel : channels) Naming(channel, text);
  }
};

/// An entry of the table of kernels: how to call one with arguments that are bytes.
template <auto kFunction>
struct Entry;
template <class... Arguments, void (*kFunction)(Arguments...)>
struct Entry<kFunction> {
  using Values = std::tuple<std::decay_t<Arguments>...>;
  template <std::size_t... kAt>
  static void call(const void* const* given, std::index_sequence<kAt...> /*at*/) {
    Values values;
    (std::memcpy(static_cast<void*>(&std::get<kAt>(values)), given[kAt], sizeof(std::tuple_element_t<kAt, Values>)),
     ...);
    kFunction(std::get<kAt>(values)...);
  }
  static void run(const void* const* given) { call(given, std::index_sequence_for<Arguments...>()); }
  static constexpr unsigned kSizes[] = {sizeof(std::decay_t<Arguments>)..., 0};
};

inline unisono_dialect_kernel*& first_kernel() {
  static unisono_dialect_kernel* first = nullptr;
  return first;
}

struct Registration {
  Registration(const char* name, void (*run)(const void* const*), const unsigned* sizes, unsigned count)
      : kernel{name, run, sizes, count, first_kernel()} {
    first_kernel() = &kernel;
  }
  unisono_dialect_kernel kernel;
};
template <auto kFunction>
unsigned count_of() {
  return static_cast<unsigned>(sizeof(Entry<kFunction>::kSizes) / sizeof(unsigned) - 1);
}

}  // namespace unisono::dialect

#define UNISONO_DIALECT_PASTE_(left, right) left##right
#define UNISONO_DIALECT_PASTE(left, right) UNISONO_DIALECT_PASTE_(left, right)
#define UNISONO_DIALECT_TEXT_(words) #words
#define UNISONO_DIALECT_TEXT(words) UNISONO_DIALECT_TEXT_(words)
/// What `unisono kernel build` makes of the declaration of a channel.
#define UNISONO_DIALECT_CHANNEL(type, name, extent, depth)                                   \
  static ::unisono::dialect::Channel<type, (depth)> name extent;                             \
  static const ::unisono::dialect::Naming UNISONO_DIALECT_PASTE(unisono_naming_, name)(name, \
                                                                                       UNISONO_DIALECT_TEXT(name));
/// And what it appends for each kernel.
#define UNISONO_DIALECT_KERNEL(name)                                                                               \
  static const ::unisono::dialect::Registration UNISONO_DIALECT_PASTE(unisono_registration_, name)(                \
      UNISONO_DIALECT_TEXT(name), ::unisono::dialect::Entry<&name>::run, ::unisono::dialect::Entry<&name>::kSizes, \
      ::unisono::dialect::count_of<&name>());
/// And once.
#define UNISONO_DIALECT_TABLE                                                                                     \
  extern "C" __attribute__((visibility("default"))) const unisono_dialect_kernel* unisono_dialect_kernels(void) { \
    return ::unisono::dialect::first_kernel();                                                                    \
  }

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

#define UNISONO_DIALECT_VECTORS(type)                  \
  using type##2 = ::unisono::dialect::Vector<type, 2>; \
  using type##3 = ::unisono::dialect::Vector<type, 3>; \
  using type##4 = ::unisono::dialect::Vector<type, 4>; \
  using type##8 = ::unisono::dialect::Vector<type, 8>; \
  using type##16 = ::unisono::dialect::Vector<type, 16>;
UNISONO_DIALECT_VECTORS(char)
UNISONO_DIALECT_VECTORS(uchar)
UNISONO_DIALECT_VECTORS(short)
UNISONO_DIALECT_VECTORS(ushort)
UNISONO_DIALECT_VECTORS(int)
UNISONO_DIALECT_VECTORS(uint)
UNISONO_DIALECT_VECTORS(long)
UNISONO_DIALECT_VECTORS(ulong)
UNISONO_DIALECT_VECTORS(float)
UNISONO_DIALECT_VECTORS(double)
#undef UNISONO_DIALECT_VECTORS

template <class Of>
inline auto read_channel_intel(Of& from) {
  return from.read();
}
template <class Of>
inline auto read_channel_nb_intel(Of& from, bool* valid) {
  return from.try_read(*valid);
}
template <class Element, unsigned long long kDepth, class Given>
inline void write_channel_intel(::unisono::dialect::Channel<Element, kDepth>& to, const Given& element) {
  to.write(static_cast<Element>(element));
}
template <class Element, unsigned long long kDepth, class Given>
inline bool write_channel_nb_intel(::unisono::dialect::Channel<Element, kDepth>& to, const Given& element) {
  return to.try_write(static_cast<Element>(element));
}

inline int get_global_id(int /*dimension*/) { return 0; }
inline int get_local_id(int /*dimension*/) { return 0; }
inline int get_global_size(int /*dimension*/) { return 1; }
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CLK_CHANNEL_MEM_FENCE 4
inline void mem_fence(int /*what*/) {}
inline void barrier(int /*what*/) {}
#define MAXFLOAT_CL FLT_MAX

// Words of the dialect, for what follows this header.
#define __kernel static
#define kernel static
#define __global
#define global
#define __local
#define local
#define __constant const
#define constant const
#define __private
#define restrict __restrict__
// Memory of one rank is used by kernels that run one at a time; and values of classes cannot be volatile.
#define volatile

#endif
