/* A long cable between two namespaces of network: bench_cable DEVICE NAMESPACE NAMESPACE MICROSECONDS
 *
 * Makes a device without queues of the kernel (TUN) of that name in both namespaces. Each packet that one of them sends
 * comes out of the other one so much later, in order; none is lost as long as less than kHeld bytes are on their way.
 * Writes "ready" when both devices are there, and ends with its standard input. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN.
 *
 * The kernel's own delay (netem) is a module that many systems lack; this needs none. A packet costs two calls of the
 * system, so a cable carries some hundred thousand packets a second, on a core that nobody else uses. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kLongest = 65536 };
static const size_t kHeld = (size_t)64 << 20; /* bytes on their way in one direction */

struct packet {
  uint64_t due; /* ns */
  uint32_t bytes;
  uint32_t behind; /* bytes from this header to the next one */
};

struct direction {
  int from, to;
  uint64_t delay; /* ns */
};

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

/* Makes the device in a namespace, into which this process goes. */
static int end_in(const char* name, const char* device) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  const int place = open(path, O_RDONLY | O_CLOEXEC);
  if (place < 0 || setns(place, CLONE_NEWNET) != 0) fail(path);
  close(place);
  const int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (end < 0) fail("/dev/net/tun");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strncpy(request.ifr_name, device, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(end, TUNSETIFF, &request) != 0) fail(device);
  return end;
}

/* Packets stand one behind the other in a ring, none across its end. */
static void* carry(void* what) {
  const struct direction* const way = what;
  unsigned char* const ring = malloc(kHeld);
  if (ring == NULL) fail("no memory for packets");
  prctl(PR_SET_TIMERSLACK, 1UL);
  size_t head = 0, tail = 0, held = 0;
  for (;;) {
    int moved = 0;
    while (held != 0) {
      struct packet* const first = (struct packet*)(ring + tail);
      if (first->bytes != 0 && first->due > now()) break;
      /* What the other end cannot take is lost, as on any cable. */
      if (first->bytes != 0 && write(way->to, first + 1, first->bytes) < 0 && errno == EBADFD) return NULL;
      held -= first->behind;
      tail = (tail + first->behind) % kHeld;
      moved = 1;
    }
    for (int i = 0; i < 64; ++i) {
      if (held + 2 * (sizeof(struct packet) + kLongest) > kHeld) break;
      if (kHeld - head < sizeof(struct packet) + kLongest) { /* the rest of the ring is a packet of nothing */
        struct packet* const rest = (struct packet*)(ring + head);
        *rest = (struct packet){0, 0, (uint32_t)(kHeld - head)};
        held += rest->behind;
        head = 0;
      }
      struct packet* const next = (struct packet*)(ring + head);
      const ssize_t bytes = read(way->from, next + 1, kLongest);
      if (bytes <= 0) break;
      const size_t all = (sizeof *next + (size_t)bytes + 15) & ~(size_t)15;
      *next = (struct packet){now() + way->delay, (uint32_t)bytes, (uint32_t)all};
      head = (head + all) % kHeld;
      held += all;
      moved = 1;
    }
    if (moved) continue;
    struct pollfd from = {.fd = way->from, .events = POLLIN};
    const struct packet* const first = (const struct packet*)(ring + tail);
    const uint64_t time = now();
    const uint64_t rest = held == 0 ? 1000000000U : first->due > time ? first->due - time : 0;
    const struct timespec wait = {(time_t)(rest / 1000000000U), (long)(rest % 1000000000U)};
    ppoll(&from, 1, &wait, NULL);
  }
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s DEVICE NAMESPACE NAMESPACE MICROSECONDS\n", argv[0]);
    return 2;
  }
  static struct direction ways[2];
  const int a = end_in(argv[2], argv[1]);
  const int b = end_in(argv[3], argv[1]);
  const uint64_t delay = strtoull(argv[4], NULL, 10) * 1000U;
  ways[0] = (struct direction){a, b, delay};
  ways[1] = (struct direction){b, a, delay};
  /* Ranks that poll leave no core free. */
  const struct sched_param first = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_RR, &first) != 0) fputs("the cable has no priority over ranks\n", stderr);
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, carry, &ways[i]) != 0) fail("no thread");
  }
  puts("ready");
  fflush(stdout);
  char line[64];
  while (read(0, line, sizeof line) > 0) continue;
  return 0;
}
