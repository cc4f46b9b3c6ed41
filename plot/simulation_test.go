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
		{"a wave larger than what it answers", Outage{Clients: 6, Down: 2 * time.Second, Capacity: 2}, "none", 24, 6,
			15 * time.Second},
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
		"no capacity": Outage{Clients: 1}, "down for ever": Outage{Clients: 1, Capacity: 1, Down: maxSimulated},
		"held for ever":  Lock{Clients: 1, Hold: maxSimulated},
		"spins for ever": Lock{Clients: 1, Spin: maxSimulated},
	} {
		if _, err := simulation.Run(s); err == nil {
			t.Errorf("%s: got no error", name)
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
			t.Errorf("retry %d: got %+v, %+v, %+v, and of another seed %+v", i+1, r, alone.Retries[i], four.Retries[i],
				other.Retries[i])
		}
	}
	if one.Window != alone.Window || one.Window != four.Window || one.Load.Peak != four.Load.Peak ||
		one.Load.Local != four.Load.Local {
		t.Errorf("got window %v, %v; load %+v, %+v", one.Window, four.Window, one.Load, four.Load)
	}
}

// A simulation that ends before the service is back says how far it came.
func TestOutageEndsWhileDown(t *testing.T) {
	got := run(t, Outage{Clients: 2, Down: 24 * time.Hour, Capacity: 1}, subject(t, "constant:1ms", "none", 0))
	if want := 99_999 * time.Millisecond; got.Left != 2 || got.Ended != want {
		t.Errorf("got %d clients left after %v, want 2 after %v", got.Left, got.Ended, want)
	}
}

func TestLockOfOneAfterTheOther(t *testing.T) {
	tests := []struct {
		name             string
		lock             Lock
		calls, refused   int
		waitAll, doneAll time.Duration
		firstWave        int
	}{
		{"one", Lock{Clients: 1, Hold: time.Second}, 1, 0, 0, time.Second, 0},
		{"two, a second apart", Lock{Clients: 2, Hold: time.Second}, 3, 1, time.Second, 2 * time.Second, 1},
		{"three", Lock{Clients: 3, Hold: time.Second}, 6, 3, 2 * time.Second, 3 * time.Second, 2},
		{"one waits long enough", Lock{Clients: 2, Hold: time.Second, Spin: time.Second}, 2, 0, time.Second,
			2 * time.Second, 0},
		{"one waits in vain, and calls again while it is free", Lock{Clients: 2, Hold: time.Second, Spin: time.Second / 2},
			3, 1, 3 * time.Second / 2, 5 * time.Second / 2, 1},
		{"all wait", Lock{Clients: 100, Hold: time.Second, Spin: time.Minute + 39*time.Second}, 100, 0, 99 * time.Second,
			100 * time.Second, 0},
		{"held for no time", Lock{Clients: 50}, 50, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, tt.lock, subject(t, "constant:1s", "none", 0))
			wave := 0
			if len(got.ByWave) > 0 {
				wave = got.ByWave[0]
			}
			if got.Calls != tt.calls || got.Refused != tt.refused || got.Wait.All != tt.waitAll ||
				got.Done.All != tt.doneAll || wave != tt.firstWave || got.Left != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// As in M. Brooker, "Exponential Backoff And Jitter" (2015): without jitter the clients call far more often, and with
// equal jitter more often than with full.
func TestLockRanksJitters(t *testing.T) {
	calls := map[string]int{}
	for _, jitter := range []string{"none", "equal", "full"} {
		for seed := range uint64(20) {
			calls[jitter] += run(t, Lock{Clients: 100, Hold: 5 * time.Millisecond, Seed: seed},
				subject(t, "exp:100ms..10s", jitter, 0)).Calls
		}
	}
	if calls["none"] < 5*calls["equal"] || calls["equal"] <= calls["full"] {
		t.Errorf("got calls %v", calls)
	}
}

// Every client has the lock once, no two at a time; each refused call is counted once.
func TestLockKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lock := Lock{
			Clients: rapid.IntRange(1, 200).Draw(t, "clients"), Seed: rapid.Uint64().Draw(t, "seed"),
			Hold: time.Duration(rapid.IntRange(0, 500).Draw(t, "hold")) * time.Millisecond,
			Spin: time.Duration(rapid.IntRange(0, 2000).Draw(t, "spin")) * time.Millisecond,
		}
		spec := rapid.SampledFrom([]string{"full", "equal", "phase", "30%"}).Draw(t, "jitter")
		got, err := lock.Run(subject(t, "exp:100ms..5s", spec, 0))
		if err != nil {
			t.Fatal(err)
		}
		byWave := 0
		for _, n := range got.ByWave {
			byWave += n
		}
		switch {
		case got.Left != 0 || got.Calls != lock.Clients+got.Refused || byWave != got.Refused:
			t.Fatalf("%+v", got)
		case got.Done.All < lock.Ideal() || got.Done.All != got.Wait.All+lock.Hold:
			t.Fatalf("all done after %v, at the best %v", got.Done.All, lock.Ideal())
		case got.Wait.P50 > got.Wait.P95 || got.Wait.P95 > got.Wait.P99 || got.Wait.P99 > got.Wait.All:
			t.Fatalf("quantiles %+v", got.Wait)
		case lock.Spin >= time.Duration(lock.Clients-1)*lock.Hold && got.Refused > 0:
			t.Fatalf("%d collisions though everybody waits long enough", got.Refused)
		}
	})
}
