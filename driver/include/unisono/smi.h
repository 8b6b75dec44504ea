/* SMI, the Streaming Message Interface: messages whose elements are pushed and popped one by one while a program
 * computes (De Matteis, de Fine Licht, Beránek, Hoefler: "Streaming Message Interface", SC 2019, section 3). The names
 * are those of its reference implementation; what the names end with unisono_ is of this library.
 *
 *   SMI_Channel to = SMI_Open_send_channel(n, SMI_FLOAT, 1, 0, SMI_COMM_WORLD);
 *   for (int i = 0; i < n; i++) SMI_Push(&to, &value[i]);
 *
 * A channel carries `count` elements and is then closed by itself. It connects the same `port` of two ranks of a
 * communicator, or of all its ranks for a collective. On a rank, a port sends for one channel at a time, and receives
 * for one at a time; opening costs nothing and binds nothing: the port is taken by the first element. Counts are of
 * elements, of the type that the channel was opened with. Ports are 0 to 65535.
 *
 * Any thread may use channels, each channel one thread at a time; kernels (unisono_kernel_launch) are run as fibres.
 * What a channel's use ends with, if not well: in a kernel, that kernel, and who waits for it hears of it; elsewhere
 * the program, with a sentence on standard error. Functions that return a unisono_result leave that to the caller.
 *
 * docs/smi.md says what channels promise, and what is modelled. Thread-safe unless said otherwise. */
#ifndef UNISONO_SMI_H
#define UNISONO_SMI_H

#include <string.h>

#include "unisono.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A communicator, as its member sees it. Made by SMI_COMM_WORLD, unisono_smi_comm or SMI_Comm_split; owned by the
 * context, and valid until that is closed. Read only. */
typedef struct unisono_smi_comm {
  int rank;
  int size;
} unisono_smi_comm;
typedef const unisono_smi_comm* SMI_Comm;

/* Types of elements; of SMI's own, and every datatype of Unisono as SMI_TYPE(UNISONO_BF16). */
typedef int SMI_Datatype;
#define SMI_TYPE_OF(datatype) (64 + (datatype))
enum {
  SMI_INT = 1,    /* int32_t */
  SMI_FLOAT = 2,  /* float */
  SMI_DOUBLE = 3, /* double */
  SMI_CHAR = 4,   /* int8_t */
  SMI_SHORT = 5,  /* int16_t */
  SMI_BYTE = SMI_TYPE_OF(UNISONO_BYTE),
  SMI_LONG = SMI_TYPE_OF(UNISONO_INT64),
  SMI_UCHAR = SMI_TYPE_OF(UNISONO_UINT8),
  SMI_USHORT = SMI_TYPE_OF(UNISONO_UINT16),
  SMI_UINT = SMI_TYPE_OF(UNISONO_UINT32),
  SMI_ULONG = SMI_TYPE_OF(UNISONO_UINT64),
  SMI_HALF = SMI_TYPE_OF(UNISONO_FP16),
  SMI_BF16 = SMI_TYPE_OF(UNISONO_BF16),
  SMI_BOOL = SMI_TYPE_OF(UNISONO_BOOL)
};

/* Functions of reductions; every one of Unisono, for the datatypes it is defined on, as SMI_OP_OF(UNISONO_PROD). */
typedef int SMI_Op;
#define SMI_OP_OF(op) (64 + (op))
enum { SMI_ADD = 0, SMI_MAX = 1, SMI_MIN = 2, SMI_PROD = SMI_OP_OF(UNISONO_PROD) };

/* Where the next element goes to, or comes from; of the library. */
typedef struct unisono_smi_end {
  unsigned char* cursor;
  unsigned char* limit; /* at this place, the library is asked */
} unisono_smi_end;

/* What a channel is of. */
enum {
  UNISONO_SMI_SEND = 1,
  UNISONO_SMI_RECEIVE = 2,
  UNISONO_SMI_BCAST = 3,
  UNISONO_SMI_REDUCE = 4,
  UNISONO_SMI_SCATTER = 5,
  UNISONO_SMI_GATHER = 6,
  UNISONO_SMI_ALLREDUCE = 7,
  UNISONO_SMI_ALLGATHER = 8,
  UNISONO_SMI_ALLTOALL = 9
};

/* A channel: a value that may be copied before its first element, and belongs to whoever uses it. */
typedef struct unisono_smi_channel {
  unisono_smi_end* end;
  void* state;     /* of the library */
  SMI_Comm comm;   /* what it was opened with: */
  long long count; /* elements; of scatter, gather, allgather, alltoall: of each rank */
  int kind;        /* UNISONO_SMI_... */
  SMI_Datatype type;
  SMI_Op op;
  int peer; /* destination, source or root */
  int port;
  int degree;             /* asynchronicity degree, elements; -1: none was given */
  unsigned element_bytes; /* of an element */
} unisono_smi_channel;
typedef unisono_smi_channel SMI_Channel;
typedef unisono_smi_channel SMI_BChannel;
typedef unisono_smi_channel SMI_RChannel;
typedef unisono_smi_channel SMI_ScatterChannel;
typedef unisono_smi_channel SMI_GatherChannel;

/* All ranks of the job that the environment describes, which is joined at the first use and left when the program ends.
 * If that fails, the program ends. UNISONO_SMI_TIMEOUT_S in the environment is its deadline in seconds; 60 without. */
UNISONO_API SMI_Comm unisono_smi_world(void);
#define SMI_COMM_WORLD (unisono_smi_world())
/* Its communicator, for calls of Unisono beside channels. Owned by the library. */
UNISONO_API unisono_communicator* unisono_smi_world_communicator(void);
/* The same ranks as a communicator of Unisono's, whose context must outlive the use. Not collective. */
UNISONO_API unisono_result unisono_smi_comm_of(unisono_communicator* communicator, SMI_Comm* comm);
/* Collective over `parent`: a communicator of the ranks with equal `colour`, in the order of `key`, then of rank; null
 * for a negative colour. Not from kernels. */
UNISONO_API unisono_result unisono_smi_split(SMI_Comm parent, int colour, int key, SMI_Comm* comm);

/* An opened channel. Nothing is checked before the first element. */
UNISONO_API unisono_smi_channel unisono_smi_open(int kind, long long count, SMI_Datatype type, SMI_Op op, int peer,
                                                 int port, SMI_Comm comm, int degree);
/* `elements` elements at once, waiting for room. UNISONO_SMI_SEND only, as the next two are of their kinds. */
UNISONO_API unisono_result unisono_smi_push(unisono_smi_channel* channel, const void* data, size_t elements);
/* Sends what was pushed and is not on its way yet. */
UNISONO_API unisono_result unisono_smi_flush(unisono_smi_channel* channel);
UNISONO_API unisono_result unisono_smi_pop(unisono_smi_channel* channel, void* data, size_t elements);
/* `calls` calls of a collective: each takes an element of `send` and gives one to `receive`, where this rank does so in
 * that call; the other pointers may be null. Of bcast both are the same. */
UNISONO_API unisono_result unisono_smi_collective(unisono_smi_channel* channel, const void* send, void* receive,
                                                  size_t calls);
UNISONO_API unisono_result unisono_smi_barrier(SMI_Comm comm, int port);
/* Sends what this thread and all kernels have pushed, and waits until others have taken it. Done as the context is
 * closed, too. */
UNISONO_API unisono_result unisono_smi_finish(SMI_Comm comm);
/* All hosts of the job have come to it: a barrier of SMI_COMM_WORLD. Where kernels stand at simulated nodes, all go on
 * in the same cycle. Not from kernels. */
UNISONO_API unisono_result unisono_smi_meet(SMI_Comm comm);
/* 1: a sender stalls exactly at element k + 1, k being the channel's asynchronicity degree, or 0 if none was given: so
 * that a program that needs more buffers than it says gets stuck. 0: channels have buffers of at least that. Of
 * channels that are opened later; UNISONO_SMI=strict in the environment sets it. */
UNISONO_API void unisono_smi_set_strict(int strict);
/* Ends the kernel that runs, or else the program, with this thread's last error if `result` is one. */
UNISONO_API void unisono_smi_check(unisono_result result);

/* Kernels: functions that run beside the program and each other, one at a time, taking turns where they wait. */
typedef struct unisono_kernel unisono_kernel;
/* Starts function(argument) as a kernel of the rank of `comm`. `name` is copied, for sentences. `release`, if not null,
 * gets the argument when the kernel has ended, or will not go on. `forever`: it need not end; nobody waits for it, and
 * it ends with the program. `kernel`: its handle, to be given to unisono_kernel_wait once; may be null. */
UNISONO_API unisono_result unisono_kernel_launch(SMI_Comm comm, const char* name, void (*function)(void* argument),
                                                 void* argument, void (*release)(void* argument), int forever,
                                                 unisono_kernel** kernel);
/* Waits for a kernel's end and frees the handle. Fails with what the kernel has failed with, and with timeout if
 * nothing on this rank goes on for as long as the context's deadline says: the sentence then tells who waits for whom.
 */
UNISONO_API unisono_result unisono_kernel_wait(unisono_kernel* kernel);
/* The same of all kernels of the rank but those that need not end. Handles are freed by unisono_kernel_wait only. */
UNISONO_API unisono_result unisono_kernel_wait_all(SMI_Comm comm);
/* Frees the handle, if it is not null; the kernel goes on. */
UNISONO_API void unisono_kernel_forget(unisono_kernel* kernel);
/* Says what the kernel that runs, and is about to return, has failed with: an error code, and a sentence. */
UNISONO_API void unisono_kernel_fail(unisono_result code, const char* sentence);
/* 1 inside of a kernel, 0 elsewhere. */
UNISONO_API int unisono_kernel_running(void);
/* Lets other kernels go on; does nothing outside of kernels. `polls`: the caller looks again and again for what has not
 * come. */
UNISONO_API void unisono_kernel_yield(int polls);
/* In a kernel at a simulated node, so many cycles of its clock pass; elsewhere it lets other kernels go on. */
UNISONO_API void unisono_kernel_tick(uint64_t cycles);
/* The cycle of the simulated clock, the same on all nodes of a cluster. Elsewhere, and where the node is native, how
 * many cycles this kernel has let pass by unisono_kernel_tick; 0 outside of kernels. */
UNISONO_API uint64_t unisono_kernel_cycle(void);
/* The time of kernels: that of the simulated clock of the rank's node, or else of the machine. */
UNISONO_API uint64_t unisono_kernel_nanoseconds(SMI_Comm comm);

/* A queue between kernels of one rank, of a given depth. Filled and read in place; the library is asked only if one of
 * them must wait. Not for threads of the program. */
typedef struct unisono_kernel_queue {
  const char* name;
  unsigned long long written; /* elements, since it was made */
  unsigned long long read;
  unsigned long long depth; /* elements, at least 1 */
  void* reader;             /* of the library: who waits, or has been there last */
  void* writer;
  int reader_waits;
  int writer_waits;
} unisono_kernel_queue;
/* To be asked before each element, before anything else: 1: it may be written, or read, if the queue has room for it,
 * or has it; 0: not in this cycle of the clock, by which a queue takes an element and gives one; -1: nothing takes
 * time, and this need not be asked again. `waits`: waits for that cycle instead of 0. */
UNISONO_API int unisono_kernel_queue_turn(unisono_kernel_queue* queue, int writes, int waits);
/* Waits until the queue has an element (`writes` is 0), or room for one. */
UNISONO_API void unisono_kernel_queue_wait(unisono_kernel_queue* queue, int writes);
/* Who waits to write (`writes` is 1), or to read, goes on. */
UNISONO_API void unisono_kernel_queue_wake(unisono_kernel_queue* queue, int writes);

/* What follows is SMI's interface. */

static inline int SMI_Comm_rank(SMI_Comm comm) { return comm->rank; }
static inline int SMI_Comm_size(SMI_Comm comm) { return comm->size; }

static inline SMI_Channel SMI_Open_send_channel_ad(int count, SMI_Datatype data_type, int destination, int port,
                                                   SMI_Comm comm, int asynch_degree) {
  return unisono_smi_open(UNISONO_SMI_SEND, count, data_type, 0, destination, port, comm, asynch_degree);
}
static inline SMI_Channel SMI_Open_send_channel(int count, SMI_Datatype data_type, int destination, int port,
                                                SMI_Comm comm) {
  return SMI_Open_send_channel_ad(count, data_type, destination, port, comm, -1);
}
static inline SMI_Channel SMI_Open_receive_channel_ad(int count, SMI_Datatype data_type, int source, int port,
                                                      SMI_Comm comm, int asynch_degree) {
  return unisono_smi_open(UNISONO_SMI_RECEIVE, count, data_type, 0, source, port, comm, asynch_degree);
}
static inline SMI_Channel SMI_Open_receive_channel(int count, SMI_Datatype data_type, int source, int port,
                                                   SMI_Comm comm) {
  return SMI_Open_receive_channel_ad(count, data_type, source, port, comm, -1);
}
/* The paper's names of it (section 3.1.1, listings 1 and 3). */
#define SMI_Open_rcv_channel SMI_Open_receive_channel
#define SMI_Open_rcv_channel_ad SMI_Open_receive_channel_ad
#define SMI_Open_recv_channel SMI_Open_receive_channel
#define SMI_Open_recv_channel_ad SMI_Open_receive_channel_ad

static inline SMI_BChannel SMI_Open_bcast_channel_ad(int count, SMI_Datatype data_type, int port, int root,
                                                     SMI_Comm comm, int asynch_degree) {
  return unisono_smi_open(UNISONO_SMI_BCAST, count, data_type, 0, root, port, comm, asynch_degree);
}
static inline SMI_BChannel SMI_Open_bcast_channel(int count, SMI_Datatype data_type, int port, int root,
                                                  SMI_Comm comm) {
  return SMI_Open_bcast_channel_ad(count, data_type, port, root, comm, -1);
}
static inline SMI_RChannel SMI_Open_reduce_channel_ad(int count, SMI_Datatype data_type, SMI_Op op, int port, int root,
                                                      SMI_Comm comm, int asynch_degree) {
  return unisono_smi_open(UNISONO_SMI_REDUCE, count, data_type, op, root, port, comm, asynch_degree);
}
static inline SMI_RChannel SMI_Open_reduce_channel(int count, SMI_Datatype data_type, SMI_Op op, int port, int root,
                                                   SMI_Comm comm) {
  return SMI_Open_reduce_channel_ad(count, data_type, op, port, root, comm, -1);
}
/* `send_count` elements of each rank, in as many calls; on the root in size * send_count calls, in the order of ranks.
 * recv_count is not looked at: programs give either that or send_count. */
static inline SMI_ScatterChannel SMI_Open_scatter_channel_ad(int send_count, int recv_count, SMI_Datatype data_type,
                                                             int port, int root, SMI_Comm comm, int asynch_degree) {
  (void)recv_count;
  return unisono_smi_open(UNISONO_SMI_SCATTER, send_count, data_type, 0, root, port, comm, asynch_degree);
}
static inline SMI_ScatterChannel SMI_Open_scatter_channel(int send_count, int recv_count, SMI_Datatype data_type,
                                                          int port, int root, SMI_Comm comm) {
  return SMI_Open_scatter_channel_ad(send_count, recv_count, data_type, port, root, comm, -1);
}
static inline SMI_GatherChannel SMI_Open_gather_channel_ad(int send_count, int recv_count, SMI_Datatype data_type,
                                                           int port, int root, SMI_Comm comm, int asynch_degree) {
  (void)recv_count;
  return unisono_smi_open(UNISONO_SMI_GATHER, send_count, data_type, 0, root, port, comm, asynch_degree);
}
static inline SMI_GatherChannel SMI_Open_gather_channel(int send_count, int recv_count, SMI_Datatype data_type,
                                                        int port, int root, SMI_Comm comm) {
  return SMI_Open_gather_channel_ad(send_count, recv_count, data_type, port, root, comm, -1);
}
/* Beyond SMI. Of allreduce every rank gets every element, in the call that it gives its own. Of allgather and alltoall
 * there are size * count calls: in call r * count + i, element i of rank r comes, and, of alltoall, one goes to rank r;
 * of allgather, rank r gives its own. */
static inline unisono_smi_channel SMI_Open_allreduce_channel(int count, SMI_Datatype data_type, SMI_Op op, int port,
                                                             SMI_Comm comm) {
  return unisono_smi_open(UNISONO_SMI_ALLREDUCE, count, data_type, op, 0, port, comm, -1);
}
static inline unisono_smi_channel SMI_Open_allgather_channel(int count, SMI_Datatype data_type, int port,
                                                             SMI_Comm comm) {
  return unisono_smi_open(UNISONO_SMI_ALLGATHER, count, data_type, 0, 0, port, comm, -1);
}
static inline unisono_smi_channel SMI_Open_alltoall_channel(int count, SMI_Datatype data_type, int port,
                                                            SMI_Comm comm) {
  return unisono_smi_open(UNISONO_SMI_ALLTOALL, count, data_type, 0, 0, port, comm, -1);
}

static inline void unisono_smi_move(void* to, const void* from, unsigned bytes) {
#if defined(__GNUC__)
  __asm__("" : "+r"(to), "+r"(from)); /* compilers warn of lengths that an object cannot have */
#endif
  switch (bytes) {
    case 1:
      memcpy(to, from, 1);
      break;
    case 2:
      memcpy(to, from, 2);
      break;
    case 4:
      memcpy(to, from, 4);
      break;
    case 8:
      memcpy(to, from, 8);
      break;
    default:
      memcpy(to, from, bytes);
  }
}

/* Takes the element; it is on its way when a packet is full, the channel ends, or this kernel waits. */
static inline void SMI_Push(SMI_Channel* chan, const void* data) {
  unisono_smi_end* const end = chan->end;
  if (__builtin_expect(end->cursor == end->limit || chan->kind != UNISONO_SMI_SEND, 0)) {
    unisono_smi_check(unisono_smi_push(chan, data, 1));
    return;
  }
  unsigned char* const at = end->cursor;
  const unsigned bytes = chan->element_bytes;
  end->cursor = at + bytes; /* first: what is written next may be anything, and the cursor would be loaded again */
  unisono_smi_move(at, data, bytes);
}
/* `immediate`: not 0: it is on its way at once. */
static inline void SMI_Push_flush(SMI_Channel* chan, const void* data, int immediate) {
  SMI_Push(chan, data);
  if (immediate) unisono_smi_check(unisono_smi_flush(chan));
}
/* Returns when `data` has the next element. */
static inline void SMI_Pop(SMI_Channel* chan, void* data) {
  unisono_smi_end* const end = chan->end;
  if (__builtin_expect(end->cursor == end->limit || chan->kind != UNISONO_SMI_RECEIVE, 0)) {
    unisono_smi_check(unisono_smi_pop(chan, data, 1));
    return;
  }
  const unsigned char* const at = end->cursor;
  const unsigned bytes = chan->element_bytes;
  end->cursor += bytes; /* first, as above */
  unisono_smi_move(data, at, bytes);
}
/* On the root sends *data to all others; on these, *data is the next element of the root's. */
static inline void SMI_Bcast(SMI_BChannel* chan, void* data) {
  unisono_smi_check(unisono_smi_collective(chan, data, data, 1));
}
/* The root gets the others' elements reduced in the order of ranks, then with its own. */
static inline void SMI_Reduce(SMI_RChannel* chan, const void* data_snd, void* data_rcv) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, 1));
}
static inline void SMI_Scatter(SMI_ScatterChannel* chan, const void* data_snd, void* data_rcv) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, 1));
}
static inline void SMI_Gather(SMI_GatherChannel* chan, const void* send_data, void* rcv_data) {
  unisono_smi_check(unisono_smi_collective(chan, send_data, rcv_data, 1));
}
static inline void SMI_Allreduce(unisono_smi_channel* chan, const void* data_snd, void* data_rcv) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, 1));
}
static inline void SMI_Allgather(unisono_smi_channel* chan, const void* data_snd, void* data_rcv) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, 1));
}
static inline void SMI_Alltoall(unisono_smi_channel* chan, const void* data_snd, void* data_rcv) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, 1));
}
/* All ranks of the communicator have come to it. */
static inline void SMI_Barrier(int port, SMI_Comm comm) { unisono_smi_check(unisono_smi_barrier(comm, port)); }
static inline SMI_Comm SMI_Comm_split(SMI_Comm comm, int colour, int key) {
  SMI_Comm made = NULL;
  unisono_smi_check(unisono_smi_split(comm, colour, key, &made));
  return made;
}

/* The same with several elements at once. */
static inline void SMI_Push_vector(SMI_Channel* chan, const void* data, int elements) {
  unisono_smi_check(unisono_smi_push(chan, data, (size_t)elements));
}
static inline void SMI_Pop_vector(SMI_Channel* chan, void* data, int elements) {
  unisono_smi_check(unisono_smi_pop(chan, data, (size_t)elements));
}
static inline void SMI_Collective_vector(unisono_smi_channel* chan, const void* data_snd, void* data_rcv, int calls) {
  unisono_smi_check(unisono_smi_collective(chan, data_snd, data_rcv, (size_t)calls));
}
static inline void SMI_Bcast_vector(SMI_BChannel* chan, void* data, int elements) {
  SMI_Collective_vector(chan, data, data, elements);
}
static inline void SMI_Reduce_vector(SMI_RChannel* chan, const void* data_snd, void* data_rcv, int elements) {
  SMI_Collective_vector(chan, data_snd, data_rcv, elements);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
