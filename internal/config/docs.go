package config

import (
	"fmt"
	"strings"

	"github.com/standbyd/standbyd/supervisor"
)

// DocTable returns the table of every key as docs/config.md shows it.
func DocTable() string {
	var b strings.Builder
	b.WriteString("| Key | Type | Default | Meaning | Reload |\n| --- | --- | --- | --- | --- |\n")
	daemon, role := DefaultDaemon(), DefaultRole()
	docRows(&b, "supervisor.", daemonKeys, &daemon)
	docRows(&b, "role.NAME.", roleKeys, &role)
	docRows(&b, "role.NAME.ready.", readyKeys, &role.Ready)
	docRows(&b, "role.NAME.health.", probeKeys, &role.Health)
	docRows(&b, "role.NAME.worker[].", workerKeys, &Worker{})
	docRows(&b, "role.NAME.listen[].", listenKeys, &Listen{})
	docRows(&b, "role.NAME.plugin[].", pluginKeys, &Plugin{})
	return b.String()
}

func docRows[T any](b *strings.Builder, prefix string, keys []key[T], defaults *T) {
	for _, k := range keys {
		def := k.def
		if def == "" {
			def = "none"
			if v := k.show(defaults); v != nil {
				def = "`" + tomlValue(v) + "`"
			}
		}
		kind := k.kind
		if strings.HasPrefix(kind, `"`) {
			kind = "one of " + kind
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s | %s |\n", prefix, k.name, kind, def, k.doc, reloadOf(prefix, k.name))
	}
}

// reloadOf is what a reload costs if the key differs, in the words that stand
// above the table.
func reloadOf(prefix, name string) string {
	switch {
	case prefix == "supervisor.", name == "hints":
		return "standbyd"
	case strings.Contains(prefix, ".plugin"):
		return "plugins"
	case prefix != "role.NAME.", name == "env_file":
		return "rolling" // ready, health, worker, listen
	}
	switch supervisor.CostOf(name) {
	case supervisor.CostNothing:
		return "at once"
	case supervisor.CostScale:
		return "workers"
	case supervisor.CostPlugins:
		return "plugins"
	case supervisor.CostRoll:
		return "rolling"
	}
	return "role"
}
