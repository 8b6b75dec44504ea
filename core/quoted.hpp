// What users and peers have said, in messages to people.
#pragma once

#include <string>
#include <string_view>

namespace unisono {

/// The first `most` bytes of a text, or some less where a character of UTF-8 would be cut, and how long it was.
std::string shortened(std::string_view text, std::size_t most);

/// In quotation marks: as much of it as can be read in a sentence, and without what a terminal would obey.
std::string in_quotes(std::string_view given);

}  // namespace unisono
