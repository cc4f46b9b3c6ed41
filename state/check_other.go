//go:build !linux

package state

func attribute(string) string { return "" }
