package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// walled is a sample of each duration, half of it spent on the processor.
func walled(ms ...time.Duration) []sample {
	var all []sample
	for _, d := range ms {
		all = append(all, sample{wall: d * time.Millisecond, cpu: d * time.Millisecond / 2})
	}
	return all
}

var threeCommands = group{title: "Success", runs: 3, commands: []command{
	{label: "true", role: bare},
	{label: "theirs", role: debian},
	{label: "retry"},
}}

func TestMarkdown(t *testing.T) {
	r := report{
		Facts:  facts{Cores: 2, Arch: "amd64", Go: "go1.26", Kernel: "Linux 6", FileSystem: "ext4"},
		Groups: []figures{threeCommands.summarise([][]sample{walled(1, 1, 3), walled(2, 2, 2), walled(5, 3, 9)}, []int64{512, 1024, 0})},
	}
	var out strings.Builder
	r.markdown(&out)
	want := `2 cores (amd64), go1.26, Linux 6, journal on ext4

| Success (3 runs) | median ms | min | p90 | CPU ms | peak MiB | to bare | to Debian's |
|---|--:|--:|--:|--:|--:|--:|--:|
| ` + "`true`" + ` | 1.00 | 1.00 | 3.00 | 0.50 | 0.5 | 1.00 × | 0.50 × |
| ` + "`theirs`" + ` | 2.00 | 2.00 | 2.00 | 1.00 | 1.0 | 2.00 × | 1.00 × |
| ` + "`retry`" + ` | 5.00 | 3.00 | 9.00 | 2.50 | – | 5.00 × | 2.50 × |
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestMarkdownWithoutDebian(t *testing.T) {
	g := threeCommands
	g.commands = without(debian, g.commands)
	r := report{Groups: []figures{g.summarise([][]sample{walled(1), walled(3)}, []int64{0, 0})}}
	var out strings.Builder
	r.markdown(&out)
	if !strings.Contains(out.String(), "Debian's retry is not installed") {
		t.Errorf("does not say that rows are missing:\n%s", &out)
	}
	if !strings.Contains(out.String(), "| 3.00 × | – |") {
		t.Errorf("compares with what is not there:\n%s", &out)
	}
}

func TestWriteJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	wrote := report{Groups: []figures{threeCommands.summarise([][]sample{walled(1), walled(2), walled(3)}, []int64{1, 2, 3})}}
	if err := wrote.writeJSON(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	row := read.Groups[0].Rows[2]
	if row.Command != "retry" || row.Median != 3 || row.CPU != 1.5 || row.PeakKiB != 3 || *row.ToBare != 3 || *row.ToDebian != 1.5 {
		t.Errorf("read back %+v", row)
	}
}
