package backoff

import (
	"math"
	"time"

	"github.com/10f93571/retry/internal/text"
)

// buckets is uniform between (n−1)^exponent and (n+1)^exponent seconds.
type buckets struct{ exponent float64 }

func (f buckets) at(n int) time.Duration { return f.reach(n).at(0.5) }

func (f buckets) String() string { return "buckets:" + text.FormatNumber(f.exponent) }

func (f buckets) reach(n int) span {
	return between(seconds(math.Pow(float64(n)-1, f.exponent)), seconds(math.Pow(float64(n)+1, f.exponent)))
}

func (buckets) rolls() bool { return true }

func (f buckets) roll(n int, c Chance) time.Duration { return f.reach(n).at(c.random()) }

func parseBuckets(body string) (formula, error) {
	exponent, err := parseNumber("exponent", body)
	return buckets{exponent}, err
}

// sidekiq is Ruby's (count ** 4) + 15 + rand(10) * (count + 1) seconds, count = n−1.
type sidekiq struct{}

// at leaves the random part out.
func (sidekiq) at(n int) time.Duration { return seconds(math.Pow(float64(n)-1, 4) + 15) }

func (sidekiq) String() string { return "sidekiq" }

func (f sidekiq) reach(n int) span { return span{f.at(n), times(9*time.Second, float64(n))} }

func (sidekiq) rolls() bool { return true }

// roll follows rand(10), which is a whole number from 0 to 9.
func (f sidekiq) roll(n int, c Chance) time.Duration {
	return f.reach(n).at(min(math.Floor(10*c.random()), 9) / 9)
}
