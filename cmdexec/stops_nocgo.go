//go:build !cgo && unix

package cmdexec

func holdStops() (release func()) { return nothing }

func awaitEndOrStops(pid int, _ func() bool) { awaitExit(pid) }
