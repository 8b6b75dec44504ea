// A blocking send of a short message, without a call around it.
//
// Over a network most of what a short message takes is this library's own. A send that can leave at once needs no
// state: nothing can fail later, and nobody waits for it. So it is a header and a hand-over to the network. Whatever
// is unusual goes the way of all calls, which also says what is wrong with it.
#pragma once

#include "engine/blocks.hpp"
#include "engine/engine.hpp"
#include "engine/state.hpp"

namespace unisono::cclo {

/// Sends the message of a plain request, which is a send, at once; false, having done nothing, if that cannot be. Then
/// the request is to be submitted. Only while no call of the communicator is in flight: messages of a pair leave in the
/// order of their sends. The caller holds the engine's lock.
bool try_short_send(const Blocks& blocks, Communicator& communicator, const CallRequest& request);

}  // namespace unisono::cclo
