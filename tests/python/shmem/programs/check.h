/* What the programs of these tests have in common. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "PE %d, line %d: %s\n", shmem_my_pe(), __LINE__, #condition); \
      shmem_global_exit(3);                                                         \
    }                                                                               \
  } while (0)

/* Numbers that all PEs draw alike. */
static unsigned long long draw_state;
static inline unsigned draw(unsigned below) {
  draw_state = draw_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(draw_state >> 33) % below;
}
