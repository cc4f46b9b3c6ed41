//go:build unix

package stdio

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// big is more than a pipe holds, and no two parts of it are the same.
var big = func() []byte {
	data := make([]byte, 300<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return data
}()

// pipe returns the ends of a pipe that is closed when the test is over.
func pipe(t testing.TB) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

func send(t *testing.T, to io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	testkit.Must(t, err)
}

// newFile returns an empty file, opened to append and to read.
func newFile(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}
