#include "platform/join/caller.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/join/rounds.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {
namespace {

/// Rounds that the caller's all_gather carries: first how long each is, then all of them, made equally long.
class GatheringExchange final : public Rounds {
 public:
  GatheringExchange(const JobEnvironment& environment, CallerFunctions functions)
      : Rounds(environment), functions_(std::move(functions)) {}

 private:
  std::vector<Blob> carry(const Blob& own) override {
    const std::uint32_t size = environment().size;
    const auto length = static_cast<std::uint32_t>(own.size());
    std::vector<std::uint32_t> lengths(size);
    gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)));
    const std::uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (lengths[environment().rank] != length || longest > kMaxEnvelope) {
      fail(
          "the caller's all_gather brings something else than was given: every rank must get the bytes of all, in the "
          "order of ranks");
    }
    Blob mine = own;
    mine.resize(longest);
    Blob all(std::size_t{longest} * size);
    gather(mine, all);
    std::vector<Blob> apart;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(std::size_t{longest} * rank);
      apart.emplace_back(begin, begin + lengths[rank]);
    }
    return apart;
  }

  void gather(std::span<const std::byte> own, std::span<std::byte> all) const {
    try {
      functions_.all_gather(own, all, deadline());
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  const CallerFunctions functions_;
};

/// A store in which `get` waits.
class CallerStore final : public Store {
 public:
  explicit CallerStore(CallerFunctions functions) : functions_(std::move(functions)) {}
  std::size_t max_value() const override { return kMaxPut; }
  void put(const std::string& key, std::span<const std::byte> value, Deadline deadline) override {
    functions_.put(key, value, deadline);
  }
  bool fence(Deadline /*deadline*/) override { return true; }
  std::optional<Blob> get(std::uint32_t /*rank*/, const std::string& key, Deadline deadline) override {
    Blob value(kMaxPut);
    const auto bytes = functions_.get(key, value, deadline);
    if (!bytes) return std::nullopt;
    if (*bytes > kMaxPut) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("the caller's get has given {} bytes for {}, where {} have room", *bytes, key, kMaxPut));
    }
    value.resize(*bytes);
    return value;
  }

 private:
  const CallerFunctions functions_;
};

}  // namespace

std::unique_ptr<Exchange> make_caller_exchange(const JobEnvironment& environment, const CallerFunctions& functions) {
  if (functions.all_gather) return std::make_unique<GatheringExchange>(environment, functions);
  return make_store_exchange(environment, std::make_unique<CallerStore>(functions));
}

}  // namespace unisono::join
