package plugins

import (
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/standbyd/standbyd/plugins/internal/wire"
)

// Serve runs the plugin and is the last call of its main: it returns never,
// the process exits when the supervisor ends it or is gone. hooks implements
// any of the interfaces of this package. In a program that was not started as
// a plugin it says so and exits with status 2; hooks that cannot be served are
// said on standard error, status 1.
func Serve(hooks any) {
	if !launched {
		fmt.Fprintf(os.Stderr, "%s is a plugin of standbyd and is not run by hand.\n"+
			"Name it in a role's configuration:\n\n"+
			"[[role.NAME.plugin]]\nname = \"...\"\ncommand = [%q]\n", os.Args[0], os.Args[0])
		os.Exit(2)
	}
	words, err := wanted(hooks)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	// go-plugin looks for the cookie and prints the handshake through the
	// variable os.Stdout. Both are put in place for that moment only, so that
	// no child of the plugin inherits either.
	stdout, stderr := os.Stdout, os.Stderr
	os.Setenv(wire.CookieKey, wire.CookieValue)
	os.Stdout = handshake
	serving := false
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  wire.Handshake(),
		VersionedPlugins: wire.Versions(newServer(hooks, words)),
		Logger:           hclog.New(&hclog.LoggerOptions{Name: "go-plugin", Level: hclog.Error, Output: stderr}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			serving = true
			unsetLaunchEnv()
			// go-plugin points os.Stdout and os.Stderr at pipes that it sends
			// over the connection. What is in them when the process crashes is
			// lost, so the plain files come back before the first call.
			return grpc.NewServer(append(opts, grpc.ChainUnaryInterceptor(restoreOutput(stdout, stderr)))...)
		},
	})
	if !serving {
		os.Exit(1) // go-plugin has said why
	}
	os.Exit(0)
}
