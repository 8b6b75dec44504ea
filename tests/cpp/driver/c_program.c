/* The C interface, compiled as C: two ranks that are threads add their vectors. */
#include "c_program.h"

#include <pthread.h>
#include <string.h>
#include <unisono/unisono.h>

struct member {
  unisono_thread_job* job;
  uint32_t rank;
  int32_t result[3];
  int code;
};

static void* run(void* argument) {
  struct member* self = argument;
  unisono_context* context = NULL;
  unisono_communicator* world = NULL;
  unisono_request* request = NULL;
  unisono_call call;
  int32_t mine[3] = {1, 10, 100};
  int i;
  for (i = 0; i < 3; ++i) mine[i] *= (int32_t)self->rank + 1;
  memset(&call, 0, sizeof call);
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_INT32;
  call.op = UNISONO_SUM;
  call.count = 3;
  call.src = mine;
  call.src_bytes = sizeof mine;
  call.dst = self->result;
  call.dst_bytes = sizeof self->result;
  self->code = unisono_thread_context(self->job, self->rank, NULL, &context);
  if (self->code == 0) self->code = unisono_world(context, &world);
  if (self->code == 0) self->code = unisono_start(world, &call, &request);
  if (self->code == 0) self->code = unisono_wait(request);
  unisono_request_free(request);
  if (self->code == 0) self->code = unisono_finalize(context);
  return NULL;
}

int sum_on_two_ranks(int32_t results[2][3]) {
  unisono_thread_job* job = NULL;
  struct member members[2];
  pthread_t threads[2];
  uint32_t rank;
  int code = unisono_thread_job_create(2, &job);
  if (code != 0) return code;
  for (rank = 0; rank < 2; ++rank) {
    memset(&members[rank], 0, sizeof members[rank]);
    members[rank].job = job;
    members[rank].rank = rank;
    if (pthread_create(&threads[rank], NULL, run, &members[rank]) != 0) return -1;
  }
  for (rank = 0; rank < 2; ++rank) {
    pthread_join(threads[rank], NULL);
    if (members[rank].code != 0) code = members[rank].code;
    memcpy(results[rank], members[rank].result, sizeof members[rank].result);
  }
  unisono_thread_job_free(job);
  return code;
}
