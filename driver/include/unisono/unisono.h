/* Unisono's C interface. Version 1.
 *
 * Every function returns a unisono_result: 0 for success or an error code of the specification.
 * unisono_last_error() then gives the sentence for the calling thread. No exception leaves this
 * interface. Objects are opaque handles. A context and everything of it may be used by several
 * threads. A child of fork() must not use its parent's context.
 */
#ifndef UNISONO_UNISONO_H
#define UNISONO_UNISONO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define UNISONO_API __attribute__((visibility("default")))
#else
#define UNISONO_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define UNISONO_ABI_VERSION 1

typedef int unisono_result; /* an error code of the specification; 0 = ok */

typedef struct unisono_context unisono_context;           /* one endpoint of a job */
typedef struct unisono_communicator unisono_communicator; /* an ordered set of endpoints */
typedef struct unisono_request unisono_request;           /* a call in flight */
typedef struct unisono_thread_job unisono_thread_job;     /* a job whose ranks are threads */
typedef struct unisono_program unisono_program;           /* one program for each rank */

/* Values of the enumerations are those of the specification (docs/reference/spec.md). */
typedef int unisono_datatype;
typedef int unisono_op;
typedef int unisono_collective;

/* Settings of a context; zero in a field means its default. struct_size must be sizeof(the struct). */
typedef struct {
  size_t struct_size;
  uint32_t eager_limit;     /* bytes of the largest eager message */
  uint32_t segment_bytes;   /* bytes of the largest segment */
  uint32_t rx_buffer_count; /* receive buffers per peer */
  double timeout_seconds;   /* default deadline of a call */
} unisono_settings;

/* Arguments of a call. struct_size must be sizeof(the struct); unused fields are zero. Buffers must
 * stay valid and untouched until the request has completed. Counts are elements (see docs/model.md,
 * "Regions by collective"). *_bytes are the sizes of the buffers, checked against the need. */
typedef struct {
  size_t struct_size;
  unisono_collective collective;
  unisono_datatype datatype;
  unisono_op op;
  int in_place;
  int64_t root;           /* root, or peer */
  int64_t tag;            /* user tag of send and recv */
  int64_t count;
  const void* src;
  uint64_t src_bytes;
  void* dst;
  uint64_t dst_bytes;
  const int64_t* send_counts;        /* v-collectives: arrays of one entry per rank, elements */
  const int64_t* send_displacements; /* null: packed one behind the other */
  const int64_t* recv_counts;
  const int64_t* recv_displacements;
  const char* algorithm;             /* null: automatic */
  uint64_t window_offset;            /* put, get: byte offset in the peer's window */
  unisono_request* const* wait_for;  /* requests of this context that must complete first */
  size_t wait_for_count;
  double timeout_seconds;            /* 0: the communicator's */
  const unisono_program* program;    /* collective program */
} unisono_call;

UNISONO_API uint32_t unisono_abi_version(void);
UNISONO_API const char* unisono_version(void);
/* Sentence of this thread's last error; never null. Valid until the thread's next call. */
UNISONO_API const char* unisono_last_error(void);
UNISONO_API const char* unisono_result_name(unisono_result result);

/* Joins the job described by the environment (`unisono run`), or makes one of a single rank. */
UNISONO_API unisono_result unisono_init(const unisono_settings* settings, unisono_context** context);
/* A job of `size` ranks that are threads of this process; each thread then makes its context.
 * unisono_thread_context is collective over the job. */
UNISONO_API unisono_result unisono_thread_job_create(uint32_t size, unisono_thread_job** job);
UNISONO_API void unisono_thread_job_free(unisono_thread_job* job);
UNISONO_API unisono_result unisono_thread_context(unisono_thread_job* job, uint32_t rank,
                                                  const unisono_settings* settings, unisono_context** context);
/* Leaves the job. Not collective. All its communicators and requests become invalid. */
UNISONO_API unisono_result unisono_finalize(unisono_context* context);

/* The communicator of all ranks; owned by the context. */
UNISONO_API unisono_result unisono_world(unisono_context* context, unisono_communicator** communicator);
/* Collective over the parent. Ranks with equal colour share a new communicator, ordered by key then
 * by parent rank; a negative colour gets null. group_size: ranks of a group for two-level
 * algorithms, 0 = one level. */
UNISONO_API unisono_result unisono_split(unisono_communicator* parent, int64_t colour, int64_t key,
                                         uint32_t group_size, unisono_communicator** communicator);
UNISONO_API unisono_result unisono_communicator_free(unisono_communicator* communicator);
UNISONO_API unisono_result unisono_communicator_rank(const unisono_communicator* communicator, uint32_t* rank);
UNISONO_API unisono_result unisono_communicator_size(const unisono_communicator* communicator, uint32_t* size);
UNISONO_API unisono_result unisono_communicator_set_timeout(unisono_communicator* communicator, double seconds);
/* Exposes memory for put and get on this communicator. Collective. Null unbinds. */
UNISONO_API unisono_result unisono_window(unisono_communicator* communicator, void* base, uint64_t bytes);

/* Starts a call. All arguments are checked before anything is sent. */
UNISONO_API unisono_result unisono_start(unisono_communicator* communicator, const unisono_call* call,
                                         unisono_request** request);
/* Sets *complete; returns the call's result if it has completed. */
UNISONO_API unisono_result unisono_test(unisono_request* request, int* complete);
/* Waits for completion (the call's deadline bounds it) and returns the call's result. */
UNISONO_API unisono_result unisono_wait(unisono_request* request);
/* Elements received by a completed recv. */
UNISONO_API unisono_result unisono_request_count(unisono_request* request, int64_t* count);
/* Frees a request; waits for it first if it is still in flight. */
UNISONO_API void unisono_request_free(unisono_request* request);

/* Programs. A file holds one program for each rank (docs/program-files.md). */
UNISONO_API unisono_result unisono_program_load(const char* path, unisono_program** program);
UNISONO_API unisono_result unisono_program_parse(const void* bytes, size_t size, unisono_program** program);
UNISONO_API void unisono_program_free(unisono_program* program);

/* The table of algorithms. Returns the number of entries; fills entry `index` if not null. */
typedef struct {
  unisono_collective collective;
  const char* name;
  const char* source;
  const char* restriction;
  const char* cost;
  const char* summary;
  int ordered;
} unisono_algorithm_info;
UNISONO_API size_t unisono_algorithms(size_t index, unisono_algorithm_info* info);

#ifdef __cplusplus
}
#endif

#endif
