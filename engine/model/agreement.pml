/* Agreement among ranks that die: engine/consensus.hpp and .cpp, and Consensus::gone.
 *
 * A rank's word lands in the peer's memory at once; a rank may die before each of its words, so that some peers have it
 * and others have not, and at any time after its answer. Whether a rank has died is asked of the system, whose answer
 * is right. What is agreed on is the set of ranks whose values count, so two different answers are two different sets.
 *
 * That a rank has vanished, and may live on behind a network that is cut, is not in this model: then the agreement begins
 * anew among those of one part, for whom this model holds again.
 *
 * All that get an answer must get the same, also those that die afterwards; an answer has the values of all ranks that
 * live. Nobody waits for ever: spin reports that as an invalid end state.
 *
 * One of these is defined:
 *   ONCE         nobody gives up
 *   GIVES_UP     each rank may give up once, by its deadline, and calls again, with a value that is less: it goes on
 * or, wrong on purpose:
 *   ANEW         who gives up begins anew, with the new value
 *   SUSPICIOUS   a rank that lives may be taken for dead
 *   NO_TURNS     the words of the first round are the answer
 */

#ifndef RANKS
#define RANKS 3
#endif

#define ROUNDS (RANKS + 1)
#define ALL ((1 << RANKS) - 1)
#define WORD(to, round, from) word[((to) * ROUNDS + (round)) * RANKS + (from)]

/* Words in memory, plus one; 0: none. The low bits are the ranks whose values count, the high ones those whose value
 * is the one that they gave when they called again. */
short word[RANKS * ROUNDS * RANKS];
bool dead[RANKS];
short answer[RANKS]; /* plus one; 0: none */

/* A rank's own value counts: bit `me`. That it is the second one: bit RANKS + me. Joined are the sets. */

inline die_or_go_on() {
  if
  :: true -> skip
  :: true -> dead[me] = 1; goto end
  fi
}

inline tell(round) {
  d_step { peer = 0 }
  do
  :: peer < RANKS && peer != me -> atomic { die_or_go_on(); WORD(peer, round, me) = own + 1; peer++ }
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od
}

/* Waits for a word or an end; `came` is the word, or 0. */
inline hear(round, from) {
  came = 0;
  if
  :: atomic { WORD(me, round, from) != 0 -> came = WORD(me, round, from) }
#ifdef SUSPICIOUS
  :: true -> came = WORD(me, round, from)
#else
  :: atomic { dead[from] -> came = WORD(me, round, from) }
#endif
#if defined(GIVES_UP) || defined(ANEW)
  :: atomic { !again -> again = 1 };
#ifdef ANEW
     turn = 0;
     goto begin
#else
     goto resume
#endif
#endif
  fi
}

proctype Rank(byte me) {
  short own, came;
  byte peer = 0, turn = 0, from = 0;
  bool again = 0;

begin:
  own = (1 << me) | (again << (RANKS + me));
  tell(0);
  from = 0;
#ifdef GIVES_UP
  goto listen;
resume: /* where it was: nothing that was said is said again */
  if
  :: turn == 0 -> skip
  :: else -> goto listen_turn
  fi;
listen:
#endif
  do
  :: from < RANKS && from == me -> from++
  :: from < RANKS && from != me ->
     hear(0, from);
     own = own | (came != 0 -> came - 1 : 0);
     from++
  :: from == RANKS -> break
  od;
#ifdef NO_TURNS
  goto answered;
#endif
  turn = 1;
#ifdef GIVES_UP
listen_turn:
#endif
  do
  :: turn <= RANKS && turn - 1 == me -> tell(turn); turn++
  :: turn <= RANKS && turn - 1 != me ->
     hear(turn, turn - 1);
     own = (came != 0 -> came - 1 : own);
     turn++
  :: turn > RANKS -> break
  od;
answered:
  atomic {
    answer[me] = own + 1;
    peer = 0;
    do
    :: peer < RANKS ->
       assert(answer[peer] == 0 || answer[peer] == own + 1); /* all get the same */
       assert(dead[peer] || (own >> peer) & 1);              /* the value of who lives counts */
       peer++
    :: peer == RANKS -> break
    od
  }
  die_or_go_on();
end:
  skip
}

init {
  byte i = 0;
  atomic {
    do
    :: i < RANKS -> run Rank(i); i++
    :: i == RANKS -> break
    od
  }
}
