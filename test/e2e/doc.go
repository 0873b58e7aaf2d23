// Package e2e tests the built programs from outside, as a user would run them:
// standbyd with a config file in a folder of its own, workers that are killed
// and stopped, clients that write all the while and remember what was
// acknowledged to them. Nothing is taken from inside: what the tests know they
// read from the command line, from HTTP and from the process table.
//
// SOAK=1 makes the rounds of each test ten times as many.
package e2e
