#include "doors/mpi/time.hpp"

#include <chrono>

namespace unisono::mpi {

Time::Time(unisono_communicator* world, int rank, int size) {
  constexpr double kForEver = 3600;  // of simulated time, in which a second takes hours
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_RECV;
  call.datatype = UNISONO_BYTE;
  call.root = (rank + 1) % size;
  call.count = 1;
  call.dst = &nothing_;
  call.dst_bytes = 1;
  call.timeout_seconds = kForEver;
  if (unisono_start(world, &call, &never_) != 0) return;
  thread_ = std::thread([this] {
    int complete = 0;
    while (!ends_.load(std::memory_order_relaxed) && unisono_test(never_, &complete) == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
}

Time::~Time() {
  ends_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

}  // namespace unisono::mpi
