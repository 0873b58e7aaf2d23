// Package hookspb is the gRPC contract between standbyd and a plugin process:
// hooks.proto and the code generated from it. Authors of plugins in Go use
// package plugins and need nothing from here.
//
// The generated files are committed, so that building needs no protoc. After a
// change of hooks.proto run, in this folder and with protoc, protoc-gen-go and
// protoc-gen-go-grpc in PATH:
//
//	go generate
package hookspb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative hooks.proto
