package packaging_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

type actionInput struct {
	Description string  `json:"description"`
	Default     *string `json:"default"`
}

type actionStep struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	Shell string            `json:"shell"`
	Env   map[string]string `json:"env"`
	Run   string            `json:"run"`
}

type action struct {
	Name        string                 `json:"name"`
	Description string                 `json:"description"`
	Author      string                 `json:"author"`
	Branding    map[string]string      `json:"branding"`
	Inputs      map[string]actionInput `json:"inputs"`
	Outputs     map[string]struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	} `json:"outputs"`
	Runs struct {
		Using string       `json:"using"`
		Steps []actionStep `json:"steps"`
	} `json:"runs"`
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	parse(t, read(t, "action/action.yml"), &a)
	return a
}

// job is what GitHub's runner has for the steps of one Action.
type job struct {
	t                     *testing.T
	dir, temp             string
	environment           []string
	stepOutputs           map[string]string // by steps.ID.outputs.NAME
	pathFile, summaryFile string
}

func newJob(t *testing.T) *job {
	t.Helper()
	need(t, "bash")
	dir := filepath.Join(t.TempDir(), "a runner")
	j := &job{t: t, dir: filepath.Join(dir, "work"), temp: filepath.Join(dir, "temp"), stepOutputs: map[string]string{},
		pathFile: filepath.Join(dir, "path"), summaryFile: filepath.Join(dir, "summary")}
	testkit.Must(t, os.MkdirAll(j.dir, 0o700), os.Mkdir(j.temp, 0o700))
	action, err := filepath.Abs("action")
	testkit.Must(t, err)
	j.environment = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "RETRY_STATE_DIR=" + filepath.Join(dir, "state"),
		"GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH=" + action, "GITHUB_PATH=" + j.pathFile,
		"GITHUB_STEP_SUMMARY=" + j.summaryFile, "GITHUB_OUTPUT=" + filepath.Join(dir, "output"),
		"RUNNER_TEMP=" + j.temp, "RUNNER_OS=Linux", "GORACE=" + os.Getenv("GORACE")}
	return j
}

var reference = regexp.MustCompile(`\$\{\{ (\S+) \}\}`)

// command is a step as the runner starts it, with the inputs that a workflow gives.
func (j *job) command(a action, step actionStep, with map[string]string) *exec.Cmd {
	j.t.Helper()
	for name := range with {
		if _, found := a.Inputs[name]; !found {
			j.t.Fatalf("the Action has no input %s", name)
		}
	}
	if step.Shell != "bash" || strings.Contains(step.Run, "${{") {
		j.t.Errorf("step %s: got shell %s and script %q, want bash and no expression", step.ID, step.Shell, step.Run)
	}
	script := filepath.Join(j.temp, step.ID+".sh")
	testkit.Write(j.t, script, step.Run)
	c := exec.CommandContext(j.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	c.Dir, c.Env = j.dir, slices.Clone(j.environment)
	for name, value := range step.Env {
		c.Env = append(c.Env, name+"="+reference.ReplaceAllStringFunc(value, func(found string) string {
			path := reference.FindStringSubmatch(found)[1]
			input, isInput := strings.CutPrefix(path, "inputs.")
			if !isInput {
				return j.stepOutputs[path]
			}
			value, given := with[input]
			if given {
				return value
			}
			if a.Inputs[input].Default == nil {
				j.t.Fatalf("input %s has no default, and step %s wants it", input, step.ID)
			}
			return *a.Inputs[input].Default
		}))
	}
	return c
}

// run runs the Action's steps up to the first that fails, and returns its outputs.
func (j *job) run(with map[string]string) (last result, outputs map[string]string) {
	j.t.Helper()
	a := readAction(j.t)
	for _, step := range a.Runs.Steps {
		c := j.command(a, step, with)
		last = execute(j.t, c.Dir, c.Env, c.Args...)
		j.collect(step)
		if last.status != 0 {
			break
		}
	}
	outputs = map[string]string{}
	for name, output := range a.Outputs {
		outputs[name] = j.stepOutputs[reference.FindStringSubmatch(output.Value)[1]]
	}
	return last, outputs
}

// collect reads what a step wrote for those after it.
func (j *job) collect(step actionStep) {
	j.t.Helper()
	file := filepath.Join(filepath.Dir(j.temp), "output")
	written, _ := os.ReadFile(file)
	_ = os.Remove(file)
	for line := range strings.Lines(string(written)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		j.stepOutputs["steps."+step.ID+".outputs."+name] = value
	}
}

// own are the inputs that make the Action use the retry of this test.
func own(t *testing.T, with map[string]string) map[string]string {
	t.Helper()
	all := map[string]string{"path": need(t, "retry"), "backoff": "1ms"}
	maps.Copy(all, with)
	return all
}

// inOrder finds texts in a log, each after the one before it.
func inOrder(t *testing.T, log string, texts ...string) {
	t.Helper()
	rest := log
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("got %s, want %q in it, in the order of %q", log, text, texts)
			return
		}
		rest = after
	}
}

func TestActionRescues(t *testing.T) {
	j := newJob(t)
	got, outputs := j.run(own(t, map[string]string{"attempts": "4",
		"command": "echo line $RETRY_ATTEMPT\n[ $RETRY_ATTEMPT = 3 ]"}))
	if got.status != 0 || got.stderr != "" {
		t.Errorf("got status %d and stderr %q, want 0 and nothing", got.status, got.stderr)
	}
	inOrder(t, got.stdout, "::group::retry: attempt 1/4: bash -eo pipefail -c ", "\nline 1\n", "::endgroup::",
		"attempt 2/4", "\nline 2\n", "\nline 3\n", "::endgroup::", "::notice title=retry::", "succeeded in attempt 3")
	if want := map[string]string{"exit-status": "0", "attempts": "3", "outcome": "SUCCEEDED"}; !maps.Equal(outputs, want) {
		t.Errorf("got outputs %v, want %v", outputs, want)
	}
	if summary := testkit.Contents(t, j.summaryFile); !strings.Contains(summary, "| 2 | ") {
		t.Errorf("got summary %q, want the attempts in it", summary)
	}
	if got, want := testkit.Contents(t, j.pathFile), filepath.Dir(need(t, "retry"))+"\n"; got != want {
		t.Errorf("got path %q, want %q", got, want)
	}
}

func TestActionFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		with    map[string]string
		status  int
		outputs map[string]string
		says    string
	}{
		{"a command", map[string]string{"command": "exit 7", "attempts": "2"}, 7,
			map[string]string{"exit-status": "7", "attempts": "2", "outcome": "EXHAUSTED"}, "::error title=retry::"},
		{"a command of several lines, in its first", map[string]string{"command": "false\nexit 0", "attempts": "1"}, 1,
			map[string]string{"exit-status": "1", "attempts": "1", "outcome": "EXHAUSTED"}, ""},
		{"a status that is not retried", map[string]string{"command": "exit 3", "retry-on": "75"}, 3,
			map[string]string{"exit-status": "3", "attempts": "1", "outcome": "FAILED"}, ""},
		{"and the step goes on", map[string]string{"command": "exit 7", "attempts": "2", "continue-on-error": "true"}, 0,
			map[string]string{"exit-status": "7", "attempts": "2", "outcome": "EXHAUSTED"}, ""},
		{"a timeout", map[string]string{"command": "exec sleep 60", "attempts": "1", "timeout": "10ms"}, 124,
			map[string]string{"exit-status": "124", "attempts": "1", "outcome": "EXHAUSTED"}, ""},
		{"a wrong input", map[string]string{"command": "true", "attempts": "many"}, 125,
			map[string]string{"exit-status": "125", "attempts": "0", "outcome": ""}, "attempts"},
		{"an unknown shell", map[string]string{"command": "true", "shell": "csh"}, 125,
			map[string]string{"exit-status": "", "attempts": "", "outcome": ""}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, outputs := newJob(t).run(own(t, test.with))
			if got.status != test.status || !strings.Contains(got.stdout, test.says) {
				t.Errorf("got status %d and %s, want %d and %q", got.status, got.stdout, test.status, test.says)
			}
			if !maps.Equal(outputs, test.outputs) {
				t.Errorf("got outputs %v, want %v", outputs, test.outputs)
			}
		})
	}
}

// No input becomes a part of a script: what would end a quoted string, or begin a command, is only text.
func TestActionInjectsNothing(t *testing.T) {
	const evil = "\"; touch x #'; touch x #`touch x`$(touch x)\n::set-output name=x::y"
	for name := range readAction(t).Inputs {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			with := own(t, map[string]string{"command": "true", "attempts": "1"})
			switch name {
			case "command", "on-retry": // these are commands
				t.Skip("its text is a command")
			case "version", "sha256", "download-from":
				delete(with, "path")
				with["download-from"] = "http://127.0.0.1:1"
			}
			with[name] = evil
			j.run(with)
			found := append(testkit.Names(t, j.dir), testkit.Names(t, j.temp)...)
			if slices.Contains(found, "x") {
				t.Errorf("the input was run: got files %q", found)
			}
		})
	}
	j := newJob(t)
	got, _ := j.run(own(t, map[string]string{"command": `printf '%s\n' '"; touch x #' "$HOME" ${INPUT_COMMAND-unset}`}))
	inOrder(t, got.stdout, "\n\"; touch x #\n"+filepath.Dir(j.dir)+"\nunset\n")
}

func TestActionOffersShellsAndFlags(t *testing.T) {
	j := newJob(t)
	testkit.Must(t, os.Mkdir(filepath.Join(j.dir, "sub"), 0o700))
	for _, test := range []struct{ shell, command, stdout string }{
		{"sh", "echo $0; pwd", "sh\n" + j.dir + "/sub\n"},
		{"bash {0}", "echo '{0}' one", "{0} one\n"},
	} {
		got, _ := j.run(own(t, map[string]string{"shell": test.shell, "command": test.command, "working-directory": "sub",
			"args": "--id=a name\n\n--fresh\n"}))
		inOrder(t, got.stdout, "\n"+test.stdout)
		if got.status != 0 {
			t.Errorf("%s: got status %d, want 0", test.shell, got.status)
		}
	}
}

func TestActionDownloads(t *testing.T) {
	const script = "#!/bin/sh\necho \"$0 $1\"\n"
	address, sum := release(t, script, false)
	for _, test := range []struct {
		name   string
		with   map[string]string
		status int
		says   string
	}{
		{"the latest", map[string]string{}, 0, "/retry-action/latest/retry --ci=github\n"},
		{"a version", map[string]string{"version": "v1.2.3"}, 0, "/retry-action/v1.2.3/retry --ci=github\n"},
		{"a version and its sum", map[string]string{"version": "1.2.3", "sha256": sum}, 0, "/retry --ci=github\n"},
		{"another sum than wanted", map[string]string{"sha256": strings.Repeat("1", 64)}, 1,
			"::error title=retry::install retry: the sum of retry_1.2.3_linux_amd64.tar.gz is " + sum},
		{"no such version", map[string]string{"version": "9.9.9"}, 1, "::error title=retry::install retry: cannot fetch "},
	} {
		t.Run(test.name, func(t *testing.T) {
			need(t, "curl")
			with := map[string]string{"command": "true", "download-from": address}
			maps.Copy(with, test.with)
			got, _ := newJob(t).run(with)
			if got.status != test.status || !strings.Contains(got.stdout, test.says) {
				t.Errorf("got status %d, %s and %s, want %d and %q", got.status, got.stdout, got.stderr, test.status,
					test.says)
			}
		})
	}
	address, _ = release(t, script, true)
	j := newJob(t)
	got, _ := j.run(map[string]string{"command": "true", "download-from": address})
	if want := "want " + strings.Repeat("0", 64); got.status != 1 || !strings.Contains(got.stdout, want) {
		t.Errorf("an archive that was changed: got status %d and %q, want 1 and %q", got.status, got.stdout, want)
	}
	if _, err := os.Stat(filepath.Join(j.temp, "retry-action", "latest", "retry")); err == nil {
		t.Error("an archive that was changed has been unpacked")
	}
}

// A runner that cancels a job signals the step's first process alone. The command hears of it, and the
// outputs are written.
func TestActionPassesACancelOn(t *testing.T) {
	j := newJob(t)
	a := readAction(t)
	with := own(t, map[string]string{"attempts": "1",
		"command": "trap 'echo >heard; exit 9' TERM\necho >ready\nwhile :; do sleep 0.01; done"})
	first := j.command(a, a.Runs.Steps[0], with)
	testkit.Must(t, first.Run())
	j.collect(a.Runs.Steps[0])
	c := j.command(a, a.Runs.Steps[1], with)
	testkit.Must(t, c.Start())
	testkit.Eventually(t, "the command runs", func() bool { return slices.Contains(testkit.Names(t, j.dir), "ready") })
	testkit.Must(t, c.Process.Signal(syscall.SIGINT))
	err := c.Wait()
	j.collect(a.Runs.Steps[1])
	if err == nil || !slices.Contains(testkit.Names(t, j.dir), "heard") {
		t.Errorf("got %v and files %q, want a failure and heard", err, testkit.Names(t, j.dir))
	}
	if got := j.stepOutputs["steps.run.outputs.outcome"]; got != "PENDING" {
		t.Errorf("got outcome %q, want PENDING", got)
	}
}

// Each input is described, and reaches a step.
func TestActionUsesItsInputs(t *testing.T) {
	a := readAction(t)
	used := ""
	for _, step := range a.Runs.Steps {
		for _, value := range step.Env {
			used += value + "\n"
		}
	}
	for name, input := range a.Inputs {
		if input.Description == "" || input.Default == nil || !strings.Contains(used, "${{ inputs."+name+" }}") {
			t.Errorf("input %s: got description %q, default %v; want both, and a step that has it", name, input.Description,
				input.Default)
		}
	}
}
