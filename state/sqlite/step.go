//go:build !crashpoints

package sqlite

// step names a moment between two writes, for a build that can be made to die there: go build -tags crashpoints.
func step(string) {}
