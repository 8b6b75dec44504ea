// Kernels that hosts call by name. A kernel is a function, in HLS's style: what the host gives, and the streams that
// hardware would connect to its ports.
//
//   void axpy(float alpha, std::span<const float> x, std::span<float> y,                  // by the host
//             unisono::kernel::Comm comm,
//             unisono::kernel::CommandStream& commands, unisono::kernel::StatusStream& status,  // bound
//             unisono::kernel::ToCclo<0> to, unisono::kernel::FromCclo<0> from);
//   const unisono::kernel::Export<axpy> kAxpy{"axpy"};
//
// `unisono kernel build` makes a library of such kernels; `ctx.kernel("axpy")(2.0, x, y, comm)` runs one. The host
// gives numbers (any type of number that has a datatype, and bool), memory (`T*`, or std::span<T>, which knows its
// length; const: it is read only), communicators (Comm) and calls that it has prepared (Prepared: a request of
// unisono_prepare, in Python of `start=False`). The rest is bound: CommandStream& and StatusStream&,
// ToCclo<port> and FromCclo<port>. A kernel returns nothing, or an int: 0, or the code of an error with which it has
// failed, such as that of Command::finalize. One that throws has failed, too, with that error; hardware cannot.
#ifndef UNISONO_KERNEL_EXPORT_HPP
#define UNISONO_KERNEL_EXPORT_HPP

#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "unisono/kernel.hpp"
#include "unisono/kernel_library.h"

namespace unisono {
inline namespace api {
namespace kernel {

/// A communicator that the host has given: its place in the command stream, for Command; and who this rank is there.
struct Comm {
  std::uint32_t place = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  // NOLINTNEXTLINE(google-explicit-constructor): Command takes it as the number that it is in hardware
  operator std::uint32_t() const { return place; }
};

/// A direction of stream port `Port`, 0 to 15; a Data is made of two.
template <std::uint32_t Port>
struct ToCclo : DataStream {
  static_assert(Port < 16, "stream ports are 0 to 15");
};
template <std::uint32_t Port>
struct FromCclo : DataStream {
  static_assert(Port < 16, "stream ports are 0 to 15");
};

namespace detail_of_exports {

/// What a run has, while its arguments are made.
struct Run {
  const unisono_kernel_run& given;
  CommandStream commands{};
  StatusStream status{};
  std::uint32_t next = 0;  ///< value
};

/// How an argument of type T comes to be. `kKind` 0: it is bound.
template <class T>
struct Argument {
  static_assert(std::is_arithmetic_v<T>,
                "a kernel's arguments are numbers, T*, std::span<T>, kernel::Comm, kernel::Prepared, CommandStream&, "
                "StatusStream&, ToCclo<port> and FromCclo<port>");
  static constexpr unisono_kernel_parameter kParameter{UNISONO_KERNEL_SCALAR, unisono::detail::datatype_of<T>(), 0, 0};
  static T of(Run& run) {
    T value;
    std::memcpy(&value, &run.given.values[run.next++].bits, sizeof value);
    return value;
  }
};

template <class T>
constexpr unisono_kernel_parameter memory_of() {
  using Element = std::remove_const_t<T>;
  static_assert(unisono::detail::datatype_of<Element>() != 0, "elements of a kernel's memory have a datatype");
  return {UNISONO_KERNEL_MEMORY, unisono::detail::datatype_of<Element>(), std::is_const_v<T> ? 0U : 1U, 0};
}

template <class T>
struct Argument<T*> {
  static constexpr unisono_kernel_parameter kParameter = memory_of<T>();
  static T* of(Run& run) {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(run.given.values[run.next++].bits));
  }
};

template <class T>
struct Argument<std::span<T>> {
  static constexpr unisono_kernel_parameter kParameter = memory_of<T>();
  static std::span<T> of(Run& run) {
    const unisono_kernel_value& value = run.given.values[run.next++];
    return {reinterpret_cast<T*>(static_cast<std::uintptr_t>(value.bits)), value.bytes / sizeof(T)};
  }
};

template <>
struct Argument<Comm> {
  static constexpr unisono_kernel_parameter kParameter{UNISONO_KERNEL_COMMUNICATOR, 0, 0, 0};
  static Comm of(Run& run) {
    Comm comm;
    comm.place = static_cast<std::uint32_t>(run.given.values[run.next++].bits);
    unisono_communicator* const handle = run.commands.communicators.at(comm.place);
    unisono::detail::check(unisono_communicator_rank(handle, &comm.rank));
    unisono::detail::check(unisono_communicator_size(handle, &comm.size));
    return comm;
  }
};

template <>
struct Argument<Prepared> {
  static constexpr unisono_kernel_parameter kParameter{UNISONO_KERNEL_CALL, 0, 0, 0};
  static Prepared of(Run& run) { return {run.given.calls[run.given.values[run.next++].bits]}; }
};

template <>
struct Argument<CommandStream&> {
  static constexpr unisono_kernel_parameter kParameter{};
  static CommandStream& of(Run& run) { return run.commands; }
};
template <>
struct Argument<StatusStream&> {
  static constexpr unisono_kernel_parameter kParameter{};
  static StatusStream& of(Run& run) { return run.status; }
};
template <std::uint32_t Port>
struct Argument<ToCclo<Port>> {
  static constexpr unisono_kernel_parameter kParameter{};
  static ToCclo<Port> of(Run& run) { return {{run.given.context, Port}}; }
};
template <std::uint32_t Port>
struct Argument<FromCclo<Port>> {
  static constexpr unisono_kernel_parameter kParameter{};
  static FromCclo<Port> of(Run& run) { return {{run.given.context, Port}}; }
};

template <class T>
inline constexpr std::uint32_t kGives = 0;
template <std::uint32_t Port>
inline constexpr std::uint32_t kGives<ToCclo<Port>> = 1U << Port;
template <class T>
inline constexpr std::uint32_t kTakes = 0;
template <std::uint32_t Port>
inline constexpr std::uint32_t kTakes<FromCclo<Port>> = 1U << Port;

/// The kernels of a library, filled as it is loaded.
inline std::vector<unisono_kernel_entry>& entries() {
  static std::vector<unisono_kernel_entry> all;
  return all;
}

template <auto Function, class Result, class... Arguments>
unisono_result run(const unisono_kernel_run* given) {
  const auto fail = [given](unisono_result code, const char* sentence) {
    std::snprintf(given->sentence, given->sentence_bytes, "%s", sentence);
    return code;
  };
  constexpr unisono_result kInternal = 255;
  try {
    Run state{*given};
    state.commands.communicators.assign(given->communicators, given->communicators + given->communicators_count);
    std::tuple<Arguments...> arguments{Argument<Arguments>::of(state)...};  // in order, as braces have it
    const auto call = [](auto&&... each) { return Function(static_cast<Arguments>(each)...); };
    if constexpr (std::is_void_v<Result>) {
      std::apply(call, arguments);
      return 0;
    } else {
      const auto code = static_cast<unisono_result>(std::apply(call, arguments));
      if (code == 0) return 0;
      const std::string name = unisono_result_name(code);
      const bool known = name[0] != '?';
      const std::string sentence =
          "it returned " + std::to_string(code) + (known ? ": " + name : ", which is no error's code");
      return fail(known ? code : kInternal, sentence.c_str());
    }
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(kInternal, error.what());
  } catch (...) {
    return fail(kInternal, "an exception that is none of std::exception");
  }
}

template <class Type>
struct Signature;
template <class Result, class... Arguments>
struct Signature<Result(Arguments...)> {
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, int>,
                "a kernel returns nothing, or an int: 0, or the code of its error");
  template <auto Function>
  static void add(const char* name) {
    static const std::vector<unisono_kernel_parameter> parameters = [] {
      std::vector<unisono_kernel_parameter> all;
      for (const unisono_kernel_parameter& one : {unisono_kernel_parameter{}, Argument<Arguments>::kParameter...}) {
        if (one.kind != 0) all.push_back(one);
      }
      return all;
    }();
    entries().push_back({name, parameters.data(), static_cast<std::uint32_t>(parameters.size()),
                         (0U | ... | kGives<Arguments>), (0U | ... | kTakes<Arguments>), 0,
                         &run<Function, Result, Arguments...>});
  }
};

}  // namespace detail_of_exports

/// Makes a function a kernel of its library, by this name. One such object at namespace scope for each kernel.
template <auto Function>
struct Export {
  explicit Export(const char* name) {
    detail_of_exports::Signature<std::remove_pointer_t<decltype(Function)>>::template add<Function>(name);
  }
};

}  // namespace kernel
}  // namespace api
}  // namespace unisono

#endif
