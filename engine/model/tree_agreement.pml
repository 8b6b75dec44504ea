/* Agreement along trees, among ranks that die: engine/tree_agreement.hpp and .cpp.
 *
 * A word is put into the peer's memory at once, and taken from there at any time; a rank may die before each of its
 * words, and at any time after its answer. Whether a rank has died is asked of the system, whose answer is right, and who
 * asks has taken all that it had sent. What is agreed on is the set of ranks whose words count, so two different answers
 * are two different sets.
 *
 * All that get an answer must get the same, also those that die afterwards; an answer has the words of all ranks that
 * live. Nobody waits for ever: spin reports that as an invalid end state. A rank that has its answer still takes words,
 * and gives it to who says anything else, but looks at nobody.
 *
 * Ballots are numbers: LEADER * ATTEMPTS + attempt. In a word: kind, ballot, the set of ranks that have ended, and an
 * answer.
 *
 * One of these is defined:
 *   RIGHT       as it is
 * or, wrong on purpose:
 *   EARLY       the leader has its answer as soon as it has all words
 *   FRESH       who leads after another one begins with nothing
 *   SIDESTEP    words of earlier ballots are followed, too
 *   NO_RESTART  the leader has its answer though somebody has died before saying that it had taken that over
 *   ALONE       nobody turns to others than the one above it
 */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef DEATHS
#define DEATHS RANKS
#endif

#define ATTEMPTS 8
#define ALL ((1 << RANKS) - 1)
#define HAS(set, rank) (((set) >> (rank)) & 1)
#define BIT(rank) (1 << (rank))

mtype = { ASK, WORD, PROPOSE, ACK, COMMIT, ORPHAN };

/* From each rank to each, in order. */
chan way[RANKS * RANKS] = [3] of { mtype, byte, byte, byte };
#define WAY(from, to) way[(from) * RANKS + (to)]
#define TAKE(who) atomic { from == RANKS && nempty(WAY(who, me)) -> from = who; WAY(who, me)?kind, its_ballot, its_set, its_answer }

/* Whether `me` knows, or finds when it looks, that a rank has ended. */
#define ENDED(rank) (HAS(known, rank) || (HAS(dead, rank) && len(WAY(rank, me)) == 0))
/* The lowest rank that has not; `me` at the latest. */
#define LOWEST (!ENDED(0) -> 0 : (!ENDED(1) -> 1 : (!ENDED(2) -> 2 : 3)))
/* To whom it turns if the one above it has ended. */
#define NEXT (place == 3 && !ENDED(lowest) -> lowest : LOWEST)
/* It has taken the last word that has come, and may do something else. */
#define FREE (from == RANKS && !decided)

byte dead = 0;         /* set */
byte deaths = 0;
byte answers[RANKS];   /* plus one; 0: none */

/* The place of a rank among those that are not in `out`, and who has a place. The tree is binomial, as in the code: for
 * up to four members, 0 is above 1 and 2, and 2 above 3. */
inline find_place() {
  d_step {
    place = 0; members = 0; i = 0;
    do
    :: i < RANKS && !HAS(out, i) -> if :: i < me -> place++ :: else -> skip fi; members++; i++
    :: i < RANKS && HAS(out, i) -> i++
    :: i == RANKS -> break
    od;
    at[0] = RANKS; at[1] = RANKS; at[2] = RANKS; at[3] = RANKS;
    i = 0; j = 0;
    do
    :: i < RANKS && !HAS(out, i) -> at[j] = i; j++; i++
    :: i < RANKS && HAS(out, i) -> i++
    :: i == RANKS -> break
    od;
    below = 0;
    if
    :: place == 0 && members > 2 -> below = BIT(at[1]) | BIT(at[2])
    :: place == 0 && members == 2 -> below = BIT(at[1])
    :: place == 2 && members == 4 -> below = BIT(at[3])
    :: else -> skip
    fi;
    above = (place == 3 -> at[2] : at[0]);
    lowest = at[0];
    replied = 0; said = 0; turned = RANKS;
    hearers = hearers | below;
    i = 0; j = 0
  }
}

/* Says a word to each of a set; may die before each. */
inline tell(set, kind) {
  to = 0;
  do
  :: to < RANKS && HAS(set, to) ->
     if
     :: deaths < DEATHS -> atomic { dead = dead | BIT(me); deaths++; goto end }
     :: true -> skip
     fi;
     if
     :: atomic { HAS(dead, to) -> skip }
     :: atomic { !HAS(dead, to) -> WAY(me, to)!kind, ballot, carried, adopted }
     fi;
     to++
  :: to < RANKS && !HAS(set, to) -> to++
  :: to == RANKS -> break
  od
}

inline lead(number) {
  ballot = number;
  out = out | known;
#ifdef FRESH
  if :: number % ATTEMPTS == 0 -> adopted = 0 :: else -> skip fi;
#endif
  find_place();
  proposes = (adopted != 0);
  carried = out;
  heard = BIT(me);
  if
  :: proposes -> tell(below, PROPOSE)
  :: else -> tell(below, ASK)
  fi
}

inline decide() {
  decided = 1;
  atomic {
    answers[me] = adopted;
    i = 0;
    do
    :: i < RANKS ->
       assert(answers[i] == 0 || answers[i] == adopted);       /* all get the same */
       assert(HAS(dead, i) || HAS(adopted - 1, i));             /* the word of who lives counts */
       i++
    :: i == RANKS -> break
    od;
    i = 0
  }
  carried = 0;
  if :: lowest != me -> hearers = hearers | BIT(above) :: else -> skip fi;
  tell((hearers & ~known) & ~BIT(me), COMMIT)
}

proctype Rank(byte me) {
  byte ballot = 0, out = 0, known = 0, heard, adopted = 0, carried = 0; /* adopted: the set plus one */
  byte place, members, below, above, lowest, replied, hearers = 0, turned, next;
  byte at[4];
  bool proposes = 0, said = 0, decided = 0;
  byte i = 0, j = 0, to = 0, from = RANKS;
  mtype kind;
  byte its_ballot, its_set, its_answer;

  heard = BIT(me);
  find_place();

  do
  /* A word comes, from any rank. */
  :: TAKE(0)
  :: TAKE(1)
  :: TAKE(2)
#if RANKS > 3
  :: TAKE(3)
#endif
  :: from != RANKS ->
     if
     :: decided ->
        if
        :: kind != COMMIT -> carried = 0; tell(BIT(from), COMMIT)
        :: else -> skip
        fi
     :: !decided && kind == COMMIT -> adopted = its_answer; decide()
     :: !decided && (kind == ASK || kind == PROPOSE) ->
        if
#ifdef SIDESTEP
        :: (its_ballot == ballot && (kind == ASK || proposes)) -> skip
#else
        :: (its_ballot < ballot || (its_ballot == ballot && (kind == ASK || proposes))) -> skip
#endif
        :: else ->
           ballot = its_ballot; out = its_set; known = (known | out) & ~BIT(me);
           find_place();
           heard = BIT(me);
           proposes = (kind == PROPOSE);
           if :: proposes -> adopted = its_answer :: else -> skip fi;
           carried = out;
           tell(below & ~known, kind)
        fi
     :: !decided && (kind == WORD || kind == ACK) ->
        d_step {
          known = known | its_set;
          if
          :: its_ballot == ballot && ((kind == ACK) == proposes) ->
             replied = replied | BIT(from);
             if :: kind == WORD -> heard = heard | its_answer :: else -> skip fi
          :: else -> skip
          fi
        }
     :: !decided && kind == ORPHAN ->
        d_step { known = known | its_set; hearers = hearers | BIT(from) }
     fi;
     kind = 0; its_ballot = 0; its_set = 0; its_answer = 0; from = RANKS

  /* All below it have answered, or ended. */
  :: FREE && !said && (below & ~(replied | known)) == 0 ->
     if
     :: lowest != me ->
        said = 1;
        carried = known & ~out;
        if
        :: proposes -> tell(BIT(above), ACK)
        :: else -> j = adopted; adopted = heard; tell(BIT(above), WORD); adopted = j; j = 0
        fi
#ifdef NO_RESTART
     :: lowest == me && (known & ~out) != 0 && !proposes -> lead(ballot + 1)
     :: lowest == me && ((known & ~out) == 0 || proposes) ->
#else
     :: lowest == me && (known & ~out) != 0 -> lead(ballot + 1)
     :: lowest == me && (known & ~out) == 0 ->
#endif
        if
        :: proposes -> decide()
        :: else ->
           adopted = heard + 1;
#ifdef EARLY
           decide()
#else
           proposes = 1;
           replied = 0;
           carried = out;
           tell(below, PROPOSE)
#endif
        fi
     fi

  /* One below it that has not answered has ended. */
#define LOST(rank) atomic { FREE && HAS(below & ~(replied | known), rank) && ENDED(rank) -> known = known | BIT(rank) }
  :: LOST(1)
  :: LOST(2)
#if RANKS > 3
  :: LOST(3)
#endif

#ifndef ALONE
  /* The one above it has ended: it turns to the next one, or leads. */
  :: atomic { FREE && lowest != me && ENDED(above) && NEXT != turned ->
       next = NEXT;
       known = known | BIT(above);
       i = 0;
       do
       :: i < next -> if :: ENDED(i) -> known = known | BIT(i) :: else -> skip fi; i++
       :: else -> break
       od;
       i = 0
     };
     if
     :: next == me -> lead(me * ATTEMPTS)
     :: else -> turned = next; carried = known; tell(BIT(next), ORPHAN)
     fi;
     next = 0
#endif

  :: atomic { from == RANKS && deaths < DEATHS -> dead = dead | BIT(me); deaths++; break }
  /* All that live have their answer, and nothing is on its way. */
  :: atomic { from == RANKS && decided && timeout -> break }
  od;
end:
  skip
}

init {
  byte k = 0;
  atomic {
    do
    :: k < RANKS -> run Rank(k); k++
    :: k == RANKS -> break
    od
  }
}
