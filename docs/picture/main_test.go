package main

import (
	"html"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// varying are the parts of the picture that differ from run to run: times, and ids of tasks, with the spaces beside them.
var varying = regexp.MustCompile(` *\b([\d.]+(ms|s)|[0-9a-f]{8})\b *`)

// The picture of the README is what retry shows today, but for times and ids.
func TestPictureIsWhatRetryShows(t *testing.T) {
	testkit.Slow(t, "it builds retry and runs it in a terminal")
	if runtime.GOOS != "linux" {
		t.Skip("the picture is drawn on Linux")
	}
	svg, err := os.ReadFile("terminal.svg")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := draw()
	if err != nil {
		t.Fatal(err)
	}
	got, want := varying.ReplaceAllString(description(string(svg)), " … "), varying.ReplaceAllString(description(fresh), " … ")
	if got != want {
		t.Errorf("got %s\nwant %s\nif that is right, run go run ./docs/picture >docs/picture/terminal.svg", got, want)
	}
}

// description is the text in a picture.
func description(svg string) string {
	_, rest, _ := strings.Cut(svg, "<desc>")
	text, _, _ := strings.Cut(rest, "</desc>")
	return html.UnescapeString(text)
}

func TestScreen(t *testing.T) {
	for name, tt := range map[string]struct{ printed, want string }{
		"lines":             {"a\r\nb", "a\nb\n"},
		"a line over it":    {"waits 3s\r\x1b[Kdone", "done\n"},
		"a part of it":      {"abc\rx", "xbc\n"},
		"the rest is gone":  {"abc\rx\x1b[K", "x\n"},
		"up":                {"a\r\nb\r\x1b[1Ac", "c\nb\n"},
		"colours":           {"\x1b[1;31ma\x1b[0mb", "ab\n"},
		"an unended escape": {"a\x1b[3", "a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var s screen
			s.print(tt.printed)
			if got := s.text(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Text and its colours end up in the picture, and nothing of it is markup.
func TestSVG(t *testing.T) {
	var s screen
	s.print("a \x1b[32m<b>\x1b[0m\r\n\x1b[1m$ c\x1b[0m")
	svg := s.svg()
	for _, want := range []string{`class="green">&lt;b&gt;</text>`, `class="bold">$ c</text>`, `>a</text>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("got no %s in %s", want, svg)
		}
	}
}
