// Program cache: programs are generated and examined once, and then replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "engine/validate.hpp"

namespace unisono::cclo {

/// One per communicator. Keeps the programs used last, at most `kPrograms`.
class ProgramCache {
 public:
  static constexpr std::size_t kPrograms = 256;

  /// The program of `call` by `algorithm`. Throws what `check_program` throws.
  std::shared_ptr<const CheckedProgram> get(const Algorithm& algorithm, const Call& call, const Capability& capability);
  /// A user's program, examined. Known by its address, so it must not change while it lives.
  std::shared_ptr<const CheckedProgram> get(const std::shared_ptr<const Program>& program, const Call& call,
                                            const Capability& capability);

 private:
  struct Key {
    Call call;
    const void* source = nullptr;  ///< algorithm, or user's program
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    Key key;
    std::shared_ptr<const CheckedProgram> program;
    std::shared_ptr<const Program> user;  ///< keeps the address from being used again
  };

  std::shared_ptr<const CheckedProgram>* look_up(const Key& key);
  std::shared_ptr<const CheckedProgram> insert(Entry entry);

  std::list<Entry> entries_;  ///< used last comes first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
};

}  // namespace unisono::cclo
