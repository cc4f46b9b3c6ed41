package sqlite

import (
	"hash/fnv"
	"math"
	"os"
)

// machineSalt keeps the tasks of two machines out of step.
func machineSalt() uint64 {
	name, err := os.Hostname()
	if err != nil {
		return 0 // the tasks of one machine are still spread
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// phase returns the task's fixed place in [0, 1): multiples of the golden ratio stay evenly apart, however many there are.
func phase(number int64, salt uint64) float64 {
	const unit = 1.0 / (1 << 53)
	_, f := math.Modf(math.Phi*float64(number) + float64(salt>>11)*unit)
	return f
}
