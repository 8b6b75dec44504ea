#include "engine/program_cache.hpp"

#include "collectives/record.hpp"

namespace unisono::cclo {

std::size_t ProgramCache::Hash::operator()(const Key& key) const {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.source);
  const auto mix = [&](std::uint64_t value) {
    hash ^= value;
    hash *= 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29U;
  };
  const Call& call = key.call;
  mix(static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.func) << 8U |
      static_cast<std::uint64_t>(call.dtype) << 16U | std::uint64_t{call.in_place} << 24U |
      std::uint64_t{call.direct} << 25U | std::uint64_t{call.root} << 32U);
  mix(call.count);
  return hash;
}

std::shared_ptr<const CheckedProgram>* ProgramCache::look_up(const Key& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front().program;
}

std::shared_ptr<const CheckedProgram> ProgramCache::insert(Entry entry) {
  if (entries_.size() == kPrograms) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front(std::move(entry));
  index_[entries_.front().key] = entries_.begin();
  return entries_.front().program;
}

std::shared_ptr<const CheckedProgram> ProgramCache::get(const Algorithm& algorithm, const Call& call,
                                                        const Capability& capability) {
  const Key key{call, &algorithm};
  if (const auto* program = look_up(key)) return *program;
  return insert({key, check_program(record(algorithm, call), call.size, capability, call.direct), nullptr});
}

std::shared_ptr<const CheckedProgram> ProgramCache::get(const std::shared_ptr<const Program>& program, const Call& call,
                                                        const Capability& capability) {
  const Key key{call, program.get()};
  if (const auto* known = look_up(key)) return *known;
  return insert({key, check_program(*program, call.size, capability), program});
}

}  // namespace unisono::cclo
