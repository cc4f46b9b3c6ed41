package picture

import (
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/plot"
)

// Figure is a line of what was measured.
type Figure struct{ Name, Value string }

// Figures are what was measured, as a person reads it.
func Figures(s plot.Study) []Figure {
	return []Figure{
		{"Window: least · mean · most", together(s.Window.Least, s.Window.Mean, s.Window.Most)},
		{"Load: peak · mean", orNone(often(s.Load.Peak)+" · "+often(s.Load.Mean), s.Load.Peak)},
		{"Seconds without a retry", orNone(percent(s.Load.Idle), s.Load.Peak)},
		{"Worst local load, 1 is even", orNone(digits(s.Load.Local), s.Load.Local)},
		{"CV of the wait, n = 1, 2 …", cvText(s.Retries)},
	}
}

// together are times with their unit said once where it is the same.
func together(times ...time.Duration) string {
	var texts []string
	last := ""
	for i := len(times) - 1; i >= 0; i-- {
		text := Short(times[i])
		number, unit, _ := strings.Cut(text, " ")
		if unit == last {
			text = number
		}
		last = unit
		texts = append([]string{text}, texts...)
	}
	return strings.Join(texts, " · ")
}

// orNone is a figure, or a dash where there was nothing to measure: all is over within the second that is left out, or before the base
// delay. A worst load of 0 would look better than even.
func orNone(figure string, measured float64) string {
	if measured == 0 {
		return "–"
	}
	return figure
}

func percent(share float64) string {
	if share > 0.999 && share < 1 {
		return "99.9 %"
	}
	return digits(100*share) + " %"
}

// cvText is the coefficient of variation of the first waits and the last.
func cvText(retries []plot.Retry) string {
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

// figures draws them below a column.
func (sc *scene) figures(left, top float64, s plot.Study) {
	y := top + 30
	from, to := left+leftRoom-padding, left+columnWidth-rightRoom+padding
	for _, f := range Figures(s) {
		sc.add(
			line{points: []point{{from, y - 15}, {to, y - 15}}, width: 1, stroke: grid},
			txt{at: point{from, y}, words: f.Name, size: small, fill: muted},
			txt{at: point{to, y}, words: f.Value, size: small, anchor: end, fill: words},
		)
		y += 21
	}
}
