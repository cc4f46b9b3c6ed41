package sqlite

import (
	"os"
	"testing"
)

// A file of three pieces, whose task ends after so many of them.
func TestWriteOutIsGivenUp(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer file.Close()
	must(t, file.Truncate(2*writeOutSize+1))
	tests := []struct {
		pieces, asked int
		whole         bool
	}{{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 4, false}, {4, 4, true}}
	for _, tt := range tests {
		asked := 0
		whole := writeOut(file, func() bool { asked++; return asked > tt.pieces })
		if whole != tt.whole || asked != tt.asked {
			t.Errorf("given up after %d pieces: whole %v, asked %d times, want %v and %d", tt.pieces, whole, asked, tt.whole, tt.asked)
		}
	}
}

// What is closed meanwhile is left to the sync, which says so.
func TestWriteOutOfAClosedFile(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	must(t, file.Truncate(1))
	givenUp := func() bool {
		must(t, file.Close())
		return false
	}
	if !writeOut(file, givenUp) {
		t.Error("it is given up")
	}
}
