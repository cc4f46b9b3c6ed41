package task

import (
	"testing"
)

func TestHeld(t *testing.T) {
	for mode, want := range map[OutputMode]bool{
		"": false, OutputStream: false, OutputFinal: true, OutputSuccess: true, OutputFailure: true,
	} {
		if got := mode.Held(); got != want {
			t.Errorf("%q: got %v, want %v", mode, got, want)
		}
	}
}

// The status of the task decides which output is written; nothing is written while the task may continue.
func TestPassesOn(t *testing.T) {
	statuses := []Status{Pending, InFlight, Succeeded, Exhausted, Failed, Cancelled}
	for mode, passed := range map[OutputMode]map[Status]bool{
		"":            {}, // stream: it was passed on as it came
		OutputStream:  {},
		OutputFinal:   {Succeeded: true, Exhausted: true, Failed: true, Cancelled: true},
		OutputSuccess: {Succeeded: true},
		OutputFailure: {Exhausted: true, Failed: true},
	} {
		for _, s := range statuses {
			if got := mode.PassesOn(s); got != passed[s] {
				t.Errorf("%q, %s: got %v, want %v", mode, s, got, passed[s])
			}
		}
	}
}

func seed(n uint64) *uint64 { return &n }

// The phase of a seed never changes, so that a run can be repeated with any later version of retry.
func TestPhase(t *testing.T) {
	tests := []struct {
		name string
		seed *uint64
		want float64
	}{
		{"none", nil, 0.25}, {"0", seed(0), 0.9999275824802834}, {"1", seed(1), 0.23842319087387442},
		{"42", seed(42), 0.25335066677989804},
		{"the largest", seed(1<<64 - 1), 0.9939066713389748},
	}
	seen := map[float64]bool{}
	for _, tt := range tests {
		o := Options{Seed: tt.seed}
		got := o.Phase(0.25)
		if got != tt.want || got < 0 || got >= 1 || seen[got] {
			t.Errorf("%s: got phase %v, want %v", tt.name, got, tt.want)
		}
		seen[got] = true
		if again := o.Phase(0.75); tt.seed != nil && again != got {
			t.Errorf("%s: got phase %v the second time, want %v", tt.name, again, got)
		}
	}
}

func TestFinalHook(t *testing.T) {
	o := Options{OnRetry: "retry", OnSuccess: "success", OnFailure: "failure"}
	for status, want := range map[Status]string{
		Pending: "", InFlight: "", Succeeded: "success", Exhausted: "failure", Failed: "failure", Cancelled: "",
	} {
		if got := o.FinalHook(status); got != want {
			t.Errorf("%s: got %q, want %q", status, got, want)
		}
	}
}
