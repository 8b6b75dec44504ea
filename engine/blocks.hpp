// The blocks of one engine, and how they reach one another.
#pragma once

namespace unisono {
class Poe;
}

namespace unisono::cclo {

class Tx;
class Rx;
class Rbm;
class Dmp;
class CallQueue;
class Communicators;
class Counters;
class StreamPorts;

/// One engine's blocks. Each block holds a reference to this and uses its neighbours through it.
struct Blocks {
  Poe* poe = nullptr;
  Tx* tx = nullptr;
  Rx* rx = nullptr;
  Rbm* rbm = nullptr;
  Dmp* dmp = nullptr;
  CallQueue* calls = nullptr;
  Communicators* communicators = nullptr;
  Counters* counters = nullptr;
  StreamPorts* streams = nullptr;
};

}  // namespace unisono::cclo
