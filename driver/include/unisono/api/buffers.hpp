// Errors, operators, elements and buffers of the C++ interface. Part of unisono.hpp, which includes it.
#ifndef UNISONO_API_BUFFERS_HPP
#define UNISONO_API_BUFFERS_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "unisono/unisono.h"

namespace unisono {
inline namespace api {

/// Every failure of Unisono. `what()` says what was given and what is allowed, or for failures in flight
/// operation, communicator, sequence, peer and phase.
class Error : public std::runtime_error {
 public:
  Error(unisono_result code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// Error code of the specification (docs/reference/errors.md).
  unisono_result code() const noexcept { return code_; }
  /// Its name, for instance "buffer_too_small".
  const char* name() const noexcept { return unisono_result_name(code_); }

 private:
  unisono_result code_;
};

/// Reduction operators. Arithmetic is defined in docs/model.md.
enum class Op : int {
  kSum = UNISONO_SUM,
  kProd = UNISONO_PROD,
  kMin = UNISONO_MIN,
  kMax = UNISONO_MAX,
  kLogicalAnd = UNISONO_LOGICAL_AND,
  kLogicalOr = UNISONO_LOGICAL_OR,
  kLogicalXor = UNISONO_LOGICAL_XOR,
  kBitwiseAnd = UNISONO_BITWISE_AND,
  kBitwiseOr = UNISONO_BITWISE_OR,
  kBitwiseXor = UNISONO_BITWISE_XOR,
  kMinloc = UNISONO_MINLOC,
  kMaxloc = UNISONO_MAXLOC,
  kAvg = UNISONO_AVG  ///< of reduce, allreduce and reduce_scatter(v)
};

/// Storage of an IEEE 754 binary16 number; arithmetic on it is the caller's.
struct half {  // NOLINT(readability-identifier-naming): named as the fundamental type it stands for
  std::uint16_t bits = 0;
};
/// Storage of a bfloat16 number.
struct bfloat16 {  // NOLINT(readability-identifier-naming)
  std::uint16_t bits = 0;
};

/// A value and where it was found, for kMinloc and kMaxloc. There are <float, std::int32_t>, <double, std::int32_t>,
/// <std::int32_t, std::int32_t> and <std::int64_t, std::int64_t>, laid out as C does.
template <class Value, class Index>
struct Located {
  Value value = 0;
  Index index = 0;
};

/// Stands for the source of a collective whose input is in the destination (docs/model.md, "In place").
struct InPlace {};
inline constexpr InPlace kInPlace{};

/// Stands for a buffer of `count` elements: a stream port of this rank, 0 to 15, to which a kernel gives them
/// (Context::write_stream), or from which it takes them (Context::read_stream). See unisono_call.
template <class T>
struct Stream {
  using value_type = T;  // NOLINT(readability-identifier-naming): as containers have it
  std::uint32_t port = 0;
  std::size_t count = 0;
  std::size_t size() const { return count; }
};

namespace detail {

template <class T>
constexpr unisono_datatype datatype_of() {
  if constexpr (std::is_same_v<T, std::byte>) {
    return UNISONO_BYTE;
  } else if constexpr (std::is_same_v<T, half>) {
    return UNISONO_FP16;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return UNISONO_BF16;
  } else if constexpr (std::is_same_v<T, float>) {
    return UNISONO_FP32;
  } else if constexpr (std::is_same_v<T, double>) {
    return UNISONO_FP64;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return UNISONO_COMPLEX64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return UNISONO_COMPLEX128;
  } else if constexpr (std::is_same_v<T, Located<float, std::int32_t>>) {
    return UNISONO_FP32_INT32;
  } else if constexpr (std::is_same_v<T, Located<double, std::int32_t>>) {
    return UNISONO_FP64_INT32;
  } else if constexpr (std::is_same_v<T, Located<std::int32_t, std::int32_t>>) {
    return UNISONO_INT32_INT32;
  } else if constexpr (std::is_same_v<T, Located<std::int64_t, std::int64_t>>) {
    return UNISONO_INT64_INT64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return sizeof(bool) == 1 ? UNISONO_BOOL : 0;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    return std::is_signed_v<T> ? UNISONO_INT8 : UNISONO_UINT8;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 2) {
    return std::is_signed_v<T> ? UNISONO_INT16 : UNISONO_UINT16;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) {
    return std::is_signed_v<T> ? UNISONO_INT32 : UNISONO_UINT32;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    return std::is_signed_v<T> ? UNISONO_INT64 : UNISONO_UINT64;
  } else {
    return 0;
  }
}

template <class Range>
struct ElementOf {
  using Type = std::remove_cv_t<std::ranges::range_value_t<Range>>;
};
template <class T>
struct ElementOf<Stream<T>> {
  using Type = T;
};
template <class Range>
using Element = typename ElementOf<std::remove_cvref_t<Range>>::Type;

template <class T>
inline constexpr bool kIsStream = false;
template <class T>
inline constexpr bool kIsStream<Stream<T>> = true;

inline void check(unisono_result result) {
  if (result != 0) throw Error(result, unisono_last_error());
}

}  // namespace detail

/// Element types that have a datatype.
template <class T>
concept Transferable = detail::datatype_of<T>()
!= 0;

/// A buffer that is read.
template <class Range>
concept Source = (detail::kIsStream<std::remove_cvref_t<Range>> ||
                  (std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>)) &&
                 Transferable<detail::Element<Range>>;

namespace detail {
template <class Range>
constexpr bool is_writable() {
  if constexpr (kIsStream<std::remove_cvref_t<Range>>) {
    return true;
  } else {
    return !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<std::remove_reference_t<Range>>>>;
  }
}
}  // namespace detail

/// A buffer that is written.
template <class Range>
concept Destination = Source<Range> && detail::is_writable<Range>();

/// A source of the destination's element type, or kInPlace.
template <class Range, class To>
concept SourceFor = std::is_same_v<std::remove_cvref_t<Range>, InPlace> ||
    (Source<Range>&& std::is_same_v<detail::Element<Range>, detail::Element<To>>);

/// Memory for `size` elements, aligned to 64 bytes (a data-path word) or more, zero at first. Movable. Either ordinary
/// memory, or allocated memory, which the ranks on the same machine read and write directly: Context::allocate makes
/// such a buffer. Both are buffers for any call, and allocated memory stays valid when the context has gone.
template <Transferable T>
class Buffer {
 public:
  Buffer() = default;
  /// Ordinary memory.
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > most()) throw std::bad_array_new_length();
    data_.reset(static_cast<T*>(::operator new (size * sizeof(T), std::align_val_t{64})));
    std::uninitialized_value_construct_n(data_.get(), size);
  }
  Buffer(Buffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  /// All elements. `subspan` of it gives parts, which are buffers too.
  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }
  /// Whether this is allocated memory.
  bool allocated() const noexcept { return data_.get_deleter().context != nullptr; }

 private:
  friend class Context;

  /// `context`: the one that the memory was allocated for; null for ordinary memory. The handle may be freed.
  struct Free {
    unisono_context* context = nullptr;
    void operator()(T* data) const noexcept {
      if (context == nullptr) {
        ::operator delete (data, std::align_val_t{64});
      } else {
        unisono_deallocate(context, data);  // cannot fail, but in a child of fork, whose memory this is not
      }
    }
  };

  Buffer(unisono_context* context, std::size_t size) : size_(size) {
    void* memory = nullptr;
    // What no machine has is asked for as it is, so that the error says so.
    const std::uint64_t bytes = size > most() ? ~std::uint64_t{0} : size * sizeof(T);
    detail::check(unisono_allocate(context, bytes, &memory));
    data_ = std::unique_ptr<T, Free>(static_cast<T*>(memory), Free{context});
  }

  static constexpr std::size_t most() { return std::size_t(-1) / sizeof(T); }

  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace api
}  // namespace unisono

#endif
