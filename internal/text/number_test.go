package text

import (
	"testing"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{"1 policy": Count(1, "policy"), "0 policies": Count(0, "policy"),
		"2 tasks": Count(2, "task")} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB",
		200 << 20: "200 MiB", 1<<63 - 1: "8 EiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
