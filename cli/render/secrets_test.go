package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

// A secret that somebody typed is in nothing that is shown; a reference to one is.
func TestSecretsOfARequestAreNotShown(t *testing.T) {
	v := requesting(func(v *TaskView) {
		v.Request = &task.Request{
			Method: "POST", URL: "https://ann:hunter2@h/", User: "ann:hunter2",
			Header: []string{"Authorization: Bearer hunter2", "Cookie: a=hunter2", "x-api-key:hunter2", "Authorization: Bearer {env:TOKEN}", "X-Id: 7"},
			Body:   []task.Part{{Text: []byte("hunter2")}}, Network: task.Network{Proxy: "http://p:hunter2@proxy"},
		}
	})
	last := ambiguous(answered(1, 503))
	stats := []task.CommandStats{{Method: "POST", URL: v.Request.URL, Runs: 1}}
	var github, table, statistics, statsJSON strings.Builder
	play(githubIn(&github), v.Task, func() {}, last)
	must(t, Tasks(&table, Screen{}, all(v), Table{}, now), Stats(&statistics, Screen{}, stats, 0, now, now), StatsJSON(&statsJSON, stats, now))
	shown := map[string]string{
		"detail": strings.Join(taskOf(t, Screen{}, v, last), "\n"), "JSON": fmt.Sprint(decoded(t, v, last)), "table": table.String(),
		"stats": statistics.String(), "JSON of stats": statsJSON.String(), "lines": told(v.Task, last), "GitHub": github.String(),
	}
	for where, text := range shown {
		if strings.Contains(text, "hunter2") || where != "lines" && !strings.Contains(text, "https://ann:***@h/") {
			t.Errorf("%s: %s", where, text)
		}
	}
	if detail := shown["detail"]; !strings.Contains(detail, "Authorization: Bearer {env:TOKEN}\n") || !strings.Contains(detail, "X-Id: 7\n") {
		t.Errorf("what is no secret is missing: %s", detail)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
