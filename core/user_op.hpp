// Operators of the user: functions of this process behind the numbers user0 to user7 and ordered0 to ordered7.
//
// Their names, not their numbers, are what ranks agree on: the numbers never leave a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/call.hpp"
#include "core/thread_state.hpp"

namespace unisono {

/// out[i] = op(a[i], b[i]) for `count` elements. The arrays are aligned to 64 bytes and do not overlap. Not 0 is
/// failure.
using UserFunction = int (*)(const void* a, const void* b, void* out, std::uint64_t count, int datatype, void* context);

struct UserOp {
  std::string name;
  UserFunction function = nullptr;
  void* context = nullptr;
  bool commutative = true;
};

/// Defines an operator and returns its number. Throws Error: kInvalidArgument if the name is empty, too long, or in
/// use; kCapacity if all eight numbers of the kind are. Thread-safe.
Func add_user_op(UserOp op);
/// Undefines it; calls that need it fail from then on. Throws Error(kInvalidOp) if it is not defined.
void remove_user_op(Func func);
/// Throws that error, of a number that may be none of a Func.
[[noreturn]] void throw_no_user_op(int op);
/// The operator of a number, or null. What it points to lives for ever.
const UserOp* find_user_op(Func func);

/// Name and commutativity as one number, equal where they are; 0 if `func` is none of the user's.
std::uint32_t identity_of(Func func);
/// As users know it.
std::string operator_name(Func func);
/// The same of a number in another process, which may have another operator of the user behind it.
std::string operator_name_elsewhere(Func func);

/// out[i] = func(a[i], b[i]); arrays need no alignment, and `out` may be `a` or `b`. Returns false if func is not
/// defined. Throws Error(kInvalidOp) if the function fails, with what `explain_failure` was told.
bool combine_user(Func func, Datatype dtype, const std::byte* a, const std::byte* b, std::byte* out,
                  std::uint64_t count);

/// Whether this thread is inside a function of the user, which must not use Unisono.
inline bool in_user_op() { return thread_state().in_user_op; }
/// Says, from inside, why the function of the user fails; the error of `combine_user` has it. Of one line, and at most
/// kLongestFailure bytes; what is more is left out.
void explain_failure(std::string_view why) noexcept;
inline constexpr std::size_t kLongestFailure = 200;

}  // namespace unisono
