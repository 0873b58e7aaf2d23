package coord

import (
	"errors"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// A leader that nobody tells of its loss is stopped by Check alone: it asks the
// words, not what it was told.
func TestCheckNeedsNoNotice(t *testing.T) {
	m := join(t, WithTick(time.Minute, 20)) // nothing looks by itself meanwhile
	l := campaign(t, m)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	m.mapped.seg.Owner.Store(shm.PackOwner(0, l.term)) // without a wake
	if err := l.Check(); !errors.Is(err, ErrFenced) {
		t.Errorf("after the loss: %v, want ErrFenced", err)
	}
	if err := l.Context().Err(); err != nil {
		t.Errorf("it was told all the same, so this shows nothing: %v", err)
	}
}
