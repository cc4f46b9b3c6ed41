//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestWaiting(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc to look into")
	}
	for said, ok := range map[string]bool{
		"retry: attempt 1/2: exit 1 after 1ms; next in 1s\nretry: attempt 2/3: exit 1 after 1ms; next in 1h": true,
		"retry: 'false' returned 1, backing off for 3600 seconds and trying again...":                        true,
		"retry: attempt 1/2: exit 1 after 1ms; next in 11h":                                                  false,
		"": false,
	} {
		c := shell("printf '%s\\n' \"$0\" >&2; [ -z \"$1\" ] || exec cat", 0)
		c.argv = append(c.argv, said, map[bool]string{true: "wait"}[ok])
		cmd, err := c.intoDelay(t.Context())
		if !ok {
			if err == nil || !strings.Contains(err.Error(), "it does not wait") {
				t.Errorf("%q: %v", said, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", said, err)
		}
		end([]*exec.Cmd{cmd})
	}
}

func TestLooked(t *testing.T) {
	const status = "VmHWM:\t 30 kB\nVmRSS:\t 20 kB\nRssAnon:\t 5 kB\nRssFile:\t 15 kB\n"
	want := waiting{Name: "me", Command: "this test", Peak: 30, Resident: 20, Own: 5}
	if got := (command{name: "me", label: "this test"}).looked([]byte(status)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLook(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc to look into")
	}
	if w := (command{}).look(os.Getpid()); w.Resident <= 0 {
		t.Errorf("look = %+v", w)
	}
}
