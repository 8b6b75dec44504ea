#include "network/udp/refusals.hpp"

#include "core/log.hpp"
#include "core/text.hpp"

namespace unisono::udp {

void Refusals::add(const tcp::SystemAddress& from, const std::string& fault) {
  ++count_;
  const Clock::time_point now = Clock::now();
  if (now < logged_ + std::chrono::seconds(1) || !logs(LogLevel::kWarn)) return;
  logged_ = now;
  const auto address = tcp::address_of(from.storage);
  log(LogLevel::kWarn, formatted("endpoint {} has refused a datagram from {}: it {}; {} so far. Strangers can reach "
                                 "port {} of this host: keep them away, for instance by a firewall",
                                 self_, address ? tcp::text_of(*address) : "nowhere", fault, count_, port_));
}

}  // namespace unisono::udp
