#include "core/user_op.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/lasting.hpp"
#include "core/text.hpp"

namespace unisono {
namespace {

constexpr auto kFirst = static_cast<std::size_t>(Func::kUser0);
constexpr std::size_t kOfAKind = 8;
constexpr std::size_t kLongestName = 64;

std::array<std::atomic<const UserOp*>, 2 * kOfAKind>& table() {
  static std::array<std::atomic<const UserOp*>, 2 * kOfAKind> ops{};
  return ops;
}

std::mutex& changes() {
  static std::mutex mutex;
  return mutex;
}

std::string& failure_text() { return lasting<std::string, struct FailureText>(); }

}  // namespace

const UserOp* find_user_op(Func func) {
  return is_user(func) ? table()[static_cast<std::size_t>(func) - kFirst].load(std::memory_order_acquire) : nullptr;
}

Func add_user_op(UserOp op) {
  if (op.name.empty() || op.name.size() > kLongestName) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("an op's name has {} bytes; allowed are 1 to {}", op.name.size(), kLongestName));
  }
  for (const Func func : kAllFunc) {
    if (!is_user(func) && op.name == name_of(func)) {
      throw Error(ErrorCode::kInvalidArgument, "there is an op \"" + op.name + "\" already; choose another name");
    }
  }
  const std::lock_guard lock(changes());
  const std::size_t begin = op.commutative ? 0 : kOfAKind;
  std::size_t free = 2 * kOfAKind;
  for (std::size_t i = 0; i < 2 * kOfAKind; ++i) {
    const UserOp* other = table()[i].load(std::memory_order_relaxed);
    if (other != nullptr && other->name == op.name) {
      throw Error(ErrorCode::kInvalidArgument, "there is an op \"" + op.name + "\" already; choose another name");
    }
    if (other == nullptr && i >= begin && i < begin + kOfAKind) free = std::min(free, i);
  }
  if (free == 2 * kOfAKind) {
    throw Error(ErrorCode::kCapacity,
                formatted("op \"{}\": a process has at most {} ops that commute and as many that do not; free one",
                          op.name, kOfAKind));
  }
  // Kept for ever: a call may still hold it. There are few, and they are small.
  static auto& kept = *new std::vector<std::unique_ptr<const UserOp>>;
  kept.push_back(std::make_unique<const UserOp>(std::move(op)));
  table()[free].store(kept.back().get(), std::memory_order_release);
  return static_cast<Func>(kFirst + free);
}

void throw_no_user_op(int op) {
  throw Error(ErrorCode::kInvalidOp, formatted("op {} is none that was created and not freed", op));
}

void remove_user_op(Func func) {
  const std::lock_guard lock(changes());
  if (find_user_op(func) == nullptr) throw_no_user_op(static_cast<int>(func));
  table()[static_cast<std::size_t>(func) - kFirst].store(nullptr, std::memory_order_release);
}

std::uint32_t identity_of(Func func) {
  const UserOp* op = find_user_op(func);
  if (op == nullptr) return 0;
  const std::string text = op->name + (op->commutative ? "+" : "-");
  return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}) | 1U;
}

std::string operator_name(Func func) {
  const UserOp* op = find_user_op(func);
  return op != nullptr ? op->name : name_of(func);
}

std::string operator_name_elsewhere(Func func) {
  if (!is_user(func)) return name_of(func);
  return needs_order(func) ? "an op of the user that does not commute" : "an op of the user";
}

void explain_failure(std::string_view why) noexcept {
  try {
    std::size_t length = std::min(why.size(), kLongestFailure);
    // A character of several bytes stays whole.
    while (length < why.size() && length > 0 && (static_cast<unsigned char>(why[length]) & 0xc0U) == 0x80U) --length;
    failure_text() = why.substr(0, length);
    for (char& character : failure_text()) {
      if (static_cast<unsigned char>(character) < ' ') character = ' ';
    }
    if (length < why.size()) failure_text() += " ...";
  } catch (...) {
    failure_text().clear();  // there is no memory for words
  }
}

bool combine_user(Func func, Datatype dtype, const std::byte* a, const std::byte* b, std::byte* out,
                  std::uint64_t count) {
  const UserOp* op = find_user_op(func);
  if (op == nullptr) return false;
  // By blocks, so that the function gets aligned arrays of its own.
  constexpr std::uint64_t kBlock = 4096;
  alignas(64) std::array<std::byte, kBlock> x;
  alignas(64) std::array<std::byte, kBlock> y;
  alignas(64) std::array<std::byte, kBlock> z;
  const std::uint64_t element = bytes_of(dtype);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t n = std::min(kBlock / element, count - done);
    std::memcpy(x.data(), a + done * element, n * element);
    std::memcpy(y.data(), b + done * element, n * element);
    bool& inside = thread_state().in_user_op;
    const bool before = std::exchange(inside, true);
    failure_text().clear();
    const int failure = op->function(x.data(), y.data(), z.data(), n, static_cast<int>(dtype), op->context);
    inside = before;
    if (failure != 0) {
      throw Error(ErrorCode::kInvalidOp,
                  "the function of op \"" + op->name + "\" failed" +
                      (failure_text().empty() ? formatted(" and returned {}", failure) : ": " + failure_text()));
    }
    std::memcpy(out + done * element, z.data(), n * element);
    done += n;
  }
  return true;
}

}  // namespace unisono
