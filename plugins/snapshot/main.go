// Command standbyd-snapshot is a plugin that copies a folder into a rotated
// set of snapshots while its role leads.
//
//	[[role.kv.plugin]]
//	name = "snapshot"
//	command = ["./bin/standbyd-snapshot"]
//	config = { source = "./data/kv", dir = "./data/snapshots", every = "1m", keep = 5 }
//
// A snapshot is a folder snapshot-TIME-TOKEN with manifest.json and the copy in
// files/. It appears under that name whole and synced, or not at all. Each file
// is copied up to the size that it had when it was opened, so that a file that
// only grows gives a prefix of itself; files are copied one after another, so
// two of them are not from the same instant. Links are copied as links and
// never followed; sockets, FIFOs, devices and what exclude names are left out,
// and named in the manifest. A copy during which a file was removed from the
// source is made again, so that what took its place is in it.
//
// The folder of the snapshots refuses tokens lower than the highest it has
// seen: a stale leader's plugin adds nothing and removes nothing.
package main

import "github.com/standbyd/standbyd/plugins"

func main() { plugins.Serve(newSnapshotter()) }
