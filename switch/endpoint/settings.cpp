#include "switch/endpoint/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/join/sockets.hpp"
#include "platform/join/variables.hpp"
#include "switch/control.hpp"
#include "switch/endpoint/plan.hpp"

namespace unisono::slots {

namespace {

constexpr const char* kList = "UNISONO_AGGREGATE";

template <class Number>
Number number_in(const char* name, const std::string& text, Number least, Number most, const std::string& allowed) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || !(number >= least && number <= most)) {
    join::refuse(name, text, allowed);
  }
  return number;
}

}  // namespace

bool aggregation_asked() {
  const std::string list = join::variable(kList).value_or("");
  return !list.empty() && list != "off";
}

AggregationSettings aggregation_of_environment() {
  AggregationSettings settings;
  if (!aggregation_asked()) return settings;
  const std::string list = *join::variable(kList);
  if (join::variable("UNISONO_TLS").value_or("") == "on") {
    throw Error(ErrorCode::kBootstrap,
                "all data between hosts are to be encrypted (UNISONO_TLS=on), and what goes to switches is not: set "
                "UNISONO_TLS=tcp to encrypt what goes by TCP alone");
  }
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    settings.addresses.push_back(list.substr(at, end - at));
    if (!join::parse_host_port(settings.addresses.back())) {
      join::refuse(kList, list, "addresses of switches, HOST:PORT, several by commas; or off");
    }
    at = end + 1;
  }
  if (settings.addresses.size() > 256) join::refuse(kList, list, "at most 256 addresses");
  if (const auto secret = join::variable("UNISONO_AGGREGATE_SECRET")) {
    settings.secret = *secret;
  } else if (const auto file = join::variable("UNISONO_AGGREGATE_SECRET_FILE")) {
    settings.secret = secret_in_file(*file);
  } else {
    join::refuse("UNISONO_AGGREGATE_SECRET_FILE", std::nullopt,
                 "the file with the secret of the switches that UNISONO_AGGREGATE names");
  }
  if (const auto patience = join::variable("UNISONO_AGGREGATE_TIMEOUT_S")) {
    const double seconds = number_in("UNISONO_AGGREGATE_TIMEOUT_S", *patience, 0.1, 3600.0, "seconds from 0.1 to 3600");
    settings.patience = std::chrono::milliseconds(std::llround(seconds * 1000));
  }
  if (const auto bytes = join::variable("UNISONO_AGGREGATE_UP_TO")) {
    settings.up_to_bytes =
        number_in<std::uint64_t>("UNISONO_AGGREGATE_UP_TO", *bytes, 1, ~std::uint64_t{0}, "bytes, a number from 1 on");
  }
  settings.impairment = udp::impairment_of(join::variable("UNISONO_UDP_IMPAIR").value_or(""));
  return settings;
}

}  // namespace unisono::slots
