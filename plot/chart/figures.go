package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/plot"
)

// Figure is one line of the table of results.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Figures are the results of a study for people to read.
func Figures(s plot.Study) []Figure {
	return []Figure{
		{"Window: least · mean · most", formatTimes(s.Window.Least, s.Window.Mean, s.Window.Most)},
		{"Load: peak · mean", orDash(rateWithUnit(s.Load.Peak)+" · "+rateWithUnit(s.Load.Mean), s.Load.Peak)},
		{"Seconds without a retry", orDash(percent(s.Load.Idle), s.Load.Peak)},
		{"Worst local load, 1 is even", orDash(formatNumber(s.Load.Local), s.Load.Local)},
		{"CV of the wait, n = 1, 2 …", formatCVs(s.Retries)},
	}
}

// formatTimes writes a unit once where neighbours share it.
func formatTimes(times ...time.Duration) string {
	var texts []string
	last := ""
	for i := len(times) - 1; i >= 0; i-- {
		text := FormatTime(times[i])
		number, unit, _ := strings.Cut(text, " ")
		if unit == last {
			text = number
		}
		last = unit
		texts = append([]string{text}, texts...)
	}
	return strings.Join(texts, " · ")
}

// orDash is a figure, or a dash where nothing was measured, as all retries came within the first second or before the
// base delay. A local load of 0 would look better than even.
func orDash(figure string, measured float64) string {
	if measured == 0 {
		return "–"
	}
	return figure
}

func percent(share float64) string {
	if share > 0.999 && share < 1 {
		return "99.9 %"
	}
	return formatNumber(100*share) + " %"
}

// formatCVs shows the first delays and the last.
func formatCVs(retries []plot.Retry) string {
	var texts []string
	for i, r := range retries {
		if i < 4 || i == len(retries)-1 {
			texts = append(texts, strings.TrimPrefix(fmt.Sprintf("%.2f", r.CV), "0"))
		}
		if i == 4 && len(retries) > 5 {
			texts = append(texts, "…")
		}
	}
	return strings.Join(texts, " ")
}

// FormatTime is a time in its largest unit, with three digits: "20.4 d".
func FormatTime(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{
		{year, "y"}, {day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"},
		{time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {time.Nanosecond, "ns"},
	} {
		if d >= u.size {
			return formatNumber(float64(d)/float64(u.size)) + " " + u.name
		}
	}
	return "0 s"
}

// FormatRate is a rate without its unit, short enough to stand beside an axis.
func FormatRate(rate float64) string {
	if rate == 0 || rate >= 0.001 && rate < 1e6 {
		return formatNumber(rate)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(rate, 'e', 1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return strings.TrimSuffix(mantissa, ".0") + "e" + strconv.Itoa(n)
}

// formatNumber has three digits, and more only before the point.
func formatNumber(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	decimals := min(max(2-int(math.Floor(math.Log10(math.Abs(x)))), 0), 4)
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// rateWithUnit chooses the unit in which a rate is easy to read.
func rateWithUnit(rate float64) string {
	switch {
	case rate == 0 || rate >= 0.1:
		return formatNumber(rate) + "/s"
	case rate*3600 >= 0.1:
		return formatNumber(rate*3600) + "/h"
	}
	return formatNumber(rate*3600*24) + "/d"
}
