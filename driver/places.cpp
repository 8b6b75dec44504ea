// Where other ranks of the machine see allocated memory.
#include <memory>
#include <optional>

#include "core/text.hpp"
#include "driver/interface.hpp"
#include "network/shm/shm_poe.hpp"

namespace unisono::driver {

namespace {

/// The address here of bytes at a place that an endpoint has told; null if it shares no memory with this one.
std::byte* address_of(const Poe& poe, shm::ShmPoe* shared, std::uint32_t endpoint, std::uint64_t place,
                      std::uint64_t bytes) {
  const std::optional<std::uint32_t> owner = poe.in_shared_memory(endpoint);
  if (shared == nullptr || !owner) return nullptr;
  const shm::Segment& segment = *shared->segment();
  const std::uint64_t arena_bytes = segment.geometry().arena_bytes;
  std::byte* const arena = segment.arena(*owner);
  std::byte* const address = segment.at(place, bytes);
  if (address == nullptr || address < arena || bytes > arena_bytes ||
      static_cast<std::uint64_t>(address - arena) > arena_bytes - bytes) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("peer_memory: {} bytes at place {} are not in the memory that this peer hands out; give a "
                          "number that it has from unisono_place_of",
                          bytes, place));
  }
  return address;
}

}  // namespace

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_place_of(unisono_context* context, const void* memory, uint64_t bytes, uint64_t* place) {
  return guarded([&] {
    std::uint64_t& result = output(place, "place");
    result = 0;
    const std::shared_ptr<Endpoint> endpoint = context_of(context)->endpoint();
    shm::ShmPoe* const shared = endpoint->poe == nullptr ? nullptr : endpoint->poe->shared_memory();
    if (shared != nullptr) result = shared->segment()->offset_of(memory, bytes);
  });
}

unisono_result unisono_peer_memory(unisono_communicator* communicator, uint32_t peer, uint64_t place, uint64_t bytes,
                                   void** memory) {
  return guarded([&] {
    void*& result = output(memory, "memory");
    result = nullptr;
    const std::shared_ptr<Communicator> own = communicator_of(communicator);
    if (peer >= own->size) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("peer_memory: peer {} was given; the communicator has ranks 0 to {}", peer, own->size - 1));
    }
    const std::shared_ptr<Endpoint> endpoint = own->context->endpoint();
    if (endpoint->poe == nullptr) return;
    result = address_of(*endpoint->poe, endpoint->poe->shared_memory(), own->endpoints[peer], place, bytes);
  });
}

}  // extern "C"
