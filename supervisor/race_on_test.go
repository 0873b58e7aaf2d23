//go:build race

package supervisor

// What takes ten times as long under the race detector is done less often.
const raceDetector = true
