#define FMT_HEADER_ONLY  // here only: no other library is loaded, and others include fmt/core.h, which compiles quickly
#include "core/text.hpp"

#include <fmt/format.h>

namespace unisono {

std::string formatted_of(fmt::string_view form, fmt::format_args values) { return fmt::vformat(form, values); }

}  // namespace unisono
