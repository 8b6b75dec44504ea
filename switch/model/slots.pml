/* Slots of a switch that aggregates: switch/slots_inl.hpp, switch/turns.hpp and switch/window.cpp.
 *
 * RANKS members contribute to TURNS turns, in SLOTS slots of two versions each, at most AHEAD rounds of slots beyond the
 * oldest turn that they have no result of. Frames lie in a set: any of them may come next, however long it has lain
 * there, so every delay and every order is searched. LOSSES of them are lost, COPIES come once more later, and the switch
 * restarts RESTARTS times; each at any time, of any kind of frame.
 *
 * Values are symbols: a version holds how often each member's share of its turn was folded in, and whether one of another
 * turn was. A result must have each share once, and nothing else. (Folds in listed order are the same: there a share is
 * put in its place instead, and all places are folded when the turn is complete.)
 *
 * Members repeat what has no answer when nothing is under way any more. Repeats that are sent in vain are copies, so
 * earlier ones add nothing. Nobody waits for ever if each such round of repeats leads to something new, but for rounds in
 * which a frame was lost: that is asserted, and what is new is bounded. So the search is one of safety alone.
 *
 * One of these is defined:
 *   RIGHT           the protocol
 * or, wrong on purpose:
 *   ONE_VERSION     a slot keeps one turn only
 *   NO_CLEARING     a contribution does not clear its member's bit in the other version
 *   CLEARS_LATE     it does, but in a step of its own
 *   NO_OVERWRITE    the first contribution to a turn is folded into what the version held
 *   ONE_BIT         frames say which version they are for, not which turn
 *   NO_CLOSING      a turn that is complete takes contributions
 *   NO_GENERATION   frames of earlier generations are taken
 *   SILENT          duplicates are not answered
 *   NO_MEETING      after a restart each member begins where it has no result, without hearing of the others
 *   FORGETFUL       a member that has a result does not contribute to its turn again
 */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TURNS
#define TURNS 5
#endif
#ifndef AHEAD
#define AHEAD 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

#define ALL ((1 << RANKS) - 1)
#define GENERATIONS (RESTARTS + 1)
#define BIT(x) (1 << (x))
#define OF(g, m) ((g) * RANKS + (m))
#define LIMIT(m) (lacking[m] + AHEAD * SLOTS)

/* What is under way, by generation: a set of turns for each member, or a set of members. */
byte contributions[GENERATIONS * RANKS];
byte results[GENERATIONS * RANKS];
byte resumes[GENERATIONS];
byte begins[GENERATIONS];
byte renews[GENERATIONS];
/* What resumes and begins say: it does not change within a generation. */
byte lacked[GENERATIONS * RANKS];
byte begin[GENERATIONS];

/* Members. */
byte generation[RANKS];
byte resuming;               /* a set of members */
byte sent[RANKS];            /* turns, in this generation */
byte answered[RANKS];        /* turns, in this generation */
byte has[RANKS];             /* turns with a result */
byte lacking[RANKS];         /* the least turn without one */
byte built[RANKS];           /* turns that were ever sent lie below */

/* The switch. Version 2 s + v belongs to slot s. */
byte current;
bool running = 1;
byte resumed;
byte turn[2 * SLOTS];        /* plus one; 0: none */
byte bits[2 * SLOTS];
bool complete[2 * SLOTS];
byte shares[2 * SLOTS];      /* two bits a member: how often its share is in */
bool mixed[2 * SLOTS];       /* a share of another turn is in */
#ifdef CLEARS_LATE
byte owed[2 * SLOTS];        /* bits that are to be cleared */
#endif

byte losses, copies, restarts, idle;
byte m, g, t, v, o, x, i, what;
short set;

#ifdef ONE_VERSION
#define VERSION(t) (2 * ((t) % SLOTS))
#else
#define VERSION(t) (2 * ((t) % SLOTS) + ((t) / SLOTS) % 2)
#endif

/* A contribution of a turn that is over, for all or for this member. */
#ifdef NO_CLOSING
#define LATE(m, t) (turn[v] > t + 1 || (turn[v] < t + 1 && t < begin[current]))
#else
#define LATE(m, t) (turn[v] > t + 1 || (turn[v] < t + 1 && t < begin[current]) || \
                    (turn[v] == t + 1 && complete[v] && !(bits[v] & BIT(m))))
#endif

/* Sends everything that member m may send now. */
inline offer() {
  t = 0;
  do
  :: t < TURNS ->
     if
     :: !(resuming & BIT(m)) && t >= begin[generation[m]] && t < LIMIT(m) && !(sent[m] & BIT(t)) &&
        (t < begin[generation[m]] + SLOTS || (answered[m] & BIT(t - SLOTS))) ->
        assert(t + 2 * AHEAD * SLOTS >= built[m]); /* it is kept */
        sent[m] = sent[m] | BIT(t);
#ifdef FORGETFUL
        if
        :: has[m] & BIT(t) -> skip
        :: else -> contributions[OF(generation[m], m)] = contributions[OF(generation[m], m)] | BIT(t)
        fi;
#else
        contributions[OF(generation[m], m)] = contributions[OF(generation[m], m)] | BIT(t);
#endif
        if
        :: t >= built[m] -> built[m] = t + 1
        :: else
        fi
     :: else
     fi;
     t++
  :: t == TURNS -> break
  od;
  t = 0
}

/* Member m's contribution to turn t of generation g comes to the switch. */
inline contribute() {
  v = VERSION(t);
  o = VERSION(t + SLOTS);
  if
#ifndef NO_GENERATION
  :: g < current -> renews[current] = renews[current] | BIT(m)
  :: g == current && !running -> skip
  :: g == current && running ->
#else
  :: !running -> renews[current] = renews[current] | BIT(m)
  :: running ->
#endif
     if
#ifdef ONE_BIT
     :: bits[v] & BIT(m) ->
#else
     :: turn[v] == t + 1 && (bits[v] & BIT(m)) ->
#endif
#ifndef SILENT
        if
        :: complete[v] -> results[OF(current, m)] = results[OF(current, m)] | BIT(turn[v] - 1)
        :: else
        fi
#else
        skip
#endif
#ifdef ONE_BIT
     :: !(bits[v] & BIT(m)) && complete[v] && bits[v] != 0 -> skip
     :: !(bits[v] & BIT(m)) && !(complete[v] && bits[v] != 0) ->
        if
        :: bits[v] == 0 -> begin_turn()
        :: else -> fold()
        fi
#else
#ifdef NO_CLOSING
     :: turn[v] == t + 1 && !(bits[v] & BIT(m)) -> fold()
#else
     :: turn[v] == t + 1 && !(bits[v] & BIT(m)) && !complete[v] -> fold()
#endif
     :: LATE(m, t) -> skip
     :: turn[v] < t + 1 && t >= begin[current] ->
        if
        :: t < begin[current] + SLOTS || (turn[o] == t - SLOTS + 1 && complete[o]) -> begin_turn()
        :: else ->
#ifdef RIGHT
           assert(false) /* a member sent it before it could have the result that lets it */
#else
           skip
#endif
        fi
#endif
     fi
  :: g > current -> assert(false)
  fi;
  v = 0;
  o = 0
}

inline begin_turn() {
#ifdef RIGHT
  assert(bits[v] == 0); /* all have gone on to the other version, or nobody was ever here */
#endif
#ifdef ONE_VERSION
  bits[v] = 0;
#endif
  turn[v] = t + 1;
  complete[v] = 0;
#ifndef NO_OVERWRITE
  shares[v] = 0;
  mixed[v] = 0;
#endif
  fold()
}

inline fold() {
  mixed[v] = mixed[v] || turn[v] != t + 1;
  if
  :: ((shares[v] >> (2 * m)) & 3) < 3 -> shares[v] = shares[v] + BIT(2 * m)
  :: else
  fi;
  bits[v] = bits[v] | BIT(m);
#ifdef CLEARS_LATE
  owed[o] = owed[o] | BIT(m);
#endif
#if !defined(NO_CLEARING) && !defined(CLEARS_LATE) && !defined(ONE_VERSION)
  bits[o] = bits[o] & ~BIT(m);
#endif
  idle = 0;
  if
  :: bits[v] == ALL ->
     complete[v] = 1;
     x = 0;
     i = 0;
     do
     :: i < RANKS -> x = x + BIT(2 * i); results[OF(current, i)] = results[OF(current, i)] | BIT(turn[v] - 1); i++
     :: i == RANKS -> break
     od;
     assert(shares[v] == x && !mixed[v]); /* the result is the fold of all shares, each once, and nothing else */
     x = 0;
     i = 0
  :: else
  fi
}

/* The result of turn t, of generation g, comes to member m. */
inline take_result() {
#ifdef ONE_BIT
  /* Which turn it is for the member knows by the version alone: the one that it waits for in this slot. */
  x = t % (2 * SLOTS);
  do
  :: x < TURNS && !((sent[m] & ~answered[m]) & BIT(x)) -> x = x + 2 * SLOTS
  :: x < TURNS && ((sent[m] & ~answered[m]) & BIT(x)) -> assert(x == t); break
  :: x >= TURNS -> break
  od;
  x = 0;
#endif
  if
#ifdef NO_GENERATION
  :: !(resuming & BIT(m)) && (sent[m] & ~answered[m] & BIT(t)) ->
#else
  :: g == generation[m] && !(resuming & BIT(m)) && (sent[m] & ~answered[m] & BIT(t)) ->
#endif
     idle = 0;
     answered[m] = answered[m] | BIT(t);
     has[m] = has[m] | BIT(t);
     do
     :: lacking[m] < TURNS && (has[m] & BIT(lacking[m])) -> lacking[m]++
     :: else -> break
     od;
     offer()
  :: else
  fi
}

inline send_resume() {
  resumes[generation[m]] = resumes[generation[m]] | BIT(m);
  lacked[OF(generation[m], m)] = lacking[m]
}

inline take_renew() {
  if
  :: g > generation[m] ->
     idle = 0;
     generation[m] = g;
     sent[m] = 0;
     answered[m] = 0;
#ifdef NO_MEETING
     begin[g] = 0;
     t = 0;
     do /* what it has counts as answered */
     :: t < lacking[m] -> sent[m] = sent[m] | BIT(t); answered[m] = answered[m] | BIT(t); t++
     :: t == lacking[m] -> break
     od;
     offer()
#else
     resuming = resuming | BIT(m);
     send_resume()
#endif
  :: g == generation[m] && (resuming & BIT(m)) -> send_resume()
  :: else
  fi
}

inline take_resume() {
  if
  :: g < current -> renews[current] = renews[current] | BIT(m)
  :: g == current && !(resumed & BIT(m)) ->
     idle = 0;
     if
     :: resumed == 0 -> begin[g] = lacked[OF(g, m)]; renews[g] = renews[g] | (ALL & ~BIT(m))
     :: resumed != 0 && lacked[OF(g, m)] < begin[g] -> begin[g] = lacked[OF(g, m)]
     :: else
     fi;
     resumed = resumed | BIT(m);
     if
     :: resumed == ALL -> running = 1; begins[g] = ALL
     :: else
     fi
  :: g == current && (resumed & BIT(m)) ->
     if
     :: running -> begins[g] = begins[g] | BIT(m)
     :: !running && (resumed & (BIT(m) - 1)) == 0 -> renews[g] = renews[g] | (ALL & ~resumed)
     :: else
     fi
  fi
}

inline take_begin() {
  if
  :: g == generation[m] && (resuming & BIT(m)) ->
     assert(begin[g] <= lacking[m]);
     idle = 0;
     resuming = resuming & ~BIT(m);
     offer()
  :: else
  fi
}

inline restart() {
  current++;
  resumed = 0;
  v = 0;
  do
  :: v < 2 * SLOTS ->
     turn[v] = 0; bits[v] = 0; complete[v] = 0; shares[v] = 0; mixed[v] = 0;
#ifdef CLEARS_LATE
     owed[v] = 0;
#endif
     v++
  :: v == 2 * SLOTS -> break
  od;
  v = 0;
#ifdef NO_MEETING
  begin[current] = 0;
  running = 1
#else
  running = 0
#endif
}

/* Any element of `set`, which has one. */
inline choose(element) {
  element = 0;
  do
  :: (set >> element) & 1 -> break
  :: set >> (element + 1) -> element++
  od;
  skip
}

/* What becomes of the frame that was chosen: it comes, it comes and will once more, or it is lost. */
#define COMES 0
#define COMES_AGAIN 1
#define LOST 2
inline fate() {
  if
  :: true -> what = COMES
  :: copies < COPIES -> copies++; what = COMES_AGAIN
  :: losses < LOSSES -> losses++; idle = 0; what = LOST
  fi
}

#if GENERATIONS == 1
#define ANY(sets) (sets[0] | sets[1] | sets[2])
#define ANY_KIND(sets) (sets[0])
#elif GENERATIONS == 2
#define ANY(sets) (sets[0] | sets[1] | sets[2] | sets[3] | sets[4] | sets[5])
#define ANY_KIND(sets) (sets[0] | sets[1])
#elif GENERATIONS == 3
#define ANY(sets) (sets[0] | sets[1] | sets[2] | sets[3] | sets[4] | sets[5] | sets[6] | sets[7] | sets[8])
#define ANY_KIND(sets) (sets[0] | sets[1] | sets[2])
#endif
#if RANKS != 3
#error "the sets are written out for 3 ranks"
#endif
#define QUIET (!ANY(contributions) && !ANY(results) && !ANY_KIND(resumes) && !ANY_KIND(begins) && !ANY_KIND(renews))

/* The union of an array of sets, as a set of its places. */
#define GATHER(sets, i) set = set | ((sets[i] != 0) << (i))
inline gather_contributions() { set = 0; i = 0; do :: i < GENERATIONS * RANKS -> GATHER(contributions, i); i++ :: else -> break od }
inline gather_results() { set = 0; i = 0; do :: i < GENERATIONS * RANKS -> GATHER(results, i); i++ :: else -> break od }
/* The same of an array of sets of members. */
#define GATHER_KIND(sets, i) set = set | (sets[i] << ((i) * RANKS))
inline gather_resumes() { set = 0; i = 0; do :: i < GENERATIONS -> GATHER_KIND(resumes, i); i++ :: else -> break od }
inline gather_begins() { set = 0; i = 0; do :: i < GENERATIONS -> GATHER_KIND(begins, i); i++ :: else -> break od }
inline gather_renews() { set = 0; i = 0; do :: i < GENERATIONS -> GATHER_KIND(renews, i); i++ :: else -> break od }
inline chosen() { g = i / RANKS; m = i % RANKS; i = 0 }

#if defined(RIGHT) && !defined(UNSWEPT)
/* Takes away frames that nobody will ever do anything about, which is what would become of them in any case: the less
 * lies about, the fewer states there are. */
inline sweep() {
  i = 0;
  do
  :: i < GENERATIONS * RANKS ->
     g = i / RANKS;
     m = i % RANKS;
     if
     :: g < generation[m] -> results[i] = 0; begins[g] = begins[g] & ~BIT(m); renews[g] = renews[g] & ~BIT(m)
     :: g == generation[m] && !(resuming & BIT(m)) ->
        results[i] = results[i] & ~answered[m];
        begins[g] = begins[g] & ~BIT(m);
        renews[g] = renews[g] & ~BIT(m)
     :: else
     fi;
     if
     :: g < current && generation[m] == current && !(resuming & BIT(m)) ->
        contributions[i] = 0;
        resumes[g] = resumes[g] & ~BIT(m)
     :: g == current && generation[m] == current && !(resuming & BIT(m)) ->
        resumes[g] = resumes[g] & ~BIT(m)
     :: else
     fi;
     if
     :: g == current && running ->
        t = 0;
        do
        :: t < TURNS ->
           v = VERSION(t);
           if
           :: LATE(m, t) || (turn[v] == t + 1 && complete[v] && generation[m] == g && (answered[m] & BIT(t))) ->
              contributions[i] = contributions[i] & ~BIT(t)
           :: else
           fi;
           t++
        :: t == TURNS -> break
        od;
        v = 0
     :: else
     fi;
     i++
  :: i == GENERATIONS * RANKS -> break
  od;
  i = 0
}
#else
#define sweep() skip
#endif

inline tidy() { sweep(); m = 0; g = 0; t = 0; set = 0; what = COMES }

active proctype World() {
  d_step {
    m = 0;
    do
    :: m < RANKS -> offer(); m++
    :: m == RANKS -> break
    od;
    m = 0
  };
  do
  :: atomic { ANY(contributions) ->
       d_step { gather_contributions() };
       choose(i);
       d_step { set = contributions[i]; chosen() };
       choose(t);
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> contributions[OF(g, m)] = contributions[OF(g, m)] & ~BIT(t)
         :: else
         fi;
         if
         :: what != LOST -> contribute()
         :: else
         fi;
         tidy()
       } }
  :: atomic { ANY(results) ->
       d_step { gather_results() };
       choose(i);
       d_step { set = results[i]; chosen() };
       choose(t);
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> results[OF(g, m)] = results[OF(g, m)] & ~BIT(t)
         :: else
         fi;
         if
         :: what != LOST -> take_result()
         :: else
         fi;
         tidy()
       } }
  :: atomic { ANY_KIND(resumes) ->
       d_step { gather_resumes() };
       choose(i);
       d_step { chosen() };
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> resumes[g] = resumes[g] & ~BIT(m)
         :: else
         fi;
         if
         :: what != LOST -> take_resume()
         :: else
         fi;
         tidy()
       } }
  :: atomic { ANY_KIND(begins) ->
       d_step { gather_begins() };
       choose(i);
       d_step { chosen() };
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> begins[g] = begins[g] & ~BIT(m)
         :: else
         fi;
         if
         :: what != LOST -> take_begin()
         :: else
         fi;
         tidy()
       } }
  :: atomic { ANY_KIND(renews) ->
       d_step { gather_renews() };
       choose(i);
       d_step { chosen() };
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> renews[g] = renews[g] & ~BIT(m)
         :: else
         fi;
         if
         :: what != LOST -> take_renew()
         :: else
         fi;
         tidy()
       } }
  :: atomic { restarts < RESTARTS -> d_step { restarts++; restart() } }
#ifdef CLEARS_LATE
  :: atomic { owed[0] | owed[1] | owed[2] | owed[3] ->
       d_step { set = 0; i = 0; do :: i < 4 -> if :: owed[i] -> set = set | BIT(i) :: else fi; i++ :: i == 4 -> break od };
       choose(i);
       d_step { bits[i] = bits[i] & ~owed[i]; owed[i] = 0; i = 0; set = 0 } }
#endif
  :: atomic { QUIET && (lacking[0] < TURNS || lacking[1] < TURNS || lacking[2] < TURNS) ->
       d_step {
         idle++;
         assert(idle < 2); /* after a round of repeats, of which none was lost, something is new */
         m = 0;
         do
         :: m < RANKS ->
            if
            :: resuming & BIT(m) -> send_resume()
            :: else ->
#ifdef FORGETFUL
               contributions[OF(generation[m], m)] = sent[m] & ~answered[m] & ~has[m]
#else
               contributions[OF(generation[m], m)] = sent[m] & ~answered[m]
#endif
            fi;
            m++
         :: m == RANKS -> break
         od;
         m = 0
       } }
  :: lacking[0] == TURNS && lacking[1] == TURNS && lacking[2] == TURNS -> break
  od
}
