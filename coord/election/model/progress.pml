/* Somebody gets it: where the owner is gone and somebody wants the lease, there
 * is an owner again, and it stays. Weak fairness: whoever can go on does so some
 * time; nobody is bound to do so soon.
 *
 * The claim is that of ownership.pml. Everybody wants the lease and nobody gives
 * it back. A member may hang for ever, without any proof of it, or die with one,
 * before any step; all but one may. Nobody ticks but the members themselves, in
 * turn with what else they do. At the start the lease belongs to somebody who
 * has hung already.
 *
 * CONTROL: a supervisor has paused the role, or named who shall have the lease,
 * and was then seen no more. A nominee that is dead binds nobody, and until ends
 * all of it.
 *
 * The epoch stops at MAXE, as the states must be finite; so a member hangs only
 * while enough epochs are left to find it.
 *
 * Mutants: OWNERTICKS (only the owner ticks), NOJUDGE (a sealed heartbeat counts
 * as somebody else's business: who seals and dies leaves the lease to nobody),
 * FOREVER (the control word has no until).
 */
#ifndef NP
#define NP 2
#endif
#ifndef GRACE
#define GRACE 1
#endif
#ifndef MAXE
#define MAXE 4
#endif
#ifndef FAULTS
#define FAULTS (NP-1)
#endif

byte Op = NP+1, Ot = 1;
byte Htag[2], Hep[2];
bool Hseal[2];
byte epoch;
bool dead[NP+2], hung[NP+2];
byte faults = FAULTS;
#ifdef CONTROL
/* The control word, while its until has not passed: nobody may claim, or only a
 * nominee. */
byte nominee, paused;
#define FORBIDDEN (paused || nominee != 0 && nominee != me && !dead[nominee])
#else
#define FORBIDDEN false
#endif

mtype = { none, vacant, stale, crash };
#define NEXT(t)  ((t+1)&1)
#define FAIL :: atomic { faults > 0 -> faults--; goto died } \
             :: atomic { faults > 0 && epoch + GRACE + 1 <= MAXE -> faults--; hung[me] = true; printf("P%d hangs\n", me); goto hangs }

inline forget() { p = 0; t = 0; e = 0; he = 0; hs = 0; my = 0; why = none }
inline tick() {
   if FAIL :: atomic { true; if :: epoch < MAXE -> epoch++; printf("P%d: epoch %d\n", me, epoch) :: else fi } fi
}

proctype member(byte me) {
   byte p, t, e, he, my; bool hs; mtype why = none;
again:
   forget();
#ifndef OWNERTICKS
   tick();
#endif
   if FAIL :: e = epoch fi;
   if FAIL :: atomic { p = Op; t = Ot } fi;
   if FAIL :: atomic { true;
      if :: Htag[t&1] != t -> goto again :: else fi;
      he = Hep[t&1]; hs = Hseal[t&1];
      if :: FORBIDDEN -> goto again :: else fi;                        /* C4 */
      if
      :: p == 0 -> why = vacant
      :: p != 0 && dead[p] -> why = crash
#ifdef NOJUDGE
      :: p != 0 && !dead[p] && !hs && e > he + GRACE -> why = stale
#else
      :: p != 0 && !dead[p] && (hs || e > he + GRACE) -> why = stale
#endif
      :: else -> goto again
      fi } fi;
   if FAIL :: atomic { true;
      if
      :: Htag[NEXT(t)] == t-1 -> Htag[NEXT(t)] = t+1; Hep[NEXT(t)] = e; Hseal[NEXT(t)] = false
      :: Htag[NEXT(t)] == t+1 -> if :: !Hseal[NEXT(t)] && e > Hep[NEXT(t)] -> Hep[NEXT(t)] = e :: else fi
      :: else -> goto again
      fi } fi;
   if FAIL :: atomic { true;
      if
      :: why == stale && Htag[t&1] == t && Hep[t&1] == he && Hseal[t&1] == hs -> Hseal[t&1] = true
      :: why == stale && !(Htag[t&1] == t && Hep[t&1] == he && Hseal[t&1] == hs) -> goto again
      :: why != stale
      fi } fi;
   if FAIL :: atomic { true;
      if :: Op == p && Ot == t -> Op = me; Ot = t+1; my = t+1; printf("P%d owns term %d\n", me, my) :: else -> goto again fi;
      p = 0; t = 0; e = 0; he = 0; hs = false; why = none } fi;
own:
   tick();
   if FAIL :: atomic { true; if :: Op == me && Ot == my -> skip :: else -> goto lost fi } fi;
   if FAIL :: e = epoch fi;
   if FAIL :: atomic { true;
      if
      :: Htag[my&1] == my && !Hseal[my&1] -> if :: Hep[my&1] < e -> Hep[my&1] = e :: else fi; e = 0; goto own
      :: else
      fi } fi;
lost:
   if FAIL :: atomic { true; if :: Op == me && Ot == my -> Op = 0 :: else fi; goto again } fi;
hangs:
   false;
died:
   atomic { forget(); dead[me] = true; printf("P%d dies\n", me) }
}

#ifdef CONTROL
/* The supervisor has set the control word, and is gone. Until passes. */
proctype until() {
   if :: paused = true :: nominee = 1 :: nominee = NP fi;
#ifndef FOREVER
   atomic { nominee = 0; paused = false }
#endif
}
#endif

/* Keeps a system in which nothing can happen any more from ending: to spin an
 * end is a state that lasts. */
bit z;
proctype idle() { do :: z = 1 - z od }

init {
   atomic {
      Htag[1] = 1;
      byte i = 1;
      do :: i <= NP -> run member(i); i++ :: else -> break od;
      i = 0;
#ifdef CONTROL
      run until();
#endif
      run idle()
   }
}

ltl owned { <>[] (Op != 0 && Op <= NP && !dead[Op] && !hung[Op]) }
