// Time of simulated hardware.
#pragma once

#include <atomic>
#include <thread>

#include "unisono/unisono.h"

namespace unisono::mpi {

/// In a simulated cluster time stands still while the program of any rank computes. A rank that waits in the MPI below
/// computes, as far as the cluster can see, and may wait for a rank that waits for time. So a thread lets time pass
/// meanwhile: it looks, again and again, at a receive of what nobody sends.
class Time {
 public:
  Time(unisono_communicator* world, int rank, int size);
  Time(const Time&) = delete;
  Time& operator=(const Time&) = delete;
  ~Time();

 private:
  unisono_request* never_ = nullptr;
  char nothing_ = 0;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace unisono::mpi
