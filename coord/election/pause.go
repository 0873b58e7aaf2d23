//go:build !interleave

package election

import (
	"context"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

func pause(point) {}

func monoNow() int64 { return shm.MonoNow() }

func (e *Election) fence(ctx context.Context, p Promotion, active uint64, deadline time.Time) (changed bool, err error) {
	return e.stop(ctx, p, active, deadline)
}
