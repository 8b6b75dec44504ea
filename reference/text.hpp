// Moves and programs as people read them.
#pragma once

#include <cstddef>
#include <string>

#include "core/program.hpp"

namespace unisono::reference {

/// One line, for instance "dst[0:64] = src[0:64] + arrival(3, tag 2) -> send(1, tag 3)  after 4, 5". Ranges are bytes
/// of a region; "after" names the moves waited for, "stream after" those waited for element by element. Works for
/// malformed moves too.
std::string describe_move(const Program& program, std::size_t index);

/// All moves of a program, one per line with its number, and the memory it needs.
std::string describe_program(const Program& program);

/// What a move does, in a few words for a small box: "send → 1", "+ recv 3", "copy". Of the program of `rank` among
/// `size` ranks; lists of peers are "all" or "others" where they are.
std::string label_move(const Program& program, std::size_t index, std::uint32_t rank, std::uint32_t size);

}  // namespace unisono::reference
