package render

import (
	"strings"
	"testing"

	"github.com/10f93571/retry/plot"
)

func TestPlotJSON(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 1, Seed: 18446744073709551615}
	s := studyOf(t, subject(t, "exp:1500ms..1m", "none"), o)
	s.Load = plot.Load{Peak: 1.0 / 3, Mean: 1e-9, Idle: 0.12345678, Local: 16}
	s.Retries[0].CV = 2.0 / 3
	var b strings.Builder
	if err := PlotJSON(&b, []plot.Study{s}, o); err != nil {
		t.Fatal(err)
	}
	const want = `{"tasks":1,"seed":18446744073709551615,"specs":[{"label":"exp:1500ms..1m/none","backoff":"exp:1.5s..1m","jitter":"none",` +
		`"window_ms":{"min":1500,"mean":1500,"max":1500},"load":{"peak":0.333333,"mean":1e-9,"idle":0.123457,"local":16},` +
		`"retries":[{"n":1,"base_ms":1500,"min_ms":1500,"mean_ms":1500,"max_ms":1500,"cv":0.666667}]}]}`
	if got := strings.Join(strings.Fields(b.String()), ""); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A wait that no bound keeps below what every delay saturates at has no greatest value.
func TestPlotJSONWithoutBound(t *testing.T) {
	o := plot.Options{Tasks: 1, Retries: 30, Seed: 1}
	for jitter, want := range map[string]string{"decorrelated": "null", "none": "512000"} {
		curve := "exp:1s"
		if jitter == "none" {
			curve = "exp:1s..512s"
		}
		var b strings.Builder
		if err := PlotJSON(&b, []plot.Study{studyOf(t, subject(t, curve, jitter), o)}, o); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if last := text[strings.LastIndex(text, `"max_ms"`):]; !strings.HasPrefix(last, `"max_ms": `+want+",") {
			t.Errorf("%s: %s, want %s", jitter, last[:20], want)
		}
	}
}
