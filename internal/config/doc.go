// Package config reads standbyd's TOML file into a [supervisor.Config] and the
// settings of the plugins.
//
// It is strict: a key that it does not know, a value of the wrong type, a
// duration without a unit and settings that contradict each other are errors.
// All of them are reported together, each with file, line, column, key, reason
// and, where there is one, the nearest valid key.
//
// What cannot be known from the file alone, such as a program that does not
// exist yet, is a warning: at run time it is that role's state, and the other
// roles go on.
package config
