/* The obvious protocol, in the two orders that come to mind first. Both fail;
 * that spin finds it is what keeps the checks of ownership.pml honest.
 *
 * One word for the owner and its term, one heartbeat without a tag, no seal.
 *
 * CASFIRST: the owner word is swapped first, and the heartbeat written after.
 *   Nobody ever ticks here, so nobody is late, and everybody who ends up as
 *   owner still means to be: one term after the other is taken from an owner
 *   that was told a moment ago that the lease is its own.
 * HEARTBEATFIRST: the heartbeat is loaded before the epoch. The owner beats in
 *   every epoch before the next begins, and yet is found stale.
 * Neither: the epoch first, and the same healthy owner: it is never found stale.
 */
#ifndef NP
#define NP 3
#endif
#define GRACE 1
#ifndef MAXE
#define MAXE 6
#endif

#ifdef CASFIRST
byte Op = NP+1, Ot = 1, H = 0, epoch = 5;   /* a stale owner */
byte told;                                  /* latest owner that was told so */

proctype member(byte me) {
   byte p, t, h, e;
   e = epoch;
   atomic { p = Op; t = Ot };
   h = H;
   if :: e > h + GRACE :: else -> goto refused fi;
   atomic {
      if :: Op == p && Ot == t -> Op = me; Ot = t+1 :: else -> goto refused fi;
      printf("P%d takes term %d from P%d, heartbeat %d, in epoch %d\n", me, t+1, p, h, e);
      assert(told == 0 || told != p) };     /* p was told, and nobody has ticked since */
   H = e;
   atomic { told = me; printf("P%d is told that it owns term %d\n", me, t+1); assert(Op == me) };
refused:
   skip
}
init { atomic { byte i = 1; do :: i <= NP -> run member(i); i++ :: else -> break od } }

#else
byte H, epoch;
bool beaten = true;

proctype owner() { end: do :: atomic { !beaten -> H = epoch; beaten = true; printf("the owner beats in epoch %d\n", epoch) } od }
proctype ticker() { end: do :: atomic { beaten && epoch < MAXE -> epoch++; beaten = false; printf("epoch %d\n", epoch) } od }

proctype member(byte me) {
   byte h, e;
#ifdef HEARTBEATFIRST
   atomic { h = H; printf("P%d loads heartbeat %d\n", me, h) };
   atomic { e = epoch; printf("P%d loads epoch %d\n", me, e) };
#else
   e = epoch;
   h = H;
#endif
   if :: e > h + GRACE -> printf("P%d finds the owner stale: heartbeat %d in epoch %d; it says %d\n", me, h, e, H); assert(false) :: else fi
}
init { atomic { byte i = 1; run owner(); run ticker(); do :: i <= NP -> run member(i); i++ :: else -> break od } }
#endif
