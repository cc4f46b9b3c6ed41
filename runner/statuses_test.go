package runner

import (
	"strings"
	"testing"
)

func TestCheckStatuses(t *testing.T) {
	for _, text := range []string{"429,5xx", "500-504, timeout", "any", "exit == 22", "999", "99-101", "", "reset", "22x"} {
		if err := CheckStatuses(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"22": "22 is no status of HTTP", "429, 1-3": "1-3 is no status", "SIGSEGV": "no signal ends a request", "503,signal": "no signal",
	} {
		if err := CheckStatuses(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
