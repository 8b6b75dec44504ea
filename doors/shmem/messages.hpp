// A message of bytes by the C interface.
#pragma once

#include <cstdint>

#include "unisono/unisono.h"

namespace unisono::shmem {

/// A send to, or a receive from, one PE. Unused fields are zero.
inline unisono_call message(unisono_collective which, std::int64_t peer, std::int64_t tag, const void* src, void* dst,
                            std::uint64_t bytes) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = which;
  call.datatype = UNISONO_BYTE;
  call.root = peer;
  call.tag = tag;
  call.count = static_cast<std::int64_t>(bytes);
  call.src = src;
  call.src_bytes = src == nullptr ? 0 : bytes;
  call.dst = dst;
  call.dst_bytes = dst == nullptr ? 0 : bytes;
  return call;
}

}  // namespace unisono::shmem
