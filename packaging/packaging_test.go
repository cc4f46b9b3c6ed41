// Package packaging_test checks what is shipped beside the binary against what the program has.
package packaging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/metrics"
)

const (
	dashboardFile = "grafana/retry.json"
	rulesFile     = "prometheus/retry.rules.yml"
	rulesTestFile = "prometheus/retry.rules.test.yml"
)

// exposition is what a service tells a scraper, with a sample in each family.
func exposition(t *testing.T) []byte {
	t.Helper()
	s := metrics.NewService(metrics.Build{Version: "v1"})
	s.AttemptEnded(metrics.Retry, "payments", time.Second)
	s.Delayed("payments", time.Second)
	s.StoreTook("claim", time.Millisecond)
	s.CountStore(func(context.Context) (metrics.StoreFigures, error) {
		return metrics.StoreFigures{OldestDue: time.Now()}, nil
	})
	return s.Text(t.Context(), metrics.Prometheus)
}

// families are the names of a service's metrics.
func families(t *testing.T) (names []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllSubmatch(exposition(t), -1) {
		names = append(names, string(found[1]))
	}
	return names
}

var nameOfMetric = regexp.MustCompile(`\bretry_[a-z_]+`)

// mentioned are the families that a text names, with samples of histograms.
func mentioned(text string) (names []string) {
	for _, name := range nameOfMetric.FindAllString(text, -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		names = append(names, name)
	}
	return names
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// No panel and no alert asks for a metric that does not exist; and no metric is shown nowhere.
func TestDashboardAndRulesNameRealMetrics(t *testing.T) {
	existing := families(t)
	if len(existing) < 15 {
		t.Fatalf("got %d families: %v", len(existing), existing)
	}
	for _, file := range []string{dashboardFile, rulesFile, rulesTestFile} {
		named := mentioned(string(read(t, file)))
		if len(named) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range named {
			if !slices.Contains(existing, name) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		for _, name := range existing {
			if file == dashboardFile && !slices.Contains(named, name) {
				t.Errorf("%s does not show %s", file, name)
			}
		}
	}
}

type target struct {
	RefID string `json:"refId"`
	Expr  string `json:"expr"`
}

type panel struct {
	ID          int                      `json:"id"`
	Type        string                   `json:"type"`
	Title       string                   `json:"title"`
	Description string                   `json:"description"`
	Datasource  map[string]string        `json:"datasource"`
	GridPos     struct{ X, Y, W, H int } `json:"gridPos"`
	Targets     []target                 `json:"targets"`
}

type dashboard struct {
	UID        string
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name+" "+v.Type)
	}
	if want := []string{"datasource datasource", "instance query"}; !slices.Equal(variables, want) {
		t.Errorf("variables: got %q, want %q", variables, want)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its id is another's, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource["uid"] != "${datasource}" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q: got data source %v, description %q and %d targets", p.Title, p.Datasource, p.Description,
				len(p.Targets))
		}
		for _, target := range p.Targets {
			if !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("panel %q: %s does not heed the instance", p.Title, target.Expr)
			}
		}
	}
}

// promtool finds Prometheus' checker. Where there is none the test is skipped, unless TEST_PROMTOOL=required.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err == nil {
		return path
	}
	if os.Getenv("TEST_PROMTOOL") == "required" {
		t.Fatal("promtool is not in the PATH, and TEST_PROMTOOL=required")
	}
	t.Skip("promtool is not in the PATH; it comes with Prometheus (Debian: prometheus)")
	return ""
}

// run runs promtool, which has to succeed and to say nothing on stderr.
func run(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(promtool(t), args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Errorf("promtool %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
}

func TestPromtoolChecksTheRules(t *testing.T) {
	run(t, nil, "check", "rules", rulesFile)
	run(t, nil, "test", "rules", rulesTestFile)
}

// Its linter knows the conventions: names, units, types, help.
func TestPromtoolChecksTheExposition(t *testing.T) {
	run(t, exposition(t), "check", "metrics")
}

// The queries of the dashboard are checked as rules.
func TestPromtoolChecksTheDashboard(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	variables := strings.NewReplacer("$instance", ".*", "$__rate_interval", "5m")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel:%d:%s", p.ID, target.RefID), variables.Replace(target.Expr)})
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yml") // JSON is YAML
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "check", "rules", file)
}
