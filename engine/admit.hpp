// Admission: everything that can be known to be wrong with a call, before anything is sent.
//
// `admit` is the way of every call into an engine. What it asks of single words of a call stands here by itself too:
// a front door asks the same as it prepares a call, in the user's terms, which may be long before the call begins.
// What holds of each collective comes from core/facts.hpp and core/footprint.hpp alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "engine/engine.hpp"

namespace unisono::cclo {

struct CallState;
struct Communicator;

/// Makes of a request what the engine carries out. `call`, whose communicator is set, gets the call with fields that
/// the operation does not use normalised, its plan (found, or made) and the bindings of this launch. Throws Error that
/// says what was given and what is allowed. Buffer sizes are those of docs/model.md, rules 17 and 18. Under the
/// engine's lock.
void admit(const CallRequest& request, CallState& call);

/// Why engines in hardware do not carry out a receive that names no source or no tag, or a probe; empty if they may.
std::string wildcard_in_hardware(const CallRequest& request);

/// Refuses a call: `operation: what`, or `operation on communicator n: what`.
struct Refusal {
  const char* operation = "call";
  const Communicator* communicator = nullptr;
  [[noreturn]] void operator()(ErrorCode code, const std::string& what) const;
  std::string title() const;
};

/// The names of all values of an enumeration but `except`, and but the operators of the user: "sum, prod, min".
template <class Enum, std::size_t kSize>
std::string names_of(const std::array<Enum, kSize>& all, Enum except) {
  std::string text;
  for (const Enum value : all) {
    if constexpr (std::is_same_v<Enum, Func>) {
      if (is_user(value)) continue;
    }
    if (value != except) text += (text.empty() ? "" : ", ") + std::string(name_of(value));
  }
  return text;
}

/// The value of an enumeration that has a number. Throws Error(code) if none has.
template <class Enum, std::size_t kSize>
Enum known(std::int64_t value, const std::array<Enum, kSize>& all, const char* what, ErrorCode code) {
  constexpr std::int64_t kMost = 255;
  const auto candidate = static_cast<Enum>(value);
  if (value < 0 || value > kMost || !is_known(candidate)) {
    throw Error(code, std::string(what) + " " + std::to_string(value) + " is not known; known are " +
                          names_of(all, static_cast<Enum>(kMost)));
  }
  return candidate;
}

/// Checks the datatype and operator of a call, whose values are known ones.
void check_operands(const Call& call, const Refusal& refuse);
/// Checks the root, or peer, of a collective that has one.
void check_root(Collective collective, std::int64_t root, std::uint32_t size, const Refusal& refuse);
/// Checks a tag. `besides`: what else is allowed, in words.
void check_tag(std::int64_t tag, const Refusal& refuse, const char* besides = "");
/// Checks that the parts of src and dst that a call uses, `bytes` of each binding, do not overlap.
void check_disjoint(Collective collective, const Binding& src, const Binding& dst, const Refusal& refuse);
/// Checks that `chosen` admits the call, whose radix and direct access are set.
void check_admits(const Algorithm& chosen, const Call& call, const Refusal& refuse);

/// Which counts a v-collective takes.
struct VectorSides {
  bool send = false;
  bool recv = false;
  bool own = false;  ///< and the rank's own block is one of them, so that the call's count is their sum
};

/// By what the footprint of the rank that uses most depends on.
constexpr VectorSides sides_of(Collective collective, bool in_place) {
  Call call;
  call.collective = collective;
  call.in_place = in_place;
  Call apart = call;
  apart.in_place = false;
  constexpr Footprint kNothing;
  return {footprint_of(call, {0, 1, 0}) != kNothing, footprint_of(call, {0, 0, 1}) != kNothing,
          footprint_of(apart, {1, 0, 0}) != kNothing};
}

}  // namespace unisono::cclo
