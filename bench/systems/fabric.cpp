// libfabric by itself, measured beside Unisono over libfabric: what the provider takes for a message, with as little
// around it as there can be. Ping-pong and stream between ranks 0 and 1; the ranks meet, and wait for each other, over
// plain TCP connections.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "bench/bare_fabric.hpp"

extern "C" {
#include "bench/systems/mesh.h"
#include "bench/worker.h"
}

namespace {

using unisono::bench::BareFabric;

mesh all;
std::unique_ptr<BareFabric> fabric;  // of ranks 0 and 1

/// Calls what may throw from functions that C calls.
template <class Work>
void in_c(const Work& work) {
  try {
    work();
  } catch (const std::exception& failure) {
    bench_fail("libfabric: %s", failure.what());
  }
}

void tell(std::uint32_t rank, const void* data, std::size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t sent = send(all.sockets[rank], at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) bench_fail("send: %s", strerror(errno));
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void hear(std::uint32_t rank, void* data, std::size_t bytes) {
  for (char* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t came = recv(all.sockets[rank], at, bytes, 0);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) {
      std::this_thread::yield();
      continue;
    }
    if (came <= 0) bench_fail("a rank has closed its connection");
    at += came;
    bytes -= static_cast<std::size_t>(came);
  }
}

/// The address of this host at which the other rank has reached it.
std::string own_address(std::uint32_t other) {
  sockaddr_in6 address{};
  socklen_t bytes = sizeof address;
  if (getsockname(all.sockets[other], reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "127.0.0.1";
  char text[INET6_ADDRSTRLEN + 1] = "127.0.0.1";
  if (address.sin6_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&address)->sin_addr, text, sizeof text);
  } else if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    inet_ntop(AF_INET, &address.sin6_addr.s6_addr[12], text, sizeof text);
  } else {
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
  }
  return text;
}

std::span<std::byte> block(void* memory, std::size_t bytes, std::size_t number = 0) {
  return {static_cast<std::byte*>(memory) + number * bytes, bytes};
}

void pass(const bench_call& call, std::size_t blocks) {
  const std::size_t element = bench_element_bytes(call.datatype);
  const std::size_t bytes = call.count * element;
  const std::size_t back = call.op == BENCH_STREAM ? element : bytes;
  if (all.rank == 0) {
    fabric->receive(block(call.dst, back));
    for (std::size_t i = 0; i < blocks; ++i) fabric->send(block(call.src, bytes, i));
    fabric->await(1);
  } else {
    for (std::size_t i = 0; i < blocks; ++i) fabric->receive(block(call.dst, bytes, i));
    fabric->await(blocks);
    fabric->send(block(call.src, back));
  }
  fabric->flush();
}

}  // namespace

uint32_t system_launched_rank(void) {
  const char* const rank = getenv("UNISONO_RANK");
  if (rank == nullptr) bench_fail("UNISONO_RANK is not set: what started this process?");
  return static_cast<uint32_t>(strtoul(rank, nullptr, 10));
}

void system_open(int*, char***, uint32_t* rank, uint32_t* size) {
  all = mesh_open();
  *rank = all.rank;
  *size = all.size;
  if (all.rank > 1) return;
  const std::uint32_t other = 1 - all.rank;
  const char* const provider = getenv("UNISONO_OFI_PROVIDER");
  in_c([&] {
    fabric = std::make_unique<BareFabric>(
        unisono::ofi::OfiSettings{provider == nullptr ? "" : provider, own_address(other)}, [&](auto& name) {
          tell(other, name.data(), name.size());
          hear(other, name.data(), name.size());
        });
  });
}

void system_close(void) {
  fabric.reset();
  mesh_close(&all);
}

int system_offers(enum bench_kind) { return 1; }  // it takes any memory

void* system_allocate(size_t bytes, enum bench_kind) {
  void* const memory = bench_allocate_plain(bytes);
  if (fabric != nullptr) in_c([&] { fabric->know(block(memory, bytes)); });
  return memory;
}

void system_deallocate(void* memory, enum bench_kind) {
  if (fabric != nullptr) fabric->forget(static_cast<std::byte*>(memory));
  free(memory);
}

void* system_expose(size_t, enum bench_kind) {
  bench_fail("bare libfabric has no windows here");
  return nullptr;
}

void system_withdraw(void*, enum bench_kind) {}

void system_prepare(const struct bench_call*) {}

void system_call(const struct bench_call* call, uint32_t, uint32_t) {
  switch (call->op) {
    case BENCH_PINGPONG:
    case BENCH_STREAM:
      if (all.rank <= 1) in_c([&] { pass(*call, call->op == BENCH_STREAM ? BENCH_FLIGHTS : 1); });
      break;
    case BENCH_BARRIER:
      system_barrier();
      break;
    default:
      bench_fail("bare libfabric is measured with ping-pong, stream and barrier only");
  }
}

void system_barrier(void) {
  for (std::uint32_t distance = 1; distance < all.size; distance <<= 1U) {
    const char word = 1;
    char heard = 0;
    tell((all.rank + distance) % all.size, &word, 1);
    hear((all.rank + all.size - distance) % all.size, &heard, 1);
  }
}

void system_settle(void) { system_barrier(); }

const char* system_algorithm(void) { return nullptr; }
