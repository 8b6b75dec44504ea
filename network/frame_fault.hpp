// What may be wrong with a message's header that came over a session.
#pragma once

#include <cstdint>
#include <string>

#include "core/header.hpp"

namespace unisono {

/// Says what is wrong with the header; empty if nothing. `words` is a private copy, `header` what it says; the
/// session's next message has the number `sequence`, and a payload of at most `most_bytes`.
std::string fault_of(const HeaderWords& words, const Header& header, std::uint32_t sequence, std::uint32_t most_bytes);

}  // namespace unisono
