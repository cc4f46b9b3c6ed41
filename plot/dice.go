package plot

import (
	"math/rand/v2"
)

// dice are the random numbers of one task after the other. What a task draws depends on the seed and its index alone.
type dice struct {
	seed   uint64
	source *rand.PCG
	next   func() float64 // uniform in [0, 1)
}

func newDice(seed uint64) *dice {
	source := rand.NewPCG(seed, 0)
	return &dice{seed: seed, source: source, next: rand.New(source).Float64}
}

// of begins the numbers of a task at a place of its own, so that neither the order of tasks nor how many drew before matters.
func (d *dice) of(tk, draw uint64) {
	d.source.Seed(mix(d.seed)^mix(tk), mix(draw+1))
}

// phase is a task's fixed phase: its index and the seed, hashed.
func (d *dice) phase(tk uint64) float64 {
	return float64(mix(mix(d.seed)+tk)>>11) / (1 << 53)
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
