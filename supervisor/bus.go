package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	recentEvents     = 1000
	subscriberEvents = 256
)

// bus hands events to subscribers and remembers the last ones. Publishing
// never waits: a subscriber that is behind loses its oldest events.
type bus struct {
	mu     sync.Mutex
	id     uint64
	recent []Event
	subs   map[*subscriber]struct{}
}

type subscriber struct {
	events  chan Event
	dropped uint64
}

func (b *bus) publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id++
	e.ID = b.id
	if e.At.IsZero() {
		e.At = time.Now()
	}
	if len(b.recent) >= 2*recentEvents {
		b.recent = slices.Clone(b.recent[len(b.recent)-recentEvents:])
	}
	b.recent = append(b.recent, e)
	for s := range b.subs {
		s.push(e)
	}
}

// push is called with the bus's lock, so that nobody else sends.
func (s *subscriber) push(e Event) {
	for {
		e.Dropped = s.dropped
		select {
		case s.events <- e:
			s.dropped = 0
			return
		default:
		}
		select {
		case lost := <-s.events:
			s.dropped += 1 + lost.Dropped
		default:
		}
	}
}

func (b *bus) subscribe(ctx context.Context) <-chan Event {
	s := &subscriber{events: make(chan Event, subscriberEvents)}
	b.mu.Lock()
	if b.subs == nil {
		b.subs = map[*subscriber]struct{}{}
	}
	b.subs[s] = struct{}{}
	b.mu.Unlock()
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, s)
		close(s.events)
	})
	return s.events
}

func (b *bus) last() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.recent[max(0, len(b.recent)-recentEvents):])
}
