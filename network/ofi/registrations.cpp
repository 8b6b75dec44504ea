#include "network/ofi/registrations.hpp"

#include <algorithm>

namespace unisono::ofi {

namespace {

/// The begin of a piece that was registered from further in front.
RegisteredPiece from(const RegisteredPiece& piece, std::uint64_t offset) {
  RegisteredPiece part = piece;
  part.address += offset;
  return part;
}

}  // namespace

Registrations::Registrations(Endpoint& endpoint, std::uint64_t least) : endpoint_(endpoint), least_(least) {
  LastingMemory::instance().join(*this);
}

Registrations::~Registrations() { LastingMemory::instance().leave(*this); }

std::optional<Registrations::Lease> Registrations::take(std::byte* memory, std::uint64_t bytes, Access access) {
  const std::lock_guard lock(mutex_);
  // Looked up under the lock: who frees the memory takes it out first, and then comes here.
  if (const auto piece = LastingMemory::instance().around(memory, bytes)) {
    if (auto lease = take_lasting(*piece, static_cast<std::uint64_t>(memory - piece->data()), access)) return lease;
  }
  if (bytes < least_) return std::nullopt;
  const auto piece = register_piece(memory, bytes, access);
  return piece ? std::optional(Lease{*piece}) : std::nullopt;
}

std::optional<Registrations::Lease> Registrations::take_lasting(std::span<const std::byte> piece, std::uint64_t offset,
                                                                Access access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(piece.data());
  const auto [first, last] = pieces_.equal_range(begin);
  for (auto entry = first; entry != last; ++entry) {
    Kept& kept = entry->second;
    if (kept.memory.size() != piece.size() || kept.access != access || kept.closes) continue;
    if (kept.refused) return std::nullopt;
    // Nobody else knows of a source, so that many writes may be from it at once.
    if (access == Access::kTarget && kept.uses != 0) continue;
    ++kept.uses;
    return Lease{from(kept.piece, offset), &kept};
  }
  const auto made = register_piece(const_cast<std::byte*>(piece.data()), piece.size(), access);
  Kept& kept = pieces_.emplace(begin, Kept{piece, access, made.value_or(RegisteredPiece{}), 0, !made})->second;
  if (!made) return std::nullopt;
  kept.uses = 1;
  return Lease{from(kept.piece, offset), &kept};
}

/// A provider that has too much is asked again, once there is less.
std::optional<RegisteredPiece> Registrations::register_piece(std::byte* memory, std::uint64_t bytes, Access access) {
  auto piece = endpoint_.register_piece(memory, bytes, access);
  if (!piece && close_idle()) piece = endpoint_.register_piece(memory, bytes, access);
  if (piece) made_.fetch_add(1, std::memory_order_relaxed);
  return piece;
}

void Registrations::give_back(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  if (lease.kept == nullptr) return endpoint_.deregister(lease.piece);
  Kept& kept = *lease.kept;
  if (--kept.uses != 0) return;
  std::size_t idle = 0;
  const auto [first, last] = pieces_.equal_range(reinterpret_cast<std::uintptr_t>(kept.memory.data()));
  for (auto other = first; other != last; ++other) {
    const Kept& one = other->second;
    idle += one.memory.size() == kept.memory.size() && one.access == kept.access && !one.refused && one.uses == 0;
  }
  if (kept.closes || idle > kMostIdle) drop(place_of(kept));
}

void Registrations::close(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  if (lease.kept == nullptr) return endpoint_.deregister(lease.piece);
  // Peers have no key of a source.
  Kept& kept = *lease.kept;
  kept.closes = kept.closes || kept.access == Access::kTarget;
  if (--kept.uses == 0 && kept.closes) drop(place_of(kept));
}

void Registrations::clear() {
  const std::lock_guard lock(mutex_);
  close_idle();
}

std::size_t Registrations::kept() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(pieces_.begin(), pieces_.end(), [](const auto& entry) { return !entry.second.refused; }));
}

void Registrations::forget(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  const std::lock_guard lock(mutex_);
  // What begins behind these bytes has none of them.
  for (auto entry = pieces_.begin(); entry != pieces_.end() && entry->first < end;) {
    const auto next = std::next(entry);
    Kept& kept = entry->second;
    if (entry->first + kept.memory.size() > begin) {
      kept.closes = true;
      if (kept.uses == 0) drop(entry);
    }
    entry = next;
  }
}

bool Registrations::close_idle() {
  bool any = false;
  for (auto entry = pieces_.begin(); entry != pieces_.end();) {
    const auto next = std::next(entry);
    if (entry->second.uses == 0 && !entry->second.refused) {
      drop(entry);
      any = true;
    }
    entry = next;
  }
  return any;
}

void Registrations::drop(Pieces::iterator kept) {
  if (!kept->second.refused) endpoint_.deregister(kept->second.piece);
  pieces_.erase(kept);
}

Registrations::Pieces::iterator Registrations::place_of(const Kept& kept) {
  auto [entry, last] = pieces_.equal_range(reinterpret_cast<std::uintptr_t>(kept.memory.data()));
  while (&entry->second != &kept) ++entry;
  return entry;
}

}  // namespace unisono::ofi
