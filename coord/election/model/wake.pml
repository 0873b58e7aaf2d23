/* Waiting for the lease without polling (coord/shm.WakeAll, heartbeat.Seat).
 *
 * A waiter sets its waiting bit, reads its event word, judges, and sleeps only
 * while the word is unchanged. Whoever changes what is waited for raises the
 * word afterwards, and looks at the bit last. So nobody sleeps while the lease
 * is free: where nothing can happen any more, the lease is owned.
 *
 * DIES: the releasing owner may die between its change and its wake. Then only
 * a tick wakes the waiters (TICK): whoever wakes judges everything again.
 *
 * Mutants: COUNTLATE (the event word is read after judging), BITLATE with
 * LOOKFIRST (the waiting bit is set after judging, and looked at before the word
 * is raised; either alone does no harm), WAKEFIRST (the wake comes before the
 * change), ONEWAKE (only one waiter is woken, and dies).
 */
#ifndef NW
#define NW 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
byte Op = NW+1;
byte event[NW+1];
bool waiting[NW+1], asleep[NW+1], dead[NW+1];
byte deaths = 1;
byte ticks = 1;

#ifdef DIES
#define MAYDIE :: atomic { deaths > 0 -> deaths--; goto died }
#else
#define MAYDIE
#endif

/* Every seat in turn: raise, look at the bit, wake. */
inline wakeAll() {
   i = 1;
   do
   :: i <= NW ->
#ifdef LOOKFIRST
      if MAYDIE :: b = waiting[i] fi;
      event[i]++;
#else
      event[i]++;
      if MAYDIE :: b = waiting[i] fi;
#endif
      if :: b -> asleep[i] = false :: else fi;
#ifdef ONEWAKE
      break;
#endif
      i++
   :: else -> break
   od;
   i = 0; b = 0
}

proctype waiter(byte me) {
   byte count, rounds = ROUNDS, i; bool b, free;
again:
#ifndef BITLATE
   waiting[me] = true;
#endif
#ifndef COUNTLATE
   count = event[me];
#endif
   free = (Op == 0);
   if
   :: free ->
#ifdef ONEWAKE
      if :: atomic { deaths > 0 -> deaths--; goto died } :: skip fi;
#endif
      atomic { if :: Op == 0 -> Op = me; printf("P%d has the lease\n", me) :: else -> goto again fi };
      goto have
   :: else
   fi;
#ifdef COUNTLATE
   count = event[me];
#endif
#ifdef BITLATE
   waiting[me] = true;
#endif
   atomic { if :: event[me] == count -> asleep[me] = true; printf("P%d sleeps\n", me) :: else fi };
   !asleep[me];
   count = 0;
   goto again;
have:
   waiting[me] = false;
   if :: rounds == 0 -> goto over :: else -> rounds-- fi;
#ifdef WAKEFIRST
   wakeAll();
#endif
   if MAYDIE :: atomic { Op = 0; printf("P%d releases\n", me) } fi;
#ifndef WAKEFIRST
   wakeAll();
#endif
   goto again;
died:
   atomic { dead[me] = true; if :: Op == me -> Op = 0 :: else fi; printf("P%d dies\n", me) };  /* evicted, and the evictor dies too */
over:
   count = 0; free = false
}

proctype first() {
   byte i; bool b; byte me = NW+1;
#ifdef WAKEFIRST
   wakeAll();
#endif
   atomic { Op = 0; printf("P%d releases\n", me) };
#ifdef DIES
   if MAYDIE :: skip fi;
#endif
#ifndef WAKEFIRST
   wakeAll();
#endif
died:
   skip
}

proctype ends() {
   byte i;
again:
   timeout;
#ifdef TICK
   atomic {
      if
      :: ticks > 0 -> ticks--; printf("a tick\n"); i = 1; do :: i <= NW -> asleep[i] = false; i++ :: else -> break od; i = 0; goto again
      :: else
      fi };
#endif
   atomic {
      i = 1; do :: i <= NW && dead[i] -> i++ :: else -> break od;
      assert(Op != 0 || i > NW) }
}

init { atomic { byte i = 1; do :: i <= NW -> run waiter(i); i++ :: else -> break od; i = 0; run ends(); run first() } }
