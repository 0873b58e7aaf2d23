package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/standbyd/standbyd/supervisor"
)

const (
	// DefaultTimeout is how long one hook may take.
	DefaultTimeout = 5 * time.Second
	// DefaultStartTimeout is how long a plugin may take from its start to its
	// handshake.
	DefaultStartTimeout = 5 * time.Second
)

// Config is the configuration of one plugin of one role.
type Config struct {
	// Name appears in status, events, logs and errors. Required.
	Name string
	// Command is argv. A Command[0] without a slash is looked up in PATH; a
	// relative one is relative to Dir. Required.
	Command []string
	// Dir is the plugin's working directory. Empty: that of this process.
	Dir string
	// SHA256 of the binary in hex, compared before every start. Empty: not
	// compared.
	SHA256 string
	// Table is handed to the plugin's Configure.
	Table map[string]any
	// Env is added to the allow-listed part of this process's environment
	// (PATH, HOME, LANG, TZ and their like) and wins over it. Variables that
	// belong to somebody else's launch (PLUGIN_*, LISTEN_*, NOTIFY_SOCKET) are
	// left out.
	Env []string
	// Timeout of one hook, also without a deadline of its context. Zero:
	// DefaultTimeout.
	Timeout time.Duration
	// StartTimeout until the handshake. Zero: DefaultStartTimeout.
	StartTimeout time.Duration
	// Logger gets go-plugin's own messages. nil: nobody does. The plugin's
	// output goes to HookEnv.Log.
	Logger hclog.Logger
	// AutoMTLS encrypts the connection. It is off by default because the
	// socket is in a folder of mode 0700; a start takes about 20 ms more.
	AutoMTLS bool
}

// New checks what can be known before a start and returns the plugin as hooks
// for a role. A binary that is missing is no error here: it is shown in
// status, and looked for again.
func New(c Config) (supervisor.NamedHooks, error) {
	if err := c.complete(); err != nil {
		return supervisor.NamedHooks{}, err
	}
	return supervisor.NamedHooks{Name: c.Name, Hooks: newPlugin(c), Version: c.version()}, nil
}

// version tells two configs apart that make different plugins.
func (c *Config) version() string {
	env := slices.Sorted(slices.Values(c.Env))
	b, err := json.Marshal([]any{c.Command, c.Dir, c.SHA256, c.Table, env, c.Timeout, c.StartTimeout, c.AutoMTLS})
	if err != nil {
		b = fmt.Appendf(nil, "%v", err) // a value that TOML cannot have
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// complete fills in the defaults and validates.
func (c *Config) complete() error {
	if c.Name == "" {
		return errors.New("plugin without a name")
	}
	if strings.ContainsAny(c.Name, "/\x00\n") {
		return fmt.Errorf("plugin %q: the name may not contain '/' or a line break", c.Name)
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return fmt.Errorf("plugin %s: command is empty; give the path of its binary", c.Name)
	}
	if c.SHA256 != "" {
		sum, err := hex.DecodeString(c.SHA256)
		if err != nil || len(sum) != 32 {
			return fmt.Errorf("plugin %s: sha256 %q is not 64 hexadecimal digits", c.Name, c.SHA256)
		}
		c.SHA256 = strings.ToLower(c.SHA256)
	}
	if c.Timeout < 0 || c.StartTimeout < 0 {
		return fmt.Errorf("plugin %s: a timeout is negative: %v, %v", c.Name, c.Timeout, c.StartTimeout)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("plugin %s: dir %q is not absolute", c.Name, c.Dir)
	}
	return nil
}
