package plugins

import (
	"context"
	"fmt"

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
	return answer(h.Configure(ctx, table)), nil
}

func (s *server) PrePromote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(PrePromoter); ok {
		return answer(h.PrePromote(ctx, wire.FromRequest(ctx, r))), nil
	}
	return answer(nil), nil
}

func (s *server) OnPromote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Promoter); ok {
		return answer(h.OnPromote(ctx, wire.FromRequest(ctx, r))), nil
	}
	return answer(nil), nil
}

func (s *server) OnDemote(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Demoter); ok {
		return answer(h.OnDemote(ctx, wire.FromRequest(ctx, r))), nil
	}
	return answer(nil), nil
}

func (s *server) OnLeaderChange(ctx context.Context, r *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(LeaderWatcher); ok {
		return answer(h.OnLeaderChange(ctx, wire.FromRequest(ctx, r))), nil
	}
	return answer(nil), nil
}

func (s *server) Stop(ctx context.Context, _ *hookspb.StopRequest) (*hookspb.HookResponse, error) {
	if h, ok := s.hooks.(Stopper); ok {
		return answer(h.Stop(ctx)), nil
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
