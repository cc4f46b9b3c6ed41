package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePlaceOfTheConfigFile(t *testing.T) {
	given := "given.toml"
	tests := []struct {
		flag  *string
		env   string
		want  string
		named bool
	}{
		{nil, "", "", false},
		{nil, "HOME=/home/ann", "/home/ann/.config/retry/config.toml", false},
		{nil, "HOME=/home/ann XDG_CONFIG_HOME=/etc/xdg", "/etc/xdg/retry/config.toml", false},
		{nil, "HOME=/home/ann XDG_CONFIG_HOME=xdg", "/home/ann/.config/retry/config.toml", false},
		{nil, "HOME=. XDG_CONFIG_HOME=.", "", false},
		{nil, "APPDATA=/c/appdata", "/c/appdata/retry/config.toml", false},
		{nil, "HOME=/home/ann RETRY_CONFIG=own.toml", "own.toml", true},
		{&given, "HOME=/home/ann RETRY_CONFIG=own.toml", "given.toml", true},
	}
	for _, tt := range tests {
		p := testProcess(strings.Fields(tt.env)...)
		flag := configFlag{Config: tt.flag}
		if path, named := flag.place(p.getenv); filepath.ToSlash(path) != tt.want || named != tt.named {
			t.Errorf("%s: %q, %v", tt.env, path, named)
		}
	}
}

// load returns the config file of a test with this content.
func load(t *testing.T, text string) (*policyFile, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flag := configFlag{Config: &path}
	return flag.load(testProcess().getenv, func(err error) { t.Error(err) })
}

func TestLoadWithoutAFile(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tt := range map[string]struct {
		flag configFlag
		env  string
		want string
	}{
		"no home":        {configFlag{}, "", ""},
		"no file":        {configFlag{}, "HOME=" + none, ""},
		"none of a name": {configFlag{&none}, "", "there is no such file\nhint: "},
		"an empty name":  {configFlag{new(string)}, "", "--config is empty\nhint: "},
		"by a variable":  {configFlag{}, "RETRY_CONFIG=" + none, "there is no such file\nhint: "},
	} {
		file, err := tt.flag.load(testProcess(tt.env).getenv, func(err error) { t.Error(err) })
		if file != nil || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", name, file, err)
		}
	}
}

// A file that is no config file does not fill a cron job's mail; and what is to be typed can be.
func TestLoadSaysAFew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b.toml")
	text := strings.Repeat("[x]\n", mostMistakes+3)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&configFlag{Config: &path}).load(testProcess().getenv, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "\n… and 3 more\nhint: retry policy check '"+path+"' says all of them") {
		t.Errorf("got %v", err)
	}
	if lines := strings.Count(err.Error(), ":1: ") + strings.Count(err.Error(), ":2: "); lines != mostMistakes {
		t.Errorf("%d mistakes in %v", lines, err)
	}
}

// The default file may lie in the home of somebody else.
func TestLoadWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "retry")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0)); err != nil {
		t.Fatal(err)
	}
	var warned error
	file, err := (&configFlag{}).load(testProcess("HOME="+home).getenv, func(err error) { warned = err })
	if file != nil || err != nil || !errors.Is(warned, fs.ErrPermission) {
		t.Errorf("%v, %v, warned of %v", file, err, warned)
	}
}
