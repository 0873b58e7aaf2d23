// Package wire is what both ends of a plugin's connection share: the handshake
// of go-plugin, the negotiated versions, and the translation between Go values
// and the messages of hookspb. Package plugins is the plugin's end, package
// plugins/host the supervisor's.
package wire
