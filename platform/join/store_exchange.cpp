// Rounds that a key-value store carries: everybody puts, all wait, everybody gets.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/join/rounds.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {
namespace {

/// How long this asks, after its deadline, who has not come.
constexpr std::chrono::seconds kGrace{2};
constexpr std::chrono::milliseconds kLook{100};

class StoreExchange final : public Rounds {
 public:
  StoreExchange(const JobEnvironment& environment, std::unique_ptr<Store> store, std::uint32_t job)
      : Rounds(environment), job_(job), store_(std::move(store)) {
    if (store_->max_value() <= sizeof(std::uint32_t)) {
      fail(formatted("its key-value store takes values of {} bytes, which is too little", store_->max_value()));
    }
  }

 private:
  std::string key(std::uint32_t rank, std::size_t piece) const {
    return formatted("unisono-{}-{}-{}-{}", job_, round(), rank, piece);
  }

  std::vector<Blob> carry(const Blob& own) override {
    bool together = false;
    asked([&] {
      put(own);
      together = store_->fence(deadline());
    });
    if (!together) fail(late({}));
    std::vector<Blob> all(environment().size);
    for (std::uint32_t rank = 0; rank < environment().size; ++rank) {
      // Its own as well: a second process with this rank may have put another.
      std::optional<Blob> found;
      asked([&] { found = get(rank); });
      if (!found) fail(late(rank));
      all[rank] = *std::move(found);
    }
    return all;
  }

  /// What the store says of a failure does not say whose it is.
  template <class Question>
  void asked(Question&& question) const {
    try {
      question();
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  /// In pieces as long as the store takes; the first begins with the length of all.
  void put(const Blob& own) {
    Blob bytes(sizeof(std::uint32_t));
    const auto length = static_cast<std::uint32_t>(own.size());
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes.insert(bytes.end(), own.begin(), own.end());
    std::span<const std::byte> rest = bytes;
    for (std::size_t piece = 0; !rest.empty(); ++piece) {
      const std::size_t taken = std::min(rest.size(), store_->max_value());
      store_->put(key(environment().rank, piece), rest.first(taken), deadline());
      rest = rest.subspan(taken);
    }
  }

  std::optional<Blob> get(std::uint32_t rank) {
    auto found = store_->get(rank, key(rank, 0), deadline());
    if (!found) return std::nullopt;
    std::uint32_t length = 0;
    if (found->size() < sizeof length) return Blob();
    std::memcpy(&length, found->data(), sizeof length);
    if (length > kMaxEnvelope) return Blob();
    const std::size_t whole = length + sizeof length;
    for (std::size_t piece = 1; found->size() < whole; ++piece) {
      const auto more = store_->get(rank, key(rank, piece), deadline());
      if (!more) return std::nullopt;
      if (more->empty()) return Blob();
      found->insert(found->end(), more->begin(), more->end());
    }
    found->erase(found->begin(), found->begin() + sizeof length);
    return found;
  }

  /// The ranks that have not come. `known`: somebody of whom this is known already.
  std::string late(std::optional<std::uint32_t> known) {
    const std::string within = seconds_text(environment().timeout);
    if (const auto said = store_->late()) return formatted("{} within {}", *said, within);
    const Deadline until = Clock::now() + kGrace;
    const auto there = [&](std::uint32_t rank) {
      return store_->get(rank, key(rank, 0), std::min(Clock::now() + kLook, until)).has_value();
    };
    const bool tells = known || there(environment().rank);
    std::vector<std::uint32_t> missing;
    for (std::uint32_t rank = 0; tells && rank < environment().size; ++rank) {
      if (rank == environment().rank) continue;
      if (rank == known || (Clock::now() < until && !there(rank))) {
        missing.push_back(rank);
        if (std::string host = store_->host_of(rank); !host.empty()) set_host(rank, std::move(host));
      }
    }
    const char* const what = round() == 1 ? "come" : "gone on";
    if (!tells) return formatted("not all ranks have {} within {}; the launcher does not say which", what, within);
    if (missing.empty()) {
      return formatted("all ranks had come, but not together, within {}: some have given up before others came",
                       within);
    }
    return formatted("{} not {} within {}", ranks_have(missing), what, within);
  }

  const std::uint32_t job_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::uint32_t next_store_job() {
  static std::atomic<std::uint32_t> jobs{0};
  return jobs.fetch_add(1, std::memory_order_relaxed);
}

std::unique_ptr<Exchange> make_store_exchange(const JobEnvironment& environment, std::unique_ptr<Store> store,
                                              std::uint32_t job) {
  return std::make_unique<StoreExchange>(environment, std::move(store), job);
}

}  // namespace unisono::join
