//go:build race

package httpexec

func init() { raceDetector = true }
