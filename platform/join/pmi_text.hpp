// What somebody said, in messages to people.
#pragma once

#include <string>
#include <string_view>

namespace unisono::join {

/// In quotes: cut, and without what a terminal would obey.
std::string shown(std::string_view text);

}  // namespace unisono::join
