// Package layering holds no code of the program: its tests keep the imports
// between packages one-way, the unsafe code in one place, and one package
// comment in every folder.
package layering
