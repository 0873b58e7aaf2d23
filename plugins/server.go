package plugins

import (
	"context"
	"fmt"

	"google.golang.org/grpc/status"

	"github.com/standbyd/standbyd/plugins/hookspb"
	"github.com/standbyd/standbyd/plugins/internal/wire"
)

// server answers the supervisor's calls with the author's hooks. A hook's
// error travels in the response: a gRPC status would be taken for a broken
// process. A hook's panic ends the process, and the supervisor starts another.
type server struct {
	hookspb.UnimplementedHooksServer
	hooks any
	words []string
	turn  chan struct{} // of capacity 1: holds a value while a hook runs
}

func newServer(hooks any, words []string) *server {
	return &server{hooks: hooks, words: words, turn: make(chan struct{}, 1)}
}

// hook runs one hook after the one before has returned. The supervisor sends
// one at a time, but it may call one off and send the next while the first
// still looks at its context.
func (s *server) hook(ctx context.Context, f func() error) (*hookspb.HookResponse, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-s.turn }()
	return answer(f()), nil
}

func (s *server) Describe(context.Context, *hookspb.DescribeRequest) (*hookspb.DescribeResponse, error) {
	r := &hookspb.DescribeResponse{Hooks: s.words}
	if d, ok := s.hooks.(Describer); ok {
		about := d.Describe()
		r.Name, r.Version, r.Summary = about.Name, about.Version, about.Summary
	}
	return r, nil
}

func (s *server) Configure(ctx context.Context, r *hookspb.ConfigureRequest) (*hookspb.HookResponse, error) {
	h, ok := s.hooks.(Configurer)
	if !ok {
		return answer(nil), nil
	}
	table, err := wire.DecodeTable(r.GetTableJson())
	if err != nil {
		return answer(err), nil
	}
	return s.hook(ctx, func() error { return h.Configure(ctx, table) })
}

func (s *server) PrePromote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(PrePromoter); ok {
		return s.hook(ctx, func() error { return h.PrePromote(ctx, wire.FromRequest(ctx, r)) })
	}
	return answer(nil), nil
}

func (s *server) OnPromote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Promoter); ok {
		return s.hook(ctx, func() error { return h.OnPromote(ctx, wire.FromRequest(ctx, r)) })
	}
	return answer(nil), nil
}

func (s *server) OnDemote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Demoter); ok {
		return s.hook(ctx, func() error { return h.OnDemote(ctx, wire.FromRequest(ctx, r)) })
	}
	return answer(nil), nil
}

func (s *server) OnLeaderChange(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(LeaderWatcher); ok {
		return s.hook(ctx, func() error { return h.OnLeaderChange(ctx, wire.FromRequest(ctx, r)) })
	}
	return answer(nil), nil
}

func (s *server) Stop(ctx context.Context, _ *hookspb.StopRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Stopper); ok {
		return s.hook(ctx, func() error { return h.Stop(ctx) })
	}
	return answer(nil), nil
}

func answer(err error) *hookspb.HookResponse {
	if err == nil {
		return &hookspb.HookResponse{}
	}
	if err.Error() == "" { // empty means success on the wire
		return &hookspb.HookResponse{Error: fmt.Sprintf("%T without a message", err)}
	}
	return &hookspb.HookResponse{Error: err.Error()}
}
