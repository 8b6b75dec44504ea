/* Unisono's C interface. Version 1.
 *
 * Results. Every function returns a unisono_result: 0 for success or an error code of the
 * specification. unisono_last_error() then gives the sentence for the calling thread: what was given
 * and what is allowed, or for failures in flight operation, communicator, sequence, peer and phase.
 * No exception leaves this interface.
 *
 * Handles. Objects are opaque handles, never to be dereferenced. A handle that was freed is
 * recognised as such, for its value is not used again.
 *
 * Threads. A context and everything of it may be used by several threads. Collective calls of one
 * communicator must be started in the same order on all ranks.
 *
 * Processes. A child of fork() must not use its parent's context: every use returns
 * wrong_process, and nothing of the parent's is destroyed. The child may make a context of its own.
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

/* Programs run with every library of the same version (which its file name ends with) and an equal or greater minor
 * version. What was added in a minor version is known by driver/abi.txt. */
#define UNISONO_ABI_VERSION 1
#define UNISONO_ABI_MINOR 17

typedef int unisono_result; /* an error code of the specification; 0 = ok */

typedef struct unisono_context unisono_context;           /* one endpoint of a job */
typedef struct unisono_communicator unisono_communicator; /* an ordered set of endpoints */
typedef struct unisono_request unisono_request;           /* a call in flight */
typedef struct unisono_thread_job unisono_thread_job;     /* a job whose ranks are threads */
typedef struct unisono_program unisono_program;           /* one program for each rank */
typedef struct unisono_graph unisono_graph;               /* edges between the ranks of a communicator */
typedef struct unisono_registration unisono_registration; /* memory that was made known beforehand */

/* Values of the enumerations are those of the specification (docs/reference/spec.md). */
typedef int unisono_datatype;
typedef int unisono_op;
typedef int unisono_collective;

enum {
  UNISONO_BYTE = 1, /* has bitwise operators only */
  UNISONO_INT32 = 2,
  UNISONO_INT64 = 3,
  UNISONO_FP16 = 4,
  UNISONO_BF16 = 5,
  UNISONO_FP32 = 6,
  UNISONO_FP64 = 7,
  UNISONO_COMPLEX64 = 8, /* two fp32: real and imaginary part */
  UNISONO_COMPLEX128 = 9,
  UNISONO_INT8 = 10,
  UNISONO_UINT8 = 11,
  UNISONO_INT16 = 12,
  UNISONO_UINT16 = 13,
  UNISONO_UINT32 = 14,
  UNISONO_UINT64 = 15,
  UNISONO_BOOL = 16,       /* one byte */
  UNISONO_FP32_INT32 = 17, /* struct { float value; int32_t index; }: for minloc and maxloc */
  UNISONO_FP64_INT32 = 18, /* struct { double value; int32_t index; }: 16 bytes, of which the last 4 are padding */
  UNISONO_INT32_INT32 = 19,
  UNISONO_INT64_INT64 = 20
};

/* Which is defined on which datatype: docs/model.md, "Arithmetic". */
enum {
  UNISONO_SUM = 1,
  UNISONO_PROD = 2,
  UNISONO_MIN = 3,
  UNISONO_MAX = 4,
  UNISONO_LOGICAL_AND = 5,
  UNISONO_LOGICAL_OR = 6,
  UNISONO_LOGICAL_XOR = 7,
  UNISONO_BITWISE_AND = 8,
  UNISONO_BITWISE_OR = 9,
  UNISONO_BITWISE_XOR = 10,
  UNISONO_MINLOC = 11,
  UNISONO_MAXLOC = 12,
  UNISONO_AVG = 13 /* of reduce, allreduce and reduce_scatter(v): the sum, divided by the number of ranks */
};

/* What a call asks for: UNISONO_ALLREDUCE and the others. */
#include "generated/collectives.h"

/* Promises about the bits of results; each includes those before it. */
enum {
  UNISONO_FAST = 1,            /* none */
  UNISONO_RUN_STABLE = 2,      /* the same job gives the same bits in every run: what holds if nothing is said */
  UNISONO_SIZE_STABLE = 3,     /* the bits of an element do not depend on how many others its call has */
  UNISONO_PLACEMENT_STABLE = 4 /* nor on cores, groups and the memory of buffers */
};

/* What becomes of a call whose deadline has passed, on this rank. */
enum {
  UNISONO_DEADLINE_FAILS = 1, /* it ends with timeout, and its communicator is revoked: what holds if nothing is said */
  UNISONO_DEADLINE_WARNS =
      2,                   /* a sentence on standard error says who has not come, again after each further deadline */
  UNISONO_DEADLINE_OFF = 3 /* nothing */
};

/* What of a call are stream ports; see "streams" in unisono_call. */
enum { UNISONO_SRC_STREAM = 1, UNISONO_DST_STREAM = 2, UNISONO_SESSION = 4 };

/* In place of peer (`root`) and tag of a receive or a probe: whichever. Neither is a rank less one by mistake. */
enum { UNISONO_ANY_SOURCE = -1000, UNISONO_ANY_TAG = -2000 };

/* Settings of a context; zero in a field means its default. struct_size must be sizeof(the struct). */
typedef struct {
  size_t struct_size;
  uint32_t eager_limit;     /* bytes of the largest eager message */
  uint32_t segment_bytes;   /* bytes of the largest segment */
  uint32_t rx_buffer_count; /* receive buffers per peer */
  double timeout_seconds;   /* default deadline of a call */
  int without_lanes;        /* 1: all calls go through the engine's messages, even where ranks share memory; for tests
                               and comparisons. One rank that says so decides for its communicators */
  int offload;              /* 1: a thread of the process makes progress on calls in flight, so that a program that
                               computes need not call Unisono meanwhile (docs/offload.md). It sleeps while nothing is in
                               flight. So does UNISONO_OFFLOAD=1 in the environment. Each rank decides for itself */
  int determinism;          /* what bits of results may depend on: UNISONO_FAST ... (docs/determinism.md); equal on all
                               ranks, or the job does not form. 0: what UNISONO_DETERMINISM says */
  const char* algorithms;   /* algorithms that are to be used, as UNISONO_ALGORITHM has them (docs/tuning.md#pinning);
                               equal on all ranks. Null: what that says */
  int deadlines; /* what becomes of calls whose deadline has passed: UNISONO_DEADLINE_FAILS ... For calls that
                    begin from then on; each rank decides for itself. 0: what UNISONO_DEADLINES says (fail,
                    warn or off). Devices know the first only */
} unisono_settings;

/* Arguments of a call. struct_size must be sizeof(the struct); unused fields are zero. Buffers must
 * stay valid and untouched until the request has completed. Counts are elements (see docs/model.md,
 * "Regions by collective"). *_bytes are the sizes of the buffers, checked against the need.
 *
 * In place, the input stands in dst and src is not used; all ranks say so, but for reduce, gather(v) and
 * scatter(v), where only the root's buffers differ, and what the others say is ignored (docs/model.md, "In
 * place"; engines in hardware want it of all). Broadcast is always in place.
 *
 * For alltoallv in place, `count` is a bound of all blocks that is equal on all ranks; if it is 0 the
 * ranks agree on one first, so that even unisono_start waits for all of them.
 *
 * v-collectives: every rank gives the counts of all ranks: recv_counts for gatherv and allgatherv (a
 * rank contributes recv_counts[rank] elements), send_counts for scatterv, both for alltoallv. For
 * reduce_scatterv rank r receives recv_counts[r] elements, those at recv_displacements[r] of the input.
 * Of gatherv and scatterv a rank that is not the root may know its own count only: its counts and displacements
 * are null then, and `count` is its own. (Not on engines in hardware, nor with an algorithm that needs all counts.)
 *
 * With recv_datatypes (and send_datatypes, unless in place) an alltoallv has a datatype for each peer, as MPI's
 * alltoallw: counts are elements of these, displacements are bytes, `datatype` is not looked at, and `count`, in place,
 * is bytes. It travels as bytes: what one rank sends and the other receives must have the same length. Whether both
 * call it the same type is not checked.
 *
 * With wire_datatype UNISONO_FP16 or UNISONO_BF16 a call of UNISONO_FP32 is compressed: it is the call of that datatype
 * on copies that are rounded as it begins and widened as it succeeds, so all ranks get equal results, and op works on
 * elements of that datatype. send, recv and all collectives but barrier, programs and exchanges along graphs or with
 * recv_datatypes can be. What must agree among ranks is what travels: a rank may hold fp16 itself
 * (docs/compressed.md).
 *
 * With element_bytes a call of UNISONO_BYTE moves elements of the user's own, such as structures, of that many bytes:
 * all counts and displacements are of these. Calls that compute (combine and the reductions) have no such elements, nor
 * have programs. Ranks agree on bytes: 2 elements of 4 bytes on one are 1 element of 8 bytes on another.
 *
 * With `streams` UNISONO_SRC_STREAM, UNISONO_DST_STREAM or both, src or dst is no buffer but a stream port of this
 * rank, src_port or dst_port, 0 to 15: the call takes its elements as a kernel gives them (unisono_stream_write), and
 * hands out its results as they come (unisono_stream_read). Each rank says so for itself. A send with
 * UNISONO_DST_STREAM goes to port dst_port of its peer, which calls no receive. Calls use a port one after the other,
 * in the order in which they were started. The deadline of such a call counts from the last element. With
 * UNISONO_SESSION beside one of them, a send or recv is of a session between kernels, and `tag` is its number, 0 to
 * 255; kernels use <unisono/kernel.hpp> for it. docs/streams.md has the rules.
 *
 * With pre_scale a reduction (reduce, allreduce, reduce_scatter(v), scan, exscan) multiplies what this rank gives
 * before it is folded, and src is left as it is; ranks may give different factors, or none. With post_scale it
 * multiplies the result at its end; all ranks give the same. Both are read as the call is checked, and need not last.
 * They are for floating point and complex datatypes: the factor is rounded to what is computed in (fp32 for fp16, bf16,
 * fp32 and complex64), the product once. Not with a stream port (docs/factors.md). */
typedef struct {
  size_t struct_size;
  unisono_collective collective;
  unisono_datatype datatype;
  unisono_op op;
  int in_place;
  int64_t root; /* root, or peer */
  int64_t tag;  /* user tag of send and recv */
  int64_t count;
  const void* src;
  uint64_t src_bytes;
  void* dst;
  uint64_t dst_bytes;
  const int64_t* send_counts;        /* v-collectives: arrays of one entry per rank, elements */
  const int64_t* send_displacements; /* null: packed one behind the other */
  const int64_t* recv_counts;
  const int64_t* recv_displacements;
  const char* algorithm;            /* null: automatic; a name, or NAME:RADIX where the algorithm takes one */
  uint64_t window_offset;           /* put, get: byte offset in the peer's window */
  unisono_request* const* wait_for; /* requests of this context that must complete first */
  size_t wait_for_count;
  double timeout_seconds;         /* 0: the communicator's */
  const unisono_program* program; /* collective program: src and dst are bound as they are given */
  const unisono_graph* graph;     /* allgather(v), alltoall(v): along the edges of a graph; see unisono_graph_create */
  const unisono_datatype* send_datatypes; /* alltoallv: a datatype for each peer ("alltoallw"); see below */
  const unisono_datatype* recv_datatypes;
  unisono_datatype wire_datatype; /* 0: the datatype's own; see below */
  uint64_t element_bytes;         /* with UNISONO_BYTE: bytes of an element of the user's own; 0: one. See below */
  int streams;                    /* UNISONO_SRC_STREAM, UNISONO_DST_STREAM, UNISONO_SESSION; see above */
  uint32_t src_port;
  uint32_t dst_port;
  const double* pre_scale; /* reductions: factors of this rank's input and of the result; null: none. See above */
  const double* post_scale;
} unisono_call;

UNISONO_API uint32_t unisono_abi_version(void);
UNISONO_API const char* unisono_version(void);
/* Sentence of this thread's last error; never null. Valid until the thread's next call. */
UNISONO_API const char* unisono_last_error(void);
/* 1 if this thread's last error was that of a call whose destination a rank may still write to, because it was stopped
 * while it copied and has not answered; its sentence says so, too. The memory must then stay as it is, and be used for
 * nothing, until that process has ended. Only where the kernel copies between ordinary buffers (docs/buffers.md). */
UNISONO_API int unisono_last_error_still_written(void);
UNISONO_API const char* unisono_result_name(unisono_result result);

/* Joins the job that the environment describes: that of `unisono run`, of mpirun, mpiexec or srun, or one of the user's
 * own (docs/starting.md); or makes one of a single rank. */
UNISONO_API unisono_result unisono_init(const unisono_settings* settings, unisono_context** context);

/* What a function of unisono_join_functions returns, other than 0 for success: every other number is a failure, which
 * the error tells. */
enum { UNISONO_JOIN_LATE = 1 /* get: nobody has put it within the time */ };

/* How the processes of a job find each other by means of the program's own, such as MPI, sockets, or a key-value store.
 * struct_size must be sizeof(the struct). It is needed during unisono_join only.
 *
 * Either all_gather is given, or put and get; the others are null. They are called by the thread that calls
 * unisono_join, one at a time, and must not call Unisono, nor throw. `seconds` is how long each may take: it should
 * return a failure rather than take longer, for nobody else ends it. What they carry includes the job's secret: a
 * stranger that reads or alters it can join the job, or read its messages.
 *
 * all_gather: every rank gives `bytes` bytes, equally many on all; `all` gets those of all ranks, in the order of
 * ranks: bytes * size. All ranks call it equally often.
 *
 * put: keeps `bytes` bytes, at most 32768, for all ranks; of a rank, each key is put once. Keys are letters, digits and
 * hyphens, at most 48 characters, the same for every job's first unisono_join: so each job needs a store of its own, or
 * a prefix. get: waits until somebody has put the key, writes the value, for which `capacity` bytes have room, and its
 * length; returns UNISONO_JOIN_LATE if it is not there after `seconds`. */
typedef struct {
  size_t struct_size;
  uint32_t rank; /* of this process, from 0 */
  uint32_t size; /* of the job: 1 to 1024 */
  void* user;    /* handed to the functions */
  int (*all_gather)(void* user, const void* own, size_t bytes, void* all, double seconds);
  int (*put)(void* user, const char* key, const void* value, size_t bytes, double seconds);
  int (*get)(void* user, const char* key, void* value, size_t capacity, size_t* bytes, double seconds);
  double timeout_seconds; /* for the job to form; 0: UNISONO_JOIN_TIMEOUT_S, or 60 */
} unisono_join_functions;

/* Joins the job whose ranks call it. Variables that describe a job or a launcher are not looked at; UNISONO_HOST,
 * UNISONO_INTERFACES and the like are. A rank that cannot go on says so through the functions, so all get its reason;
 * fails with bootstrap then, and if a function failed or somebody has not come. Collective over the job. */
UNISONO_API unisono_result unisono_join(const unisono_join_functions* functions, const unisono_settings* settings,
                                        unisono_context** context);
/* A job of `size` ranks that are threads of this process; each thread then makes its context.
 * unisono_thread_context is collective over the job. */
UNISONO_API unisono_result unisono_thread_job_create(uint32_t size, unisono_thread_job** job);
/* The same on a network: "shm", which is the above, memory that all ranks share as on one host, up to 1024 ranks; or
 * "loop", mailboxes, where each rank counts as a host of its own, up to 16384 ranks (docs/large-jobs.md). */
UNISONO_API unisono_result unisono_thread_job_create_on(uint32_t size, const char* network, unisono_thread_job** job);
UNISONO_API void unisono_thread_job_free(unisono_thread_job* job);
UNISONO_API unisono_result unisono_thread_context(unisono_thread_job* job, uint32_t rank,
                                                  const unisono_settings* settings, unisono_context** context);
/* Leaves the job. Not collective. Its communicators and requests can only be freed after it; calls
 * still in flight are cancelled, and waits for them return an error. Returns mismatched_call, having left, if the ranks
 * are found to have made different collective calls on a communicator: the last one to leave has seen those of all. */
UNISONO_API unisono_result unisono_finalize(unisono_context* context);
/* The same after an error of the caller's own, which keeps it from making all calls: nothing is compared, and the other
 * ranks are told that this one has left. */
UNISONO_API unisono_result unisono_abandon(unisono_context* context);

/* Makes progress on all calls of the context that are in flight, and returns at once. Waits do so themselves; for
 * programs that compute for long while calls are in flight, or wait for something else. Any thread may call it. */
UNISONO_API unisono_result unisono_progress(unisono_context* context);
/* For event loops: a file descriptor to poll for reading, beside others, instead of waiting here. It is the context's,
 * and closed with it. Use it so:
 *
 *   for (;;) {
 *     look at requests (unisono_test), and go on if there is something to do;
 *     unisono_arm(context, &ready);
 *     if (!ready) poll the descriptor;
 *   }
 *
 * unisono_arm makes progress. If that brought something, or the offload thread has done something since the last time,
 * it sets *ready to 1; else the descriptor is not readable afterwards, and becomes so when a message comes, a call ends
 * in another thread, the engine wants to look after deadlines and peers (every 20 ms while calls are in flight), or
 * another thread waits for this context; it may also become so for nothing. Readable, it stays so until it is armed
 * again; without that it tells of nothing more. Nothing but unisono_arm reads it or writes it: so do not you.
 * The process's helper thread (docs/offload.md) writes it, and is started for that. Fails with `capacity` where the
 * system has no thread or descriptor left, and with `unsupported` on devices. From any thread; one of them polls. */
UNISONO_API unisono_result unisono_descriptor(unisono_context* context, int* descriptor);
UNISONO_API unisono_result unisono_arm(unisono_context* context, int* ready);
/* Ends everything on this rank, from any thread and without waiting for anybody: calls in flight on all communicators
 * end with revoked and the reason, within 100 ms also those that other threads wait for, and later calls do likewise.
 * The members are told, and their calls end, too. Afterwards only unisono_reset, unisono_shrink, unisono_finalize and
 * unisono_abandon are of use. `reason` may be null. */
UNISONO_API unisono_result unisono_abort(unisono_context* context, const char* reason);

/* The communicator of all ranks; owned by the context. */
UNISONO_API unisono_result unisono_world(unisono_context* context, unisono_communicator** communicator);
/* Collective over the parent. Ranks with equal colour share a new communicator, ordered by key then
 * by parent rank; a negative colour gets null. group_size: ranks of a group for two-level
 * algorithms, 0 = one level. */
UNISONO_API unisono_result unisono_split(unisono_communicator* parent, int64_t colour, int64_t key, uint32_t group_size,
                                         unisono_communicator** communicator);
/* Collective over the communicator. A graph says which ranks send to which: here the ranks from which edges come, and
 * those to which edges go. A rank may stand in a list several times, and name itself; the k-th edge from a to b that a
 * names is the k-th that b names. If the two ends of an edge disagree, every rank gets an error that names both.
 *
 * A call with `graph` set is a neighbour exchange, collective over the communicator, ranks without edges included:
 *   allgather   src (count) to every destination; dst has a block of count for each source, in the order of `sources`
 *   allgatherv  the same with recv_counts[i] elements from source i, at recv_displacements[i] (null: packed)
 *   alltoall    block j of src (count each) to destination j, block i of dst from source i
 *   alltoallv   the same with send_counts[j], send_displacements[j], recv_counts[i], recv_displacements[i]
 * Counts have an entry for each edge of their list. A block of no elements sends no message. There is no in-place form,
 * and no algorithm to choose. */
UNISONO_API unisono_result unisono_graph_create(unisono_communicator* communicator, size_t sources_count,
                                                const int64_t* sources, size_t destinations_count,
                                                const int64_t* destinations, unisono_graph** graph);
/* Frees a graph, at any rank at any time; calls that use it keep what they need. */
UNISONO_API void unisono_graph_free(unisono_graph* graph);
/* Hints for a communicator that is made; they act at its creation. Zero in a field means no hint. struct_size must be
 * sizeof(the struct). */
typedef struct {
  size_t struct_size;
  uint32_t group_size;    /* ranks of a group for two-level algorithms; equal on all members; 1: no groups */
  uint32_t eager_limit;   /* bytes of the largest eager message; the least of all members, and of their contexts */
  double timeout_seconds; /* default deadline of a call; the least of all members that give one */
  int without_lanes;      /* 1: as in unisono_settings, for this communicator; one member decides for all */
  const char* name;       /* as of unisono_communicator_set_name, on this rank; null: none */
  uint64_t group;         /* ranks that give equal numbers are a group for two-level algorithms, of any size and of any
                           * ranks; all give one, or none does. Without it and group_size groups are hosts */
  int streams;            /* 1, on all members: for calls with stream ports, whose elements then go on one by one. Its
                           * calls go without lanes, by algorithms that take elements in their order */
  /* unisono_create_group only: the listed ranks tell each other by a function of the program's own, as for
   * unisono_join, in the order of the list; not by messages of the parent. All of them give it, or none does. `tag` is
   * not looked at then. `seconds` is the parent's deadline. */
  int (*all_gather)(void* user, const void* own, size_t bytes, void* all, double seconds);
  void* user; /* handed to it */
} unisono_communicator_settings;

/* As unisono_split, with settings, which may be null. */
UNISONO_API unisono_result unisono_split_with(unisono_communicator* parent, int64_t colour, int64_t key,
                                              const unisono_communicator_settings* settings,
                                              unisono_communicator** communicator);
/* Collective over the parent: a communicator of the same ranks in the same order, whose calls have nothing to do with
 * the parent's. Groups and default deadline are the parent's where no hint says otherwise; no window is bound. */
UNISONO_API unisono_result unisono_dup(unisono_communicator* parent, const unisono_communicator_settings* settings,
                                       unisono_communicator** communicator);
/* Collective over the parent: a communicator of the listed ranks of the parent, in the order of the list, which is the
 * same on all ranks. Ranks that are not listed get null. */
UNISONO_API unisono_result unisono_subset(unisono_communicator* parent, const uint32_t* ranks, size_t count,
                                          const unisono_communicator_settings* settings,
                                          unisono_communicator** communicator);
/* The same, collective over the listed ranks only: the others need not know. Ranks that make several at the same time,
 * in several threads, tell them apart by `tag` (0 and more; it has nothing to do with tags of messages). All listed
 * ranks must call, or the parent's deadline ends the call, and the parent with it. Devices do not carry it out. */
UNISONO_API unisono_result unisono_create_group(unisono_communicator* parent, const uint32_t* ranks, size_t count,
                                                int64_t tag, const unisono_communicator_settings* settings,
                                                unisono_communicator** communicator);
/* Not collective. Calls in flight on it fail with freed_communicator. The world is freed by
 * unisono_finalize only. Returns mismatched_call, having freed it, as unisono_finalize does. */
UNISONO_API unisono_result unisono_communicator_free(unisono_communicator* communicator);
UNISONO_API unisono_result unisono_communicator_rank(const unisono_communicator* communicator, uint32_t* rank);
UNISONO_API unisono_result unisono_communicator_size(const unisono_communicator* communicator, uint32_t* size);
UNISONO_API unisono_result unisono_communicator_set_timeout(unisono_communicator* communicator, double seconds);
/* What people call the communicator: errors, unisono_dump and unisono_communicator_name tell it beside the number. Of 1
 * to 32 printable ASCII characters without quotation marks; null or "" takes it away. Each rank names for itself, and
 * nothing is made of it but words. Not collective. *name is "" where there is none, and valid until the thread's next
 * call of the function. */
UNISONO_API unisono_result unisono_communicator_set_name(unisono_communicator* communicator, const char* name);
UNISONO_API unisono_result unisono_communicator_name(const unisono_communicator* communicator, const char** name);
/* Fails the communicator on all reachable members: calls in flight and later ones return revoked. Not
 * collective. */
UNISONO_API unisono_result unisono_communicator_revoke(unisono_communicator* communicator, const char* reason);
/* Going on after a rank has died or left. The calls that needed it have failed, and the communicator is revoked; these
 * three work on it all the same. A rank that dies meanwhile is left out as well. The native engine has them; others
 * answer unsupported.
 *
 * unisono_shrink makes a communicator of the ranks that are left, in their order. unisono_agree leaves in *value the
 * bits that were set on all ranks that are left: all get the same, whichever ranks die. Both are collective over those
 * ranks, to be called in the same order by all, and end after the communicator's timeout with an error that says who
 * has not come. unisono_failed gives the ranks that this one sees to have died or left: their number in *count, and the
 * first `capacity` of them in `ranks`; not collective. */
UNISONO_API unisono_result unisono_shrink(unisono_communicator* communicator, unisono_communicator** shrunk);
UNISONO_API unisono_result unisono_agree(unisono_communicator* communicator, uint64_t* value);
UNISONO_API unisono_result unisono_failed(unisono_communicator* communicator, uint32_t* ranks, size_t capacity,
                                          size_t* count);
/* The algorithm of the last collective call that this rank has begun on the communicator: *name, of the table of
 * algorithms, is null before there was one and for programs of the user; *automatic is 1 if the call named none. The
 * name lives for ever. Ask after a blocking call and you learn what that call ran with. */
UNISONO_API unisono_result unisono_last_algorithm(const unisono_communicator* communicator, const char** name,
                                                  int* automatic);
/* A performance counter of the engine that carries out the communicator's calls, by its position: 0, 1, ... *name is
 * null beyond the last one; else it lives for ever. Devices and this library's own engine count different things
 * (docs/housekeeping.md#counters). Not collective. */
UNISONO_API unisono_result unisono_counter(const unisono_communicator* communicator, size_t position, const char** name,
                                           uint64_t* value);
/* What the ranks of a job are doing, in words: for each communicator a line for each rank, the calls that differ, and
 * who waits for whom. It reads the flight records that the ranks keep in their shared memory, so ranks that are stuck
 * or stopped are told of, too. UNISONO_DUMP_HISTORY adds the last calls of each rank; UNISONO_DUMP_TABLE gives a line
 * for each rank, with fields apart by tabs: name, condition, communicators, calls begun, what it does now, its number
 * in the whole job, how many ranks that has, what carries data to its ranks on other hosts ("-" if there are none);
 * UNISONO_DUMP_COUNTERS one for each counter of the native engine: name, and the value of each rank. *text is valid
 * until the thread's next dump. Not collective. */
enum { UNISONO_DUMP_NOW = 0, UNISONO_DUMP_HISTORY = 1, UNISONO_DUMP_TABLE = 2, UNISONO_DUMP_COUNTERS = 3 };
UNISONO_API unisono_result unisono_dump(const unisono_context* context, int what, const char** text);
/* The same of the jobs of another process of the same user, which need not answer. In a table, a line "job", tab, and
 * the inode of its memory goes before the lines of each. */
UNISONO_API unisono_result unisono_dump_process(uint32_t pid, int what, const char** text);

/* Housekeeping (docs/housekeeping.md).
 *
 * unisono_configure changes settings of a context; fields that are zero, or null, stay as they are. without_lanes -1
 * allows lanes again, offload -1 ends progress by a thread. Sizes, deadline, lanes, determinism and algorithms are
 * those of communicators that are made from then on, whose members agree on them as ever: unisono_dup makes one like
 * another with the settings of now. Not collective, but what must be equal on all ranks must be so when they make a
 * communicator. unisono_settings_now gives what such a communicator would be offered by this rank; no field is zero,
 * and *algorithms is valid until the thread's next call of it. */
UNISONO_API unisono_result unisono_configure(unisono_context* context, const unisono_settings* settings);
UNISONO_API unisono_result unisono_settings_now(const unisono_context* context, unisono_settings* settings);
/* What a communicator is like: what its members agreed on when it was made, and how it is now. struct_size must be
 * sizeof(the struct). Not collective. */
typedef struct {
  size_t struct_size;
  uint32_t number; /* of the communicator, equal on all members */
  uint32_t epoch;
  uint32_t rank;
  uint32_t size;
  uint32_t group_size;    /* ranks of a group for two-level algorithms; 0: one group, or groups of several sizes */
  uint32_t eager_limit;   /* bytes of the largest message that is sent at once */
  uint32_t segment_bytes; /* bytes of the largest segment */
  uint32_t rx_buffer_count;
  double timeout_seconds; /* default deadline of its calls on this rank */
  uint64_t capability;    /* what all its engines can do: docs/reference/spec.md#capability */
  uint64_t calls;         /* begun by this rank */
  int lanes;              /* 1: its calls go over memory that all members share */
  int revoked;            /* 1: it has failed */
  uint32_t groups;        /* their number; 1: one level */
  uint32_t group;         /* this rank's, counted from 0 in order of their first ranks */
  const char* carrier;    /* the switches that carry calls which are made now, in words; empty, or none and why: ranks
                             alone. Valid until the thread's next call of this function */
} unisono_communicator_state;
UNISONO_API unisono_result unisono_communicator_describe(const unisono_communicator* communicator,
                                                         unisono_communicator_state* state);
/* A soft reset, collective over the job, also after errors: when all ranks have come, calls in flight end (revoked),
 * all communicators but the world are given up, and the world is made anew, with the settings of now; its handle stays.
 * Windows are unbound. If a rank has died or left the error is peer_dead, nothing is given up, and unisono_shrink
 * helps. No other thread may make communicators meanwhile. The native engine has it; others answer unsupported. */
UNISONO_API unisono_result unisono_reset(unisono_context* context);
/* The same from outside, for the jobs of another process of the same user. Of settings, sizes and the deadline can be
 * set. A reset only gives up all communicators: the ranks' calls end with revoked, now or when they call next, and what
 * follows is the program's to say, for instance unisono_reset. */
UNISONO_API unisono_result unisono_process_configure(uint32_t pid, const unisono_settings* settings);
UNISONO_API unisono_result unisono_process_reset(uint32_t pid);

/* Exposes memory for put and get on this communicator. Collective. Null unbinds. The memory stays mapped until it is
 * unbound or the communicator is freed. */
UNISONO_API unisono_result unisono_window(unisono_communicator* communicator, void* base, uint64_t bytes);

/* Memory of this rank that the ranks on the same machine read and write directly, so that large calls
 * copy nothing through buffers in between (docs/buffers.md). 4096-byte aligned, zeroed; usable as any memory, by any
 * call, as a whole or in parts. It stays until it is deallocated, whether or not the context has been finalized. */
UNISONO_API unisono_result unisono_allocate(unisono_context* context, uint64_t bytes, void** memory);
/* Gives it back; `context` is the one it was allocated for, which may be gone. No call may be using the memory. */
UNISONO_API unisono_result unisono_deallocate(unisono_context* context, void* memory);
/* How another rank of the machine sees allocated memory, for libraries that store to it and load from it themselves.
 *
 * unisono_place_of: the number by which all ranks of this machine know allocated memory, of which `memory` may be any
 * part; 0 if the bytes are not all in memory that they reach. Tell it to others, by a message, say.
 * unisono_peer_memory: the address here of `bytes` bytes at `place`, a number that rank `peer` of the communicator has
 * from unisono_place_of and has told; null if `peer` is on another machine. It may be this rank itself. The address is
 * good until this context is finalized and as long as the peer keeps the memory: nobody looks at who uses it, so the
 * peer gives memory back only when nobody does. Neither is collective; devices answer 0 and null. */
UNISONO_API unisono_result unisono_place_of(unisono_context* context, const void* memory, uint64_t bytes,
                                            uint64_t* place);
UNISONO_API unisono_result unisono_peer_memory(unisono_communicator* communicator, uint32_t peer, uint64_t place,
                                               uint64_t bytes, void** memory);

/* Registers memory of this process: finds out once what otherwise calls find out when they first meet a buffer, or
 * unisono_window each time; over libfabric the card gets to know it with the first long message, not with each. No call
 * needs it, and calls take the memory, or parts of it, as before (docs/buffers.md). The memory stays the caller's, who
 * keeps it mapped as it is until he has deregistered it; what is freed before leaves a wrong answer behind, so that a
 * call may fail which would have gone another way, or a card may write where nobody reads. It may be read-only, of no
 * bytes, or registered before: registrations may overlap. Memory that the kernel does not copy is no error. `context`:
 * an allocation counts if it is within reach of the ranks of its job; null: of any context's. The registration is the
 * process's, and outlives the context. Not collective; from any thread. */
UNISONO_API unisono_result unisono_register(unisono_context* context, const void* memory, uint64_t bytes,
                                            unisono_registration** registration);
/* Forgets it; the memory itself is left alone. No call may be using it. Null does nothing. */
UNISONO_API unisono_result unisono_deregister(unisono_registration* registration);
/* What is known of registered memory. struct_size must be sizeof(the struct). */
typedef struct {
  size_t struct_size;
  const void* memory; /* as it was given */
  uint64_t bytes;
  int kernel_copies; /* 1: the kernel copies it between processes, where it copies at all (unisono doctor); 0: it is a
                        device's, secret, or not there; messages go through cells, put and get by messages */
  int allocated;     /* 1: memory of unisono_allocate, which the ranks of the machine reach without copies */
} unisono_registration_state;
UNISONO_API unisono_result unisono_registration_describe(const unisono_registration* registration,
                                                         unisono_registration_state* state);

/* Operators of the user. The function computes out[i] = op(a[i], b[i]) for `count` elements of `datatype`, must give
 * the same bits for the same operands on every rank, and be associative; it returns 0, or another number to fail the
 * call. The arrays are aligned to 64 bytes and do not overlap. It runs inside calls of Unisono, on the thread that
 * makes progress, and must not call Unisono itself. Ranks agree on an op by its name (1 to 64 bytes, unique in the
 * process). If it does not commute, ranks are folded in order, and algorithms that would reorder them are refused. A
 * process has up to 8 ops that commute and 8 that do not. The op is a value for unisono_call::op. */
typedef int (*unisono_op_function)(const void* a, const void* b, void* out, uint64_t count, unisono_datatype datatype,
                                   void* context);
UNISONO_API unisono_result unisono_op_create(const char* name, unisono_op_function function, void* context,
                                             int commutative, unisono_op* op);
/* No call may be using it, or be started with it afterwards. */
UNISONO_API unisono_result unisono_op_free(unisono_op op);
/* For the function of an op, which ends with `return unisono_op_failed(why)`: why it fails. The error of the call,
 * invalid_op, says so on this rank, and the communicator is revoked. On a rank whose call needs the result still, it
 * ends with revoked and the same words; one that has all it needs succeeds, and is told at its next call on that
 * communicator. Of a long text the begin is kept. Returns 1. */
UNISONO_API int unisono_op_failed(const char* why);

/* Starts a call. All arguments are checked before anything is sent. */
UNISONO_API unisono_result unisono_start(unisono_communicator* communicator, const unisono_call* call,
                                         unisono_request** request);
/* Sets *complete; returns the call's result if it has completed. */
UNISONO_API unisono_result unisono_test(unisono_request* request, int* complete);
/* Waits for completion (the call's deadline bounds it) and returns the call's result. */
UNISONO_API unisono_result unisono_wait(unisono_request* request);
/* As unisono_test, but waits up to `seconds` for completion. */
UNISONO_API unisono_result unisono_wait_at_most(unisono_request* request, double seconds, int* complete);
/* Lets the calling thread's unisono_run be given up: while it waits it calls `wants_to_stop` twice to twenty times
 * a second, with no lock held; an answer other than 0 ends the call and revokes its communicator, for the other ranks'
 * calls cannot complete. Null: none. */
UNISONO_API void unisono_set_interrupt(int (*wants_to_stop)(void* context), void* context);
/* Has a function of the program called in every wait of this process: for a second progress engine, a library below or
 * beside this one, that must be driven while a thread waits here. Each thread that waits calls it, at least every 10 us
 * as far as the system lets the thread run; so waits do not sleep for longer. Of waits that end before it is due, one
 * in 129 calls it. It is called with no lock held, by one
 * thread at a time, and not by threads of this library. It may make progress (unisono_progress), start calls, test
 * requests, ask for callbacks and free requests that have ended; what would wait is refused in it, as in a callback
 * (unisono_on_complete). What it starts on a communicator comes after the call that waits.
 * It is that of waits that begin afterwards; setting it returns when no other thread is in the one before. Null: none,
 * and waits are as fast as ever. In it, it may be set to another. */
UNISONO_API void unisono_set_wait_hook(void (*function)(void* context), void* context);
/* unisono_start, unisono_wait and unisono_request_free in one. */
UNISONO_API unisono_result unisono_run(unisono_communicator* communicator, const unisono_call* call);
/* A send and a receive at once, as two calls that wait for neither one another nor an order: ranks that exchange, or
 * shift data around a circle, cannot block one another. `send` is a call of UNISONO_SEND and `recv` one of
 * UNISONO_RECV, with peers, tags, lengths, datatypes and deadlines of their own; their buffers must not overlap. Both
 * are checked before anything is sent. Returns when both have ended, with the result of the first that failed; the
 * receive is looked at first. *received, which may be null, is the number of elements that came. `send` may be null:
 * then it is the receive alone. Can be given up as unisono_run can. */
UNISONO_API unisono_result unisono_sendrecv(unisono_communicator* communicator, const unisono_call* send,
                                            const unisono_call* recv, int64_t* received);
/* What is known of a message. struct_size must be sizeof(the struct). */
typedef struct {
  size_t struct_size;
  int64_t source; /* rank that sent it */
  int64_t tag;
  int64_t count; /* elements: as the receive has them; of a probe as the sender has */
  uint64_t bytes;
  unisono_datatype datatype; /* of the sender's elements */
} unisono_status;
/* A blocking receive, as unisono_run, that says what came: `recv` is a call of UNISONO_RECV. With UNISONO_ANY_SOURCE it
 * takes the message that arrived first here of those with its tag; messages of one rank with matching tags never
 * overtake each other, and of several receives that take a message the one that began first gets it. A receive from any
 * source waits as long as some other rank is left that might send; engines in hardware answer unsupported (docs/
 * messages.md). `status` may be null. */
UNISONO_API unisono_result unisono_recv(unisono_communicator* communicator, const unisono_call* recv,
                                        unisono_status* status);
/* Waits until there is a message that a receive from `source` (or UNISONO_ANY_SOURCE) with `tag` (or UNISONO_ANY_TAG)
 * would get, and says which; the message stays. `timeout_seconds` 0: the communicator's. A probe that times out has
 * taken nothing, and the communicator can be used as before. Can be given up as unisono_run can. */
UNISONO_API unisono_result unisono_probe(unisono_communicator* communicator, int64_t source, int64_t tag,
                                         double timeout_seconds, unisono_status* status);
/* The same without waiting: *found is 1 if there is such a message now, else 0, and `status` is then not written. */
UNISONO_API unisono_result unisono_iprobe(unisono_communicator* communicator, int64_t source, int64_t tag, int* found,
                                          unisono_status* status);
/* Several requests of one context at once. Null entries are passed over, so that what is done with can be set to null;
 * calls that have ended already count. They wait up to `seconds` (0: only look; UNISONO_NO_LIMIT: the calls' own
 * deadlines bound it) and make progress on all. A call that failed hides no other one: the function returns the
 * result of the first of those it found to have ended that failed, `results`, which may be null, gets that of every
 * one (by position; of others, and of null entries, 0), and unisono_test of a request has its sentence.
 *
 * any: *index is one that has ended, UNISONO_NONE if none has (in time, or because all entries are null).
 * some: indices[0 .. *completed-1] are those that have ended, in order; at least one, but for the same reasons.
 * all: *complete is 1 if all have ended. */
#define UNISONO_NO_LIMIT (-1.0)
#define UNISONO_NONE ((size_t)-1)
UNISONO_API unisono_result unisono_wait_any(unisono_request* const* requests, size_t count, double seconds,
                                            size_t* index);
UNISONO_API unisono_result unisono_wait_some(unisono_request* const* requests, size_t count, double seconds,
                                             size_t* indices, size_t* completed, unisono_result* results);
UNISONO_API unisono_result unisono_wait_all(unisono_request* const* requests, size_t count, double seconds,
                                            int* complete, unisono_result* results);
/* The same without waiting. */
UNISONO_API unisono_result unisono_test_any(unisono_request* const* requests, size_t count, size_t* index);
UNISONO_API unisono_result unisono_test_all(unisono_request* const* requests, size_t count, int* complete,
                                            unisono_result* results);

/* Calls `function` once when the request's call has ended, with its result: on the thread that makes the progress, or
 * at once if it has ended already. Inside, unisono_last_error() is the call's sentence. It may start calls, test
 * requests, ask for further callbacks, and free requests that have ended, this one included. It must not wait: what
 * would is refused there (waits, unisono_run, making communicators, finalize; freeing a request in flight frees
 * nothing). A callback that becomes due inside another one runs after it. Collective calls that callbacks start are
 * best on a communicator of their own, for their order must be the same on all ranks.
 * unisono_wait may return before a callback on another thread has; unisono_request_free waits for it. */
typedef void (*unisono_completion)(unisono_request* request, unisono_result result, void* context);
UNISONO_API unisono_result unisono_on_complete(unisono_request* request, unisono_completion function, void* context);

/* Has the process's helper thread make progress until the request's call has ended, whether or not anybody waits for
 * it; for event loops, with unisono_on_complete. With unisono_settings::offload this is so for every call. Fails with
 * `capacity` where the system refuses a thread; the call goes on as without it. */
UNISONO_API unisono_result unisono_request_offload(unisono_request* request);

/* Checks a call, once, and makes a request that unisono_request_start starts, as often as it is wanted; each time as
 * unisono_start would, with the same buffers and the requests of `wait_for` as they are then. It can be started again
 * when it has ended, whether or not anybody has waited for it; its result is then that of the new call. Starting what
 * is in flight, and waiting for what was never started, are errors. What the structure points to, but for buffers,
 * programs and requests, need not outlive the call. Collective only for an in-place alltoallv whose count is 0. */
UNISONO_API unisono_result unisono_prepare(unisono_communicator* communicator, const unisono_call* call,
                                           unisono_request** request);
UNISONO_API unisono_result unisono_request_start(unisono_request* request);

/* Calls of the communicator that this thread starts between begin and end are checked at once and submitted together
 * at the end, where small all-reduces with one op, datatype and algorithm are fused into one (docs/forms.md#groups).
 * Before the end they can be neither waited for nor followed by others; afterwards every request has a result of its
 * own, also if its call could not be submitted. Functions of the communicator that block are refused meanwhile on this
 * thread, those that make communicators, windows and graphs of it included. All ranks make the same collective calls
 * in a group. Freeing a request before the end takes its call out. */
UNISONO_API unisono_result unisono_group_begin(unisono_communicator* communicator);
UNISONO_API unisono_result unisono_group_end(unisono_communicator* communicator);

/* Elements received by a completed recv. */
UNISONO_API unisono_result unisono_request_count(unisono_request* request, int64_t* count);
/* Source, tag and length of a completed recv. */
UNISONO_API unisono_result unisono_request_status(unisono_request* request, unisono_status* status);
/* Frees a request; waits for it first if it is still in flight. */
UNISONO_API void unisono_request_free(unisono_request* request);

/* Streams: what a kernel, the part of a program that computes, does at a port of its rank. It hands elements to calls
 * with UNISONO_SRC_STREAM, and takes those of calls with UNISONO_DST_STREAM, without a buffer in between but the port's
 * queue of 16 KiB. Bytes go through in order, however they are cut, and calls take as many as they need: what one call
 * leaves is the begin of the next one's.
 *
 * Both wait, and make progress on all calls meanwhile, until all bytes have gone through or `seconds` have passed, and
 * say in *done how many have; 0 s: without waiting. With UNISONO_WHOLE in place of seconds they go on for as long as
 * bytes go through, and end with timeout when none has for the default deadline of the context's calls. A read ends
 * with the error of the call that gave elements to the port, once what it had given has been read. Different ports, and
 * the two sides of one, can be used by several threads at once; one side by one at a time.
 *
 * invalid_argument: there is no such port. unsupported: on engines that are devices, kernels are there. */
#define UNISONO_WHOLE (-1.0)
UNISONO_API unisono_result unisono_stream_write(unisono_context* context, uint32_t port, const void* data,
                                                uint64_t bytes, double seconds, uint64_t* done);
UNISONO_API unisono_result unisono_stream_read(unisono_context* context, uint32_t port, void* data, uint64_t bytes,
                                               double seconds, uint64_t* done);

/* Programs. A file holds one program for each rank (docs/program-files.md). */
UNISONO_API unisono_result unisono_program_load(const char* path, unisono_program** program);
UNISONO_API unisono_result unisono_program_parse(const void* bytes, size_t size, unisono_program** program);
/* Frees a program; calls that use it keep what they need. */
UNISONO_API void unisono_program_free(unisono_program* program);
/* Number of ranks the program is for. */
UNISONO_API unisono_result unisono_program_size(const unisono_program* program, uint32_t* ranks);

/* The table of algorithms. Returns the number of entries; fills `info` with entry `index` if there is
 * one and info is not null. */
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
/* The radix of entry `index` if its name is given alone; 0 if it takes none. With NAME:RADIX it is 2 to 255, and all
 * ranks of a call must give the same. */
UNISONO_API uint32_t unisono_algorithm_radix(size_t index);

#ifdef __cplusplus
}
#endif

#endif
