package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
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

var threeCommands = group{name: "success", title: "Success", runs: 3, commands: []command{
	{name: bare, label: "true"},
	{name: debian, label: "theirs"},
	{name: "retry", label: "retry"},
}}

func TestSummarise(t *testing.T) {
	f := threeCommands.summarise([][]sample{walled(1, 1, 3), walled(2, 2, 2), walled(9, 3, 5)}, []int64{512, 1024, 0})
	if f.Name != "success" || f.Runs != 3 || len(f.Rows) != 3 {
		t.Fatalf("%+v", f)
	}
	got := f.Rows[2]
	if *got.ToBare != 5 || *got.ToDebian != 2.5 {
		t.Errorf("ratios %v and %v, want 5 and 2.5", *got.ToBare, *got.ToDebian)
	}
	got.ToBare, got.ToDebian = nil, nil
	if want := (row{Name: "retry", Command: "retry", Median: 5, P10: 3, P90: 9, CPU: 2.5}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSummariseWithoutDebian(t *testing.T) {
	g := threeCommands
	g.commands = []command{g.commands[0], g.commands[2]}
	f := g.summarise([][]sample{walled(1), walled(3)}, []int64{0, 0})
	if f.Rows[1].ToDebian != nil || *f.Rows[1].ToBare != 3 {
		t.Errorf("compares with what is not there: %+v", f.Rows[1])
	}
}

func TestWriteJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	wrote := found()
	wrote.Targets = reached(wrote)
	wrote.Waiting = []waiting{{Name: "retry", Peak: 3, Resident: 2, Own: 1}}
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
	if !reflect.DeepEqual(read, wrote) {
		t.Errorf("read back %+v\nwrote %+v", read, wrote)
	}
	if err := wrote.writeJSON(""); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

// docs/speed.md names every field.
func TestJSONIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "speed.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{report{}, facts{}, target{}, figures{}, row{}, waiting{}, start{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			if name := kind.Field(i).Tag.Get("json"); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("%s of %s is not told of", name, kind)
			}
		}
	}
}
