// Package testkit holds the helpers that the tests of many packages share. Only tests import it.
package testkit

import (
	"os"
	"testing"
	"time"
	"unsafe"
)

// patience bounds how long Eventually waits. What it waits for takes a fraction of that, except on a very busy machine.
const patience = 30 * time.Second

// Must ends the test at the first error that is not nil.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Write makes a file that only its owner can read, or replaces its content.
func Write(t testing.TB, path, content string) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte(content), 0o600))
}

// Contents returns what is in a file.
func Contents(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return string(content)
}

// Names returns the sorted names of what is in a directory.
func Names(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	Must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Eventually waits until the condition holds, and ends the test if that takes too long. what says the condition in
// words.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// Slow skips a test under -short. The reason says what takes the time.
func Slow(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped with -short: " + reason)
	}
}

// SetWallClock returns the time that the clocks show if the wall clock has been set on by whole seconds: only its
// reading moves. Package time offers no way to make such a time.
func SetWallClock(now time.Time, on time.Duration) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(on/time.Second) << 30 // above the nanoseconds
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != on {
		panic("package time has another layout than expected, or the time has no monotonic reading")
	}
	return set
}
