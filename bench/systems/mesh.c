#define _GNU_SOURCE
#include "mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../connection.h"

enum { PATIENCE_MS = 30000 };

/* How a rank introduces itself: to rank 0 with the port at which it listens. */
struct greeting {
  uint32_t rank, port;
};

static uint32_t number_of(const char* name) {
  const char* const text = getenv(name);
  if (text == NULL) bench_fail("%s is not set: `unisono bench` starts this program with `unisono run --hosts`", name);
  return (uint32_t)strtoul(text, NULL, 10);
}

static void write_whole(int socket, const void* data, size_t bytes) {
  for (const char* at = data; bytes > 0;) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) bench_fail("a rank cannot be told where the others are: %s", strerror(errno));
    at += sent;
    bytes -= (size_t)sent;
  }
}

static void read_whole(int socket, void* data, size_t bytes) {
  for (char* at = data; bytes > 0;) {
    struct pollfd ready = {socket, POLLIN, 0};
    if (poll(&ready, 1, PATIENCE_MS) == 0) bench_fail("a rank has connected, and does not say which it is");
    const ssize_t came = recv(socket, at, bytes, 0);
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0) bench_fail("a rank has gone before all were connected");
    at += came;
    bytes -= (size_t)came;
  }
}

static int await_newcomer(int listener, struct sockaddr_storage* from) {
  struct pollfd ready = {listener, POLLIN, 0};
  if (poll(&ready, 1, PATIENCE_MS) == 0) bench_fail("a rank has not come within %d s", PATIENCE_MS / 1000);
  socklen_t length = sizeof *from;
  const int socket = accept4(listener, (struct sockaddr*)from, &length, SOCK_CLOEXEC);
  if (socket < 0) bench_fail("a rank that came cannot be let in: %s", strerror(errno));
  return socket;
}

static socklen_t length_of(const struct sockaddr_storage* address) {
  return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int try_address(const struct sockaddr* address, socklen_t length) {
  const int made = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  if (connect(made, address, length) == 0) return made;
  close(made);
  return -1;
}

/* Rank 0's socket: `tcp://10.0.0.1:4711,[fd00::1]:4711` names addresses that are tried in turn. */
static int reach_first(void) {
  const char* const join = getenv("UNISONO_JOIN");
  if (join == NULL || strncmp(join, "tcp://", 6) != 0) bench_fail("UNISONO_JOIN names no address of rank 0");
  char* const list = strdup(join + 6);
  int made = -1;
  char* rest = list;
  for (char* word = strtok_r(list, ",", &rest); word != NULL && made < 0; word = strtok_r(NULL, ",", &rest)) {
    char* const colon = strrchr(word, ':');
    if (colon == NULL) continue;
    *colon = '\0';
    char* host = word;
    if (*host == '[') {
      ++host;
      host[strcspn(host, "]")] = '\0';
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo* found = NULL;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) continue;
    for (const struct addrinfo* one = found; one != NULL && made < 0; one = one->ai_next) {
      made = try_address(one->ai_addr, one->ai_addrlen);
    }
    freeaddrinfo(found);
  }
  free(list);
  if (made < 0) bench_fail("rank 0 cannot be reached at %s", join);
  return made;
}

/* A socket at which the other ranks find this one, and its port. IPv4 comes in by it too. */
static int listen_anywhere(uint32_t* port) {
  struct sockaddr_in6 wide = {.sin6_family = AF_INET6};
  struct sockaddr_in narrow = {.sin_family = AF_INET};
  int made = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int off = 0;
  int bound = made >= 0 && setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
              bind(made, (struct sockaddr*)&wide, sizeof wide) == 0;
  if (!bound) {
    if (made >= 0) close(made);
    made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bound = made >= 0 && bind(made, (struct sockaddr*)&narrow, sizeof narrow) == 0;
  }
  if (!bound || listen(made, MESH_MOST_RANKS) != 0) bench_fail("no socket can be had: %s", strerror(errno));
  struct sockaddr_storage own;
  socklen_t length = sizeof own;
  getsockname(made, (struct sockaddr*)&own, &length);
  *port = ntohs(((struct sockaddr_in*)&own)->sin_port); /* stands at the same place in both families */
  return made;
}

static void make_fast(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

static void take_in(struct mesh* mesh, int socket, uint32_t rank) {
  if (rank >= mesh->size || rank == mesh->rank || mesh->sockets[rank] >= 0) bench_fail("rank %u came twice", rank);
  mesh->sockets[rank] = socket;
}

struct mesh mesh_open(void) {
  struct mesh mesh = {.rank = number_of("UNISONO_RANK"), .size = number_of("UNISONO_SIZE")};
  if (mesh.size > MESH_MOST_RANKS) bench_fail("%u ranks; raw sockets are for %d", mesh.size, MESH_MOST_RANKS);
  for (uint32_t i = 0; i < mesh.size; ++i) mesh.sockets[i] = -1;
  struct sockaddr_storage found[MESH_MOST_RANKS] = {0};
  struct greeting greeting = {.rank = mesh.rank};
  if (mesh.rank == 0) {
    const int listener = (int)number_of("UNISONO_JOIN_FD");
    for (uint32_t i = 1; i < mesh.size; ++i) {
      struct sockaddr_storage from;
      const int socket = await_newcomer(listener, &from);
      read_whole(socket, &greeting, sizeof greeting);
      take_in(&mesh, socket, greeting.rank);
      found[greeting.rank] = from;
      ((struct sockaddr_in*)&found[greeting.rank])->sin_port = htons((uint16_t)greeting.port);
    }
    close(listener);
    for (uint32_t i = 1; i < mesh.size; ++i) write_whole(mesh.sockets[i], found, sizeof found);
  } else {
    const int listener = listen_anywhere(&greeting.port);
    mesh.sockets[0] = reach_first();
    write_whole(mesh.sockets[0], &greeting, sizeof greeting);
    read_whole(mesh.sockets[0], found, sizeof found);
    for (uint32_t i = 1; i < mesh.rank; ++i) {
      const int socket = try_address((const struct sockaddr*)&found[i], length_of(&found[i]));
      if (socket < 0) bench_fail("rank %u cannot reach rank %u: %s", mesh.rank, i, strerror(errno));
      write_whole(socket, &greeting, sizeof greeting);
      mesh.sockets[i] = socket;
    }
    for (uint32_t i = mesh.rank + 1; i < mesh.size; ++i) {
      struct sockaddr_storage from;
      const int socket = await_newcomer(listener, &from);
      read_whole(socket, &greeting, sizeof greeting);
      take_in(&mesh, socket, greeting.rank);
    }
    close(listener);
  }
  for (uint32_t i = 0; i < mesh.size; ++i) {
    if (mesh.sockets[i] >= 0) make_fast(mesh.sockets[i]);
  }
  return mesh;
}

void mesh_close(struct mesh* mesh) {
  for (uint32_t i = 0; i < mesh->size; ++i) {
    if (mesh->sockets[i] >= 0) close(mesh->sockets[i]);
  }
}
