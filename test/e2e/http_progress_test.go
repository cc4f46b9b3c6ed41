//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

const mebibyte = 1 << 20

// slow serves a file whose second half comes once somebody has seen the first. A body that it is sent waits, too.
func slow(seen <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		half := strings.Repeat("x", 2*mebibyte)
		if r.URL.Path == "/silent" {
			half = half[:mebibyte]
		}
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", fmt.Sprint(2*len(half)))
			_, _ = fmt.Fprint(w, half)
			_ = http.NewResponseController(w).Flush()
		}
		<-seen
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, half)
	}
}

// TestTransferOnATerminal looks at the line about what is under way.
func TestTransferOnATerminal(t *testing.T) {
	binary := buildForTerminals(t)
	scenes := map[string]func(s *console, url string, seen chan struct{}){
		"it is shown and cleaned up":  theTransferCleansUp,
		"it fits a narrow window":     theTransferFits,
		"an upload is shown":          theUploadIsShown,
		"none where nobody wants one": noTransferInSilence,
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			server := httptest.NewServer(slow(seen))
			defer server.Close()
			scene(newConsole(t, binary), server.URL, seen)
		})
	}
}

func theTransferCleansUp(s *console, url string, seen chan struct{}) {
	s.start("retry", "http", "-o", "file", url)
	s.expect("retry: 50% of 4 MiB, ", " left")
	close(seen)
	s.exits(0)
	s.checkScreen(80)
	if info, err := os.Stat(filepath.Join(s.dir, "file")); err != nil || info.Size() != 4*mebibyte {
		s.Errorf("%+v, %v", info, err)
	}
}

func theTransferFits(s *console, url string, seen chan struct{}) {
	const width = 15
	s.resize(width)
	s.start("retry", "http", "-o", "file", url)
	s.expect("retry: 50% of")
	close(seen)
	s.exits(0)
	s.checkScreen(width)
}

func theUploadIsShown(s *console, url string, seen chan struct{}) {
	testkit.Must(s, os.WriteFile(filepath.Join(s.dir, "large"), make([]byte, 64*mebibyte), 0o600)) // more than fits between the two
	s.start("retry", "http", "-X", "PUT", "--data-binary", "@large", "-o", "file", url)
	s.expect("% of 64 MiB sent, ")
	close(seen)
	s.exits(0)
	s.checkScreen(80)
}

// The silent ones begin before another, whose line is seen.
func noTransferInSilence(s *console, url string, seen chan struct{}) {
	s.start("sh", "-c", "retry http -s -o 1 $0/silent & retry http -q -o 2 $0/silent & retry http -o 3 $0/silent 2>notes & retry http -o 4 $0; wait; cat notes", url)
	const line = "retry: 50% of 4 MiB, "
	s.expect(line, line, line, line) // so long after its first second they would have drawn theirs
	close(seen)
	s.exits(0)
	s.checkScreen(80)
	if strings.Contains(string(s.raw), "of 2 MiB") {
		s.Errorf("a line of the silent ones: %q", s.raw)
	}
}
