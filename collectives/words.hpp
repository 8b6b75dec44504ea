// What algorithms say of themselves to people. Freestanding.
#pragma once

namespace unisono {

/// A text of an algorithm's entry. (The microcontroller has a type of its own, which keeps none.)
using Words = const char*;

}  // namespace unisono
