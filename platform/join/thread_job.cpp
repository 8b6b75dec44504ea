#include <algorithm>

#include "core/error.hpp"
#include "network/shm/shm_poe.hpp"
#include "platform/join/job.hpp"

namespace unisono {

class ThreadJob::Impl {
 public:
  explicit Impl(std::uint32_t size)
      : segment(shm::Segment::create({.endpoints = size,
                                      .arena_bytes = std::min(shm::arena_bytes_for(size), shm::Geometry{}.arena_bytes),
                                      .one_process = 1})) {}
  const std::shared_ptr<shm::Segment> segment;
};

ThreadJob::ThreadJob(std::uint32_t size) : impl_(std::make_shared<Impl>(size)) {}
ThreadJob::~ThreadJob() = default;

std::unique_ptr<Poe> ThreadJob::endpoint(std::uint32_t rank) {
  return std::make_unique<shm::ShmPoe>(impl_->segment, rank);
}

}  // namespace unisono
