package plot

import (
	"fmt"
	"slices"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// MaxClients is how many clients can be simulated.
const MaxClients = 10_000_000

func checkClients(n int) error {
	if n < 1 || n > MaxClients {
		return fmt.Errorf("%d clients\nhint: --clients is from 1 to %d", n, MaxClients)
	}
	return nil
}

func checkTime(flag string, d time.Duration) error {
	if d < 0 || d > maxSimulated/2 {
		return fmt.Errorf("%s %s is too long\nhint: a simulation ends after %s", flag, text.FormatDuration(d), text.FormatDuration(maxSimulated))
	}
	return nil
}

// Trial is what comes of a subject when its clients call a service, or for a lock, until each has been served.
type Trial struct {
	Subject Subject
	Clients int
	Calls   int
	Refused int           // calls that the service refused though it was back, or that did not get the lock
	ByWave  []int         // the same, of the first calls, the first retries and so on; maxWaves of them at the most
	Wait    Quantiles     // from time 0 until they were served, or had the lock
	Done    Quantiles     // until they were served, or had released the lock
	Left    int           // clients that were not served when the simulation was ended
	Ended   time.Duration // how far it went
}

// maxWaves is how many waves are told apart.
const maxWaves = 100

// Simulation is something that the clients of a subject can be let loose on.
type Simulation interface {
	Run(s Subject) (Trial, error)
	Ideal() time.Duration
}

// Never is the time of what did not happen before a simulation was ended.
const Never time.Duration = -1

// Quantiles are of all clients; who was never served comes last.
type Quantiles struct{ P50, P95, P99, All time.Duration }

// quantiles sorts times.
func quantiles(times []time.Duration, clients int) Quantiles {
	slices.Sort(times)
	at := func(percent int) time.Duration {
		place := (clients*percent + 99) / 100
		if place > len(times) {
			return Never
		}
		return times[place-1]
	}
	return Quantiles{at(50), at(95), at(99), at(100)}
}

func (q Quantiles) plus(d time.Duration) Quantiles {
	for _, t := range []*time.Duration{&q.P50, &q.P95, &q.P99, &q.All} {
		if *t != Never {
			*t += d
		}
	}
	return q
}
