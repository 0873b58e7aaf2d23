/* The tick (rule R9): who may advance the epoch, how fast, and who is forgiven.
 *
 * Time is a counter of whole ticks. It goes on by one when the owner has beaten
 * since it last did, so that the owner is healthy: it beats once in each tick,
 * early or late in it. Or it goes on by more than grace at once, with nobody
 * having run: the whole machine stood still (PAUSES times). NT tickers tick,
 * each of which may stop anywhere for any time. Whoever judges, does so at once.
 * BOOT: the machine has booted since the last tick, so that it lies in the
 * future.
 *
 * The healthy owner is never found stale, whatever stood still; the epoch never
 * runs ahead of time, and of three epochs in a row the last begins a whole tick
 * after the first, whoever ticks and wherever tickers stop.
 *
 * GRACE 3 is the least with which that holds: two epochs can begin within one
 * tick when a ticker stopped in the middle of its own.
 *
 * Mutants: EPOCHLATE (the epoch is loaded after ticked_at: a ticker that was
 * stopped takes what others have done meanwhile for its own tick), OLDCLOCK (the
 * clock is read before the words are: tickers that were stopped together make
 * their ticks all at once), NOFORGIVE, FORGIVELATE (the epoch first, and then
 * the forgiveness), TICKALONE (the epoch is advanced without taking ticked_at).
 */
#ifndef NT
#define NT 2
#endif
#ifndef MAXN
#define MAXN 7
#endif
#ifndef GRACE
#define GRACE 3
#endif
#define PAUSE (GRACE+2)
#ifndef PAUSES
#define PAUSES 1
#endif
#ifdef BOOT
#define BEFORE 20
#define EARLY 1
#else
#define BEFORE 0
#define EARLY 0
#endif
byte ticked = BEFORE;
byte now, epoch, H, F;
bool beaten = true;
byte pauses = PAUSES;
byte at1, at2;                    /* when the last two epochs began */

#define DUE (n < last || n > last)
#define LONG (n < last || n - last > GRACE)

proctype ticker(byte me) {
   byte n, last, e;
again:
   e = 0; last = 0;
#ifdef OLDCLOCK
   n = now;
#endif
#ifndef EPOCHLATE
   e = epoch;
#endif
   last = ticked;
#ifndef OLDCLOCK
   n = now;
#endif
   if :: DUE :: else -> goto again fi;
#ifdef EPOCHLATE
   e = epoch;
#endif
#ifndef TICKALONE
   atomic { if :: ticked == last -> ticked = n :: else -> goto again fi };
#endif
#ifndef FORGIVELATE
   if
   :: LONG ->
#ifndef NOFORGIVE
      atomic { if :: F < e -> F = e; printf("T%d forgives in epoch %d\n", me, e) :: else fi }
#else
      skip
#endif
   :: else
   fi;
#endif
   atomic {
      if
      :: epoch == e ->
         epoch = e+1;
         printf("T%d: epoch %d at time %d\n", me, epoch, now);
         assert(epoch <= now + EARLY);
#ifndef NOFORGIVE
         assert(epoch <= 2 || now > at2);
#endif
         at2 = at1; at1 = now;
         if :: epoch > H + GRACE && epoch > F + GRACE -> printf("the owner is found stale: heartbeat %d, forgiven %d\n", H, F) :: else fi;
         assert(epoch <= H + GRACE || epoch <= F + GRACE)
      :: else
      fi };
#ifdef FORGIVELATE
   if :: LONG -> atomic { if :: F < e -> F = e :: else fi } :: else fi;
#endif
   goto again
}

/* Its whole beat lies within a tick; the worst is that it does so at once. */
proctype owner() {
end:
   do
   :: atomic { !beaten -> H = epoch; beaten = true }
   od
}

proctype clock() {
end:
   do
   :: atomic { beaten && now < MAXN -> now++; beaten = false }
   :: atomic { pauses > 0 && now + PAUSE <= MAXN -> pauses--; now = now + PAUSE; printf("the machine stood still until %d\n", now) }
   od
}

init {
   atomic {
      byte i = 1;
      do :: i <= NT -> run ticker(i); i++ :: else -> break od;
      i = 0;
      run owner(); run clock()
   }
}
