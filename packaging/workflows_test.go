package packaging_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Timeout     int               `json:"timeout-minutes"`
		Steps       []struct {
			Uses string         `json:"uses"`
			With map[string]any `json:"with"`
			Run  string         `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

var pinned = regexp.MustCompile(`^(\./packaging/action|[\w.-]+/[\w.-]+@[0-9a-f]{40})$`)

// A workflow has no right that no job of it names, no Action that somebody else could change under us, and no
// expression in a script, where a branch's name could be a command.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("got workflows %q and %v, want at least 2", files, err)
	}
	for _, file := range files {
		var w workflow
		parseLoosely(t, read(t, file), &w)
		if w.Permissions == nil || len(w.Permissions) != 0 {
			t.Errorf("%s: got permissions %v for all jobs, want {}", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if len(job.Permissions) == 0 || job.Timeout == 0 {
				t.Errorf("%s: job %s: got permissions %v and a timeout of %d minutes, want both", file, name,
					job.Permissions, job.Timeout)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %s, want a commit", file, name, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves its token in the clone", file, name)
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: job %s has an expression in its script: %s", file, name, step.Run)
				}
			}
		}
	}
}

// The forms of issues ask for each thing under a name of its own, and Dependabot looks at every module.
func TestGitHubFiles(t *testing.T) {
	for _, file := range []string{"bug.yml", "feature.yml"} {
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label string }
			}
		}
		parseLoosely(t, read(t, "../.github/ISSUE_TEMPLATE/"+file), &form)
		ids := map[string]bool{}
		for _, field := range form.Body {
			if field.ID == "" || ids[field.ID] || field.Attributes.Label == "" {
				t.Errorf("%s: field %q has no name of its own, or no label", file, field.ID)
			}
			ids[field.ID] = true
		}
		if form.Name == "" || form.Description == "" || len(ids) == 0 {
			t.Errorf("%s: got name %q, description %q and %d fields", file, form.Name, form.Description, len(ids))
		}
	}
	var dependabot struct {
		Version int
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directories []string
			Schedule    struct{ Interval string }
		}
	}
	parseLoosely(t, read(t, "../.github/dependabot.yml"), &dependabot)
	watched := ""
	for _, update := range dependabot.Updates {
		for _, directory := range update.Directories {
			watched += update.Ecosystem + " " + directory + "\n"
		}
	}
	for _, want := range []string{"gomod /\n", "gomod /test/bench/rivals\n", "github-actions /\n"} {
		if !strings.Contains(watched, want) {
			t.Errorf("dependabot.yml: got %q, want %q in it", watched, want)
		}
	}
}

// What SECURITY.md says of a release is what the release job does.
func TestSecurityPageNamesTheReleaseJob(t *testing.T) {
	page, job := string(read(t, "../SECURITY.md")), string(read(t, "../.github/workflows/release.yml"))
	for _, want := range []string{"govulncheck", "osv-scanner", "cosign", "id-token: write"} {
		if !strings.Contains(job, want) {
			t.Errorf("release.yml does not name %s", want)
		}
	}
	if !strings.Contains(page, `\.github/workflows/release\.yml@refs/tags/v`) || !strings.Contains(job, `tags: ["v*"]`) {
		t.Error("SECURITY.md does not name the job whose identity signs a release")
	}
}
