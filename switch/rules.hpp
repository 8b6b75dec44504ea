// What the protocol of slots rests on, each rule by itself.
#pragma once

namespace unisono::slots {

/// A switch that is right keeps all of them. A test takes one away and sees that results go wrong or do not come, which
/// shows that the rule is needed and that the test can fail.
struct Rules {
  bool second_version = true;    ///< a slot keeps the result of the turn before
  bool clears_other = true;      ///< a member's bit is set in one version and cleared in the other in one step
  bool first_overwrites = true;  ///< the first contribution to a turn replaces what the version held
  bool whole_turn = true;        ///< frames are told apart by the whole number of their turn, not by one bit of it
  bool closes = true;            ///< a turn that is complete takes no contribution any more
  bool generation = true;        ///< frames of an earlier generation are not taken
  bool answers = true;           ///< a duplicate is answered with the result
};

}  // namespace unisono::slots
