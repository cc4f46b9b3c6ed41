package blobs

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// A full disk is an error of its own, and leaves nothing that would keep it full.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mount("none", root, "tmpfs", 0, "mode=700,size=256k"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { testkit.Must(t, syscall.Unmount(root, syscall.MNT_DETACH)) })
	s, err := New(filepath.Join(root, "blobs"))
	testkit.Must(t, err)
	kept := put(t, s, "small")
	large := strings.Repeat("x", 1<<20)
	_, _, err = s.Put(t.Context(), Hash([]byte(large)), strings.NewReader(large), 1<<30)
	if !errors.Is(err, ErrUnwritable) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ErrUnwritable and ENOSPC", err)
	}
	if got := testkit.Names(t, s.dir); len(got) != 1 || read(t, s, kept) != "small" {
		t.Errorf("got %q, want the first blob alone", got)
	}
	put(t, s, "small, too")
}

// TestMain lets a test run this program as a child that puts what comes on its stdin.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BLOBS_TEST_PUT"); dir != "" {
		s, err := New(dir)
		if err == nil {
			_, _, err = s.Put(context.Background(), os.Getenv("BLOBS_TEST_HASH"), os.Stdin, 1<<30)
		}
		if err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A put that is killed leaves no blob, only a file that a later sweep removes.
func TestKill(t *testing.T) {
	s := newStore(t)
	hash := Hash([]byte("hello"))
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "BLOBS_TEST_PUT="+s.dir, "BLOBS_TEST_HASH="+hash)
	stdin, err := child.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, child.Start())
	_, err = io.WriteString(stdin, "hel")
	testkit.Must(t, err)
	testkit.Eventually(t, "the child has written", func() bool {
		names := testkit.Names(t, s.dir)
		return len(names) == 1 && testkit.Contents(t, s.path(names[0])) == "hel"
	})
	testkit.Must(t, child.Process.Kill())
	_ = child.Wait()

	names := testkit.Names(t, s.dir)
	if _, err := s.Stat(hash); err == nil || len(names) != 1 || !strings.HasSuffix(names[0], temporary) {
		t.Fatalf("got %q, want a temporary file alone", names)
	}
	put(t, s, "hello")
	if _, err := s.Sweep(t.Context(), aWhileAgo(), none); err != nil || len(testkit.Names(t, s.dir)) != 2 {
		t.Errorf("young: got %q, %v, want it left alone", testkit.Names(t, s.dir), err)
	}
	all := func(Info) (bool, error) { return true, nil }
	if _, err := s.Sweep(t.Context(), time.Now().Add(time.Hour), all); err != nil {
		t.Errorf("sweep: got %v, want none", err)
	}
	if got := testkit.Names(t, s.dir); len(got) != 1 || read(t, s, hash) != "hello" {
		t.Errorf("got %q, want the blob alone", got)
	}
}
