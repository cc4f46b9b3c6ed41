package flags

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestOwnOrSystem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no file of the system there")
	}
	dir := t.TempDir()
	own, system, none := filepath.Join(dir, "own"), filepath.Join(dir, "system"), filepath.Join(dir, "none")
	for _, path := range []string{own, system} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loop := filepath.Join(dir, "loop") // cannot be read, also not by root
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, own, system, want string }{
		{name: "both", own: own, system: system, want: own},
		{name: "no own", own: none, system: system, want: system},
		{name: "no home", own: "", system: system, want: system},
		{name: "a file where a directory belongs", own: filepath.Join(own, "config.toml"), system: system, want: system},
		{name: "an own one that cannot be read", own: loop, system: system, want: loop},
		{name: "none", own: none, system: filepath.Join(dir, "neither"), want: none},
	} {
		if got := ownOrSystem(row.own, row.system); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}
