/* What a term publishes: private cells, the commit word, adoption (rule R6; the
 * rules of coord/lease).
 *
 * Every handle that writes has a slot of two cells and only ever writes the one
 * that is not committed. A claim loads the commit word before it takes the owner
 * word, and puts its own term into it afterwards; only then it has the lease.
 * Any handle may take the lease from any other at any moment, and stop anywhere
 * for any time: nobody is fenced, that is the point. A value is two words, which
 * are stored and loaded one by one.
 *
 * NH handles, MAXT terms, WPT writes in a term. TWIN: a further handle of the
 * process of handle 1 writes in its terms, with a slot of its own. DEATHS: so
 * many handles die; LATE: one more handle then takes the slot of a dead one.
 * READER: somebody reads without the lease.
 *
 * Mutants: NOADOPT; COMMITLATE (the commit word is loaded after the owner word
 * was taken); ADOPTBLIND (an adoption that failed tries again without a look at
 * the owner word); SAMECELL (a handle takes its first cell whatever is
 * committed); NOSEQ (the commit word has no sequence number); STEAL (the late
 * handle takes a slot whose holder is only believed dead).
 */
#ifndef NH
#define NH 2
#endif
#ifndef MAXT
#define MAXT 3
#endif
#ifndef WPT
#define WPT 2
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#if defined(TWIN)
#define SLOTS (NH+1)
#else
#define SLOTS NH
#endif
#ifdef LATE
#define HANDLES (NH+1)
#else
#define HANDLES NH
#endif
#ifdef NOSEQ
#define AFTER(s) (s)
#else
#define AFTER(s) (((s)+1) % 16)
#endif

byte Op, Ot;                       /* O */
byte Ct, Cc, Cs;                   /* C = (term, cell, sequence); slot h has the cells 2h-2 and 2h-1 */
byte w[4*SLOTS];                   /* cell x is w[2x], w[2x+1] */
byte taken;                        /* a slot that the late handle holds too */
bool dead[HANDLES+1];
byte deaths = DEATHS;

byte committed;                    /* the value that stands */
byte adopted;                      /* latest term that was told that it has the lease */

#if DEATHS > 0
#define DIES :: atomic { deaths > 0 -> deaths--; goto died }
#else
#define DIES
#endif
#ifdef NOADOPT
#define MAY(c) true
#define STANDS SEEN
#else
#define MAY(c) (c == T)
#define STANDS (Ct == T)
#endif
#define MINE (Op == me && Ot == T)
#define SEEN (Ct == ct && Cc == cc && Cs == cs)
inline forget() { p = 0; t = 0; T = 0; ct = 0; cc = 0; cs = 0; x = 0; v = 0; n = 0 }

/* No store hits the committed cell. */
inline store(i) { atomic { assert(x != Cc); w[2*x+i] = v } }

inline publish() {
   assert(adopted <= T);           /* a later owner never sees the value change under it */
   Cc = x; Cs = AFTER(Cs); committed = v; n++;
   assert(w[2*x] == v && w[2*x+1] == v);
   printf("H%d publishes %d in term %d, cell %d\n", me, v, T, x)
}

/* The slot of me; the late handle's is that of a dead one. */
#define FIRST (2*((me > NH -> taken : me)-1))

inline writes() {
   do
   :: n < WPT ->
#ifdef LATE
      if
      :: me > NH && taken == 0 ->
         if
#ifdef STEAL
         :: atomic { taken = 1 }
#else
         :: atomic { dead[1] -> taken = 1; printf("H%d takes slot 1\n", me) }
         :: atomic { dead[2] -> taken = 2; printf("H%d takes slot 2\n", me) }
#endif
         :: goto gone                                          /* no free slot */
         fi
      :: else
      fi;
#endif
      if DIES :: atomic { ct = Ct; cc = Cc; cs = Cs; if :: !MAY(ct) -> goto gone :: else fi } fi;
      if DIES :: atomic { true; if :: !MINE -> goto gone :: else fi;
#ifdef SAMECELL
         x = FIRST;
#else
         x = (cc == FIRST -> FIRST+1 : FIRST);
#endif
         v = T*8 + 2*n + 1; printf("H%d writes %d into cell %d\n", me, v, x) } fi;
      if DIES :: store(0) fi;
      if DIES :: store(1) fi;
      if DIES :: atomic { true;                                /* retried while the term stands: another handle of the owner */
         if :: STANDS -> Ct = T; publish() :: else -> goto gone fi; ct = 0; cc = 0; cs = 0; x = 0; v = 0 } fi
   :: break
   od
}

proctype handle(byte me) {
   byte p, t, T, ct, cc, cs, x, v, n;
again:
   if DIES :: atomic { forget(); p = Op; t = Ot; if :: t >= MAXT -> goto over :: p == me -> goto again :: else fi } fi;
#ifndef COMMITLATE
   if DIES :: atomic { ct = Ct; cc = Cc; cs = Cs } fi;                                     /* C7 */
#endif
   if DIES :: atomic { true;                                                               /* C9 */
      if :: Op == p && Ot == t -> Op = me; Ot = t+1; T = t+1; p = 0; t = 0; printf("H%d takes term %d\n", me, T) :: else -> goto again fi } fi;
#ifdef COMMITLATE
   if DIES :: atomic { ct = Ct; cc = Cc; cs = Cs } fi;
#endif
#ifndef NOADOPT
adopt:
   if DIES :: atomic { true;                                                               /* C10 */
      if :: SEEN -> assert(ct < T); Ct = T; adopted = T; printf("H%d adopts for term %d\n", me, T); goto have :: else fi } fi;
   if DIES :: atomic { ct = Ct; cc = Cc; cs = Cs } fi;
#ifndef ADOPTBLIND
   if DIES :: atomic { true; if :: !MINE -> goto again :: else -> goto adopt fi } fi;
#else
   goto adopt;
#endif
have:
   atomic { ct = 0; cc = 0; cs = 0 };
#else
   atomic { adopted = (adopted > T -> adopted : T); ct = 0; cc = 0; cs = 0 };
#endif
   writes();
gone:
   if DIES :: atomic { true; if :: MINE -> Op = 0 :: else fi; goto again } fi;
died:
   atomic { forget(); dead[me] = true; printf("H%d dies\n", me) };
over:
   forget()
}

#ifdef TWIN
/* Another handle of the process of handle 1: it owns what that one claimed, and
 * writes once. */
proctype twin() {
   byte me = 1, T, ct, cc, cs, x, v, n;
#undef FIRST
#define FIRST (2*NH)
end:
   atomic { Op == 1 -> T = Ot; n = 0 };
   atomic { ct = Ct; cc = Cc; if :: ct != T -> goto gone :: else fi };
   atomic { if :: !MINE -> goto gone :: else fi; x = (cc == FIRST -> FIRST+1 : FIRST); v = T*8 + 2 };
   store(0);
   store(1);
   atomic { if :: Ct == T -> publish() :: else fi };
gone:
   atomic { ct = 0; cc = 0; cs = 0; x = 0; v = 0; n = 0; T = 0 }
}
#endif

#ifdef READER
proctype reader() {
   byte ct, cc, cs, a, b, c;
end:
   do
   :: atomic { ct = Ct; cc = Cc; cs = Cs; c = committed };
      a = w[2*cc];
      b = w[2*cc+1];
      atomic {
         if
         :: SEEN -> if :: a != c || b != c -> printf("the reader takes (%d,%d) for %d\n", a, b, c); assert(false) :: else fi
         :: else
         fi;
         ct = 0; cc = 0; cs = 0; a = 0; b = 0; c = 0 }
   od
}
#endif

init {
   atomic {
      byte i = 1;
      do :: i <= HANDLES -> run handle(i); i++ :: else -> break od;
      i = 0;
#ifdef TWIN
      run twin();
#endif
#ifdef READER
      run reader();
#endif
      skip
   }
}
