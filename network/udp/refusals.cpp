#include "network/udp/refusals.hpp"

#include "core/log.hpp"
#include "core/text.hpp"

namespace unisono::udp {

void Refusals::add(const tcp::SystemAddress& from, const std::string& fault) {
  count_.add();
  if (!logs(LogLevel::kWarn) || !count_.may_log(RefusalCount::Clock::now())) return;
  const auto address = tcp::address_of(from.storage);
  log(LogLevel::kWarn, formatted("endpoint {} has refused a datagram from {}: it {}; {} so far. Strangers can reach "
                                 "port {} of this host: keep them away, for instance by a firewall",
                                 self_, address ? tcp::text_of(*address) : "nowhere", fault, count_.count(), port_));
}

}  // namespace unisono::udp
