package metrics

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Format is a text format for metrics.
type Format int

// The formats. A scraper that says nothing gets Prometheus'.
const (
	Prometheus  Format = iota // the Prometheus text format 0.0.4
	OpenMetrics               // OpenMetrics 1.0
)

// ContentType is the media type of a text in this format.
func (f Format) ContentType() string {
	if f == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// Type is the type of a family.
type Type string

// The types of families.
const (
	TypeCounter   Type = "counter"
	TypeGauge     Type = "gauge"
	TypeHistogram Type = "histogram"
)

// Label is a label of a sample with its value.
type Label struct{ Name, Value string }

// Text is a text of metrics that is being written.
type Text struct {
	format Format
	text   bytes.Buffer
	name   string // of the family
	header string // of the family, until its first sample is written: a family without one is left out
}

// NewText begins a text.
func NewText(f Format) *Text { return &Text{format: f} }

// Family begins a family. The name is that of its samples: a counter's ends in _total.
func (t *Text) Family(name, help string, kind Type) {
	family := name
	if kind == TypeCounter && t.format == OpenMetrics { // which names a counter's family without the ending
		family = strings.TrimSuffix(name, "_total")
	}
	t.name = name
	t.header = "# HELP " + family + " " + t.escapeHelp(help) + "\n# TYPE " + family + " " + string(kind) + "\n"
}

// Sample writes a sample of the family. The labels of two samples of a family differ.
func (t *Text) Sample(value float64, labels ...Label) {
	t.sample("", value, labels)
}

// histogram writes the samples of one histogram.
func (t *Text) histogram(h *Histogram, labels ...Label) {
	// The sum is read first and counts in between are not in it: a mean that is read meanwhile is not too high.
	sum := math.Float64frombits(h.sum.Load())
	buckets := append(append([]Label{}, labels...), Label{Name: "le"})
	bound := &buckets[len(buckets)-1]
	var count uint64
	for i := range h.counts {
		count += h.counts[i].Load()
		bound.Value = "+Inf"
		if i < len(h.bounds) {
			bound.Value = boundText(h.bounds[i].Seconds())
		}
		t.sample("_bucket", float64(count), buckets)
	}
	t.sample("_sum", sum, labels)
	t.sample("_count", float64(count), labels)
}

// End ends the text and returns it. The last line says that nothing is missing; it is a comment in Prometheus' format.
func (t *Text) End() []byte {
	t.text.WriteString("# EOF\n")
	return t.text.Bytes()
}

func (t *Text) sample(suffix string, value float64, labels []Label) {
	t.text.WriteString(t.header)
	t.header = ""
	t.text.WriteString(t.name)
	t.text.WriteString(suffix)
	between := byte('{')
	for _, l := range labels {
		t.text.WriteByte(between)
		t.text.WriteString(l.Name)
		t.text.WriteString(`="`)
		t.text.WriteString(escapeValue(l.Value))
		t.text.WriteByte('"')
		between = ','
	}
	if len(labels) > 0 {
		t.text.WriteByte('}')
	}
	t.text.WriteByte(' ')
	t.text.Write(appendNumber(t.text.AvailableBuffer(), value))
	t.text.WriteByte('\n')
}

// appendNumber writes a number without an exponent, which people read with less trouble.
func appendNumber(text []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(text, "+Inf"...)
	case math.IsInf(v, -1):
		return append(text, "-Inf"...)
	}
	return strconv.AppendFloat(text, v, 'f', -1, 64)
}

// boundText writes a bound as OpenMetrics wants it, "1.0" and not "1". It is the same in both formats, so that a series
// does not change with what a scraper asks for.
func boundText(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// escapeValue escapes the value of a label. Both formats have these escapes and require UTF-8.
func escapeValue(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsAny(s, "\\\"\n") { // nearly always, and a Replacer is large
		return s
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

// escapeHelp escapes a help; only OpenMetrics escapes quotes there. Its parser refuses a carriage return.
func (t *Text) escapeHelp(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", " ").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	if t.format == OpenMetrics {
		s = strings.ReplaceAll(s, `"`, `\"`)
	}
	return s
}
