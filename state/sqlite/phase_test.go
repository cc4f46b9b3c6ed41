package sqlite

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPhaseIsAFraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number, salt := rapid.Int64Range(1, math.MaxInt64).Draw(t, "number"), rapid.Uint64().Draw(t, "salt")
		if u := phase(number, salt); !(u >= 0 && u < 1) {
			t.Fatalf("phase(%d, %#x) = %v", number, salt, u)
		}
	})
	if u := phase(1, math.MaxUint64); !(u >= 0 && u < 1) {
		t.Errorf("with the largest salt: %v", u)
	}
}

// Tasks that were made one after the other part as evenly as possible: by the three-distance theorem n multiples of the
// golden ratio leave no gap larger than about 1.9/n, on a circle, from whichever number they start.
func TestConsecutivePhasesAreEvenlySpread(t *testing.T) {
	for _, first := range []int64{1, 2, 1000, 1e6, 1e9} {
		for _, salt := range []uint64{0, 0x9e3779b97f4a7c15, math.MaxUint64} {
			for _, n := range []int{1, 2, 3, 5, 8, 16, 100, 1000, 1597, 10_000} {
				if gap := largestGap(first, n, salt); gap > 2/float64(n) {
					t.Errorf("%d tasks from number %d on: a gap of %.3f/n", n, first, gap*float64(n))
				}
			}
		}
	}
}

func largestGap(first int64, n int, salt uint64) float64 {
	phases := make([]float64, n)
	for i := range phases {
		phases[i] = phase(first+int64(i), salt)
	}
	slices.Sort(phases)
	largest := phases[0] + 1 - phases[n-1]
	for i := 1; i < n; i++ {
		largest = max(largest, phases[i]-phases[i-1])
	}
	return largest
}

// The formula of SPEC 2.2: frac(φ · task number + hash(machine)).
func TestPhaseFormula(t *testing.T) {
	const half = 1 << 63
	for _, test := range []struct {
		number int64
		salt   uint64
		want   float64
	}{{1, 0, math.Phi - 1}, {2, 0, 2*math.Phi - 3}, {1, half, math.Phi - 1.5}, {3, half, 3*math.Phi + 0.5 - 5}} {
		if got := phase(test.number, test.salt); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("phase(%d, %#x) = %v, want %v", test.number, test.salt, got, test.want)
		}
	}
}

// A task has one phase for life, whichever process reads it; another machine's tasks of the same numbers have others.
func TestPhaseOfATask(t *testing.T) {
	j := open(t)
	tk := inFlight(t, j)
	if got := stored(t, j, tk.ID).History.Phase; got != tk.History.Phase || machineSalt() != j.salt {
		t.Errorf("read as %v, written as %v", got, tk.History.Phase)
	}
	j.salt++
	j.salt <<= 20
	if stored(t, j, tk.ID).History.Phase == tk.History.Phase {
		t.Error("the machine does not matter")
	}
}
