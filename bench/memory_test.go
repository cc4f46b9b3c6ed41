package main

import "testing"

func TestStatusLine(t *testing.T) {
	const alive = "Name:\ttrue\nVmPeak:\t    9999 kB\nVmHWM:\t    1336 kB\nVmRSS:\t    1200 kB\nRssAnon:\t     80 kB\n"
	for _, test := range []struct {
		name, status, line string
		want               int64
		ok                 bool
	}{
		{"the peak", alive, "VmHWM", 1336, true},
		{"the last line", alive, "RssAnon", 80, true},
		{"not a part of a name", alive, "VmR", 0, false},
		{"a zombie", "Name:\ttrue\nState:\tZ (zombie)\n", "VmHWM", 0, false},
		{"no number", "VmHWM:\n", "VmHWM", 0, false},
		{"nothing", "", "VmHWM", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := statusLine([]byte(test.status), test.line); got != test.want || ok != test.ok {
				t.Errorf("statusLine = %d, %v; want %d, %v", got, ok, test.want, test.ok)
			}
		})
	}
}
