#include "platform/join/host.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace unisono::join {
namespace {

/// "net:[4026531840]": names a namespace within one boot. Empty where the system does not say.
std::string namespace_of(const char* kind) {
  std::array<char, 64> target{};
  const ssize_t bytes = readlink((std::string("/proc/self/ns/") + kind).c_str(), target.data(), target.size());
  return bytes > 0 ? std::string(target.data(), static_cast<std::size_t>(bytes)) : std::string();
}

std::string boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

}  // namespace

Host this_host(const std::string& given) {
  const std::string machine = boot();
  if (!given.empty()) return {"given:" + given, machine, given};
  utsname system{};
  uname(&system);
  const std::string name = static_cast<const char*>(system.nodename);
  // Members watch each other's processes by number, so they must see the same numbers.
  return {machine + " " + namespace_of("net") + " " + namespace_of("uts") + " " + namespace_of("pid") + " " + name,
          machine, name};
}

}  // namespace unisono::join
