// A socket beside an endpoint's network, of somebody who wants to be polled and to wake sleepers as the network does.
#pragma once

namespace unisono {

class Companion {
 public:
  /// Takes what has come, and does what is due. True if anything was done. Called in every round of the engine, under
  /// its lock.
  virtual bool poll() = 0;
  /// Whether it waits for something, so that the network is the less likely one to bring what is waited for.
  virtual bool busy() const = 0;
  /// Polls as readable when there is something to do.
  virtual int descriptor() const = 0;

 protected:
  ~Companion() = default;
};

}  // namespace unisono
