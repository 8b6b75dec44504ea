// Which host this is: processes that find the same may share memory.
#pragma once

#include <string>

namespace unisono::join {

struct Host {
  /// Equal for two processes only if they run on one machine, since one boot of it, in the same namespaces of network,
  /// host name and processes; or if both say so by UNISONO_HOST.
  std::string identity;
  std::string machine;  ///< equal for all that run on one boot of one machine, whose cores they share
  std::string name;     ///< for messages to people
};

/// `given`: UNISONO_HOST; empty: what the system says.
Host this_host(const std::string& given);

}  // namespace unisono::join
