package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/10f93571/retry/internal/testkit"
)

// journalTest runs the real main with a journal of its own.
type journalTest struct {
	*testing.T
	state string
	env   []string
}

type result struct {
	stdout, stderr string
	code           int
}

func newJournalTest(t *testing.T) *journalTest {
	testkit.Slow(t, "it runs the program on failing file systems")
	return &journalTest{T: t, state: filepath.Join(t.TempDir(), "state")}
}

// run runs a program that ends by itself; patience is for one that does not.
func (s *journalTest) run(program string, args ...string) result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	if program == "retry" {
		cmd.Path, cmd.Err = self, nil // testscript.Main looks at the name
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "RETRY="+self, "RETRY_STATE_DIR="+s.state)
	cmd.Env = append(cmd.Env, s.env...)
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.Fatal(err)
	}
	if ctx.Err() != nil {
		s.Fatalf("%s %q hangs: %s", program, args, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// checkSurvives checks what every fault has in common: the command runs, its exit status is kept, and one warning names
// the fault and what to do. Where the journal is required nothing runs. The doctor names the fault.
func (s *journalTest) checkSurvives(warning, hint, finding string) {
	s.Helper()
	r := s.run("retry", "-n", "1", "--", "sh", "-c", "echo ran; exit 7")
	warned := strings.Count(r.stderr, "warning:") == 1 && strings.Contains(r.stderr, warning) &&
		strings.Contains(r.stderr, "\nhint: "+hint)
	if r.stdout != "ran\n" || r.code != 7 || !warned {
		s.Errorf("got exit %d, stdout %q, stderr %q; want the warning %q with the hint %q", r.code, r.stdout, r.stderr,
			warning, hint)
	}
	r = s.run("retry", "--require-state", "--", "echo", "ran")
	if r.stdout != "" || r.code != 125 || !strings.Contains(r.stderr, warning) {
		s.Errorf("required: got exit %d, stdout %q, stderr %q, want %q", r.code, r.stdout, r.stderr, warning)
	}
	r = s.run("retry", "doctor")
	if r.code != 1 || !strings.Contains(r.stdout, finding) || !strings.Contains(r.stdout, "fix: ") {
		s.Errorf("doctor: got exit %d, %s, want %q", r.code, r.stdout, finding)
	}
}

// runCleanly checks that a run succeeds without a word on stderr.
func (s *journalTest) runCleanly(args ...string) result {
	s.Helper()
	r := s.run("retry", args...)
	if r.code != 0 || r.stderr != "" {
		s.Fatalf("%q: got exit %d, stderr %q, want a success", args, r.code, r.stderr)
	}
	return r
}

func (s *journalTest) needRoot() {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Skip("only root can give a directory away")
	}
}

// mount puts a small file system in memory where the journal will be.
func (s *journalTest) mount(size string) (root string) {
	s.Helper()
	root = s.TempDir()
	if err := syscall.Mount("none", root, "tmpfs", 0, "mode=700,size="+size); err != nil {
		s.Skipf("nothing can be mounted here: %v", err)
	}
	s.Cleanup(func() {
		if err := syscall.Unmount(root, syscall.MNT_DETACH); err != nil {
			s.Error(err)
		}
	})
	s.state = filepath.Join(root, "state")
	return root
}

func (s *journalTest) fill(root string) {
	s.Helper()
	f, err := os.Create(filepath.Join(root, "fill"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

func TestAReadOnlyFileSystem(t *testing.T) {
	t.Run("with a WAL", func(t *testing.T) { readOnly(newJournalTest(t), false) })
	t.Run("without", func(t *testing.T) { readOnly(newJournalTest(t), true) })
}

// readOnly tests a journal with the index that SQLite needs to read a WAL, or without.
func readOnly(s *journalTest, closed bool) {
	root := s.mount("2m")
	s.runCleanly("--", "echo", "before")
	if closed {
		s.run("retry", "cancel", "nothing") // it is the last to close the journal, which removes the WAL
	}
	if err := syscall.Mount("none", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		s.Skipf("nothing can be remounted here: %v", err)
	}
	s.checkSurvives("read-only file system", "mount the file system of "+s.state+" writable", "is mounted read-only")
	if r := s.run("retry", "doctor"); strings.Contains(r.stdout, "chmod") {
		s.Errorf("got %s, want no finding about a mode", r.stdout)
	}
	if r := s.runCleanly("status"); !strings.Contains(r.stdout, "echo before") {
		s.Errorf("status: got %s, want the tasks of the journal", r.stdout)
	}
}

// A resume runs nothing that it cannot claim: each further one would run it again. SQLite itself opens a database that
// it may only read without an error.
func TestAResumeNeedsAJournalToWriteTo(t *testing.T) {
	s := newJournalTest(t)
	ran := filepath.Join(t.TempDir(), "ran")
	s.run("retry", "--", "sh", "-c", "test -e "+ran+".once && touch "+ran+"; touch "+ran+".once; kill -9 $PPID")
	database := filepath.Join(s.state, "journal.db")
	if os.Geteuid() != 0 {
		testkit.Must(t, os.Chmod(database, 0o400))
	} else {
		if err := syscall.Mount(database, database, "", syscall.MS_BIND, ""); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
		t.Cleanup(func() { testkit.Must(t, syscall.Unmount(database, syscall.MNT_DETACH)) })
		testkit.Must(t, syscall.Mount("none", database, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	}
	const want = ": attempt to write a readonly database\nhint: "
	if r := s.run("retry", "resume", "--all"); r.code != 125 || !strings.Contains(r.stderr, want) {
		t.Errorf("got exit %d, %q, want 125 and %q", r.code, r.stderr, want)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("got a second run, want none")
	}
}

func TestAFullDisk(t *testing.T) {
	s := newJournalTest(t)
	root := s.mount("2m")
	s.fill(root)
	s.checkSurvives("database or disk is full", "make room on the file system of "+s.state, "0 B free")
}

// A success is recorded even if the command itself filled the disk, in this attempt or in an earlier one: a resume must
// not run it again.
func TestTheEndIsWrittenOnAFullDisk(t *testing.T) {
	for _, attempts := range []string{"1", "3"} {
		t.Run(attempts, func(t *testing.T) { fillsTheDisk(newJournalTest(t), attempts) })
	}
}

func fillsTheDisk(s *journalTest, attempts string) {
	root := s.mount("2m")
	r := s.run("retry", "-n", "5", "-b", "constant:0", "--", "sh", "-c",
		"cat /dev/zero >"+root+"/fill 2>/dev/null; test $RETRY_ATTEMPT = "+attempts)
	if warnings := strings.Count(r.stderr, "warning:"); r.code != 0 || warnings > 1 ||
		(attempts == "1" && warnings > 0) {
		s.Errorf("got exit %d, stderr %q, want 0 and at most one warning", r.code, r.stderr)
	}
	if r := s.runCleanly("status"); !strings.Contains(r.stdout, "succeeded") {
		s.Errorf("status: got %s, want succeeded", r.stdout)
	}
	if r := s.run("retry", "resume", "--all"); r.code != 0 || !strings.Contains(r.stderr, "nothing to resume") {
		s.Errorf("resume: got exit %d, %s, want nothing to resume", r.code, r.stderr)
	}
	if err := os.Remove(filepath.Join(root, "fill")); err != nil {
		s.Fatal(err)
	}
	s.runCleanly("--", "true")
	if _, err := os.Stat(filepath.Join(s.state, "reserve")); err != nil {
		s.Errorf("reserve: got error %v, want the file", err)
	}
}

// Where even the reserve is gone, the end is kept in the name of a file, which needs no room: a resume runs nothing
// again, neither while the disk is full nor later.
func TestTheEndIsKeptWhereNothingCanBeWritten(t *testing.T) {
	s := newJournalTest(t)
	root := s.mount("2m")
	const script = `echo ran; for i in 1 2 3; do rm -f $0/state/reserve; cat /dev/zero >>$0/fill; done 2>&-; exit 3`
	r := s.run("retry", "-n", "1", "--", "sh", "-c", script, root)
	const want = "the end of the task is kept beside the journal"
	if r.code != 3 || r.stdout != "ran\n" || strings.Count(r.stderr, "warning:") != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("got exit %d, %s, %s, want 3 and the warning %q", r.code, r.stdout, r.stderr, want)
	}
	if r := s.run("retry", "resume", "--all"); strings.Contains(r.stdout, "ran") {
		t.Errorf("resume on a full disk: got %s, want no second run", r.stdout)
	}
	testkit.Must(t, os.Remove(filepath.Join(root, "fill")))
	if r := s.run("retry", "resume", "--all"); r.code != 0 || !strings.Contains(r.stderr, "nothing to resume") {
		t.Errorf("resume: got exit %d, %s, want nothing to resume", r.code, r.stderr)
	}
	if r := s.runCleanly("status"); !strings.Contains(r.stdout, "gave up  1/1  exit 3") {
		t.Errorf("status: got %s, want the end with its exit", r.stdout)
	}
}

// A run without delays lets its WAL grow. On a small disk it still keeps its journal.
func TestManyAttemptsOnASmallDisk(t *testing.T) {
	s := newJournalTest(t)
	s.mount("1m")
	r := s.run("retry", "-n", "400", "-b", "constant:0", "--", "false")
	if strings.Contains(r.stderr, "warning:") {
		t.Errorf("got %s, want no warning", r.stderr)
	}
	if r := s.runCleanly("status"); !strings.Contains(r.stdout, "400/400") {
		t.Errorf("status: got %s, want 400/400", r.stdout)
	}
}

// The same holds for a limit of the file size.
func TestManyAttemptsWithALimitOfFiles(t *testing.T) {
	s := newJournalTest(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, whose exec can name a program")
	}
	s.runCleanly("--", "true") // the reserve is as large
	r := s.run("bash", "-c", `ulimit -f 200 && exec -a retry "$RETRY" -n 400 -b constant:0 -- false`)
	if strings.Contains(r.stderr, "warning:") {
		t.Errorf("got %s, want no warning", r.stderr)
	}
	if r := s.runCleanly("status"); !strings.Contains(r.stdout, "400/400") {
		t.Errorf("status: got %s, want 400/400", r.stdout)
	}
}

// Stdin and output that retry keeps go where there is room, so the command runs as without a journal. One warning says
// what a resume will not find.
func TestStreamsOnAFullDisk(t *testing.T) {
	for script, want := range map[string]struct {
		code, bytes, warnings int
	}{
		"echo hello | retry -n 3 -b constant:0 --stdin replay -- sh -c 'cat; test $RETRY_ATTEMPT = 2'": {
			bytes: 2 * len("hello\n"), warnings: 1,
		},
		"echo hello | retry -n 3 -b constant:0 --stdin replay --output final -- sh -c 'cat; exit 3'": {
			code: 3, bytes: len("hello\n"), warnings: 1,
		},
		"retry -n 1 --output success -- head -c 1500000 /dev/zero": {
			bytes: 1500000,
		},
		"retry -n 3 -b constant:0 --output final -- sh -c 'head -c 1500000 /dev/zero; test $RETRY_ATTEMPT = 2'": {
			bytes: 1500000,
		},
	} {
		s := newJournalTest(t) // a run may spend what another one needs of the reserve
		root := s.mount("2m")
		s.runCleanly("--", "true")
		s.run("sh", "-c", "cat /dev/zero >"+root+"/fill 2>/dev/null")
		if r := s.run("sh", "-c", script); r.code != want.code || len(r.stdout) != want.bytes ||
			strings.Count(r.stderr, "warning:") != want.warnings {
			t.Errorf("%s: got exit %d, %d bytes, stderr %q, want %+v", script, r.code, len(r.stdout), r.stderr, want)
		}
	}
}

func TestAnotherUsersDirectory(t *testing.T) {
	s := newJournalTest(t)
	s.needRoot()
	s.runCleanly("--", "true")
	if err := os.Chown(s.state, 4242, -1); err != nil {
		t.Fatal(err)
	}
	s.checkSurvives("belongs to user 4242, not to you (0)", "chown it, or use a directory of your own", "✗ directory")
}

// On some systems sudo keeps HOME: nothing may be made in the home of its caller.
func TestAnotherUsersHome(t *testing.T) {
	s := newJournalTest(t)
	s.needRoot()
	home := t.TempDir()
	if err := os.Chown(home, 4242, -1); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"RETRY_STATE_DIR=", "XDG_STATE_HOME=", "HOME=" + home}
	s.checkSurvives("HOME leads to "+home+", which belongs to user 4242", "sudo -H sets the home", "✗ directory")
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
		t.Errorf("home of another user: got %v, error %v, want no file", entries, err)
	}
}

// The doctor names the process that holds the write lock, and later finds the lock free.
func TestDoctorFindsWhoHoldsTheLock(t *testing.T) {
	s := newJournalTest(t)
	s.runCleanly("--", "true")
	db, err := sql.Open("sqlite3", "file:"+s.state+"/journal.db?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	r := s.run("retry", "doctor")
	if want := " process " + strconv.Itoa(os.Getpid()) + " holds the lock of the journal"; r.code != 1 ||
		!strings.Contains(r.stdout, want) {
		t.Errorf("doctor: got exit %d, %s, want %q", r.code, r.stdout, want)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if r := s.runCleanly("doctor"); !strings.Contains(r.stdout, "a write can begin") {
		t.Errorf("doctor: got %s, want a write that can begin", r.stdout)
	}
}

// Whatever descriptor limit lets the command run without a journal also lets it run with one.
func TestFewFileDescriptors(t *testing.T) {
	s := newJournalTest(t)
	binary := buildRetry(t) // a library of these tests opens a file before main
	limited := func(n int, flags string) result {
		script := `ulimit -n ` + strconv.Itoa(n) + ` && exec -a retry "` + binary + `" ` + flags + ` -- true`
		return s.run("bash", "-c", script)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, whose exec can name a program")
	}
	enough, without := 0, 0
	for n := 4; n <= 40; n++ {
		if r := limited(n, "--no-state"); r.code != 0 {
			if r.code != 125 || !strings.Contains(r.stderr, "\nhint: raise the limit with ulimit -n") {
				t.Errorf("%d descriptors: got exit %d, stderr %q, want 125 and a hint", n, r.code, r.stderr)
			}
			continue
		}
		enough++
		r := limited(n, "")
		if warnings := strings.Count(r.stderr, "warning:"); r.code != 0 || warnings > 1 {
			t.Errorf("%d descriptors: got exit %d, stderr %q, want 0, at most one warning", n, r.code, r.stderr)
		} else if without += warnings; warnings == 1 &&
			!strings.Contains(r.stderr, "\nhint: raise the limit with ulimit -n") {
			t.Errorf("%d descriptors: got %q, want a hint", n, r.stderr)
		}
	}
	if without == 0 || without == enough {
		t.Errorf("got %d limits without a journal, want some of the %d with a command", without, enough)
	}
}

// A word of the schema is damaged, which SQLite may take as it is: a status of the constraint, with which no outcome
// would be written any more, or the name of a table or a column.
func TestDamagedSchema(t *testing.T) {
	s := newJournalTest(t)
	for range 4 { // the first ones stay in the WAL
		s.run("retry", "-n", "2", "-b", "constant:0", "--capture", "both", "--", "sh", "-c", "echo out; exit 1")
	}
	intact, err := os.ReadFile(filepath.Join(s.state, "journal.db"))
	schema := intact[:min(len(intact), bytes.LastIndex(intact, []byte("CREATE TABLE tasks"))+4096)]
	words := regexp.MustCompile(`(?m)(?:^\t+|CREATE TABLE |ADD COLUMN |, |')[a-zA-Z_]+`).FindAllIndex(schema, -1)
	if err != nil || len(words) < 60 {
		t.Fatalf("got error %v, %d words, want a schema", err, len(words))
	}
	aside, seen := 0, map[string]bool{}
	for _, word := range words {
		text := schema[max(0, word[0]-30):word[1]]
		if seen[string(text)] { // a copy that a migration has left in the unused part of a page
			continue
		}
		seen[string(text)] = true
		t.Run(string(schema[word[0]:word[1]]), func(t *testing.T) {
			damaged := bytes.ReplaceAll(intact, text, append(bytes.Clone(text[:len(text)-1]), 'X'))
			s := newJournalTest(t)
			s.writeJournal(damaged)
			r := s.run("retry", "--", "echo", "ran")
			if r.code != 0 || r.stdout != "ran\n" || strings.Count(r.stderr, "warning:") > 1 {
				t.Errorf("got exit %d, stdout %q, stderr %q, want a success", r.code, r.stdout, r.stderr)
			}
			aside += s.countSetAside(damaged)
		})
	}
	if aside < len(seen)/2 {
		t.Errorf("got %d of %d damaged journals set aside, want those whose words a run uses", aside, len(seen))
	}
}

// Wherever a journal is damaged, the command runs with at most one warning, nothing panics or hangs, and the damaged
// files are kept.
func TestDamageAnywhere(t *testing.T) {
	s := newJournalTest(t)
	for range 4 {
		s.run("retry", "-n", "2", "-b", "constant:0", "--capture", "both", "--", "sh", "-c",
			"echo out; echo err >&2; exit 1")
	}
	intact, err := os.ReadFile(filepath.Join(s.state, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for range 150 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := newJournalTest(t)
			damaged := damage(rand.New(rand.NewPCG(seed, 0)), bytes.Clone(intact))
			s.writeJournal(damaged)
			r := s.run("retry", "status")
			if (r.code != 0 && r.code != 125) || strings.Contains(r.stderr, "goroutine ") {
				t.Errorf("status: got exit %d, %s, want 0 or 125", r.code, r.stderr)
			}
			r = s.run("retry", "--", "echo", "ran")
			if r.code != 0 || r.stdout != "ran\n" || strings.Count(r.stderr, "warning:") > 1 {
				t.Errorf("run: got exit %d, stdout %q, stderr %q, want a success", r.code, r.stdout, r.stderr)
			}
			aside += s.countSetAside(damaged)
		})
	}
	if aside == 0 {
		t.Error("got no damage, want some")
	}
}

// damage overwrites a few places, or cuts the end off.
func damage(random *rand.Rand, data []byte) []byte {
	for range 1 + random.IntN(20) {
		at := random.IntN(len(data))
		for i := at; i < min(len(data), at+1+random.IntN(200)); i++ {
			data[i] = byte(random.Uint32())
		}
	}
	if random.IntN(4) == 0 {
		data = data[:1+random.IntN(len(data)-1)]
	}
	return data
}

func (s *journalTest) writeJournal(database []byte) {
	s.Helper()
	if err := errors.Join(os.Mkdir(s.state, 0o700),
		os.WriteFile(filepath.Join(s.state, "journal.db"), database, 0o600)); err != nil {
		s.Fatal(err)
	}
}

// countSetAside returns 1 where the damaged journal was set aside unchanged.
func (s *journalTest) countSetAside(damaged []byte) int {
	s.Helper()
	found, _ := filepath.Glob(filepath.Join(s.state, "corrupt-*", "journal.db"))
	if len(found) == 0 {
		return 0
	}
	data, err := os.ReadFile(found[0])
	if len(found) > 1 || err != nil || !bytes.Equal(data, damaged) {
		s.Errorf("copy of the damaged journal: got %q, error %v, want the same bytes", found, err)
	}
	return 1
}

func init() {
	commands["blocking"] = becomeBlocked
}

// becomeBlocked executes the program that its arguments name, with every signal blocked: exec keeps the signal mask of
// the thread.
func becomeBlocked() {
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		runtime.LockOSThread()
		var all unix.Sigset_t
		all.Val[0] = ^uint64(3 << 31) // but 32 and 33, which the C library keeps for itself
		if err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err == nil {
			err = syscall.Exec(path, os.Args[1:], os.Environ())
		}
	}
	panic(err)
}
