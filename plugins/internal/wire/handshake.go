package wire

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/standbyd/standbyd/plugins/hookspb"
)

// The cookie tells a plugin binary that a supervisor started it, not a person.
// It is no secret.
const (
	CookieKey   = "STANDBYD_PLUGIN"
	CookieValue = "7f1d9c52b6a14d3e"
)

// Version is the one protocol version so far; Service is the name under which
// the hooks are dispensed.
const (
	Version = 1
	Service = "hooks"
)

// ExitLost is the status with which a plugin ends its own process: its
// supervisor is gone, or a duty went on past its limit.
const ExitLost = 75

// Handshake is go-plugin's agreement that both ends are meant for each other.
func Handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}
}

// Versions returns a fresh map, because go-plugin keeps and changes what it is
// given. server is nil on the supervisor's end.
func Versions(server hookspb.HooksServer) map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{Version: {Service: &hooks{server: server}}}
}

// hooks joins the generated code to go-plugin. The broker is not used.
type hooks struct {
	goplugin.NetRPCUnsupportedPlugin
	server hookspb.HooksServer
}

func (h *hooks) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	if h.server == nil {
		return errors.New("serve the plugin's hooks: this end has none")
	}
	hookspb.RegisterHooksServer(s, h.server)
	return nil
}

func (h *hooks) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return hookspb.NewHooksClient(conn), nil
}
