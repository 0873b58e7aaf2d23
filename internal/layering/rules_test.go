package layering

// A rule says what a package, and everything below it with "/...", must not
// reach, directly or through others. Patterns are import paths without the
// module's own prefix; "std" is not listed because nothing forbids it.
type rule struct {
	of     string
	except []string // packages that "of" covers and that are left out
	never  []string // must not be reached
	only   []string // besides the standard library, nothing else may be reached
	why    string
}

var rules = []rule{
	{
		of: "coord/role", only: []string{},
		why: "the shared vocabulary is below everything, so it can depend on nothing",
	},
	{
		of: "internal/proc", only: []string{"golang.org/x/sys/..."},
		why: "coord links it, and it is below every other package",
	},
	{
		of: "internal/sockpath", only: []string{"golang.org/x/sys/..."},
		why: "coord links it, and it is below every other package",
	},
	{
		of: "internal/rolesock", only: []string{"golang.org/x/sys/...", "internal/sockpath"},
		why: "coord links it, and it is below every other package but the one about paths",
	},
	{
		of: "coord/...", only: []string{"golang.org/x/sys/...", "coord/...", "internal/proc", "internal/rolesock", "internal/sockpath"},
		why: "workers link coord: they get no logger, no gRPC and no supervisor with it",
	},
	{
		of: "coord/shm", never: []string{"coord", "coord/election", "coord/lease", "coord/heartbeat", "coord/filelease"},
		why: "the mapping knows no protocol",
	},
	{
		of: "coord/election", never: []string{"coord", "coord/lease", "coord/heartbeat", "coord/filelease"},
		why: "ownership is decided without payload and members",
	},
	{
		of: "coord/heartbeat", never: []string{"coord", "coord/election", "coord/lease", "coord/filelease"},
		why: "the member table is beside the election, not above it",
	},
	{
		of: "coord/lease", never: []string{"coord", "coord/filelease"},
		why: "a lease works in any program, without roles and workers",
	},
	{
		of: "coord/filelease", never: []string{"coord", "coord/shm", "coord/election", "coord/lease", "coord/heartbeat"},
		why: "file leases are for what has no shared memory",
	},
	{
		of: "supervisor", never: []string{
			"plugins/...", "internal/config", "internal/api", "cmd/...", "examples/...",
			"github.com/hashicorp/...", "google.golang.org/...", "github.com/spf13/...", "github.com/BurntSushi/...", "github.com/oklog/...",
		},
		why: "it is embedded in other programs: hooks are an interface, events are returned, nothing is logged or parsed",
	},
	{
		of: "plugins/...", except: []string{"plugins/host"}, never: []string{"supervisor", "plugins/host", "internal/...", "cmd/...", "github.com/spf13/...", "github.com/BurntSushi/..."},
		why: "a plugin author links the contract, not the daemon (internal/proc comes with coord)",
	},
	{
		of: "plugins/host", never: []string{"internal/config", "internal/api", "cmd/...", "github.com/spf13/...", "github.com/BurntSushi/..."},
		why: "an embedder can launch plugins without the command line",
	},
	{
		of: "internal/config", never: []string{"plugins/...", "internal/api", "github.com/hashicorp/...", "google.golang.org/...", "github.com/spf13/..."},
		why: "a config file is text: reading it starts nothing",
	},
	{
		of: "internal/api", never: []string{"plugins/...", "internal/config", "github.com/hashicorp/...", "google.golang.org/...", "github.com/spf13/..."},
		why: "the control interface knows the supervisor and nothing else",
	},
	{
		of: "internal/capture", never: []string{"supervisor", "coord/...", "plugins/..."},
		why: "it moves lines and knows no roles",
	},
	{
		of: "internal/logreader", never: []string{"supervisor", "coord/...", "plugins/..."},
		why: "it keeps lines of whoever holds a FIFO and knows no leaders",
	},
	{
		of: "internal/launch", never: []string{"supervisor", "coord/...", "plugins/..."},
		why: "it starts processes and knows no roles",
	},
	{
		of: "internal/wording", only: []string{},
		why: "it says numbers and lists of anything",
	},
	{
		of: "internal/listen", never: []string{"supervisor", "coord/...", "plugins/..."},
		why: "it holds sockets and knows no roles",
	},
	{
		of: "examples/counter", never: []string{"supervisor", "plugins/...", "github.com/...", "google.golang.org/..."},
		why: "it is the shortest worker, and shows what a worker links",
	},
	{
		of: "examples/kv/...", never: []string{"supervisor", "plugins/...", "github.com/...", "google.golang.org/..."},
		why: "it is a worker, and shows what a worker links",
	},
	{
		of: "examples/plugin", never: []string{"supervisor", "plugins/host", "cmd/..."},
		why: "it is the shortest plugin, and shows what a plugin links",
	},
	{
		of: "examples/embed", never: []string{"plugins/...", "github.com/hashicorp/...", "google.golang.org/..."},
		why: "embedding the supervisor needs no go-plugin",
	},
}

// internalOfCoord may be reached by whoever may reach coord.
var internalOfCoord = []string{"internal/proc", "internal/rolesock", "internal/sockpath", "plugins/internal/..."}
