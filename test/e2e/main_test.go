//go:build unix

package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/cli"
	"github.com/10f93571/retry/internal/testkit"
)

func TestMain(m *testing.M) {
	if commands[filepath.Base(os.Args[0])] == nil {
		stopIgnoring(syscall.SIGHUP, syscall.SIGINT)
		if err := os.Chdir(filepath.Join("..", "..")); err != nil { // testdata and docs stand in the module's root
			panic(err)
		}
	}
	testscript.Main(m, commands)
}

// stopIgnoring makes sure that the commands of the tests do not start with these signals ignored, even where nohup or a
// background job runs the tests: a signal that is caught has its default action again after exec.
func stopIgnoring(signals ...os.Signal) {
	for _, sig := range signals {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// commands are the programs that scripts find in their PATH beside the system's.
var commands = map[string]func(){
	"retry": func() {
		awaitStdin()
		log.SetOutput(io.Discard)
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	},
	"hold": hold,
	"sql":  execute,
}

// execute runs statements on a database: sql FILE STATEMENTS.
func execute() {
	db, err := sql.Open("sqlite3", "file:"+os.Args[1])
	if err == nil {
		_, err = db.Exec(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hold keeps the write lock of a database until it is killed. It makes the file "held" when it has the lock.
func hold() {
	db, err := sql.Open("sqlite3", "file:"+os.Args[1]+"?_txlock=immediate")
	if err == nil {
		_, err = db.Begin()
	}
	if err == nil {
		err = os.WriteFile("held", []byte("held\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// awaitStdin waits until the pipe that testscript makes for every command's stdin is closed or filled. Otherwise retry
// might find an empty pipe that is still open.
func awaitStdin() {
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		_, _ = unix.Poll([]unix.PollFd{{Events: unix.POLLIN}}, 1000)
	}
}

// TestScripts runs the scripts of testdata: the command line's specification, with the real main and real processes.
func TestScripts(t *testing.T) {
	params := testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("RETRY_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return raceDetector, nil
			case "root":
				return os.Geteuid() == 0, nil
			case "namespaces": // whether this user may make some
				return exec.Command("unshare", "-Urpf", "--mount-proc", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"appears": appears,
			"signal":  sendSignal,
			"serve":   serve,

			"grpcserve": serveGRPC,
		},
	}
	if testing.Short() {
		params.Dir, params.Files = "", quickScripts
	}
	testscript.Run(t, params)
}

// quickScripts are the scripts that run with -short: a few that wait for little, for the larger parts of the command
// line.
var quickScripts = []string{
	"testdata/commandline.txt", "testdata/conditions.txt", "testdata/http_status.txt", "testdata/policies.txt",
	"testdata/report.txt", "testdata/resume_several.txt", "testdata/run.txt", "testdata/status.txt",
}

// raceDetector is on where the tests were built with -race, which takes several times the memory.
var raceDetector bool

// patience bounds how long a test waits for an event. A passing test needs a fraction of it.
const patience = 30 * time.Second

// appears FILE [TEXT] waits until a file holds a whole line and, where a text is given, that text.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: appears FILE [TEXT]")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.HasSuffix(string(data), "\n") &&
			strings.Contains(string(data), strings.Join(args[1:], "")) {
			return
		}
	}
	ts.Fatalf("%q did not appear", args)
}

// signal NAME FILE sends a signal to the process whose number stands in a file.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal KILL|TERM|INT|HUP FILE")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	process, err := os.FindProcess(pid)
	ts.Check(err)
	ts.Check(process.Signal(signals[args[0]]))
}

// buildRetry compiles the program: a test's own binary also initialises what tests import.
func buildRetry(tb testing.TB) string {
	tb.Helper()
	testkit.Slow(tb, "building the program takes seconds")
	binary := filepath.Join(tb.TempDir(), "retry")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		tb.Fatalf("build retry: %v\n%s", err, out)
	}
	return binary
}

// initialisation is what the packages of a program allocate before main.
type initialisation struct {
	bytes, allocs int
	costliest     string // its line
}

// traceInit adds the lines of GODEBUG=inittrace=1 up:
//
//	init NAME @0.5 ms, 0.1 ms clock, 144 bytes, 3 allocs
func traceInit(t *testing.T, binary string) (sum initialisation) {
	t.Helper()
	cmd := exec.Command(binary, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("trace %s: %v\n%s", binary, err, &trace)
	}
	most := 0
	for line := range strings.Lines(trace.String()) {
		var name string
		var at, clock float64
		var bytes, allocs int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &bytes,
			&allocs); err != nil {
			continue
		}
		sum.bytes, sum.allocs = sum.bytes+bytes, sum.allocs+allocs
		if bytes > most {
			most, sum.costliest = bytes, strings.TrimSpace(line)
		}
	}
	return sum
}

// Packages initialise at every start, also in a run that uses none of them. Their allocations vary less than a time
// would: 94 kB in 705 pieces on Linux, and about 0.3 ms. lipgloss and what it needs take 10.5 kB of that in 64 pieces,
// and 0.05 ms. The bound is a tenth higher; another library that builds tables, or a map of ours, exceeds it.
func TestPackagesInitialiseLittle(t *testing.T) {
	const maxBytes, maxAllocs = 105_500, 784
	sum := traceInit(t, buildRetry(t))
	t.Logf("%d bytes, %d allocations; the costliest: %s", sum.bytes, sum.allocs, sum.costliest)
	if sum.allocs == 0 {
		t.Error("got no trace, want one")
	}
	if sum.bytes > maxBytes || sum.allocs > maxAllocs {
		t.Errorf("initialisation: got %d bytes and %d allocations, want at most %d and %d; the costliest: %s",
			sum.bytes, sum.allocs, maxBytes, maxAllocs, sum.costliest)
	}
}

func BenchmarkStart(b *testing.B) {
	binary := buildRetry(b)
	b.Setenv("XDG_CONFIG_HOME", b.TempDir())
	for _, args := range []string{"--version", "--no-state -- true", "--state STATE -- true",
		"--state STATE -n 3 -- true"} {
		b.Run(args, func(b *testing.B) {
			args := strings.Fields(strings.ReplaceAll(args, "STATE", b.TempDir()))
			for b.Loop() {
				if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
