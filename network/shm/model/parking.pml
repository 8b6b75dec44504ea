/* The hand-off between senders and a receiver that may sleep: network/shm/parking.hpp and .cpp.
 *
 * Several senders publish to one receiver, each in a line of its own. The memory is that of x86 (TSO): a plain
 * store goes through a buffer of its core, a load sees the own buffer first and then memory, so a load may
 * overtake an earlier store; locked instructions and barriers wait until the own buffer is empty. (The receiver
 * has no plain store that matters: it changes its word with locked instructions only.) A buffer is emptied at any
 * time, one store at a time. membarrier waits, core after core, until the buffer is empty.
 *
 * Nothing here has a time limit: the endpoint's periodic look is not modelled, so the proof does not rest on it.
 * A lost wake-up is a state in which the receiver sleeps, its messages are in memory and nobody has anything left
 * to do: spin reports it as an invalid end state. Waiting for ever without sleeping would be a cycle without
 * progress. Polling before the sleep is left out; it only delays.
 *
 * One of these is defined:
 *   MEMBARRIER   all members have joined and permit it: senders issue no barrier
 *   FENCE        senders issue barriers, the receiver orders itself only
 *   JOINING      senders begin in fence mode; at any time the job is completed and the permission given
 *   REVOKING     the permission is there; at any time the receiver's membarrier begins to fail
 * or, with a receiver that sleeps on a socket in which a ring lasts until it is cleared:
 *   BELL, BELL_FENCE, BELL_JOINING, BELL_REVOKING
 * or, wrong on purpose:
 *   NO_BARRIER   nobody orders the senders
 *   EARLY        membarrier before the intention to sleep is shown
 *   NO_RECHECK   no look at the messages after the intention is shown
 *   NO_COMPARE   the kernel does not compare the word before it puts the receiver to sleep
 *   NO_SLEEP     the kernel never puts the receiver to sleep
 *   CLEARS_LATE  with BELL: the socket is cleared right before the sleep instead of after it
 *   HASTY        like REVOKING, but stores sent under the permission are not given time to arrive
 */

#ifdef BELL_FENCE
#define BELL
#define FENCE
#endif
#ifdef BELL_JOINING
#define BELL
#define JOINING
#endif
#ifdef BELL_REVOKING
#define BELL
#define REVOKING
#endif

#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif

#if defined(FENCE) || defined(JOINING)
#define PERMITTED_AT_FIRST 0
#else
#define PERMITTED_AT_FIRST 1
#endif

/* Memory. The word's two bits are two variables that are always read and written together. */
byte line[SENDERS];             /* number of the last message published */
bool parked = 0;
bool one_sided = PERMITTED_AT_FIRST;

/* Store buffers. */
chan buffer[SENDERS] = [MESSAGES] of { byte };

/* The kernel. */
bool sleeping = 0;
bool rung = 0;
bool refuses_membarrier = 0;

byte consumed[SENDERS];
byte awaited = SENDERS * MESSAGES;

#define EMPTIED(i) (len(buffer[i]) == 0)

/* The memory system takes a store from a core's buffer. */
proctype Core(byte who) {
  byte value;
end:
  do
  :: atomic { buffer[who]?value -> line[who] = value }
  od
}

proctype Sender(byte who) {
  byte number = 1;
  bool seen_parked, seen_permission;
  do
  :: number <= MESSAGES ->
    buffer[who]!number;                                                  /* the release store */
    atomic { seen_parked = parked; seen_permission = one_sided };        /* wake_if_parked: the one load */
#ifndef NO_BARRIER
    if
    :: seen_permission
    :: else ->
      EMPTIED(who);                                                      /* full_barrier */
      atomic { seen_parked = parked; seen_permission = one_sided }
    fi;
#endif
    if
    :: seen_parked ->
      atomic { EMPTIED(who) -> seen_parked = parked; parked = 0 };       /* locked fetch_and */
      if
#if defined(BELL) || defined(CLEARS_LATE)
      :: seen_parked -> atomic { EMPTIED(who) -> rung = 1 }              /* a datagram to the doorbell */
#else
      :: seen_parked -> atomic { EMPTIED(who) -> sleeping = 0 }          /* FUTEX_WAKE */
#endif
      :: else
      fi
    :: else
    fi;
    number++
  :: else -> break
  od
}

inline order_all_senders() {
  i = 0;
  do
  :: i < SENDERS -> EMPTIED(i); i++
  :: else -> break
  od
}

/* Takes everything that is there, in steps as a receiver would; sets `found`. */
inline look() {
  found = false;
  i = 0;
  do
  :: i < SENDERS ->
    atomic {
      if
      :: line[i] > consumed[i] ->
progress:
        found = true;
        assert(line[i] <= MESSAGES);
        awaited = awaited - (line[i] - consumed[i]);
        consumed[i] = line[i]
      :: else
      fi
    };
    i++
  :: else -> break
  od
}

active proctype Receiver() {
  byte i;
  bool found, permission;
  atomic {
    for (i : 0 .. SENDERS - 1) { run Core(i); run Sender(i) }
  }
  do
  :: awaited == 0 -> break
  :: else ->
    look_first: look();
    if
    :: found
    :: else ->
#ifdef EARLY
      order_all_senders();
#endif
      atomic { parked = 1; permission = one_sided };                     /* show_intention: locked fetch_or */
#if !defined(EARLY) && !defined(NO_BARRIER)
      if
      :: permission ->
        if
        :: !refuses_membarrier -> order_all_senders()
        :: refuses_membarrier -> one_sided = 0; permission = false;
#ifndef HASTY
          order_all_senders()                                            /* a sleep in which their stores arrive */
#endif
        fi
      :: else
      fi;
#endif
#ifdef NO_RECHECK
      found = false;
#else
      look();
#endif
      if
      :: found
      :: else ->
#if defined(BELL)
        rung;                                                            /* ppoll */
        rung = 0
#elif defined(CLEARS_LATE)
        rung = 0;
        rung
#else
        atomic {                                                         /* FUTEX_WAIT, under the kernel's lock */
          if
#if defined(NO_COMPARE)
          :: true -> sleeping = 1
#elif defined(NO_SLEEP)
          :: true
#else
          :: parked && one_sided == permission -> sleeping = 1
          :: else
#endif
          fi
        };
        !sleeping                                                        /* until somebody wakes it */
#endif
      fi;
      parked = 0                                                         /* ~Intention: locked fetch_and */
    fi
  od;
  for (i : 0 .. SENDERS - 1) { assert(consumed[i] == MESSAGES) }
}

#ifdef JOINING
active proctype LastMember() { one_sided = 1 }
#endif

#if defined(REVOKING) || defined(HASTY)
active proctype Filter() { refuses_membarrier = 1 }
#endif
