package backoff

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
)

type constant struct{ delay time.Duration }

func (f constant) at(int) time.Duration { return min(f.delay, Max) }

func (f constant) String() string { return "constant:" + text.FormatDuration(f.delay) }

func parseConstant(body string) (formula, error) {
	d, err := parseDelay("delay", body)
	return constant{d}, err
}

// linear is first + step·(n−1).
type linear struct{ first, step time.Duration }

func (f linear) at(n int) time.Duration {
	return min(min(f.first, Max)+times(f.step, float64(n-1)), Max)
}

func (f linear) String() string {
	if f.first == f.step {
		return "linear:" + text.FormatDuration(f.step)
	}
	return "linear:" + text.FormatDuration(f.first) + "+" + text.FormatDuration(f.step)
}

func parseLinear(body string) (formula, error) {
	first, step, both := strings.Cut(body, "+")
	if !both {
		d, err := parseDelay("step", body)
		return linear{d, d}, err
	}
	start, err := parseDelay("initial delay", first)
	if err != nil {
		return nil, err
	}
	d, err := parseDelay("step", step)
	return linear{start, d}, err
}

// exponential is initial·multiplier^(n−1).
type exponential struct {
	initial    time.Duration
	multiplier float64
}

func (f exponential) at(n int) time.Duration {
	if n == 1 || f.multiplier == 1 { // exact, where a product of floats would lose nanoseconds
		return min(f.initial, Max)
	}
	return min(times(f.initial, math.Pow(f.multiplier, float64(n-1))), Max)
}

func (f exponential) String() string {
	if f.multiplier == 2 {
		return "exp:" + text.FormatDuration(f.initial)
	}
	return "exp:" + text.FormatDuration(f.initial) + "*" + text.FormatNumber(f.multiplier)
}

func parseExponential(body string) (formula, error) {
	start, factor, given := strings.Cut(body, "*")
	initial, err := parseDelay("initial delay", start)
	if err != nil {
		return nil, err
	}
	if !given {
		return exponential{initial, 2}, nil
	}
	multiplier, err := parseNumber("multiplier", factor)
	if err == nil && multiplier < 1 {
		err = fmt.Errorf("the multiplier %s is below 1: the delays would shrink", text.FormatNumber(multiplier))
	}
	return exponential{initial, multiplier}, err
}

// fibonacci is scale·F(n), F = 1, 1, 2, 3, 5 …
type fibonacci struct{ scale time.Duration }

func (f fibonacci) at(n int) time.Duration {
	if f.scale == 0 {
		return 0
	}
	previous, d := time.Duration(0), min(f.scale, Max)
	for i := 1; i < n && d < Max; i++ { // from a nanosecond it reaches Max in 80 steps
		previous, d = d, d+previous
	}
	return min(d, Max)
}

func (f fibonacci) String() string { return "fib:" + text.FormatDuration(f.scale) }

func parseFibonacci(body string) (formula, error) {
	d, err := parseDelay("delay", body)
	return fibonacci{d}, err
}

// polynomial is start + n^exponent seconds.
type polynomial struct {
	start    time.Duration
	exponent float64
}

func (f polynomial) at(n int) time.Duration {
	return min(min(f.start, Max)+seconds(math.Pow(float64(n), f.exponent)), Max)
}

func (f polynomial) String() string {
	return "poly:" + text.FormatDuration(f.start) + "+n^" + text.FormatNumber(f.exponent)
}

func parsePolynomial(body string) (formula, error) {
	start, power, _ := strings.Cut(body, "+")
	base, err := parseDelay("base delay", start)
	if err != nil {
		return nil, err
	}
	digits, ok := strings.CutPrefix(strings.TrimSpace(power), "n^")
	if !ok {
		return nil, errors.New("the base delay wants a +n^exponent after it")
	}
	exponent, err := parseNumber("exponent", digits)
	return polynomial{base, exponent}, err
}

// list is its n-th delay; the last one repeats.
type list []time.Duration

func (f list) at(n int) time.Duration { return min(f[min(n, len(f))-1], Max) }

func (f list) String() string {
	parts := make([]string, len(f))
	for i, d := range f {
		parts[i] = text.FormatDuration(d)
	}
	return "list:" + strings.Join(parts, ",")
}

func parseList(body string) (formula, error) {
	var f list
	for i, part := range strings.Split(body, ",") {
		d, err := parseDelay("delay "+strconv.Itoa(i+1), part)
		if err != nil {
			return nil, err
		}
		f = append(f, d)
	}
	return f, nil
}

// buckets is uniform between (n−1)^exponent and (n+1)^exponent seconds.
type buckets struct{ exponent float64 }

func (f buckets) at(n int) time.Duration { return f.bounds(n, unlimited).at(0.5) }

func (f buckets) String() string { return "buckets:" + text.FormatNumber(f.exponent) }

func (f buckets) bounds(n int, _ time.Duration) span {
	return between(seconds(math.Pow(float64(n)-1, f.exponent)), seconds(math.Pow(float64(n)+1, f.exponent)))
}

func (f buckets) draw(n int, limit time.Duration, c Chance) time.Duration {
	return f.bounds(n, limit).at(c.random())
}

func parseBuckets(body string) (formula, error) {
	exponent, err := parseNumber("exponent", body)
	return buckets{exponent}, err
}

// sidekiq is Ruby's (count ** 4) + 15 + rand(10) * (count + 1) seconds, count = n−1.
type sidekiq struct{}

// at is without the random part.
func (sidekiq) at(n int) time.Duration { return seconds(math.Pow(float64(n)-1, 4) + 15) }

func (sidekiq) String() string { return "sidekiq" }

func (f sidekiq) bounds(n int, _ time.Duration) span {
	return span{f.at(n), times(9*time.Second, float64(n))}
}

// draw uses rand(10) as Ruby does: a whole number from 0 to 9.
func (f sidekiq) draw(n int, limit time.Duration, c Chance) time.Duration {
	return f.bounds(n, limit).at(min(math.Floor(10*c.random()), 9) / 9)
}
