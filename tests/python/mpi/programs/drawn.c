/* Drawn collectives: each is made by the MPI_ function, which a shim may carry, and by the PMPI_ function below, on
 * data that differ on every rank. Both must write the same bytes, gaps included. The first is blocking, non-blocking or
 * persistent, and its request is waited for in one of the ways that MPI has, alone or among others.
 *
 *     drawn SEED CALLS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { kMost = 1 << 16 };

static uint64_t state;
static uint64_t draw(uint64_t below) { /* the same on all ranks */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

static int rank, size;

/* A datatype for elements of `base`: as it is, duplicated, contiguous, with gaps, backwards, resized. */
typedef struct {
  MPI_Datatype type;
  int elements; /* of base, in each */
  int owned;
} Drawn;

static Drawn drawn_type(MPI_Datatype base, uint64_t form) {
  Drawn made = {base, 1, 1};
  MPI_Datatype inner;
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(base, &lower, &extent);
  int lengths[2] = {1, 1}, backwards[2] = {1, 0};
  switch (form) {
    case 0:
      made.owned = 0;
      return made;
    case 1:
      MPI_Type_dup(base, &made.type);
      return made; /* known as committed */
    case 2:
      MPI_Type_contiguous(2, base, &made.type);
      made.elements = 2;
      break;
    case 3:
      MPI_Type_vector(2, 1, 2, base, &made.type);
      made.elements = 2;
      break;
    case 4: /* as many bytes as it spans, in another order */
      MPI_Type_indexed(2, lengths, backwards, base, &made.type);
      made.elements = 2;
      break;
    default:
      MPI_Type_contiguous(2, base, &inner);
      MPI_Type_create_resized(inner, 0, 3 * extent, &made.type);
      MPI_Type_free(&inner);
      made.elements = 2;
  }
  MPI_Type_commit(&made.type);
  return made;
}

static void forget(Drawn* drawn) {
  if (drawn->owned) MPI_Type_free(&drawn->type);
}

static void fill(void* data, size_t bytes, int salt) {
  unsigned char* at = data;
  for (size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)(i * 7 + (unsigned)salt * 31 + (unsigned)rank * 101);
}

static void fail(const char* what, int form, int count) {
  printf("rank %d: %s differs (form %d, count %d)\n", rank, what, form, count);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void same(const void* a, const void* b, size_t bytes, const char* what, int form, int count) {
  if (memcmp(a, b, bytes) != 0) fail(what, form, count);
}

/* Numbers small enough for every order of a sum to give the same bits. */
static void numbers(void* data, MPI_Datatype type, int count, int salt) {
  for (int i = 0; i < count; ++i) {
    const int value = (i * 5 + salt + rank * 3) % 7;
    if (type == MPI_INT) ((int*)data)[i] = value;
    if (type == MPI_DOUBLE) ((double*)data)[i] = value;
    if (type == MPI_FLOAT) ((float*)data)[i] = (float)value;
    if (type == MPI_LONG) ((long*)data)[i] = value;
    if (type == MPI_UNSIGNED_CHAR) ((unsigned char*)data)[i] = (unsigned char)value;
    if (type == MPI_SHORT) ((short*)data)[i] = (short)value;
    if (type == MPI_LONG_DOUBLE) ((long double*)data)[i] = value;
    if (type == MPI_2INT) ((int*)data)[2 * i] = value, ((int*)data)[2 * i + 1] = rank;
    if (type == MPI_DOUBLE_INT) {
      struct {
        double value;
        int index;
      }* pair = data;
      pair[i].value = value;
      pair[i].index = rank;
    }
  }
}

/* Maps x -> a x + b, one after the other: this does not commute. */
typedef struct {
  unsigned a, b;
} Map;

static void after(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    const Map* first = (const Map*)((char*)in + i * extent);
    Map* second = (Map*)((char*)inout + i * extent);
    const Map both = {first->a * second->a, first->b * second->a + second->b};
    *second = both;
  }
}

static unsigned char from[kMost * 16], copy[kMost * 16], to[kMost * 16], wanted[kMost * 16];

/* How a call is made, and its request completed; the same on all ranks. */
static enum { kBlocking, kNonblocking, kPersistent } way;
static int completion, starts;
static MPI_Request request;
static MPI_Comm current;

static void draw_way(MPI_Comm comm, int ranks) {
  way = draw(3);
#ifdef MPICH /* whose own persistent collectives crash, in 4.0 */
  const char* off = getenv("UNISONO_MPI");
  if (way == kPersistent && (ranks == 1 || (off != NULL && strcmp(off, "off") == 0))) way = kNonblocking;
#else
  (void)ranks;
#endif
  completion = (int)draw(7);
  starts = 1 + (int)draw(2);
  current = comm;
}

static void complete(void) {
  int flag = 0, index, done = 0, ranks, me, out = 0;
  MPI_Status status, statuses[4];
  PMPI_Comm_size(current, &ranks);
  PMPI_Comm_rank(current, &me);
  switch (completion) {
    case 0:
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 1:
      while (!flag) MPI_Test(&request, &flag, &status);
      break;
    case 2:
      MPI_Waitany(1, &request, &index, &status);
      if (index != 0) fail("an index", completion, index);
      break;
    case 3:
      while (!flag) MPI_Request_get_status(request, &flag, &status);
      MPI_Waitsome(1, &request, &done, &index, &status);
      if (done != 1 || index != 0) fail("an index of some", completion, done);
      break;
    case 4: { /* among messages of the MPI, long enough to need both ends */
      static int there[20000], back[20000];
      MPI_Request all[4] = {MPI_REQUEST_NULL, request, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      for (int i = 0; i < 20000; ++i) there[i] = me + i;
      MPI_Irecv(back, 20000, MPI_INT, (me + ranks - 1) % ranks, 5, current, &all[2]);
      MPI_Isend(there, 20000, MPI_INT, (me + 1) % ranks, 5, current, &all[0]);
      MPI_Waitall(4, all, statuses);
      request = all[1];
      if (back[19999] != (me + ranks - 1) % ranks + 19999) fail("a message", completion, back[19999]);
      break;
    }
    case 5: { /* a message first, which waits while the collective is in flight */
      MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % ranks, 6, &out, 1, MPI_INT, (me + ranks - 1) % ranks, 6, current,
                   &status);
      if (out != (me + ranks - 1) % ranks) fail("a message", completion, out);
      MPI_Request all[2] = {request, MPI_REQUEST_NULL};
      while (!flag) MPI_Testall(2, all, &flag, statuses);
      request = all[0];
      break;
    }
    default: {
      MPI_Request all[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, request};
      while (done == 0) MPI_Testsome(3, all, &done, &index, &status);
      if (done != 1 || index != 2) fail("an index of some", completion, done);
      request = all[2];
    }
  }
  if (way == kNonblocking && request != MPI_REQUEST_NULL) fail("a request", completion, 0);
}

static void start_again(int in_place) {
  for (int i = 0; i < (in_place ? 1 : starts); ++i) {
    if (i == 0) {
      MPI_Start(&request);
    } else {
      MPI_Startall(1, &request);
    }
    complete();
    if (request == MPI_REQUEST_NULL) fail("a persistent request", completion, 0);
  }
  MPI_Request_free(&request);
}

/* Calls MPI_Name, MPI_Iname or the persistent one; results in place can be made once only. */
#define MAKE(Name, Iname, in_place, ...)                \
  do {                                                  \
    if (way == kBlocking) MPI_##Name(__VA_ARGS__);      \
    if (way == kNonblocking) {                          \
      MPI_##Iname(__VA_ARGS__, &request);               \
      complete();                                       \
    }                                                   \
    if (way == kPersistent) {                           \
      INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &request); \
      start_again(in_place);                            \
    }                                                   \
  } while (0)

static MPI_Datatype map_types[2];

static void reductions(MPI_Comm comm, int ranks, int me, MPI_Op own) {
  static const int counts[] = {0, 1, 5, 100, 5000};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT, MPI_LONG, MPI_UNSIGNED_CHAR, MPI_SHORT};
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BXOR, MPI_LAND};
  MPI_Op op = ops[draw(4)];
  MPI_Datatype type = types[draw(6)];
  if (draw(4) == 0) op = ops[4 + draw(2)], type = draw(2) ? MPI_INT : MPI_LONG;
  if (draw(8) == 0) op = draw(2) ? MPI_MINLOC : MPI_MAXLOC, type = draw(2) ? MPI_2INT : MPI_DOUBLE_INT;
  if (draw(10) == 0) op = MPI_SUM, type = MPI_LONG_DOUBLE; /* which Unisono has not */
  const int maps = draw(5) == 0; /* by an operator of the program, on a datatype of its own, with a gap or without */
#ifdef MPICH                     /* whose own reductions write over their memory where elements have gaps, in 4.0 */
  const int gap = 0;
#else
  const int gap = (int)draw(2);
#endif
  if (maps) op = own, type = map_types[gap];
  const int count = counts[draw(5)], kind = (int)draw(6), in_place = (int)draw(3) == 0 && ranks > 1;
  const int root = (int)draw((uint64_t)ranks), salt = (int)draw(100);
  MPI_Aint lower, extent;
  int data;
  PMPI_Type_get_extent(type, &lower, &extent);
  PMPI_Type_size(type, &data);
  const size_t bytes = (size_t)extent * (size_t)count, room = bytes * (size_t)ranks + 64;
  memset(from, 0, room);
  if (maps) {
    for (int i = 0; i < count * ranks; ++i) {
      const Map map = {(unsigned)(3 + i * 7 + rank * 11 + salt) | 1U, (unsigned)(i + rank * 5)};
      memcpy(from + i * extent, &map, sizeof map);
    }
  } else {
    numbers(from, type, count * ranks, salt);
  }
  fill(to, room, 5);
  memcpy(wanted, to, room);
  if (in_place) {
    memcpy(to, from, bytes * (size_t)ranks);
    memcpy(wanted, to, room);
  }
  const void* src = in_place ? MPI_IN_PLACE : from;
  switch (kind) {
    case 0:
      MAKE(Allreduce, Iallreduce, in_place, src, to, count, type, op, comm);
      PMPI_Allreduce(src, wanted, count, type, op, comm);
      break;
    case 1:
      MAKE(Scan, Iscan, in_place, src, to, count, type, op, comm);
      PMPI_Scan(src, wanted, count, type, op, comm);
      break;
    case 2:
      MAKE(Exscan, Iexscan, in_place, src, to, count, type, op, comm);
      PMPI_Exscan(src, wanted, count, type, op, comm);
      if (me == 0) return; /* undefined there */
      break;
    case 3: {
#ifdef MPICH /* 4.0 reads at the address that MPI_IN_PLACE is, for vectors of more than 2 KB */
      const int lets = root == 0;
#else
      const int lets = 1;
#endif
      const void* mine = in_place && lets && me == root ? MPI_IN_PLACE : from;
      MAKE(Reduce, Ireduce, in_place, mine, to, count, type, op, root, comm);
      PMPI_Reduce(mine, wanted, count, type, op, root, comm);
      if (me != root) return;
      break;
    }
    case 4:
      MAKE(Reduce_scatter_block, Ireduce_scatter_block, in_place, src, to, count, type, op, comm);
      PMPI_Reduce_scatter_block(src, wanted, count, type, op, comm);
      break;
    default: {
      int shares[64];
      for (int r = 0; r < ranks; ++r) shares[r] = (int)draw((uint64_t)count + 1);
      MAKE(Reduce_scatter, Ireduce_scatter, in_place, src, to, shares, type, op, comm);
      PMPI_Reduce_scatter(src, wanted, shares, type, op, comm);
      for (int i = 0; i < shares[me]; ++i) {
        same(to + extent * i, wanted + extent * i, (size_t)data, "reduce_scatter", kind, count);
      }
      return;
    }
  }
  /* In gaps between elements anything may be: nobody has said anything about them. */
  for (int i = 0; i < count; ++i) same(to + extent * i, wanted + extent * i, (size_t)data, "a reduction", kind, count);
}

static void movements(MPI_Comm comm, int ranks, int me) {
  static const int counts[] = {0, 1, 3, 50, 400};
#ifdef MPICH /* whose own scatter of pairs fails ("Message truncated", in 4.0) */
  const MPI_Datatype bases[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT, MPI_LONG};
#else
  const MPI_Datatype bases[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT, MPI_DOUBLE_INT};
#endif
  MPI_Datatype base = bases[draw(5)];
  /* Each rank has a datatype of its own, with as many elements of the base. */
  uint64_t forms[64];
  for (int r = 0; r < ranks; ++r) forms[r] = draw(6);
  const uint64_t form = forms[me];
  Drawn type = drawn_type(base, form);
  const int elements = 2 * counts[draw(5)], count = elements / type.elements, root = (int)draw((uint64_t)ranks);
  const int kind = (int)draw(9), in_place = (int)draw(3) == 0 && ranks > 1;
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(type.type, &lower, &extent);
  int numbers_of[64], places[64], theirs[64], there[64];
  int at = 0;
  for (int r = 0; r < ranks; ++r) {
    /* in pairs, so that every datatype can say it */
    numbers_of[r] = 2 * (int)draw((uint64_t)elements / 2 + 1) / type.elements;
    places[r] = at;
    at += numbers_of[r] + (int)draw(3);
  }
  const size_t room = (size_t)extent * (size_t)(at + count * ranks + 8);
  if (room > sizeof from) {
    forget(&type);
    return;
  }
  fill(from, room, 1);
  memcpy(copy, from, room);
  fill(to, room, 2);
  memcpy(wanted, to, room);
  switch (kind) {
    case 0:
      MAKE(Bcast, Ibcast, in_place, to, count, type.type, root, comm);
      PMPI_Bcast(wanted, count, type.type, root, comm);
      break;
    case 1: {
      const void* src = in_place ? MPI_IN_PLACE : from;
      MAKE(Allgather, Iallgather, in_place, src, count, type.type, to, count, type.type, comm);
      PMPI_Allgather(src, count, type.type, wanted, count, type.type, comm);
      break;
    }
    case 2: {
      const void* src = in_place && me == root ? MPI_IN_PLACE : from;
      MAKE(Gather, Igather, in_place, src, count, type.type, to, count, type.type, root, comm);
      PMPI_Gather(src, count, type.type, wanted, count, type.type, root, comm);
      break;
    }
    case 3: {
      void* dst = in_place && me == root ? MPI_IN_PLACE : to;
      void* other = in_place && me == root ? MPI_IN_PLACE : wanted;
      MAKE(Scatter, Iscatter, in_place, from, count, type.type, dst, count, type.type, root, comm);
      PMPI_Scatter(from, count, type.type, other, count, type.type, root, comm);
      break;
    }
    case 4: {
      const void* src = in_place ? MPI_IN_PLACE : from;
      MAKE(Alltoall, Ialltoall, in_place, src, count, type.type, to, count, type.type, comm);
      PMPI_Alltoall(src, count, type.type, wanted, count, type.type, comm);
      break;
    }
    case 5: {
      const void* src = in_place ? MPI_IN_PLACE : from;
      MAKE(Allgatherv, Iallgatherv, in_place, src, numbers_of[me], type.type, to, numbers_of, places, type.type, comm);
      PMPI_Allgatherv(src, numbers_of[me], type.type, wanted, numbers_of, places, type.type, comm);
      break;
    }
    case 6: {
      const void* src = in_place && me == root ? MPI_IN_PLACE : from;
      MAKE(Gatherv, Igatherv, in_place, src, numbers_of[me], type.type, to, numbers_of, places, type.type, root, comm);
      PMPI_Gatherv(src, numbers_of[me], type.type, wanted, numbers_of, places, type.type, root, comm);
      break;
    }
    case 7: {
      void* dst = in_place && me == root ? MPI_IN_PLACE : to;
      void* other = in_place && me == root ? MPI_IN_PLACE : wanted;
      MAKE(Scatterv, Iscatterv, in_place, from, numbers_of, places, type.type, dst, numbers_of[me], type.type, root,
           comm);
      PMPI_Scatterv(from, numbers_of, places, type.type, other, numbers_of[me], type.type, root, comm);
      break;
    }
    default: {
      /* What rank r sends to me is what I receive of it. */
      for (int r = 0; r < ranks; ++r) {
        theirs[r] = 2 * ((r + me) % 4) / type.elements;
        there[r] = r * 8;
      }
      if ((size_t)extent * 8 * (size_t)(ranks + 1) > sizeof from) break;
      const void* src = in_place ? MPI_IN_PLACE : from;
      fill(to, (size_t)extent * 8 * (size_t)(ranks + 1), 2);
      memcpy(wanted, to, (size_t)extent * 8 * (size_t)(ranks + 1));
      fill(from, (size_t)extent * 8 * (size_t)(ranks + 1), 1);
      memcpy(copy, from, (size_t)extent * 8 * (size_t)(ranks + 1));
      MAKE(Alltoallv, Ialltoallv, in_place, src, theirs, there, type.type, to, theirs, there, type.type, comm);
      PMPI_Alltoallv(src, theirs, there, type.type, wanted, theirs, there, type.type, comm);
      same(to, wanted, (size_t)extent * 8 * (size_t)(ranks + 1), "alltoallv", (int)form, count);
      /* The same with a datatype for each rank, and displacements in bytes. */
      MPI_Datatype each[64];
      for (int r = 0; r < ranks; ++r) each[r] = type.type, there[r] = (int)(there[r] * extent);
      MAKE(Alltoallw, Ialltoallw, in_place, src, theirs, there, each, to, theirs, there, each, comm);
      PMPI_Alltoallw(src, theirs, there, each, wanted, theirs, there, each, comm);
      same(to, wanted, (size_t)extent * 8 * (size_t)(ranks + 1), "alltoallw", (int)form, count);
    }
  }
  same(to, wanted, room, "a movement", 10 * kind + (int)form, count);
  same(from, copy, room, "the source", 10 * kind + (int)form, count);
  forget(&type);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const int calls = argc > 2 ? atoi(argv[2]) : 200;
  state = seed * 0x9e3779b97f4a7c15U + 1;
  MPI_Comm comms[4];
  comms[0] = MPI_COMM_WORLD;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]); /* backwards */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
  MPI_Op own;
  MPI_Op_create(after, 0, &own);
  MPI_Type_contiguous(2, MPI_UNSIGNED, &map_types[0]);
  MPI_Type_create_resized(map_types[0], 0, 12, &map_types[1]);
  for (int i = 0; i < 2; ++i) MPI_Type_commit(&map_types[i]);
  for (int i = 0; i < calls; ++i) {
    MPI_Comm comm = comms[draw(4)];
    const int kind = (int)draw(5);
    int ranks, me;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &me);
    /* Groups of a split may have different sizes: each draws on by itself, and all go on from one state. */
    const uint64_t before = state;
    draw_way(comm, ranks);
    if (kind == 0) {
      MAKE(Barrier, Ibarrier, 0, comm);
    } else if (kind < 3) {
      reductions(comm, ranks, me, own);
    } else {
      movements(comm, ranks, me);
    }
    state = before * 6364136223846793005U + 1442695040888963407U;
  }
  MPI_Op_free(&own);
  for (int i = 0; i < 2; ++i) MPI_Type_free(&map_types[i]);
  for (int i = 1; i < 4; ++i) MPI_Comm_free(&comms[i]);
  printf("right\n");
  MPI_Finalize();
  return 0;
}
