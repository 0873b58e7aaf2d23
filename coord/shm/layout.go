package shm

// The layout of a segment, version 2. All words are little-endian and 8-byte
// aligned; words that different processes write often lie in different lines
// of 128 bytes (two cache lines: processors fetch them in pairs).
//
//	offset      size  name            written by        memory order
//	0              8  magic           creator           before the file has its name
//	8              4  version         creator
//	12             4  header size     creator
//	16             8  total size      creator
//	24             8  flags           creator
//	32             8  generation      creator
//	40             8  grace           creator           epochs
//	48             8  tick            creator           nanoseconds
//	56             8  progress limit  creator           nanoseconds, 0 none
//	64             8  drain limit     creator           nanoseconds
//	72             8  fence limit     creator           nanoseconds
//	80             8  rules           creator           fence | proof<<8 | preempt<<16 | scheduling<<24
//	88             4  seats           creator
//	92             4  writers         creator
//	96             4  cell size       creator           bytes, a multiple of 8
//	100            4  payload type    creator           bytes of T; ^0: no T was recorded
//	104            4  ring entries    creator
//	112            8  machine boot    creator           hash of the boot id
//	120            8  created at      creator           wall clock, Unix nanoseconds, for people
//	128            4  checksum        creator           CRC-32C of bytes 0 to 127
//	512            8  owner       O   claimants         CAS
//	640            8  heartbeat   H0  claimants, owner  CAS
//	768            8  heartbeat   H1  claimants, owner  CAS
//	896            8  epoch           tickers           CAS
//	904            8  ticked_at       tickers           CAS; CLOCK_MONOTONIC nanoseconds
//	912            8  forgiven    F   tickers           CAS
//	1024           8  active      A   claimants, leader CAS
//	1152           8  control         supervisor        store; last of its line
//	1160           8  resign term     supervisor        store
//	1168           8  granted term    supervisor        store
//	1176           8  until           supervisor        store; CLOCK_MONOTONIC nanoseconds
//	1184           8  fault           supervisor        store; see coord/election/fault.go; 0 none
//	1280           8  commit      C   owner             CAS
//	1408           8  join counter    joining members   add; 0: nobody ever waited here
//	1536     512 each seats           see the seat table
//	then              robust words    see the robust table
//	then     128 each ring            see the ring table
//	then              writers         see the writer table
//
//	seat: offset  name            written by
//	0             phase           joining member            CAS: phase<<56 | incarnation (24 bits)<<32 | pid
//	8             pid             joining member            before phase says "joined"
//	16            start           joining member            clock ticks since boot
//	24            machine boot    joining member            hash of the boot id
//	32            pid namespace   joining member            inode
//	40            index           joining member            worker index + 1, 0 none
//	48            join sequence   joining member
//	128           beat            the member                epoch of its last sign of life
//	136           progress        the member                counter
//	144           status          the member                bit 0 ready, 1 waiting, 2 idle, 3 racing, 5 watched; 6 unadmitted, cleared by the supervisor
//	152           candidate       the member                priority (int32)<<32 | no-failover bit
//	160           lag             the member
//	168           in flight       the member                one bit per unit of work
//	256           event           wakers                    uint32, raised before each wake
//	384           robust          the member                id of the thread whose end fires its robust words, in
//	                                                        the member's own pid namespace; 0: nothing fires them
//	392           ways            the member                how it waits for deaths: the Way bits
//	400 to 511    reserved
//
//	robust: one row for each seat, one uint32 every 8 bytes for each other seat
//	word j of row i   0 nobody waits; armed by the member in seat j with the robust thread of
//	                  seat i and FUTEX_WAITERS; fired by the kernel with FUTEX_OWNER_DIED when
//	                  that thread ends
//
//	ring entry of term T at T mod entries, written by its claimant
//	0   term          last of the claim's stores
//	8   pid
//	16  seat + 1      0 none
//	24  previous pid
//	32  reason        code, see coord/election/reasons.go
//	40  detected at   CLOCK_MONOTONIC nanoseconds, as all below; 0 unknown
//	48  claimed at
//	56  active at
//	64  retired at
//	72  ended at      CAS from 0 by whoever sees evidence first
//	80  in flight     work that its leader had in flight at its end; before the active word moves on
//	88  fenced at     before the active word moves on; 0 under fence "token"
//	96  plain claim   owner word of the latest term that was claimed here without an entry: nobody owned, no times
//	104 to 127 reserved
//
//	writer: offset  name          written by
//	0               phase         writer slot's taker       CAS
//	8               pid           its taker
//	16              start         its taker
//	24              machine boot  its taker
//	32              pid namespace its taker
//	40              check         its taker             CRC-64 of phase and identity
//	128             cell 0, cell 1, each of cell size rounded up to 64 bytes
const (
	Magic         = 0x3153594244425453 // "STBDBYS1"
	LayoutVersion = 2

	offMagic       = 0
	offVersion     = 8
	offHeaderSize  = 12
	offTotal       = 16
	offFlags       = 24
	offGeneration  = 32
	offGrace       = 40
	offTick        = 48
	offProgress    = 56
	offDrain       = 64
	offFence       = 72
	offRules       = 80
	offSeats       = 88
	offWriters     = 92
	offCell        = 96
	offPayloadType = 100
	offRing        = 104
	offBoot        = 112
	offCreated     = 120
	offChecksum    = 128

	offOwner    = 512
	offH0       = 640
	offH1       = 768
	offEpoch    = 896
	offTickedAt = 904
	offForgiven = 912
	offActive   = 1024
	offControl  = 1152
	offResign   = 1160
	offGranted  = 1168
	offUntil    = 1176
	offFault    = 1184
	offCommit   = 1280
	offJoin     = 1408
	offSeat     = 1536

	headerSize     = offSeat
	seatSize       = 512
	ringEntrySize  = 128
	robustStride   = 8 // that of the list's nodes: see robust_linux_unsafe.go
	offRingClaim   = 96
	writerHeadSize = 128
	cellAlign      = 64
)

// Bounds of what a creator may choose.
const (
	MaxSeats    = 1024 // half of what the kernel walks of a robust list; the robust table then takes 8 MiB
	MaxWriters  = 64   // six bits of the commit word name one
	MaxCell     = 4096
	DefaultCell = 48
	ringEntries = 256
)

// noPayloadType marks a segment that records no payload type.
const noPayloadType = 0xffffffff

// geometry is where the variable parts of a segment lie.
type geometry struct {
	seats, writers, ring, cell int
}

func (g geometry) cellStride() int   { return (g.cell + cellAlign - 1) / cellAlign * cellAlign }
func (g geometry) writerStride() int { return writerHeadSize + 2*g.cellStride() }
func (g geometry) seatAt(i int) int  { return offSeat + i*seatSize }
func (g geometry) robustAt(i, j int) int {
	return offSeat + g.seats*seatSize + i*g.robustRow() + j*robustStride
}
func (g geometry) robustRow() int      { return (g.seats*robustStride + 127) / 128 * 128 }
func (g geometry) ringAt(i int) int    { return g.robustAt(g.seats, 0) + i*ringEntrySize }
func (g geometry) writerAt(i int) int  { return g.ringAt(g.ring) + i*g.writerStride() }
func (g geometry) cellAt(w, c int) int { return g.writerAt(w) + writerHeadSize + c*g.cellStride() }
func (g geometry) total() int          { return (g.writerAt(g.writers) + 4095) / 4096 * 4096 }
func (g geometry) valid() bool {
	return g.seats >= 1 && g.seats <= MaxSeats && g.writers >= 1 && g.writers <= MaxWriters &&
		g.ring >= 1 && g.ring <= 1<<16 && g.ring&(g.ring-1) == 0 && g.cell >= 0 && g.cell <= MaxCell && g.cell%8 == 0
}
