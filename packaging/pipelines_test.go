package packaging_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// fakeRetry is a release's retry that says how it was called.
const fakeRetry = "#!/bin/sh\nprintf '<%s>' \"$@\"\n"

// want is how a pipeline with the inputs of pipelineInputs calls retry, after a flag for the service's log.
const want = "<--attempts=3><--backoff=exp:2s><--retry-on=\"; touch x #><--><sh><-e><-c><echo '$HOME'\necho two>"

func pipelineInputs(address string) map[string]string {
	return map[string]string{"command": "echo '$HOME'\necho two", "attempts": "3", "backoff": "exp:2s",
		"retry-on": `"; touch x #`, "download-from": address}
}

// shell runs a script in a directory of its own, where no input may leave a file named x.
func shell(t *testing.T, environment []string, script string) result {
	t.Helper()
	need(t, "curl")
	dir := t.TempDir()
	got := execute(t, dir, append(environment, "PATH="+os.Getenv("PATH")), need(t, "sh"), "-c", script)
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("an input was run as a command")
	}
	return got
}

// The pipelines carry a copy of the Action's installer, since they cannot have a file beside them.
func TestPipelinesInstallAsTheActionDoes(t *testing.T) {
	install := string(read(t, "action/install.sh"))
	for file, indent := range map[string]string{"gitlab/templates/retry.yml": "      ", "tekton/retry.yml": "        "} {
		text := regexp.MustCompile("(?m)^"+indent).ReplaceAllString(string(read(t, file)), "")
		if !strings.Contains(text, "<<'END_OF_INSTALL'\n"+install+"END_OF_INSTALL\n") {
			t.Errorf("%s has no copy of action/install.sh as it is now", file)
		}
	}
}

type gitlabInput struct {
	Description string   `json:"description"`
	Default     *string  `json:"default"`
	Options     []string `json:"options"`
}

type gitlabJob struct {
	Stage     string `json:"stage"`
	Image     string `json:"image"`
	Variables map[string]struct {
		Value  string `json:"value"`
		Expand bool   `json:"expand"`
	} `json:"variables"`
	Script []string `json:"script"`
}

func TestGitLabComponent(t *testing.T) {
	header, body, _ := strings.Cut(string(read(t, "gitlab/templates/retry.yml")), "\n---\n")
	var spec struct {
		Spec struct {
			Inputs map[string]gitlabInput `json:"inputs"`
		} `json:"spec"`
	}
	parse(t, []byte(header), &spec)
	var jobs map[string]gitlabJob
	parse(t, []byte(body), &jobs)
	job, found := jobs["$[[ inputs.job ]]"]
	if len(jobs) != 1 || !found {
		t.Fatalf("got jobs %v, want one with the name that is asked for", jobs)
	}
	for name := range spec.Spec.Inputs {
		if strings.Count(body, "$[[ inputs."+name+" ]]") != 1 {
			t.Errorf("input %s: want one use of it", name)
		}
	}
	address, _ := release(t, fakeRetry, false)
	inputs := pipelineInputs(address)
	var environment []string
	for name, variable := range job.Variables {
		if variable.Expand {
			t.Errorf("variable %s is expanded by GitLab", name)
		}
		input := strings.TrimSuffix(strings.TrimPrefix(variable.Value, "$[[ inputs."), " ]]")
		value, given := inputs[input]
		if !given {
			value = *spec.Spec.Inputs[input].Default
		}
		environment = append(environment, name+"="+value)
	}
	script := strings.Join(job.Script, "\n")
	if strings.Contains(script, "$[[") {
		t.Error("an input is a part of the script")
	}
	got := shell(t, environment, "set -e\n"+script)
	if want := "<--ci=gitlab>" + want; got.stdout != want || got.status != 0 {
		t.Errorf("got status %d, %q and %s, want 0 and %q", got.status, got.stdout, got.stderr, want)
	}
}

type tektonTask struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Description string `json:"description"`
		Params      []struct {
			Name        string  `json:"name"`
			Description string  `json:"description"`
			Default     *string `json:"default"`
		} `json:"params"`
		Workspaces []map[string]any `json:"workspaces"`
		Volumes    []map[string]any `json:"volumes"`
		Steps      []struct {
			Name         string           `json:"name"`
			Image        string           `json:"image"`
			WorkingDir   string           `json:"workingDir"`
			VolumeMounts []map[string]any `json:"volumeMounts"`
			Env          []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"env"`
			Script string `json:"script"`
		} `json:"steps"`
	} `json:"spec"`
}

func TestTektonTask(t *testing.T) {
	var task tektonTask
	parse(t, read(t, "tekton/retry.yml"), &task)
	address, _ := release(t, fakeRetry, false)
	params := map[string]string{}
	for _, param := range task.Spec.Params {
		if param.Default != nil {
			params[param.Name] = *param.Default
		}
	}
	for name, value := range pipelineInputs(address) {
		params[name] = value
	}
	volume := t.TempDir()
	var last result
	for _, step := range task.Spec.Steps {
		if strings.Contains(step.Script, "$(params") {
			t.Errorf("step %s: a parameter is a part of the script", step.Name)
		}
		var environment []string
		for _, variable := range step.Env {
			value := strings.ReplaceAll(variable.Value, "/retry-program", volume)
			if name, isParam := strings.CutPrefix(value, "$(params."); isParam {
				value = params[strings.TrimSuffix(name, ")")]
			}
			environment = append(environment, variable.Name+"="+value)
		}
		if last = shell(t, environment, step.Script); last.status != 0 {
			t.Fatalf("step %s: got status %d and %s", step.Name, last.status, last.stderr)
		}
	}
	if last.stdout != want {
		t.Errorf("got %q, want %q", last.stdout, want)
	}
}

func TestJenkinsfile(t *testing.T) {
	need(t, "curl")
	text := string(read(t, "jenkins/Jenkinsfile"))
	address, sum := release(t, fakeRetry, false)
	environment := []string{"PATH=" + os.Getenv("PATH"), "DOWNLOADS=" + address + "/download", "PROGRAM_VERSION=1.2.3"}
	scripts := regexp.MustCompile(`(?s)sh '''(.*?)'''`).FindAllStringSubmatch(text, -1)
	if len(scripts) != 2 || strings.Count(text, "{") != strings.Count(text, "}") {
		t.Fatalf("got %d scripts in %s, want 2, and braces in pairs", len(scripts), text)
	}
	dir := t.TempDir()
	wrong := append(slices.Clone(environment), "PROGRAM_SHA256="+strings.Repeat("0", 64))
	if got := execute(t, dir, wrong, "sh", "-c", scripts[0][1]); got.status == 0 {
		t.Errorf("another sum: got status %d, want a failure", got.status)
	}
	environment = append(environment, "PROGRAM_SHA256="+sum)
	testkit.Must(t, os.RemoveAll(filepath.Join(dir, ".retry")))
	for i, script := range scripts {
		got := execute(t, dir, environment, "sh", "-c", script[1])
		if got.status != 0 || i == 1 && !strings.HasSuffix(got.stdout, "<--><./deploy.sh>") {
			t.Errorf("script %d: got status %d, %s and %s", i+1, got.status, got.stdout, got.stderr)
		}
	}
	// The flags are retry's.
	_, flags, _ := strings.Cut(strings.TrimSpace(scripts[1][1]), ".retry/retry ")
	here := strings.NewReplacer(".retry/report.json", filepath.Join(dir, "r.json"), "./deploy.sh", "true").Replace(flags)
	command := append([]string{"retry"}, strings.Fields(here)...)
	got := execute(t, dir, append(environment, "RETRY_STATE_DIR="+dir, "GORACE="+os.Getenv("GORACE")), command...)
	if got.status != 0 {
		t.Errorf("%q: got status %d and %s", command, got.status, got.stderr)
	}
}
