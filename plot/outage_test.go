package plot

import (
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOutage(t *testing.T) {
	tests := []struct {
		name           string
		outage         Outage
		jitter         string
		calls, refused int
		all            time.Duration
	}{
		{"one finds it back", Outage{Clients: 1, Down: 5 * time.Second, Capacity: 1}, "none", 4, 0, 7 * time.Second}, // at 0, 1, 3 and 7 s
		{"it was never down", Outage{Clients: 10, Capacity: 10}, "none", 10, 0, 0},
		{"it was never down, and is too small", Outage{Clients: 10, Capacity: 5}, "none", 15, 5, time.Second},
		{"a wave larger than what it answers", Outage{Clients: 6, Down: 2 * time.Second, Capacity: 2}, "none", 24, 6, 15 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, tt.outage, subject(t, "exp:1s", tt.jitter, 0))
			if got.Calls != tt.calls || got.Refused != tt.refused || got.Done.All != tt.all || got.Left != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Waves that grow apart without end, and clients who give no time a chance to pass, end a simulation all the same.
func TestOutageEndsWithoutEveryClient(t *testing.T) {
	for _, curve := range []string{"exp:10s", "constant:0"} {
		got := run(t, Outage{Clients: 2_000, Down: 2 * time.Minute, Capacity: 10}, subject(t, curve, "none", 0))
		if got.Left == 0 || got.Done.All != Never || got.Ended > maxSimulated || got.Calls > 100*2_000+1 {
			t.Errorf("%s: %+v", curve, got)
		}
	}
}

// Attempts, budgets and rules are no part of it: nobody gives up.
func TestOutageHasNoLimits(t *testing.T) {
	s := subject(t, "constant:1s", "none", 3)
	s.Policy.Budget = time.Minute
	if got := run(t, Outage{Clients: 3, Down: time.Hour, Capacity: 3}, s); got.Left != 0 || got.Calls != 3*3601 {
		t.Errorf("got %+v", got)
	}
}

func TestOutageKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outage{
			Clients: rapid.IntRange(1, 500).Draw(t, "clients"), Capacity: rapid.IntRange(1, 100).Draw(t, "capacity"),
			Down: time.Duration(rapid.IntRange(0, 200).Draw(t, "down")) * time.Second, Seed: rapid.Uint64().Draw(t, "seed"),
		}
		s := subject(t, rapid.SampledFrom([]string{"exp:1s..1m", "constant:5s", "fib:1s..1m"}).Draw(t, "curve"), "full", 0)
		got, err := o.Run(s)
		again, _ := o.Run(s)
		switch {
		case err != nil || got.Left != 0 || got.Refused > got.Calls-o.Clients:
			t.Fatalf("%+v, %v", got, err)
		case got.Done != got.Wait || got.Done.P50 < 0:
			t.Fatalf("done %+v, waited %+v", got.Done, got.Wait)
		case got.Calls != again.Calls || got.Done != again.Done:
			t.Fatalf("another time %+v, %+v", got, again)
		case got.Done.All < o.Ideal()-2*time.Second: // it answers a second's calls at once
			t.Fatalf("all done after %v, at the best %v", got.Done.All, o.Ideal())
		}
	})
}

func TestSimulationsRefuse(t *testing.T) {
	s := subject(t, "exp:1s", "", 0)
	for name, simulation := range map[string]Simulation{
		"no client": Outage{Down: time.Second, Capacity: 1}, "too many clients": Lock{Clients: MaxClients + 1},
		"no capacity": Outage{Clients: 1}, "down for ever": Outage{Clients: 1, Capacity: 1, Down: maxSimulated}, "held for ever": Lock{Clients: 1, Hold: maxSimulated},
		"spins for ever": Lock{Clients: 1, Spin: maxSimulated},
	} {
		if _, err := simulation.Run(s); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A study is the same on any number of processors, and another seed gives another.
func TestStudyIsRepeatable(t *testing.T) {
	s := subject(t, "exp:1s..1m", "full", 9)
	one := study(t, s, Options{Tasks: 5000, Seed: 7})
	before := runtime.GOMAXPROCS(1)
	alone := study(t, s, Options{Tasks: 5000, Seed: 7})
	runtime.GOMAXPROCS(4)
	four := study(t, s, Options{Tasks: 5000, Seed: 7})
	runtime.GOMAXPROCS(before)
	other := study(t, s, Options{Tasks: 5000, Seed: 8})
	for i, r := range one.Retries {
		if r != alone.Retries[i] || r != four.Retries[i] || r == other.Retries[i] {
			t.Errorf("retry %d: %+v, %+v, %+v, %+v", i+1, r, alone.Retries[i], four.Retries[i], other.Retries[i])
		}
	}
	if one.Window != alone.Window || one.Window != four.Window || one.Load.Peak != four.Load.Peak || one.Load.Local != four.Load.Local {
		t.Errorf("window %v, %v; load %+v, %+v", one.Window, four.Window, one.Load, four.Load)
	}
}

// A simulation that ends before the service is back says how far it came.
func TestOutageEndsWhileDown(t *testing.T) {
	got := run(t, Outage{Clients: 2, Down: day, Capacity: 1}, subject(t, "constant:1ms", "none", 0))
	if got.Left != 2 || got.Ended != 199_999*time.Millisecond {
		t.Errorf("%d left after %v", got.Left, got.Ended)
	}
}
