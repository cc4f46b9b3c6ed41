package render

import (
	"testing"
	"time"

	"github.com/10f93571/retry/task"
)

func TestTransferred(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		now  task.Transfer
		took time.Duration
		want string
	}{
		{task.Transfer{Bytes: 86 * mib, Total: 200 * mib}, 8 * time.Second, "43% of 200 MiB, 10.8 MiB/s, 11s left"},
		{task.Transfer{Bytes: 86 * mib, Total: 200 * mib, From: 78 * mib}, 8 * time.Second,
			"43% of 200 MiB, 1 MiB/s, 1m54s left"},
		{task.Transfer{Bytes: 86 * mib, Total: -1}, 8 * time.Second, "86 MiB, 10.8 MiB/s"},
		{task.Transfer{Bytes: 0, Total: 200 * mib}, 8 * time.Second, "0% of 200 MiB"},
		{task.Transfer{Bytes: 0, Total: -1}, 8 * time.Second, "0 B"},
		{task.Transfer{Bytes: 199<<20 + 900_000, Total: 200 * mib}, time.Minute, "99% of 200 MiB, 3.3 MiB/s, 1s left"},
		{task.Transfer{Bytes: 200 * mib, Total: 200 * mib}, time.Minute, "100% of 200 MiB, 3.3 MiB/s"},
		{task.Transfer{Bytes: 3 * mib, Total: 2 * mib}, time.Second, "100% of 2 MiB, 3 MiB/s"},
		{task.Transfer{Bytes: 20 * mib, Total: 200 * mib, Sending: true}, 2 * time.Second,
			"10% of 200 MiB sent, 10 MiB/s, 18s left"},
		{task.Transfer{Bytes: 200 * mib, Total: 200 * mib, Sending: true}, 2 * time.Second,
			"100% of 200 MiB sent, no reply yet"},
		{task.Transfer{Bytes: 1, Total: 1 << 62}, 1000 * time.Second, "0% of 4 EiB"},
		{task.Transfer{Bytes: 2, Total: 1 << 62}, time.Second, "0% of 4 EiB, 2 B/s"}, // longer than can be counted
		{task.Transfer{Bytes: 5, Total: 9}, 0, "55% of 9 B"},
	} {
		if got := transferred(tt.now, tt.now.Began.Add(tt.took)); got != tt.want {
			t.Errorf("%+v after %v: %q, want %q", tt.now, tt.took, got, tt.want)
		}
	}
}

// Nobody is told where nothing can be drawn.
func TestProgressWithoutATerminal(t *testing.T) {
	for name, o := range map[string]Observer{
		"no terminal":    NewLines(nil, nil, false),
		"quiet":          NewQuiet(nil),
		"for programs":   NewLog(nil, false),
		"several at one": Shared(NewLines(nil, nil, false)),
	} {
		if o.Progress() != nil {
			t.Errorf("%s: got a function, want nil", name)
		}
	}
}
