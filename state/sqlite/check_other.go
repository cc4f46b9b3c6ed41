//go:build !linux

package sqlite

func attribute(string) string { return "" }
