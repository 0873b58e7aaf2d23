//go:build !race

package supervisor

const raceDetector = false
