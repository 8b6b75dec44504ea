// Memory of this end that peers may write, or may still be writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "network/ofi/registrations.hpp"

namespace unisono::ofi {

/// Each piece is leased from when it is added until it is removed or given up. The registrations outlive it.
///
/// Memory that is hidden stays registered until the peer has stopped: a write that is on its way would find its key
/// closed, and providers end the whole connection for that. Then its key is closed, also where the memory lasts: only a
/// key with which all was written that was to be may be shown again.
class ShownMemory {
 public:
  explicit ShownMemory(Registrations& registrations) : registrations_(registrations) {}

  void add(std::uint32_t peer, const Registrations::Lease& lease) {
    pieces_.emplace(lease.piece.key, Piece{peer, lease, State::kShown});
  }
  bool has(std::uint64_t key) const { return pieces_.count(key) != 0; }
  /// Whether the peer may write with this key, and nobody has hidden it.
  bool shows(std::uint32_t peer, std::uint64_t key) const { return is(peer, key, State::kShown); }
  /// Hidden: the peer is to be asked whether it is still at it. Only what is shown.
  void stop(std::uint64_t key) {
    pieces_.find(key)->second.state = State::kStopping;
    ++stopping_;
  }
  /// The peer has written all that it will. Only what is shown.
  void written(std::uint64_t key) {
    const auto piece = pieces_.find(key);
    registrations_.give_back(piece->second.lease);
    pieces_.erase(piece);
  }
  /// The peer is not at it any more, and had not written all. Only what there is.
  void remove(std::uint64_t key) { erase(pieces_.find(key)); }
  /// The peer says that it has stopped. What it was not asked for it cannot answer.
  void stopped(std::uint32_t peer, std::uint64_t key) {
    const auto piece = pieces_.find(key);
    if (piece != pieces_.end() && piece->second.peer == peer && piece->second.state != State::kShown) erase(piece);
  }
  /// Nothing comes of this peer any more.
  void all_stopped(std::uint32_t peer) {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      const bool over = piece->second.peer == peer && piece->second.state != State::kShown;
      piece = over ? erase(piece) : ++piece;
    }
  }
  /// Calls `visit(peer, key)` for what peers were asked about and have not answered in time.
  template <class Visit>
  void for_each_stopping(Visit&& visit) const {
    for (const auto& [key, piece] : pieces_) {
      if (piece.state == State::kStopping) visit(piece.peer, key);
    }
  }
  bool any_stopping() const { return stopping_ != 0; }
  /// Nobody waits any longer: no write may begin, and one that has begun may go on. One of the peers.
  std::optional<std::uint32_t> give_up() {
    std::optional<std::uint32_t> peer;
    for (auto& [key, piece] : pieces_) {
      if (piece.state != State::kStopping) continue;
      registrations_.close(piece.lease);
      piece.state = State::kLost;
      peer = piece.peer;
    }
    stopping_ = 0;
    return peer;
  }
  void clear() {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) piece = erase(piece);
  }

 private:
  enum class State : std::uint8_t {
    kShown,
    kStopping,  ///< hidden; the peer was asked whether it is still at it
    kLost,      ///< it has not said so in time; not registered any more, and here so that nothing else gets its key
  };
  struct Piece {
    std::uint32_t peer;
    Registrations::Lease lease;
    State state;
  };
  using Pieces = std::unordered_map<std::uint64_t, Piece>;

  bool is(std::uint32_t peer, std::uint64_t key, State state) const {
    const auto found = pieces_.find(key);
    return found != pieces_.end() && found->second.peer == peer && found->second.state == state;
  }
  Pieces::iterator erase(Pieces::iterator piece) {
    if (piece->second.state == State::kStopping) --stopping_;
    if (piece->second.state != State::kLost) registrations_.close(piece->second.lease);
    return pieces_.erase(piece);
  }

  Registrations& registrations_;
  Pieces pieces_;  ///< by key
  std::size_t stopping_ = 0;
};

}  // namespace unisono::ofi
