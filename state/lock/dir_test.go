//go:build unix

package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
)

func TestLocate(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	homeless := Place{} // an error, but for root
	if os.Geteuid() == 0 {
		homeless = Place{"/var/lib/retry", "root without a home"}
	}
	all := map[string]string{"RETRY_STATE_DIR": "/state", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}
	tests := []struct {
		name, explicit string
		env            map[string]string
		want           Place
	}{
		{name: "a flag goes first", explicit: "/flag", env: all, want: Place{"/flag", "--state"}},
		{name: "a relative flag", explicit: "a/b", env: all, want: Place{filepath.Join(here, "a/b"), "--state"}},
		{name: "a flag with dots", explicit: "/flag/../other/", want: Place{"/other", "--state"}},
		{name: "the variable of retry", env: all, want: Place{"/state", "RETRY_STATE_DIR"}},
		{
			name: "relative", env: map[string]string{"RETRY_STATE_DIR": "./s"},
			want: Place{filepath.Join(here, "s"), "RETRY_STATE_DIR"},
		},
		{
			name: "the state home", env: map[string]string{"XDG_STATE_HOME": "/xdg", "HOME": "/home/me"},
			want: Place{"/xdg/retry", "XDG_STATE_HOME"},
		},
		{
			name: "a relative state home is ignored", env: map[string]string{"XDG_STATE_HOME": "xdg", "HOME": "/home/me"},
			want: Place{"/home/me/.local/state/retry", "HOME"},
		},
		{name: "home", env: map[string]string{"HOME": "/home/me"}, want: Place{"/home/me/.local/state/retry", "HOME"}},
		{name: "a relative home is ignored", env: map[string]string{"HOME": "me"}, want: homeless},
		{name: "no home", want: homeless},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Locate(test.explicit, func(name string) string { return test.env[name] })
			if got != test.want || (err != nil) != (test.want == Place{}) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "hint: set RETRY_STATE_DIR or give --state DIR") {
				t.Errorf("got %v, want a hint", err)
			}
		})
	}
}

// Those who open a journal share the directory; who sets it aside has it alone.
func TestDirectoryLocks(t *testing.T) {
	dir := t.TempDir()
	cancelled, cancel := context.WithCancel(t.Context()) // tries once
	cancel()
	first, err := Shared(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Shared(cancelled, dir)
	if err != nil || Held(dir) {
		t.Fatalf("got %v, held %v; want the lock shared", err, Held(dir))
	}
	second()
	if _, err := Exclusive(cancelled, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	first()
	unlock, err := Exclusive(t.Context(), dir)
	if err != nil || !Held(dir) {
		t.Fatalf("got %v, held %v; want the lock exclusive", err, Held(dir))
	}
	unlock()
	if Held(dir) {
		t.Error("got a lock that is held after its release")
	}
}

func TestCreateFilesChecksThoseThatExist(t *testing.T) {
	tests := []struct {
		name   string
		create func(path string) error
		want   error
	}{
		{name: "none", create: func(string) error { return nil }},
		{name: "private", create: func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{name: "writable by others", create: func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o620))
		}, want: state.ErrMode},
		{name: "a link", create: func(path string) error { return os.Symlink("nowhere", path) }, want: state.ErrOwner},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.create(filepath.Join(dir, OwnersFile)); err != nil {
				t.Fatal(err)
			}
			if err := CreateFiles(dir, OwnersFile); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
