#include "sim/cluster/host_kernel.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::sim {
namespace {

constexpr std::size_t kWord = sizeof(KernelWord::data);

}  // namespace

ToEngine HostKernel::evaluate(const FromEngine& engine) {
  seen_ = engine;
  driven_ = {};
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    driven_.in[port] = word_[port];
    driven_.out_ready[port] = taken_[port].size() < want_[port];
  }
  return driven_;
}

void HostKernel::edge() {
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if (word_[port].valid && seen_.in_ready[port]) word_[port] = {};
    if (!word_[port].valid) load(port);
    const KernelWord& out = seen_.out[port];
    ++silence_[port];
    if (!out.valid || !driven_.out_ready[port]) continue;
    silence_[port] = 0;
    const auto bytes = static_cast<std::size_t>(__builtin_popcountll(out.keep));
    const auto* const first = reinterpret_cast<const std::byte*>(out.data.data());
    taken_[port].insert(taken_[port].end(), first, first + bytes);
  }
}

void HostKernel::load(unsigned port) {
  const std::size_t bytes = std::min(give_[port].size(), kWord);
  if (bytes == 0) return;
  KernelWord& word = word_[port];
  word.valid = true;
  word.last = bytes == give_[port].size();
  word.keep = bytes == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
  std::copy_n(give_[port].begin(), bytes, reinterpret_cast<std::byte*>(word.data.data()));
  give_[port].erase(give_[port].begin(), give_[port].begin() + static_cast<std::ptrdiff_t>(bytes));
}

void HostKernel::offer(unsigned port, std::span<const std::byte> bytes) {
  give_[port].assign(bytes.begin(), bytes.end());
  if (!word_[port].valid) load(port);
}

std::size_t HostKernel::withdraw(unsigned port) {
  const std::size_t left = give_[port].size();
  give_[port].clear();
  return left;
}

std::size_t HostKernel::take(unsigned port, std::span<std::byte> into) {
  want_[port] = 0;
  const std::size_t bytes = std::min(into.size(), taken_[port].size());
  std::copy_n(taken_[port].begin(), bytes, into.begin());
  taken_[port].erase(taken_[port].begin(), taken_[port].begin() + static_cast<std::ptrdiff_t>(bytes));
  return bytes;
}

bool HostKernel::idle() const {
  for (unsigned port = 0; port < kKernelStreams; ++port) {
    if (word_[port].valid || !give_[port].empty() || want_[port] != 0) return false;
  }
  return true;
}

}  // namespace unisono::sim
