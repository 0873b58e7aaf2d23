/* Who may act: claim, gate, fence, publish, lead, retire, release (rules R5,
 * R8, R10), under a supervisor that grants, vetoes, closes and reopens.
 *
 * How the lease was got plays no part: any member may take it from any other
 * at any moment, as if staleness were judged as badly as can be. So what is
 * checked here rests on fencing alone. A member may stop anywhere for any time
 * (it is not scheduled), and dies when it is killed, some time later, or by
 * itself (DEATHS of them).
 *
 * GATE: a term leads only when it was granted. CLOSES: how often the supervisor
 * closes the role; when it then has seen the owner word vacant, and after that
 * the active word too, the role is quiet: nobody leads until it reopens.
 * TOKEN: nobody is fenced (fence = "token"): leaders may overlap, but never
 * publish in a falling order.
 *
 * Mutants: PLAIN (the active word is stored, not swapped), NOORDER (a claimant
 * publishes though a later term has), GATEEARLY (the gate is looked at before
 * the claim only), NORELOOK (closed is looked at before the claim only),
 * NORECHECK (the owner word is not looked at after publishing), OWNERFENCE (who
 * is fenced is read from the owner word at the claim, not from the active word).
 */
#ifndef NP
#define NP 3
#endif
#ifndef MAXT
#define MAXT 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef CLOSES
#define CLOSES 0
#endif

byte Op, Ot;                     /* O */
byte Ap, At;                     /* A */
bool closed;                     /* control word: closed (held is the same to a claimant) */
#ifdef GATE
byte granted, resign;            /* control word: latest granted term; term that is asked to resign */
byte allowed;                    /* what the supervisor said yes to: one bit per term */
#endif
bool killed[NP+1], dead[NP+1];
byte deaths = DEATHS;

bool may[NP+1];                  /* published, and neither stopped nor dead */
byte top;                        /* latest term that published */
bool quiet;
bool out[NP+1];                  /* has found the last term */

#define MINE (Op == me && Ot == my)
#define CLOSED closed
inline forget() { p = 0; t = 0; my = 0; x = 0; xt = 0 }

inline published() {
   may[me] = true;
   printf("P%d publishes term %d; O is (%d,%d)\n", me, my, Op, Ot);
#ifndef TOKEN
   p = 1; do :: p <= NP -> assert(p == me || !may[p] || dead[p]); p++ :: else -> break od; p = 0;
#endif
   assert(my > top); top = my
}

proctype member(byte me) provided (!dead[me]) {
   byte p, t, my, x, xt;
again:
   atomic { forget(); p = Op; t = Ot; if :: t >= MAXT -> goto over :: p == me -> goto again :: else fi };
   if :: CLOSED -> goto again :: else fi;                                   /* C4 */
#ifdef GATEEARLY
   if :: granted == t :: else -> goto again fi;
#endif
   atomic {                                                                 /* C9 */
      if :: Op == p && Ot == t -> Op = me; Ot = t+1; my = t+1; printf("P%d takes term %d from P%d\n", me, my, p) :: else -> goto again fi;
#ifndef OWNERFENCE
      p = 0;
#endif
      t = 0 };
#if defined(GATE) && !defined(GATEEARLY)
   if                                                                       /* gate */
   :: granted == my
   :: atomic { resign == my -> goto stop }
   :: atomic { !MINE -> goto stop }
   :: atomic { CLOSED -> goto stop }
   fi;
#endif
fence:
#ifdef OWNERFENCE
   atomic { xt = At; x = Ap };
   if :: p == 0 || p == me :: atomic { p != 0 && p != me -> killed[p] = true }; dead[p] fi;
   p = 0;
#else
   atomic { x = Ap; xt = At;                                                /* P1 */
#ifndef NOORDER
      if :: xt >= my -> goto stop :: else fi
#endif
      };
#ifndef TOKEN
   if                                                                       /* P2 */
   :: x == 0 || x == me
   :: x != 0 && x != me ->
      if :: atomic { !MINE -> goto stop } :: MINE fi;
      atomic { killed[x] = true; printf("P%d kills P%d\n", me, x) };
      if
      :: dead[x]
      :: atomic { !(Ap == x && At == xt) -> goto fence }
      :: goto stop                                                          /* no proof in time */
      fi
   fi;
#endif
#endif
#ifndef NORELOOK
   if :: atomic { CLOSED -> goto stop } :: !CLOSED fi;
#endif
#ifdef PLAIN
   if :: atomic { !(Ap == x && At == xt) -> goto fence } :: Ap == x && At == xt fi;
   atomic { Ap = me; At = my; published() };
#else
   atomic {                                                                 /* P3 */
      if :: Ap == x && At == xt -> Ap = me; At = my; published() :: else -> goto fence fi };
#endif
   x = 0; xt = 0;
#ifndef NORECHECK
   if :: MINE :: atomic { !MINE -> may[me] = false; goto stop } fi;         /* P4 */
#endif
   atomic {
      printf("P%d leads in term %d\n", me, my);
      assert(!quiet);
#ifdef GATE
      assert(allowed & (1 << my));
#endif
   };
   /* It leads, until it is lost or closed or wants no more. */
   atomic { may[me] = false; printf("P%d has stopped\n", me) };
stop:
   atomic { if :: Ap == me && At == my -> Ap = 0; printf("P%d retires\n", me) :: else fi };
   atomic { if :: MINE -> Op = 0; printf("P%d releases\n", me) :: else fi };
   goto again;
over:
   atomic { forget(); out[me] = true }
}

/* Nobody is ever stuck: where nothing can happen any more, everyone is dead or
 * has found that there is no further term. */
proctype ends() {
   byte i;
   timeout;
   atomic { i = 1; do :: i <= NP -> assert(dead[i] || out[i]); i++ :: else -> break od }
}

/* Death comes some time after the kill, and also by itself. Whoever proves it
 * may evict and bury: a proof, and then a CAS from what was loaded before it. A
 * death is final here, so the two are one step. */
proctype fate() {
   byte i;
end:
   do
   :: atomic { killed[1] && !dead[1] -> i = 1; goto strikes }
#if NP > 1
   :: atomic { killed[2] && !dead[2] -> i = 2; goto strikes }
#endif
#if NP > 2
   :: atomic { killed[3] && !dead[3] -> i = 3; goto strikes }
#endif
#if DEATHS > 0
   :: atomic { deaths > 0 -> deaths--; i = 1; do :: i < NP -> i++ :: break od; goto strikes }
#endif
   :: atomic { Op != 0 && dead[Op] -> printf("P%d is evicted\n", Op); Op = 0 }
   :: atomic { Ap != 0 && dead[Ap] -> printf("P%d is buried\n", Ap); Ap = 0 }
   od;
strikes:
   atomic { dead[i] = true; may[i] = false; printf("P%d is dead\n", i); i = 0; goto end }
}

#if CLOSES > 0 || defined(GATE)
proctype supervisor() {
   byte t, seen, closes = CLOSES;
end:
   do
#ifdef GATE
   :: atomic { Op != 0 && Ot > seen -> t = Ot };
      if
      :: atomic { allowed = allowed | (1 << t); granted = t; printf("term %d is granted\n", t) }
      :: atomic { resign = t; printf("term %d is vetoed\n", t) }
      fi;
      atomic { seen = t; t = 0 }
#endif
#if CLOSES > 0
   :: atomic { closes > 0 -> closes--; closed = true; printf("the role is closed\n") };
      atomic { Op == 0 -> printf("nobody owns the lease\n") };
      atomic { Ap == 0 -> quiet = true; printf("nobody acts: the role is quiet\n") };
      atomic { quiet = false; closed = false; printf("the role is open\n") }
#endif
   od
}
#endif

init {
   atomic {
      byte i = 1;
      do :: i <= NP -> run member(i); i++ :: else -> break od;
      i = 0;
      run ends();
      run fate()
#if CLOSES > 0 || defined(GATE)
      ; run supervisor()
#endif
   }
}
