package picture

import (
	"math"
	"strconv"
	"strings"

	"github.com/10f93571/retry/plot"
)

// axes are shared by all studies of a picture, so that what stands side by side can be compared.
type axes struct {
	delay plot.Axis
	time  plot.Axis
	load  rates
}

func newAxes(studies []plot.Study) axes {
	a := axes{delay: plot.DelayAxis(studies), time: plot.TimeAxis(studies)}
	for _, s := range studies {
		for _, b := range loadOf(s, a.time) {
			a.load = a.load.with(b.rate)
		}
	}
	return a
}

// rates is an axis of retries a second.
type rates struct{ least, most float64 }

func (r rates) with(rate float64) rates {
	if rate <= 0 {
		return r
	}
	if r.least == 0 {
		return rates{rate, rate}
	}
	return rates{min(r.least, rate), max(r.most, rate)}
}

// log reports whether the rates lie so far apart that the low ones need a logarithmic axis to be seen.
func (r rates) log() bool { return r.most/r.least >= 30 }

// floor is the rate at the lower end: 0, or a round one below the least.
func (r rates) floor() float64 {
	if !r.log() {
		return 0
	}
	return math.Pow(10, math.Floor(math.Log10(r.least*0.99)))
}

func (r rates) place(rate float64) float64 {
	if rate <= 0 || r.most == 0 {
		return 0
	}
	if r.log() {
		return math.Log(rate/r.floor()) / math.Log(r.most/r.floor())
	}
	return rate / r.most
}

// marks are powers of ten, or a few round rates.
func (r rates) marks() (marks []mark) {
	if r.most == 0 {
		return []mark{{0, "0"}}
	}
	if !r.log() {
		step := roundStep(r.most / 4)
		for rate := 0.0; rate <= r.most; rate += step {
			marks = append(marks, mark{r.place(rate), rateText(rate)})
		}
		return marks
	}
	every := math.Pow(10, math.Ceil(math.Log10(r.most/r.floor())/6))
	for rate := r.floor(); rate <= r.most; rate *= every {
		marks = append(marks, mark{max(r.place(rate), 0), rateText(rate)})
	}
	return marks
}

// rateText is a rate that fits beside the axis.
func rateText(rate float64) string {
	if rate == 0 || rate >= 0.01 && rate < 1e6 {
		return digits(rate)
	}
	mantissa, power, _ := strings.Cut(strconv.FormatFloat(rate, 'e', 0, 64), "e")
	n, _ := strconv.Atoi(power)
	return mantissa + "e" + strconv.Itoa(n)
}

// roundStep is the next number above x that begins with 1, 2 or 5.
func roundStep(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= x {
			return k * unit
		}
	}
	return 10 * unit
}
