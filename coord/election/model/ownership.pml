/* Who owns the lease: claim, beat, release, evict, tick (rules R1 to R5, R7).
 *
 * Each guarded line is one access to shared words and takes one step; between
 * any two of them the process may be stopped for any time (it is not scheduled)
 * or die (DIES). Loads that nothing follows but a restart, and a CAS with the
 * load that it goes back to, are one step: a CAS that fails leads to where the
 * process could have been anyway.
 *
 * The epoch may be advanced at any moment. That stands for Tick by any member
 * or the supervisor, at any pace; clock.pml has the tick itself.
 *
 * Sizes: NP claimants, MAXT terms, MAXE epochs, DEATHS.
 * Policy: sticky; LOWEST: a lower pid takes the lease from a healthy owner.
 * EVICT: somebody evicts the dead. REBORN: the dead come back with their pid.
 *
 * Mutants: ORDER=1 (owner word, epoch, heartbeat), ORDER=2 (owner word,
 * heartbeat, epoch); NOSEAL; UNSIGNED (an age that does not know "newer");
 * PROOFFIRST (the evictor proves, and then loads the owner word); PLAINOWNER
 * (the owner word is stored, not swapped); ANYTAG (H of the coming term is
 * overwritten whatever stands there).
 */
#ifndef NP
#define NP 3
#endif
#ifndef GRACE
#define GRACE 1
#endif
#ifndef MAXT
#define MAXT 2
#endif
#ifndef MAXE
#define MAXE 3
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef ORDER
#define ORDER 0
#endif

byte Op, Ot;                    /* O = (pid, term) */
byte Htag[2], Hep[2];           /* H[term&1] = (tag, epoch, sealed) */
bool Hseal[2];
byte epoch;
bool dead[NP+1];                /* by pid: what a proof of death finds */
byte deaths = DEATHS;

/* What the checks remember; no process decides by it. */
byte granted;                   /* latest term that was granted */
byte born;                      /* the epoch in which it was */
byte life;                      /* epoch of its owner's last sign of life */
bool present;                   /* the process that was granted it has not died */

mtype = { none, vacant, hang, crash, preempt };

#define NEXT(t)  ((t+1)&1)
#define BEFORE(t) ((t) == 0 -> 255 : (t)-1)
#ifdef UNSIGNED
#define STALE(e,h) ((e) < (h) || (e) > (h) + GRACE)
#else
#define STALE(e,h) ((e) > (h) + GRACE)
#endif
#if DEATHS > 0
#define DIES :: atomic { deaths > 0 -> deaths--; goto died }
#else
#define DIES
#endif

inline forget() { p = 0; t = 0; e = 0; he = 0; hs = 0; my = 0; why = none }

inline mayTake() {
   if
   :: p == 0 -> why = vacant
   :: p != 0 && dead[p] -> why = crash
   :: p != 0 && (hs || STALE(e, he)) -> why = hang
#ifdef LOWEST
   :: p != 0 && me < p -> why = preempt
#endif
   :: else -> why = none
   fi
}

/* Nobody but the owner makes its heartbeat look newer than its birth and its
 * own beats; so a hung owner is found as early as the rule says. (TAKES leaves
 * that out, to see a mutant take the lease.) */
#ifdef TAKES
#define NOT_REFRESHED(term) skip
#else
#define NOT_REFRESHED(term) assert(!(Ot == (term) && Op != 0 && Hep[(term)&1] > born && Hep[(term)&1] > life))
#endif

inline granted_now() {
   assert(granted == t);                                /* each term once, and they rise by one */
   granted = t+1; born = epoch; life = e; present = true;
   assert(Htag[NEXT(t)] == t+1);                        /* a beat of the new owner finds its word */
   assert(Hep[NEXT(t)] >= e);                           /* as fresh as its claim's epoch */
   printf("P%d owns term %d (%e) by epoch %d in epoch %d; H says %d\n", me, t+1, why, e, epoch, Hep[NEXT(t)])
}

inline check_take() {
   if
   :: why == hang ->
      if :: epoch <= life + GRACE ->
            printf("P%d takes term %d from P%d, which showed life in epoch %d, in epoch %d\n", me, t+1, p, life, epoch)
         :: else fi;
      assert(epoch > life + GRACE)                      /* it stood still for more than grace epochs */
#ifdef REBORN
   :: why == crash -> assert(!present)
#else
   :: why == crash -> assert(dead[p])
#endif
   :: else
   fi
}

proctype member(byte me) {
   byte p, t, e, he, my; bool hs; mtype why = none;
again:
#if ORDER == 0
   if DIES :: atomic { forget(); e = epoch } fi;                                           /* C1 */
#endif
   if DIES :: atomic {                                                                     /* C2 */
#if ORDER != 0
      forget();
#endif
      p = Op; t = Ot; if :: t >= MAXT -> goto over :: else fi } fi;
#if ORDER == 1
   if DIES :: e = epoch fi;
#endif
   if DIES :: atomic { true;
      if :: Htag[t&1] != t -> goto again :: else fi;
      he = Hep[t&1]; hs = Hseal[t&1];
#if ORDER == 2
      } fi;
   if DIES :: atomic { e = epoch;
#endif
      mayTake();                                                                           /* C5 */
      if :: why == none -> goto again :: why == hang :: else -> he = 0; hs = 0 fi } fi;
   if DIES :: atomic { true;                                                               /* C6 */
      if
#ifdef ANYTAG
      :: true -> Htag[NEXT(t)] = t+1; Hep[NEXT(t)] = e; Hseal[NEXT(t)] = 0
#else
      :: Htag[NEXT(t)] == BEFORE(t) -> Htag[NEXT(t)] = t+1; Hep[NEXT(t)] = e; Hseal[NEXT(t)] = 0
      :: Htag[NEXT(t)] == t+1 ->
         if :: !Hseal[NEXT(t)] && e > Hep[NEXT(t)] -> Hep[NEXT(t)] = e :: else fi;
         NOT_REFRESHED(t+1)
      :: else -> goto again
#endif
      fi;
      printf("P%d prepares term %d with epoch %d\n", me, t+1, e) } fi;
#ifndef NOSEAL
   if DIES :: atomic { true;                                                               /* C8 */
      if
      :: why == hang && Htag[t&1] == t && Hep[t&1] == he && Hseal[t&1] == hs -> Hseal[t&1] = true; printf("P%d seals term %d\n", me, t)
      :: why == hang && !(Htag[t&1] == t && Hep[t&1] == he && Hseal[t&1] == hs) -> goto again
      :: why != hang
      fi } fi;
#endif
#ifdef PLAINOWNER
   if DIES :: atomic { true; if :: Op == p && Ot == t -> skip :: else -> goto again fi } fi;
   if DIES :: atomic {
#else
   if DIES :: atomic { true;                                                               /* C9 */
      if :: Op == p && Ot == t -> skip :: else -> goto again fi;
#endif
      check_take(); Op = me; Ot = t+1; granted_now();
      my = t+1; p = 0; t = 0; e = 0; he = 0; hs = 0; why = none } fi;
own:
   if DIES
   :: atomic { true; if :: Op == me && Ot == my -> skip :: else -> goto lost fi };                     /* Beat */
      if DIES :: e = epoch fi;
      if DIES
      :: atomic { true;
            if
            :: Htag[my&1] == my && !Hseal[my&1] ->
               if :: Hep[my&1] < e -> Hep[my&1] = e :: else fi;
               if :: Ot == my && life < e -> life = e :: else fi;
               printf("P%d beats in term %d with epoch %d\n", me, my, e);
               e = 0; goto own
            :: else -> assert(Op != me || Ot != my || Htag[my&1] == my); goto lost
            fi }
      fi
   :: goto lost                                                                            /* it wants no more */
   :: atomic { Op == me && Ot == my && Hseal[my&1] -> Op = 0; goto again }                 /* C3: a claim by the sealed owner */
   fi;
lost:
   if DIES :: atomic { true; if :: Op == me && Ot == my -> Op = 0; printf("P%d releases term %d\n", me, my) :: else fi; goto again } fi;
died:
   atomic { forget(); dead[me] = true; if :: Op == me -> present = false :: else fi; printf("P%d dies\n", me) };
#ifdef REBORN
   atomic { dead[me] = false; printf("P%d is back\n", me) };
   /* Join: that we have the pid proves that its earlier process is dead. */
   if DIES :: atomic { Op == me -> Op = 0 } :: atomic { Op != me } fi;
   goto again;
#endif
over:
   forget()
}

proctype ticker() {
end:
   do :: atomic { epoch < MAXE -> epoch++ } od
}

#ifdef EVICT
proctype evictor() {
   byte p, t;
end:
   do
#ifdef PROOFFIRST
   :: dead[1]; atomic { Op == 1 -> p = Op; t = Ot };
#else
   :: atomic { Op != 0 -> p = Op; t = Ot };
      if :: atomic { dead[p] } :: atomic { !dead[p] -> p = 0; t = 0; goto end } fi;
#endif
      atomic { true;
         if :: Op == p && Ot == t -> printf("P%d is evicted from term %d\n", p, t); assert(!present); Op = 0 :: else fi;
         p = 0; t = 0 }
   od
}
#endif

init {
   atomic {
      Htag[1] = 255;
      byte i = 1;
      do :: i <= NP -> run member(i); i++ :: else -> break od;
      i = 0;
      run ticker()
#ifdef EVICT
      ; run evictor()
#endif
   }
}
