package cli

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// printed runs a command of retry's and returns what it prints on stdout.
func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdout.Close() }()
	environ := []string{"RETRY_STATE_DIR=" + dir, "XDG_CONFIG_HOME=" + dir}
	if code := Main(args, environ, os.Stdin, stdout, os.Stderr); code != 0 {
		t.Fatalf("retry %v: got exit status %d, want 0", args, code)
	}
	if _, err := stdout.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// figure is what was published, and how far from it ours may be: the size of what chance does to it, seen over twenty
// seeds, or the last digit that was published.
type figure struct{ want, within float64 }

func (f figure) check(t *testing.T, name string, got float64) {
	t.Helper()
	if math.Abs(got-f.want) > f.within {
		t.Errorf("%s: got %.4g, want %.4g ± %.2g", name, got, f.want, f.within)
	}
}

type plotFigures struct {
	Specs []struct {
		Load    struct{ Idle, Local float64 }
		Retries []struct{ CV float64 }
	}
}

// The table of figures by which phase jitter was chosen: 100,000 tasks that fail together, base 10 s doubling, 8
// retries.
func TestPublishedFiguresOfPlot(t *testing.T) {
	testkit.Slow(t, "it simulates a million attempts")
	rows := []struct {
		spec        string
		idle, local figure
		cv          []float64
	}{
		{
			spec: "exp:10s", idle: figure{0.002, 0.001}, local: figure{1.03, 0.03},
			cv: []float64{.31, .20, .20, .20, .20, .20, .20, .20},
		},
		{
			spec: "exp:10s/full", idle: figure{0, 0.001}, local: figure{1.21, 0.03},
			cv: []float64{.58, .58, .58, .58, .58, .58, .58, .58},
		},
		{
			spec: "exp:10s/equal", idle: figure{0.11, 0.015}, local: figure{2.15, 0.05},
			cv: []float64{.19, .19, .19, .19, .19, .19, .19, .19},
		},
		// Sidekiq's rand(10) is a whole number. The published figures are those of a fraction, whose waves are a tenth
		// wider.
		{
			spec: "sidekiq", idle: figure{0.82, 0.01}, local: figure{13.8, 2.8},
			cv: []float64{.15, .23, .19, .10, .05, .03, .02, .01},
		},
		{
			spec: "exp:10s/none", idle: figure{0.997, 0.001}, local: figure{16, 0.001},
			cv: []float64{0, 0, 0, 0, 0, 0, 0, 0},
		},
	}
	args := []string{"plot", "--json", "--tasks", "100000", "--attempts", "9", "--seed", "1"}
	for _, r := range rows {
		args = append(args, r.spec)
	}
	got := decoded[plotFigures](t, printed(t, args...))
	for i, r := range rows {
		s := got.Specs[i]
		r.idle.check(t, r.spec+": idle", s.Load.Idle)
		r.local.check(t, r.spec+": local", s.Load.Local)
		for n, want := range r.cv {
			figure{want, 0.008}.check(t, r.spec+": CV", s.Retries[n].CV)
		}
	}
}

type outageFigures struct {
	Specs []struct {
		Rejected float64
		Done     struct{ P99, All *float64 } `json:"done_ms"`
	}
}

// The same table's recovery: down for 120 s, then 1,000 calls a second are answered. When the last one of all is done
// is chance.
func TestPublishedFiguresOfAnOutage(t *testing.T) {
	testkit.Slow(t, "it simulates a million attempts")
	rows := []struct {
		spec               string
		p99, all, rejected figure
	}{
		{spec: "exp:10s", p99: figure{244, 2}, all: figure{288, 10}, rejected: figure{564, 300}},
		{spec: "exp:10s/full", p99: figure{520, 35}, all: figure{2012, 800}, rejected: figure{0, 0}},
		{spec: "exp:10s/equal", p99: figure{279, 2}, all: figure{293, 3}, rejected: figure{11172, 300}},
		{spec: "sidekiq", p99: figure{534, 8}, all: figure{548, 10}, rejected: figure{38617, 300}},
	}
	args := []string{"simulate", "outage", "--json", "--clients", "100000", "--down", "120s", "--capacity", "1000",
		"--seed", "1"}
	for _, r := range rows {
		args = append(args, r.spec)
	}
	got := decoded[outageFigures](t, printed(t, args...))
	for i, r := range rows {
		s := got.Specs[i]
		r.p99.check(t, r.spec+": 99 % done", *s.Done.P99/1000)
		r.all.check(t, r.spec+": all done", *s.Done.All/1000)
		r.rejected.check(t, r.spec+": rejected", s.Rejected)
	}
	few := printed(t, "simulate", "outage", "--json", "--clients", "2000", "--down", "120s", "--capacity", "20",
		"exp:10s/none")
	if none := decoded[outageFigures](t, few).Specs[0]; none.Done.P99 != nil || none.Done.All != nil {
		t.Errorf("without jitter: got %+v, want never", none)
	}
}

func pictured(t *testing.T) ([]plot.Study, plot.Options) {
	t.Helper()
	options := plot.Options{Tasks: 5, Retries: 8, Seed: 7}
	policy := task.DefaultPolicy()
	policy.Attempts = 0
	study, err := plot.NewStudy(plot.Subject{Label: "for ever", Policy: policy}, options)
	testkit.Must(t, err)
	return []plot.Study{study}, options
}

// Each flag writes a file of its kind, and leaves no other file in the directory.
func TestPictureFiles(t *testing.T) {
	dir := t.TempDir()
	f := pictureFlags{SVG: filepath.Join(dir, "a.svg"), PNG: filepath.Join(dir, "a.png"),
		HTML: filepath.Join(dir, "a.html")}
	testkit.Write(t, f.SVG, "old")
	files, err := f.files(&Process{Host: session.Host{Stdout: os.Stdout}})
	testkit.Must(t, err)
	if testkit.Contents(t, f.SVG) != "old" {
		t.Error("got a changed file before there was anything to write, want the old one")
	}
	studies, options := pictured(t)
	testkit.Must(t, writePictures(files, studies, options))
	for path, want := range map[string][]string{
		f.SVG: {"<svg ", "for ever", "</svg>\n"},
		f.PNG: {"\x89PNG\r\n", "IEND"},
		f.HTML: {"<!doctype html>", `"label":"for ever","backoff":"exp:1s..1m","jitter":"phase","attempts":9`,
			`"tasks":5,"seed":"7"`, "</html>\n"},
	} {
		text := testkit.Contents(t, path)
		if !strings.HasPrefix(text, want[0]) {
			t.Errorf("%s: got %q at the beginning, want %q", path, text[:min(40, len(text))], want[0])
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: got a file without %q", path, part)
			}
		}
	}
	if got := testkit.Names(t, dir); len(got) != 3 {
		t.Errorf("got the files %v, want 3", got)
	}
}

func TestPictureToStdout(t *testing.T) {
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	testkit.Must(t, err)
	files, err := (&pictureFlags{SVG: "-"}).files(&Process{Host: session.Host{Stdout: stdout}})
	testkit.Must(t, err)
	studies, options := pictured(t)
	testkit.Must(t, writePictures(files, studies, options))
	if text := testkit.Contents(t, stdout.Name()); !strings.HasPrefix(text, "<svg ") {
		t.Errorf("got %q on stdout, want an SVG", text[:min(40, len(text))])
	}
	testkit.Must(t, stdout.Close())
}

func TestPNGOnATerminal(t *testing.T) {
	other, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer func() { _, _ = other.Close(), terminal.Close() }()
	if _, err := (&pictureFlags{PNG: "-"}).files(&Process{Host: session.Host{Stdout: terminal}}); err == nil ||
		!strings.Contains(err.Error(), "a terminal cannot show") {
		t.Errorf("got %v, want an error that names the terminal", err)
	}
	if _, err := (&pictureFlags{SVG: "-"}).files(&Process{Host: session.Host{Stdout: terminal}}); err != nil {
		t.Errorf("SVG: got %v, want no error: it is text", err)
	}
}

// A file that cannot be written is refused before the figures are computed, with the name of its flag.
func TestPictureFilesRefused(t *testing.T) {
	dir := t.TempDir()
	for want, f := range map[string]pictureFlags{
		"--png: " + dir + " is a directory":            {PNG: dir},
		"--svg: create ":                               {SVG: filepath.Join(dir, "absent", "a.svg")},
		"--svg and --html go to the same place\nhint:": {SVG: "-", HTML: "/dev/stdout"},
		"--svg and --png go to the same place\nhint:":  {SVG: filepath.Join(dir, "a"), PNG: filepath.Join(dir, ".", "a")},
	} {
		if _, err := f.files(&Process{Host: session.Host{Stdout: os.Stdout}}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", f, err, want)
		}
	}
	if files, err := (&pictureFlags{}).files(&Process{Host: session.Host{Stdout: os.Stdout}}); files != nil || err != nil {
		t.Errorf("without a flag: got %v, %v, want no files", files, err)
	}
	if got := testkit.Names(t, dir); got != nil {
		t.Errorf("got the files %v, want none", got)
	}
}
