// An application of the installed C++ interface: the ranks' numbers, summed, as each of them says.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <unisono/unisono.hpp>
#include <vector>

int main() try {
  unisono::Context context;
  unisono::Communicator world = context.world();
  const std::vector<std::int64_t> mine = {10 + std::int64_t{world.rank()}, 100 * std::int64_t{world.rank()}};
  std::vector<std::int64_t> total(2);
  world.allreduce(mine, total, unisono::Op::kSum);
  std::printf("rank %u of %u, ABI %u: %lld %lld\n", static_cast<unsigned>(world.rank()),
              static_cast<unsigned>(world.size()), static_cast<unsigned>(unisono_abi_version()),
              static_cast<long long>(total[0]), static_cast<long long>(total[1]));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
