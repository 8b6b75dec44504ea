// `functional_cluster -n N --fd 3,4,...`: what `unisono-cluster` is to its caller, without hardware.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cluster.hpp"

int main(int count, char** arguments) {
  std::vector<int> descriptors;
  int ready = -1;
  for (int i = 1; i + 1 < count; ++i) {
    if (std::string_view(arguments[i]) == "--check") return 0;
    if (std::string_view(arguments[i]) == "--ready") ready = std::atoi(arguments[i + 1]);
    if (std::string_view(arguments[i]) != "--fd") continue;
    char* end = arguments[i + 1];
    do {
      descriptors.push_back(static_cast<int>(std::strtol(end, &end, 10)));
    } while (*end++ == ',');
  }
  if (descriptors.empty()) {
    std::fprintf(stderr, "functional_cluster: no --fd\n");
    return 2;
  }
  unisono::test::FunctionalCluster cluster(descriptors);
  if (ready >= 0) {
    [[maybe_unused]] const auto told = ::write(ready, "r", 1);
    ::close(ready);
  }
  cluster.run();
  std::printf("%zu nodes, %llu ns, %llu requests\n", descriptors.size(),
              static_cast<unsigned long long>(cluster.nanoseconds()),
              static_cast<unsigned long long>(cluster.requests()));
  return 0;
}
