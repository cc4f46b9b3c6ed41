//go:build race && unix

package e2e

func init() { raceDetector = true }
