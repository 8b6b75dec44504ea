// Jobs whose endpoints talk by libfabric, over a provider that every machine has.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/ofi/make.hpp"
#include "network/ofi/ofi_network.hpp"
#include "tests/cpp/network/network_job.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::test {

/// Endpoints of the loopback, or of the shared memory of this machine.
inline ofi::OfiSettings ofi_settings(const std::string& provider) { return {provider, "127.0.0.1"}; }

/// Why a provider cannot be had here; empty if it can.
inline std::string missing_provider(const std::string& provider) {
  try {
    ofi::make_network(ofi_settings(provider));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// Networks of this process that know each other's cards. Not over the provider shm: there, endpoints of one process
/// use each other's memory, also after one of them is gone.
struct OfiJob : NetworkJob<Network> {
  OfiJob(std::uint32_t size, const std::string& provider)
      : OfiJob(size, [&](std::uint32_t) { return ofi::make_network(ofi_settings(provider)); }) {}
  OfiJob(std::uint32_t size, const std::function<std::unique_ptr<Network>(std::uint32_t)>& make)
      : NetworkJob(size, make) {}
};

/// The cards of processes that are about to talk, in memory that they share.
class CardTable {
 public:
  explicit CardTable(std::uint32_t size) : size_(size) {
    void* const memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
    table_ = new (memory) Table;
  }
  ~CardTable() { munmap(table_, sizeof(Table)); }
  CardTable(const CardTable&) = delete;
  CardTable& operator=(const CardTable&) = delete;

  /// Shows the own card, waits for those of all others, and lets the network meet them.
  void meet(Network& network, std::uint32_t self) {
    const auto card = network.card();
    std::copy(card.begin(), card.end(), table_->cards[self].begin());
    table_->bytes[self].store(static_cast<std::uint32_t>(card.size()));
    NetworkMembers members{self, key_of(7), {}, {}};
    const auto deadline = Clock::now() + kPatience;
    for (std::uint32_t i = 0; i < size_; ++i) {
      while (table_->bytes[i].load() == 0) {
        if (Clock::now() > deadline) throw std::runtime_error("a card has not come");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      const auto& theirs = table_->cards[i];
      members.cards.emplace_back(theirs.begin(), theirs.begin() + table_->bytes[i].load());
      members.hosts.push_back("host" + std::to_string(i));
    }
    network.meet(std::move(members));
  }

 private:
  struct Table {
    std::array<std::atomic<std::uint32_t>, 16> bytes{};
    std::array<std::array<std::byte, Network::kMostCardBytes>, 16> cards{};
  };
  Table* table_;
  std::uint32_t size_;
};

/// Runs `body(poe)` in a process for each endpoint, which leaves when its body has ended; throws if any throws.
inline void on_all_by_ofi(std::uint32_t size, const std::string& provider, const std::function<void(Poe&)>& body) {
  CardTable table(size);
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    children.emplace_back([&, rank] {
      const auto network = ofi::make_network(ofi_settings(provider));
      table.meet(*network, rank);
      NetworkPoe poe(*network, rank, size);
      body(poe);
    });
  }
  bool good = true;
  for (Child& child : children) good = child.wait() == 0 && good;
  if (!good) throw std::runtime_error("a process has failed; see what it has written");
}

/// Tests for each provider that every machine has.
class OfiProviders : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string missing = missing_provider(GetParam());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

inline std::string provider_name(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "shm" ? "shm" : "tcp";
}

}  // namespace unisono::test
