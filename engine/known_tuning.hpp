// The rules by which algorithms have been chosen, by the hash that members agree on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "collectives/tuning.hpp"
#include "core/error.hpp"

namespace unisono::cclo {

/// Keeps all rules that an engine has had: a communicator may be made with the agreement of an older one.
class KnownTuning {
 public:
  using Rules = std::shared_ptr<const std::vector<Rule>>;
  void add(const Rules& rules) {
    if (rules) all_[hash_of(*rules)] = rules;
  }
  /// The rules of a hash; null for 0, the built-in ones. Throws Error if there were none.
  Rules find(std::uint32_t hash) const {
    if (hash == 0) return nullptr;
    const auto found = all_.find(hash);
    if (found != all_.end()) return found->second;
    throw Error(ErrorCode::kUnsupported,
                "the members agreed on rules for algorithms that this rank does not have; if its settings were changed "
                "while the communicator was being made, make it again");
  }

 private:
  std::map<std::uint32_t, Rules> all_;
};

}  // namespace unisono::cclo
