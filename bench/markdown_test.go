package main

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	pipes := group{name: "pipes", title: "64 MiB through a pipe", runs: 1, bytes: 64 << 20, commands: []command{{name: bare, label: "cat"}}}
	tenth, cpu := 0.25, 0.75
	r := report{
		Facts:   facts{Began: "now", Cores: 2, Arch: "amd64", Go: "go1.26", Kernel: "Linux 6", FileSystem: "ext4", Load: "0.10"},
		Missing: []string{"No cat is here."},
		Targets: []target{{"one", "×", 1.1, 1.2345, &tenth, &cpu, false}, {"two", "MiB", 12, 12, nil, nil, true}},
		Groups: []figures{
			threeCommands.summarise([][]sample{walled(1, 1, 3), walled(2, 2, 2), walled(5, 3, 9)}, []int64{512, 1024, 0}),
			pipes.summarise([][]sample{walled(500)}, []int64{0}),
		},
		Waiting: []waiting{{Command: "retry", Peak: 2048, Resident: 1536}},
		Start:   &start{Median: 0.5, P10: 0.25, Bytes: 100, Allocs: 7},
	}
	var out strings.Builder
	r.markdown(&out)
	want := strings.ReplaceAll(`now: 2 cores (amd64), go1.26, Linux 6, journal on ext4, load 0.10

No cat is here.

| what | to reach | by medians | by 10th percentiles | by CPU | |
|---|--:|--:|--:|--:|---|
| one | ≤ 1.1 × | 1.23 | 0.25 | 0.75 | missed |
| two | ≤ 12 MiB | 12.00 | – | – | reached |

| Success (3 runs) | median ms | p10 | p90 | CPU ms | peak MiB | to bare | to Debian's |
|---|--:|--:|--:|--:|--:|--:|--:|
| ~true~ | 1.00 | 1.00 | 3.00 | 0.50 | 0.5 | 1.00 × | 0.50 × |
| ~theirs~ | 2.00 | 2.00 | 2.00 | 1.00 | 1.0 | 2.00 × | 1.00 × |
| ~retry~ | 5.00 | 3.00 | 9.00 | 2.50 | – | 5.00 × | 2.50 × |

| 64 MiB through a pipe (1 runs) | MiB/s | median ms | p10 | CPU ms | to cat |
|---|--:|--:|--:|--:|--:|
| ~cat~ | 128 | 500 | 500 | 250 | 1.00 × |

| Memory while waiting, MiB | peak | resident | of which its own |
|---|--:|--:|--:|
| ~retry~ | 2.0 | 1.5 | – |

Packages initialise in 0.50 ms (median; 10th percentile 0.25), with 100 bytes in 7 allocations.
`, "~", "`")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestMarkdownOfLittle(t *testing.T) {
	var out strings.Builder
	report{Facts: facts{Began: "now", Cores: 1, Arch: "arm64", Go: "go1.26", Kernel: "darwin"}}.markdown(&out)
	if want := "now: 1 cores (arm64), go1.26, darwin\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", &out, want)
	}
}
