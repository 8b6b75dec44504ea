/* Slots in a tree of switches: switch/slots_inl.hpp and switch/generations_inl.hpp, where one switch is a member of
 * another. What is the same with one switch stands in slots.pml.
 *
 * Below the top hang another switch and rank 2; below that switch ranks 0 and 1. A link joins each of the four to its
 * switch: links 0 and 1 lead to the lower switch, pool 0; link 2 leads from there to the top, pool 1; link 3 is rank
 * 2's. All contribute to TURNS turns, in SLOTS slots of two versions each, in both switches. Frames lie in sets: every
 * delay and every order is searched. LOSSES of them are lost, COPIES come once more later, and switches restart
 * RESTARTS times, either of them; each at any time, of any kind of frame.
 *
 * Values are symbols: a version holds how often each child's share of its turn was folded in. What goes up from the
 * lower switch is the fold of its two, which is asserted, so a frame need not say what is in it. The same holds of
 * results, which no rank may get before the top has made them.
 *
 * Ranks repeat what has no answer when nothing is under way any more; switches repeat nothing by themselves. Nobody
 * waits for ever if each such round leads to something new, but for rounds in which a frame was lost or a switch
 * restarted: that is asserted. `missing`, which makes the lower switch repeat sooner, is not in it: nothing may rest
 * on it.
 *
 * One of these is defined:
 *   RIGHT           the protocol
 * or, wrong on purpose, of the lower switch and the top:
 *   HASTY           a turn that is complete is answered below, without the result from above
 *   DEAF            duplicates in a complete turn are not passed on upwards
 *   STEADY          a new generation above does not begin one below
 *   TRUSTING        the top does not ask whether the switch below has forgotten its turns
 *   APART           the lower switch begins where its own members lack results, not where the top begins
 */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TURNS
#define TURNS 5
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef COPIES
#define COPIES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

#define LINKS 4
#define UP 2 /* the link between the switches */
#define LOWER 0
#define TOP 1
#define BOTH 3
#define GENERATIONS (RESTARTS + 1)
#define BIT(x) (1 << (x))
#define POOL(l) ((l) / 2)
#define CHILD(l) ((l) % 2)
#define OF(g, l) ((g) * LINKS + (l))
#define IN(p, g) ((p) * GENERATIONS + (g))
#define VERSION(p, t) (4 * (p) + 2 * ((t) % SLOTS) + ((t) / SLOTS) % 2)
#define RESUMING(l) (resuming & BIT(l))

/* What is under way, by generation of the switch that the link leads to: a set of turns for each link, or a set of
 * links. */
byte contributions[GENERATIONS * LINKS];
byte results[GENERATIONS * LINKS];
byte resumes[GENERATIONS];
byte begins[GENERATIONS];
byte renews[GENERATIONS];
/* On the link between the switches, by generation of the lower one, which is its incarnation: a set of generations of
 * the top. */
byte up_resumes[GENERATIONS];
byte up_begins[GENERATIONS];
bool asks; /* a resume of the lower switch that knows no generation of the top */
/* What resumes and begins say: it does not change within a generation. */
byte lacked[GENERATIONS * LINKS];
byte least[2 * GENERATIONS];
byte begin[2 * GENERATIONS];

/* Ranks, by their link. */
byte generation[LINKS];
byte resuming; /* a set of links */
byte sent[LINKS];
byte answered[LINKS];
byte has[LINKS];
byte lacking[LINKS];

/* Switches. */
byte current[2];
bool running[2] = 1;
byte resumed[2] = BOTH;
byte turn[8]; /* plus one; 0: none */
byte bits[8];
bool complete[8];
bool done[8];
byte shares[8]; /* two bits a child: how often its share is in */
byte above = 1; /* the generation of the top, plus one, that the lower switch knows; 0: none */
byte known;     /* the incarnation of the lower switch that the top knows */
byte made;      /* turns that the top has ever made the result of */

byte losses, copies, restarts, idle;
byte l, p, g, t, v, o, i, j, what;
short set;

#define LATE(l, t) (turn[v] > t + 1 || (turn[v] < t + 1 && t < begin[IN(p, current[p])]) || \
                    (turn[v] == t + 1 && complete[v] && !(bits[v] & BIT(CHILD(l)))))

/* Sends everything that the rank of link l may send now. */
inline offer() {
  t = 0;
  do
  :: t < TURNS ->
     if
     :: !RESUMING(l) && t >= begin[IN(POOL(l), generation[l])] && t < lacking[l] + SLOTS && !(sent[l] & BIT(t)) &&
        (t < begin[IN(POOL(l), generation[l])] + SLOTS || (answered[l] & BIT(t - SLOTS))) ->
        sent[l] = sent[l] | BIT(t);
        contributions[OF(generation[l], l)] = contributions[OF(generation[l], l)] | BIT(t)
     :: else
     fi;
     t++
  :: t == TURNS -> break
  od;
  t = 0
}

inline send_up() { contributions[OF(above - 1, UP)] = contributions[OF(above - 1, UP)] | BIT(turn[v] - 1) }

/* The result of version v of pool p is there. */
inline finished() {
  done[v] = 1;
  results[OF(current[p], 2 * p)] = results[OF(current[p], 2 * p)] | BIT(turn[v] - 1);
  results[OF(current[p], 2 * p + 1)] = results[OF(current[p], 2 * p + 1)] | BIT(turn[v] - 1);
  if
  :: p == TOP -> made = made | BIT(turn[v] - 1)
  :: else
  fi
}

inline fold() {
  if
  :: ((shares[v] >> (2 * CHILD(l))) & 3) < 3 -> shares[v] = shares[v] + BIT(2 * CHILD(l))
  :: else
  fi;
  bits[v] = bits[v] | BIT(CHILD(l));
  bits[o] = bits[o] & ~BIT(CHILD(l));
  idle = 0;
  if
  :: bits[v] == BOTH ->
     complete[v] = 1;
     assert(shares[v] == 5); /* each child's share once */
#ifdef HASTY
     finished();
#endif
     if
     :: p == LOWER -> send_up()
     :: else -> finished()
     fi
  :: else
  fi
}

inline begin_turn() {
#ifdef RIGHT
  assert(bits[v] == 0);
#endif
  turn[v] = t + 1;
  complete[v] = 0;
  done[v] = 0;
  shares[v] = 0;
  fold()
}

/* The contribution of link l to turn t, of generation g, comes to its switch. */
inline contribute() {
  p = POOL(l);
  v = VERSION(p, t);
  o = VERSION(p, t + SLOTS);
  if
  :: g < current[p] -> renews[current[p]] = renews[current[p]] | BIT(l)
  :: g == current[p] && !running[p] -> skip
  :: g == current[p] && running[p] ->
     if
     :: turn[v] == t + 1 && (bits[v] & BIT(CHILD(l))) ->
        if
        :: done[v] -> results[OF(g, l)] = results[OF(g, l)] | BIT(t)
#ifndef DEAF
        :: !done[v] && complete[v] && (bits[v] & (BIT(CHILD(l)) - 1)) == 0 -> send_up()
#endif
        :: else
        fi
     :: turn[v] == t + 1 && !(bits[v] & BIT(CHILD(l))) && !complete[v] -> fold()
     :: LATE(l, t) -> skip
     :: turn[v] < t + 1 && t >= begin[IN(p, g)] ->
        if
        :: t < begin[IN(p, g)] + SLOTS || (turn[o] == t - SLOTS + 1 && done[o]) -> begin_turn()
        :: else ->
#ifdef RIGHT
           assert(false) /* a child sent it before it could have the result that lets it */
#else
           skip
#endif
        fi
     fi
  :: g > current[p] -> assert(false)
  fi
}

/* The result of turn t, of generation g, comes down link l. */
inline take_result() {
  if
  :: l == UP ->
     p = LOWER;
     v = VERSION(p, t);
     if
     :: g + 1 == above && running[p] && turn[v] == t + 1 && complete[v] && !done[v] -> idle = 0; finished()
     :: else
     fi
  :: l != UP && g == generation[l] && !RESUMING(l) && (sent[l] & ~answered[l] & BIT(t)) ->
     assert(made & BIT(t)); /* all three shares are in it */
     idle = 0;
     answered[l] = answered[l] | BIT(t);
     has[l] = has[l] | BIT(t);
     do
     :: lacking[l] < TURNS && (has[l] & BIT(lacking[l])) -> lacking[l]++
     :: else -> break
     od;
     offer()
  :: else
  fi
}

inline send_resume() {
  resumes[generation[l]] = resumes[generation[l]] | BIT(l);
  lacked[OF(generation[l], l)] = lacking[l]
}

inline resume_up() {
  if
  :: above == 0 -> asks = 1
  :: else -> up_resumes[current[LOWER]] = up_resumes[current[LOWER]] | BIT(above - 1)
  fi
}

inline ask_missing() { renews[current[p]] = renews[current[p]] | ((BOTH & ~resumed[p]) << (2 * p)) }

/* Pool p forgets all but its members. */
inline forget() {
  current[p]++;
  assert(current[p] < GENERATIONS);
  running[p] = 0;
  resumed[p] = 0;
  v = 4 * p;
  do
  :: v < 4 * p + 4 -> turn[v] = 0; bits[v] = 0; complete[v] = 0; done[v] = 0; shares[v] = 0; v++
  :: else -> break
  od;
  v = 0
}

inline renewed() { forget(); ask_missing() }

/* Pool p begins its generation at turn j. */
inline begin_all() {
  begin[IN(p, current[p])] = j;
  running[p] = 1;
  if
  :: p == LOWER -> begins[current[p]] = BIT(0) | BIT(1)
  :: else -> begins[current[p]] = BIT(3); up_begins[known] = up_begins[known] | BIT(current[p])
  fi;
  j = 0
}

inline take_renew() {
  if
  :: l == UP ->
     p = LOWER;
     if
     :: g + 1 < above -> skip
     :: g + 1 == above ->
        if
        :: running[p] -> skip
        :: !running[p] && resumed[p] == BOTH -> resume_up()
        :: else -> ask_missing()
        fi
     :: else ->
        idle = 0;
        above = g + 1;
        if
#ifdef STEADY
        :: running[p] -> skip
#else
        :: running[p] -> renewed()
#endif
        :: !running[p] && resumed[p] == BOTH -> resume_up()
        :: else -> ask_missing()
        fi
     fi
  :: l != UP && g > generation[l] ->
     idle = 0;
     generation[l] = g;
     sent[l] = 0;
     answered[l] = 0;
     resuming = resuming | BIT(l);
     send_resume()
  :: l != UP && g == generation[l] && RESUMING(l) -> send_resume()
  :: else
  fi
}

/* Link l, which lacks turn j, is noted in pool p. */
inline note() {
  idle = 0;
  if
  :: resumed[p] == 0 || j < least[IN(p, g)] -> least[IN(p, g)] = j
  :: else
  fi;
  resumed[p] = resumed[p] | BIT(CHILD(l));
  if
  :: resumed[p] != BOTH -> ask_missing()
  :: resumed[p] == BOTH && p == LOWER -> resume_up()
  :: else -> j = least[IN(p, g)]; begin_all()
  fi;
  j = 0
}

/* A resume of a rank. */
inline take_resume() {
  p = POOL(l);
  if
  :: g < current[p] -> renews[current[p]] = renews[current[p]] | BIT(l)
  :: g == current[p] && !(resumed[p] & BIT(CHILD(l))) -> j = lacked[OF(g, l)]; note()
  :: g == current[p] && (resumed[p] & BIT(CHILD(l))) ->
     if
     :: running[p] -> begins[g] = begins[g] | BIT(l)
     :: !running[p] && (resumed[p] & (BIT(CHILD(l)) - 1)) == 0 ->
        if
        :: resumed[p] == BOTH -> resume_up()
        :: else -> ask_missing()
        fi
     :: else
     fi
  fi
}

/* A resume of the lower switch, of its generation i. */
inline take_up_resume() {
  p = TOP;
  l = UP;
  if
  :: g < current[p] -> renews[current[p]] = renews[current[p]] | BIT(UP)
  :: g == current[p] && i < known -> skip
  :: g == current[p] && i >= known && !(resumed[p] & BIT(CHILD(UP))) -> known = i; j = least[IN(LOWER, i)]; note()
  :: g == current[p] && i >= known && (resumed[p] & BIT(CHILD(UP))) ->
     if
#ifndef TRUSTING
     :: i > known -> known = i; idle = 0; renewed()
     :: i == known && running[p] -> up_begins[i] = up_begins[i] | BIT(g)
     :: i == known && !running[p] -> ask_missing()
#else
     :: running[p] -> known = i; up_begins[i] = up_begins[i] | BIT(g)
     :: !running[p] -> known = i; ask_missing()
#endif
     fi
  fi
}

inline take_begin() {
  if
  :: g == generation[l] && RESUMING(l) ->
     assert(begin[IN(POOL(l), g)] <= lacking[l]);
     idle = 0;
     resuming = resuming & ~BIT(l);
     offer()
  :: else
  fi
}

inline take_up_begin() {
  p = LOWER;
  if
  :: g + 1 == above && i == current[p] && !running[p] && resumed[p] == BOTH ->
     assert(begin[IN(TOP, g)] <= least[IN(p, i)]);
     idle = 0;
#ifdef APART
     j = least[IN(p, i)];
#else
     j = begin[IN(TOP, g)];
#endif
     begin_all()
  :: else
  fi
}

inline restart() {
  forget();
  idle = 0; /* what a round has brought to this switch is lost with it */
  if
  :: p == LOWER -> above = 0
  :: else -> known = 0
  fi
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
#define ANY(sets) (sets[0] | sets[1] | sets[2] | sets[3])
#define ANY_KIND(sets) (sets[0])
#elif GENERATIONS == 2
#define ANY(sets) (sets[0] | sets[1] | sets[2] | sets[3] | sets[4] | sets[5] | sets[6] | sets[7])
#define ANY_KIND(sets) (sets[0] | sets[1])
#else
#error "the sets are written out for one restart"
#endif
#define QUIET (!ANY(contributions) && !ANY(results) && !ANY_KIND(resumes) && !ANY_KIND(begins) && \
               !ANY_KIND(renews) && !ANY_KIND(up_resumes) && !ANY_KIND(up_begins) && !asks)
#define ALL_HAVE (lacking[0] == TURNS && lacking[1] == TURNS && lacking[3] == TURNS)

/* The union of an array of sets, as a set of its places; and of an array of sets of links, or of generations. */
#define GATHER_EACH(number, places) \
  d_step { set = 0; i = 0; do :: i < (number) -> set = set | (places); i++ :: else -> break od; i = 0 }
#define GATHER(sets) GATHER_EACH(GENERATIONS * LINKS, (sets[i] != 0) << i)
#define GATHER_KIND(sets, width) GATHER_EACH(GENERATIONS, sets[i] << (i * (width)))
#define TAKE(sets, place, element, action) \
  d_step { \
    if \
    :: what != COMES_AGAIN -> sets[place] = sets[place] & ~BIT(element) \
    :: else \
    fi; \
    if \
    :: what != LOST -> action \
    :: else \
    fi; \
    tidy() \
  }

#if defined(RIGHT) && !defined(UNSWEPT)
/* Takes away frames that nobody will ever do anything about: the less lies about, the fewer states there are. */
inline sweep() {
  i = 0;
  do
  :: i < GENERATIONS * LINKS ->
     g = i / LINKS;
     l = i % LINKS;
     p = POOL(l);
     if
     :: l != UP ->
        if
        :: g < generation[l] -> results[i] = 0; begins[g] = begins[g] & ~BIT(l); renews[g] = renews[g] & ~BIT(l)
        :: g == generation[l] && !RESUMING(l) ->
           results[i] = results[i] & ~answered[l];
           begins[g] = begins[g] & ~BIT(l);
           renews[g] = renews[g] & ~BIT(l)
        :: else
        fi;
        if
        :: g <= current[p] && generation[l] == current[p] && !RESUMING(l) ->
           resumes[g] = resumes[g] & ~BIT(l);
           if
           :: g < current[p] -> contributions[i] = 0
           :: else
           fi
        :: else
        fi
     :: else ->
        if
        :: g + 1 < above -> results[i] = 0; renews[g] = renews[g] & ~BIT(UP)
        :: g + 1 == above && running[LOWER] -> renews[g] = renews[g] & ~BIT(UP)
        :: else
        fi;
        if
        :: g < current[TOP] && above == current[TOP] + 1 && running[LOWER] -> contributions[i] = 0
        :: else
        fi
     fi;
     if
     :: g == current[p] && running[p] ->
        t = 0;
        do
        :: t < TURNS ->
           v = VERSION(p, t);
           o = VERSION(LOWER, t);
           if
           :: LATE(l, t) -> contributions[i] = contributions[i] & ~BIT(t)
           :: turn[v] == t + 1 && done[v] && l != UP && generation[l] == g && (answered[l] & BIT(t)) ->
              contributions[i] = contributions[i] & ~BIT(t)
           :: turn[v] == t + 1 && done[v] && l == UP && above == g + 1 && running[LOWER] &&
              (turn[o] > t + 1 || (turn[o] == t + 1 && done[o])) -> contributions[i] = contributions[i] & ~BIT(t)
           :: else
           fi;
           if
           :: l == UP && above == g + 1 && running[LOWER] &&
              (turn[o] > t + 1 || (turn[o] == t + 1 && done[o])) -> results[i] = results[i] & ~BIT(t)
           :: else
           fi;
           t++
        :: t == TURNS -> break
        od
     :: else
     fi;
     i++
  :: i == GENERATIONS * LINKS -> break
  od;
  if
  :: running[LOWER] && above == current[TOP] + 1 -> asks = 0; up_resumes[0] = 0; up_begins[0] = 0;
#if GENERATIONS == 2
     up_resumes[1] = 0; up_begins[1] = 0
#endif
  :: else
  fi
}
#else
#define sweep() skip
#endif

inline tidy() { sweep(); l = 0; p = 0; g = 0; t = 0; v = 0; o = 0; i = 0; j = 0; set = 0; what = COMES }

active proctype World() {
  d_step { l = 0; offer(); l = 1; offer(); l = 3; offer(); l = 0 };
  do
  :: atomic { ANY(contributions) ->
       GATHER(contributions);
       choose(i);
       d_step { set = contributions[i]; g = i / LINKS; l = i % LINKS; i = 0 };
       choose(t);
       fate();
       TAKE(contributions, OF(g, l), t, contribute()) }
  :: atomic { ANY(results) ->
       GATHER(results);
       choose(i);
       d_step { set = results[i]; g = i / LINKS; l = i % LINKS; i = 0 };
       choose(t);
       fate();
       TAKE(results, OF(g, l), t, take_result()) }
  :: atomic { ANY_KIND(resumes) ->
       GATHER_KIND(resumes, LINKS);
       choose(i);
       d_step { g = i / LINKS; l = i % LINKS; i = 0 };
       fate();
       TAKE(resumes, g, l, take_resume()) }
  :: atomic { ANY_KIND(begins) ->
       GATHER_KIND(begins, LINKS);
       choose(i);
       d_step { g = i / LINKS; l = i % LINKS; i = 0 };
       fate();
       TAKE(begins, g, l, take_begin()) }
  :: atomic { ANY_KIND(renews) ->
       GATHER_KIND(renews, LINKS);
       choose(i);
       d_step { g = i / LINKS; l = i % LINKS; i = 0 };
       fate();
       TAKE(renews, g, l, take_renew()) }
  :: atomic { ANY_KIND(up_resumes) ->
       GATHER_KIND(up_resumes, GENERATIONS);
       choose(i);
       d_step { g = i % GENERATIONS; i = i / GENERATIONS };
       fate();
       TAKE(up_resumes, i, g, take_up_resume()) }
  :: atomic { ANY_KIND(up_begins) ->
       GATHER_KIND(up_begins, GENERATIONS);
       choose(i);
       d_step { g = i % GENERATIONS; i = i / GENERATIONS };
       fate();
       TAKE(up_begins, i, g, take_up_begin()) }
  :: atomic { asks ->
       fate();
       d_step {
         if
         :: what != COMES_AGAIN -> asks = 0
         :: else
         fi;
         if
         :: what != LOST -> renews[current[TOP]] = renews[current[TOP]] | BIT(UP)
         :: else
         fi;
         tidy()
       } }
  :: atomic { restarts < RESTARTS ->
       if
       :: p = LOWER
       :: p = TOP
       fi;
       d_step { restarts++; restart(); tidy() } }
  :: atomic { QUIET && !ALL_HAVE ->
       d_step {
         idle++;
         assert(idle < 2); /* after a round of repeats, of which none was lost, something is new */
         l = 0;
         do
         :: l < LINKS ->
            if
            :: l == UP -> skip
            :: l != UP && RESUMING(l) -> send_resume()
            :: else -> contributions[OF(generation[l], l)] = sent[l] & ~answered[l]
            fi;
            l++
         :: l == LINKS -> break
         od;
         l = 0
       } }
  :: ALL_HAVE -> break
  od
}
