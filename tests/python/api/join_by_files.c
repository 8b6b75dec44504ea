/* A rank that finds the others by files in a folder: join_by_files FOLDER RANK SIZE gather|store. Prints the sum of
 * what all ranks have, or why it could not join. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unisono/unisono.h>

typedef struct {
  const char* folder;
  unsigned rank, size, calls;
} files;

static int put(void* user, const char* key, const void* value, size_t bytes, double seconds) {
  const files* own = user;
  char beside[512], path[512];
  (void)seconds;
  snprintf(path, sizeof path, "%s/%s", own->folder, key);
  snprintf(beside, sizeof beside, "%s/new-%u", own->folder, own->rank);
  FILE* file = fopen(beside, "wb");
  if (file == NULL) return 7;
  const size_t done = fwrite(value, 1, bytes, file);
  if (fclose(file) != 0 || done != bytes) return 8;
  return rename(beside, path) != 0 ? 9 : 0;
}

static int get(void* user, const char* key, void* value, size_t capacity, size_t* bytes, double seconds) {
  const files* own = user;
  char path[512];
  snprintf(path, sizeof path, "%s/%s", own->folder, key);
  for (;; seconds -= 0.002) {
    FILE* file = fopen(path, "rb");
    if (file != NULL) {
      *bytes = fread(value, 1, capacity, file);
      fclose(file);
      return 0;
    }
    if (seconds <= 0) return UNISONO_JOIN_LATE;
    const struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
  }
}

static int all_gather(void* user, const void* own_bytes, size_t bytes, void* all, double seconds) {
  files* own = user;
  char key[64];
  snprintf(key, sizeof key, "call-%u-%u", own->calls, own->rank);
  if (put(user, key, own_bytes, bytes, seconds) != 0) return 3;
  for (unsigned rank = 0; rank < own->size; ++rank) {
    size_t got = 0;
    snprintf(key, sizeof key, "call-%u-%u", own->calls, rank);
    if (get(user, key, (char*)all + rank * bytes, bytes, &got, seconds) != 0) return 4;
    if (got != bytes) return 5;
  }
  ++own->calls;
  return 0;
}

static int stop(const char* what) {
  fprintf(stderr, "%s: %s\n", what, unisono_last_error());
  return 1;
}

int main(int count, char** words) {
  if (count != 5) return 2;
  files own = {.folder = words[1], .rank = (unsigned)atoi(words[2]), .size = (unsigned)atoi(words[3])};
  unisono_join_functions functions = {
      .struct_size = sizeof functions, .rank = own.rank, .size = own.size, .user = &own, .timeout_seconds = 20};
  if (strcmp(words[4], "gather") == 0) functions.all_gather = all_gather;
  if (strcmp(words[4], "store") == 0) functions.put = put, functions.get = get;
  if (getenv("SECONDS") != NULL) functions.timeout_seconds = atof(getenv("SECONDS"));

  unisono_context* context;
  unisono_communicator* world;
  if (unisono_join(&functions, NULL, &context) != 0) return stop("join");
  if (unisono_world(context, &world) != 0) return stop("world");
  int64_t mine[2] = {10 + own.rank, 100 * (int64_t)own.rank};
  int64_t total[2] = {0, 0};
  unisono_call call = {.struct_size = sizeof call,
                       .collective = UNISONO_ALLREDUCE,
                       .datatype = UNISONO_INT64,
                       .op = UNISONO_SUM,
                       .count = 2,
                       .src = mine,
                       .src_bytes = sizeof mine,
                       .dst = total,
                       .dst_bytes = sizeof total};
  if (unisono_run(world, &call) != 0) return stop("allreduce");
  printf("%lld %lld\n", (long long)total[0], (long long)total[1]);
  return unisono_finalize(context) != 0 ? stop("finalize") : 0;
}
