package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

func pictured(t *testing.T) ([]plot.Study, plot.Options) {
	t.Helper()
	options := plot.Options{Tasks: 5, Retries: 8, Seed: 7}
	policy := task.DefaultPolicy()
	policy.Attempts = 0
	study, err := plot.NewStudy(plot.Subject{Label: "for ever", Policy: policy}, options)
	must(t, err)
	return []plot.Study{study}, options
}

// Each flag writes its kind of file, and nothing else is left in the directory.
func TestPictureFiles(t *testing.T) {
	dir := t.TempDir()
	f := pictureFlags{SVG: filepath.Join(dir, "a.svg"), PNG: filepath.Join(dir, "a.png"), HTML: filepath.Join(dir, "a.html")}
	write(t, f.SVG, "old")
	files, err := f.files(&Process{Host: session.Host{Stdout: os.Stdout}})
	must(t, err)
	if contents(t, f.SVG) != "old" {
		t.Error("a file was touched before there was anything to write")
	}
	studies, options := pictured(t)
	must(t, writePictures(files, studies, options))
	for path, want := range map[string][]string{
		f.SVG:  {"<svg ", "for ever", "</svg>\n"},
		f.PNG:  {"\x89PNG\r\n", "IEND"},
		f.HTML: {"<!doctype html>", `"label":"for ever","backoff":"exp:1s..1m","jitter":"phase","attempts":9`, `"tasks":5,"seed":"7"`, "</html>\n"},
	} {
		text := contents(t, path)
		if !strings.HasPrefix(text, want[0]) {
			t.Errorf("%s begins with %q", path, text[:min(40, len(text))])
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", path, part)
			}
		}
	}
	if got := filesIn(t, dir); len(got) != 3 {
		t.Errorf("there are %v", got)
	}
}

func TestPictureToStdout(t *testing.T) {
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	must(t, err)
	files, err := (&pictureFlags{SVG: "-"}).files(&Process{Host: session.Host{Stdout: stdout}})
	must(t, err)
	studies, options := pictured(t)
	must(t, writePictures(files, studies, options))
	if text := contents(t, stdout.Name()); !strings.HasPrefix(text, "<svg ") {
		t.Errorf("stdout has %q", text[:min(40, len(text))])
	}
	must(t, stdout.Close())
}

func TestPNGOnATerminal(t *testing.T) {
	other, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer func() { _, _ = other.Close(), terminal.Close() }()
	if _, err := (&pictureFlags{PNG: "-"}).files(&Process{Host: session.Host{Stdout: terminal}}); err == nil || !strings.Contains(err.Error(), "a terminal cannot show") {
		t.Errorf("got %v", err)
	}
	if _, err := (&pictureFlags{SVG: "-"}).files(&Process{Host: session.Host{Stdout: terminal}}); err != nil {
		t.Errorf("SVG is text: %v", err)
	}
}

// What cannot be written is said before anything is computed, with the flag that asks for it.
func TestPictureFilesRefused(t *testing.T) {
	dir := t.TempDir()
	for want, f := range map[string]pictureFlags{
		"--png: " + dir + " is a directory":            {PNG: dir},
		"--svg: create ":                               {SVG: filepath.Join(dir, "absent", "a.svg")},
		"--svg and --html go to the same place\nhint:": {SVG: "-", HTML: "/dev/stdout"},
		"--svg and --png go to the same place\nhint:":  {SVG: filepath.Join(dir, "a"), PNG: filepath.Join(dir, ".", "a")},
	} {
		if _, err := f.files(&Process{Host: session.Host{Stdout: os.Stdout}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
	if files, err := (&pictureFlags{}).files(&Process{Host: session.Host{Stdout: os.Stdout}}); files != nil || err != nil {
		t.Errorf("without a flag: %v, %v", files, err)
	}
	if got := filesIn(t, dir); got != nil {
		t.Errorf("there are %v", got)
	}
}
