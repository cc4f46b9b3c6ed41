//go:build linux && cgo

package cost

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

const (
	ledgerPath = "ledger.tsv"
	ledgerTop  = `# What a unit of work costs. go test ./test/cost -update writes this file anew; who raises a number says why
# in the commit. waiting: tasks in the store that are due tomorrow. statements, steps (of SQLite's virtual machine), scanned
# (rows of full scans), log (bytes written to it), calls (of the kernel), allocs and bytes (allocated). -: not counted.
`
)

type key struct {
	unit    string
	waiting int
}

type ledger map[key]costs

func (l ledger) write(t *testing.T) {
	lines := strings.Builder{}
	lines.WriteString(ledgerTop)
	fmt.Fprintf(&lines, "%-18s\t%7s", "# unit", "waiting")
	for _, column := range columns {
		fmt.Fprintf(&lines, "\t%10s", column)
	}
	keys := slices.SortedFunc(maps.Keys(l), func(a, z key) int {
		return cmp.Or(cmp.Compare(a.unit, z.unit), cmp.Compare(a.waiting, z.waiting))
	})
	for _, k := range keys {
		fmt.Fprintf(&lines, "\n%-18s\t%7d", k.unit, k.waiting)
		for _, n := range l[k] {
			if text := strconv.FormatFloat(n, 'f', 1, 64); n < 0 {
				fmt.Fprintf(&lines, "\t%10s", "-")
			} else {
				fmt.Fprintf(&lines, "\t%10s", text)
			}
		}
	}
	lines.WriteByte('\n')
	testkit.Must(t, os.WriteFile(ledgerPath, []byte(lines.String()), 0o644))
}

func readLedger(t *testing.T) ledger {
	l := ledger{}
	for line := range strings.Lines(testkit.Contents(t, ledgerPath)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != len(columns)+2 {
			t.Fatalf("%s: got %d fields in %q, want %d", ledgerPath, len(fields), line, len(columns)+2)
		}
		n, err := strconv.Atoi(strings.TrimSpace(fields[1]))
		testkit.Must(t, err)
		k := key{strings.TrimSpace(fields[0]), n}
		for _, field := range fields[2:] {
			if field = strings.TrimSpace(field); field == "-" {
				field = "-1"
			}
			n, err := strconv.ParseFloat(field, 64)
			testkit.Must(t, err)
			l[k] = append(l[k], n)
		}
	}
	return l
}

// check compares what was counted with the file.
func (l ledger) check(t *testing.T) {
	written := readLedger(t)
	for k, got := range l {
		want, found := written[k]
		if !found {
			t.Errorf("%s beside %d: not in %s\nhint: go test ./test/cost -update", k.unit, k.waiting, ledgerPath)
			continue
		}
		for i, column := range columns {
			if got[i] < 0 || want[i] < 0 {
				continue
			}
			slack := slackOf(k.unit, column, want[i])
			switch {
			case got[i] > want[i]*1.03+slack:
				t.Errorf("%s beside %d, %s: got %.1f, want %.1f or 3 %% more\n"+
					"hint: go test ./test/cost -update writes it down; who raises a number says why in the commit",
					k.unit, k.waiting, column, got[i], want[i])
			case got[i] < want[i]*0.9-slack:
				t.Errorf("%s beside %d, %s: got %.1f, which is less than %.1f by more than 10 %%\n"+
					"hint: go test ./test/cost -update writes the new number down", k.unit, k.waiting, column, got[i], want[i])
			}
		}
	}
}
