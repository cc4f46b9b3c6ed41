package metrics

import "time"

const day = 24 * time.Hour

// ageBounds tell 1 ms from 5 ms, for a task that succeeds at once, and a day from 30 for one that waits for a service
// to come back.
func ageBounds() []time.Duration {
	return []time.Duration{
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 3 * day, 7 * day, 14 * day, 30 * day,
	}
}

// durationBounds are for attempts: a request within a machine up to a command of hours.
func durationBounds() []time.Duration {
	return []time.Duration{
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour,
	}
}

// delayBounds are for backoff.
func delayBounds() []time.Duration {
	return []time.Duration{
		10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, day,
	}
}

// latenessBounds are fine around what a worker promises: p50 1 ms, p99 5 ms.
func latenessBounds() []time.Duration {
	return []time.Duration{
		100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
		25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
		500 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute, time.Hour,
	}
}

// storeBounds are for a commit of 0.02 ms up to a lock that is held for long.
func storeBounds() []time.Duration {
	return []time.Duration{
		25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
		500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
		25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 5 * time.Second, 30 * time.Second,
	}
}
