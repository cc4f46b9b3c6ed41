//go:build unix

package cmdexec

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/task"
)

// startDirs creates directories with programs: bin is in PATH, work is the task's directory, elsewhere is retry's own.
func startDirs(t *testing.T) (bin, work string) {
	root := t.TempDir()
	files := map[string]os.FileMode{
		"bin/plain": 0o644, "bin/folder/x": 0o755, "bin/tool": 0o755, "work/tool": 0o755, "work/plain": 0o644,
		"work/sub/tool": 0o755, "elsewhere/here": 0o755,
	}
	for name, mode := range files {
		writeFile(t, filepath.Join(root, name), "#!/bin/sh\necho "+name, mode)
	}
	writeFile(t, filepath.Join(root, "work", "orphan"), "#!/no/such/interpreter\n", 0o755)
	t.Chdir(filepath.Join(root, "elsewhere"))
	t.Setenv("PATH", filepath.Join(root, "bin")+":.:/bin:/usr/bin")
	return filepath.Join(root, "bin"), filepath.Join(root, "work")
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Must(t, os.WriteFile(path, []byte(text), mode))
}

func TestStartFailures(t *testing.T) {
	bin, work := startDirs(t)
	tests := []struct {
		name, command, dir string
		want               task.ErrorClass
		message            string
	}{
		{
			name: "no such name", command: "no-such-tool", dir: work, want: task.ErrorNotFound,
			message: "no-such-tool: command not found",
		},
		{
			name: "no such file", command: work + "/none", dir: work, want: task.ErrorNotFound,
			message: work + "/none: command not found",
		},
		{
			name: "no such file here", command: "./none", dir: work, want: task.ErrorNotFound,
			message: "./none: command not found",
		},
		{
			name: "it is where retry is", command: "./here", dir: work, want: task.ErrorNotFound,
			message: "./here: command not found",
		},
		{
			name: "not in the PATH", command: "orphan", want: task.ErrorNotFound,
			message: "orphan: command not found",
		},
		{
			name: "through the dot in PATH", command: "orphan", dir: work, want: task.ErrorNotFound,
			message: "orphan: its interpreter is missing",
		},
		{
			name: "a directory in the PATH", command: "folder", dir: work, want: task.ErrorNotFound,
			message: "folder: command not found",
		},
		{
			name: "below a file", command: "./tool/x", dir: work, want: task.ErrorNotExecutable,
			message: "./tool/x: not executable: not a directory",
		},
		{
			name: "not executable", command: "./plain", dir: work, want: task.ErrorNotExecutable,
			message: "./plain: not executable: permission denied",
		},
		{
			name: "not executable in the PATH", command: "plain", dir: work, want: task.ErrorNotExecutable,
			message: "plain: not executable: permission denied",
		},
		{
			name: "not executable, absolute", command: bin + "/plain", want: task.ErrorNotExecutable,
			message: bin + "/plain: not executable: permission denied",
		},
		{
			name: "a directory", command: "./sub", dir: work, want: task.ErrorNotExecutable,
			message: "./sub: not executable: is a directory",
		},
		{
			name: "a directory, absolute", command: work, want: task.ErrorNotExecutable,
			message: work + ": not executable: is a directory",
		},
		{
			name: "no interpreter", command: "./orphan", dir: work, want: task.ErrorNotFound,
			message: "./orphan: its interpreter is missing",
		},
		{
			name: "no such directory", command: "tool", dir: work + "/none", want: task.ErrorStart,
			message: "enter " + work + "/none: no such file or directory",
		},
		{
			name: "no such directory, ./", command: "./tool", dir: work + "/none", want: task.ErrorStart,
			message: "enter " + work + "/none: no such file or directory",
		},
		{
			name: "directory is a file", command: "tool", dir: work + "/plain", want: task.ErrorStart,
			message: "enter " + work + "/plain: not a directory",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.command)
			r.executor.Dir = tt.dir
			exit := map[task.ErrorClass]int{task.ErrorNotFound: 127, task.ErrorNotExecutable: 126,
				task.ErrorStart: 125}[tt.want]
			r.start().check(task.Outcome{Exit: exit, Error: tt.want, Message: tt.message})
			if code := r.outcome.ExitCode(); code != exit {
				t.Errorf("exit code: got %d, want %d", code, exit)
			}
		})
	}
}

func TestTooManyArguments(t *testing.T) {
	r := newRig(t, "true", strings.Repeat("x", 4<<20))
	r.start().check(task.Outcome{
		Exit: 126, Error: task.ErrorNotExecutable, Message: "true: not executable: argument list too long",
	})
}

func TestFindsTheProgram(t *testing.T) {
	bin, work := startDirs(t)
	tests := []struct{ name, command, dir, want string }{
		{name: "in the PATH", command: "tool", dir: work, want: "bin/tool"},
		{name: "in the task's directory", command: "./tool", dir: work, want: "work/tool"},
		{name: "below it", command: "sub/tool", dir: work, want: "work/sub/tool"},
		{name: "above it", command: "../tool", dir: work + "/sub", want: "work/tool"},
		{name: "in retry's own directory", command: "./here", want: "elsewhere/here"},
		{name: "absolute", command: bin + "/tool", dir: work, want: "bin/tool"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.command)
			r.executor.Dir = tt.dir
			if got, o := r.run(); got != tt.want+"\n" || o.ExitCode() != 0 {
				t.Errorf("got %q, %+v; want %q", got, o, tt.want)
			}
		})
	}
}

func TestFindsTheProgramWithoutPATH(t *testing.T) {
	t.Setenv("PATH", "") // restores it at the end
	testkit.Must(t, os.Unsetenv("PATH"))
	if text, o := newRig(t, "sh", "-c", "echo here").run(); text != "here\n" {
		t.Errorf("without a PATH: got %q, %+v; want %q", text, o, "here\n")
	}
	newRig(t, "no-such-tool").start().check(task.Outcome{
		Exit: 127, Error: task.ErrorNotFound, Message: "no-such-tool: command not found",
	})
}

// The system cannot execute a script without a shebang. The shell can, as with execvp.
func TestScriptWithoutShebang(t *testing.T) {
	bin, work := startDirs(t)
	const code = `printf '<%s>' "$0" "$@"; exit 7`
	writeFile(t, bin+"/in-path", code, 0o755)
	writeFile(t, work+"/-n", code, 0o755)
	writeFile(t, bin+"/empty", "", 0o755)
	tests := []struct {
		command, want string
		exit          int
	}{
		{command: "in-path", want: bin + "/in-path", exit: 7},
		{command: bin + "/in-path", want: bin + "/in-path", exit: 7},
		{command: "./-n", want: "./-n", exit: 7},
		{command: "empty"},
	}
	for _, tt := range tests {
		r := newRig(t, tt.command, "a b", "", "-x", "*")
		r.executor.Dir = work
		want := ""
		if tt.want != "" {
			want = "<" + tt.want + "><a b><><-x><*>"
		}
		if got, o := r.run(); got != want || o.ExitCode() != tt.exit || o.Error != task.ErrorNone {
			t.Errorf("%s: got %q, %+v; want %q", tt.command, got, o, want)
		}
	}
}

func TestArgumentsArriveUnchanged(t *testing.T) {
	args := []string{"", " ", "a b", "line\nbreak\n", "\xff\xfe", "\x1b[2J", `\`, `"'`,
		"$HOME", "*", "--", "-x", "ü\u202e", ""}
	r := script(t, `printf '%s\0' "$@"`, args...)
	if got, _ := r.run(); got != strings.Join(args, "\x00")+"\x00" {
		t.Errorf("got %q, want %q", got, args)
	}
}

// A program such as busybox depends on the name that it was called by.
func TestNameArrivesUnchanged(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(root, "link")
	testkit.Must(t, os.Symlink("/bin/sh", link))
	for _, name := range []string{"sh", "/bin/sh", link, "./link"} {
		r := newRig(t, name, "-c", `echo "$0"`) // without a further argument, $0 is the shell's own name
		r.executor.Dir = root
		if got, _ := r.run(); got != name+"\n" {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

func TestEnvironmentReachesTheCommand(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ dir, pwd string }{{pwd: "PWD=/outer"}, {dir: dir, pwd: "PWD=" + dir}} {
		r := newRig(t, "env")
		r.executor.Dir, r.number = tt.dir, 3
		r.executor.Env = []string{"A=1", "PWD=/outer", "RETRY_ATTEMPT=9", "B=x\xffy"}
		text, _ := r.run()
		got := slices.Sorted(strings.Lines(text))
		want := []string{
			"A=1\n", "B=x\xffy\n", tt.pwd + "\n",
			"RETRY_ATTEMPT=3\n", "RETRY_IDEMPOTENCY_KEY=key\n", "RETRY_MAX_ATTEMPTS=5\n", "RETRY_TASK_ID=" + r.task.ID + "\n",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// A relative directory in PATH starts where the command runs, as with execvp.
func TestRelativePath(t *testing.T) {
	_, work := startDirs(t)
	writeFile(t, filepath.Join(work, "local"), "#!/bin/sh\necho local", 0o755)
	for dir, name := range map[string]string{"": "here", work: "local"} {
		r := newRig(t, name)
		r.executor.Dir = dir
		if text, o := r.run(); o.Exit != 0 || !strings.Contains(text, name) {
			t.Errorf("%s in %q: got %q, %+v; want its output", name, dir, text, o)
		}
	}
}

func TestOutcomeOfAnEnd(t *testing.T) {
	tests := []struct {
		code string
		want task.Outcome
	}{
		{code: "exit 0", want: task.Outcome{}},
		{code: "exit 1", want: task.Outcome{Exit: 1}},
		{code: "exit 127", want: task.Outcome{Exit: 127}}, // the status of the command itself, so no start failure
		{code: "exit 255", want: task.Outcome{Exit: 255}},
		{code: "kill -HUP $$", want: task.Outcome{Exit: 129, Signal: "SIGHUP"}},
		{code: "kill -INT $$", want: task.Outcome{Exit: 130, Signal: "SIGINT"}},
		{code: "kill -KILL $$", want: task.Outcome{Exit: 137, Signal: "SIGKILL"}},
		{code: "ulimit -c 0; kill -SEGV $$", want: task.Outcome{Exit: 139, Signal: "SIGSEGV"}},
		{code: "kill -TERM $$", want: task.Outcome{Exit: 143, Signal: "SIGTERM"}},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			r := script(t, tt.code).start()
			r.check(tt.want)
			if got := r.outcome.ExitCode(); got != tt.want.Exit {
				t.Errorf("exit code: got %d, want %d", got, tt.want.Exit)
			}
		})
	}
}

// A process that the command leaves running keeps its streams, and nobody waits for it.
func TestLeavesADaemonAlone(t *testing.T) {
	tests := map[string][]string{
		"in the group":            {},
		"in a session of its own": {"setsid"},
	}
	for name, wrapper := range tests {
		t.Run(name, func(t *testing.T) {
			needPrograms(t, wrapper...)
			r := script(t, `exec 3<&0; "$@" & exit 3`, append(wrapper, "sh", "-c", `read -r x <&3; echo "$x"`)...)
			r.start().check(task.Outcome{Exit: 3})
			_, err := io.WriteString(r.stdin, "still here\n")
			testkit.Must(t, err)
			r.expect("still here")
		})
	}
}

// needPrograms skips a test if the system lacks a program.
func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}
