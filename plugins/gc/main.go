// Command standbyd-gc is a plugin that removes old files while its role leads.
//
//	[[role.kv.plugin]]
//	name = "gc"
//	command = ["./bin/standbyd-gc"]
//	config = { folders = ["./data/spool"], patterns = ["*.done"], older_than = "7d", every = "10m" }
//
// It removes regular files that match a pattern and are older than older_than,
// or are not among the max_count newest of their folder. It removes nothing
// else: no folder, no link, nothing that is reached through a link, nothing
// outside the folders. Before each removal it looks whether the role still
// leads, and whether the file is still the one that was judged. With dry_run it
// says what it would remove.
package main

import "github.com/standbyd/standbyd/plugins"

func main() { plugins.Serve(newCollector()) }
