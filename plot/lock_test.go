package plot

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
		{"one waits long enough", Lock{Clients: 2, Hold: time.Second, Spin: time.Second}, 2, 0, time.Second, 2 * time.Second, 0},
		{"one waits in vain, and calls again while it is free", Lock{Clients: 2, Hold: time.Second, Spin: time.Second / 2}, 3, 1, 3 * time.Second / 2, 5 * time.Second / 2, 1},
		{"all wait", Lock{Clients: 100, Hold: time.Second, Spin: time.Minute + 39*time.Second}, 100, 0, 99 * time.Second, 100 * time.Second, 0},
		{"held for no time", Lock{Clients: 50}, 50, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, tt.lock, subject(t, "constant:1s", "none", 0))
			wave := 0
			if len(got.ByWave) > 0 {
				wave = got.ByWave[0]
			}
			if got.Calls != tt.calls || got.Refused != tt.refused || got.Wait.All != tt.waitAll || got.Done.All != tt.doneAll || wave != tt.firstWave || got.Left != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// As in M. Brooker, "Exponential Backoff And Jitter" (2015): without jitter the clients call far more often, and with equal jitter more
// often than with full.
func TestLockRanksJitters(t *testing.T) {
	calls := map[string]int{}
	for _, jitter := range []string{"none", "equal", "full"} {
		for seed := range uint64(20) {
			calls[jitter] += run(t, Lock{Clients: 100, Hold: 5 * time.Millisecond, Seed: seed}, subject(t, "exp:100ms..10s", jitter, 0)).Calls
		}
	}
	if calls["none"] < 5*calls["equal"] || calls["equal"] <= calls["full"] {
		t.Errorf("calls %v", calls)
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
