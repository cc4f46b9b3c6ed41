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
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "github.com/mattn/go-sqlite3" // to hold the lock of a journal

	"github.com/10f93571/retry/internal/testkit"
)

// site is a place with a journal, for runs of the real main.
type site struct {
	*testing.T
	state string
	env   []string
}

type report struct {
	stdout, stderr string
	code           int
}

func newSite(t *testing.T) *site {
	testkit.Slow(t, "it runs the program on failing file systems")
	return &site{T: t, state: filepath.Join(t.TempDir(), "state")}
}

// run runs a program that ends by itself; patience is for one that does not.
func (s *site) run(program string, args ...string) report {
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
	return report{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// survives asserts what holds of every fault: the command runs, its status stands, one warning says what and what to do; where the
// journal is required nothing runs; and the doctor names the fault.
func (s *site) survives(warning, hint, finding string) {
	s.Helper()
	r := s.run("retry", "-n", "1", "--", "sh", "-c", "echo ran; exit 7")
	if r.stdout != "ran\n" || r.code != 7 || strings.Count(r.stderr, "warning:") != 1 || !strings.Contains(r.stderr, warning) || !strings.Contains(r.stderr, "\nhint: "+hint) {
		s.Errorf("exit %d, stdout %q, stderr %q; want the warning %q with the hint %q", r.code, r.stdout, r.stderr, warning, hint)
	}
	r = s.run("retry", "--require-state", "--", "echo", "ran")
	if r.stdout != "" || r.code != 125 || !strings.Contains(r.stderr, warning) {
		s.Errorf("required: exit %d, stdout %q, stderr %q; want %q", r.code, r.stdout, r.stderr, warning)
	}
	r = s.run("retry", "doctor")
	if r.code != 1 || !strings.Contains(r.stdout, finding) || !strings.Contains(r.stdout, "fix: ") {
		s.Errorf("doctor: exit %d, %s; want %q", r.code, r.stdout, finding)
	}
}

// sound asserts that a run and what was asked of it have nothing to say.
func (s *site) sound(args ...string) report {
	s.Helper()
	r := s.run("retry", args...)
	if r.code != 0 || r.stderr != "" {
		s.Fatalf("%q: exit %d, stderr %q", args, r.code, r.stderr)
	}
	return r
}

func (s *site) needRoot() {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Skip("only root can give a directory away")
	}
}

// mount puts a small file system in memory where the journal will be.
func (s *site) mount(size string) (root string) {
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

func (s *site) fill(root string) {
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
	t.Run("with a WAL", func(t *testing.T) { readOnly(newSite(t), false) })
	t.Run("without", func(t *testing.T) { readOnly(newSite(t), true) })
}

// readOnly has SQLite find the index that it needs to read a WAL, or miss it.
func readOnly(s *site, closed bool) {
	root := s.mount("2m")
	s.sound("--", "echo", "before")
	if closed {
		s.run("retry", "cancel", "nothing") // which ends as the last one to have the journal open
	}
	if err := syscall.Mount("none", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		s.Skipf("nothing can be remounted here: %v", err)
	}
	s.survives("read-only file system", "mount the file system of "+s.state+" writable", "is mounted read-only")
	if r := s.run("retry", "doctor"); strings.Contains(r.stdout, "chmod") {
		s.Errorf("a mode is blamed: %s", r.stdout)
	}
	if r := s.sound("status"); !strings.Contains(r.stdout, "echo before") {
		s.Errorf("status does not read the journal: %s", r.stdout)
	}
}

func TestAFullDisk(t *testing.T) {
	s := newSite(t)
	root := s.mount("2m")
	s.fill(root)
	s.survives("database or disk is full", "make room on the file system of "+s.state, "0 B free")
}

// The end of a command that succeeded is written though the command itself filled the disk, also in the attempts before: a resume must
// not run it again.
func TestTheEndIsWrittenOnAFullDisk(t *testing.T) {
	for _, attempts := range []string{"1", "3"} {
		t.Run(attempts, func(t *testing.T) { fillsTheDisk(newSite(t), attempts) })
	}
}

func fillsTheDisk(s *site, attempts string) {
	root := s.mount("2m")
	r := s.run("retry", "-n", "5", "-b", "constant:0", "--", "sh", "-c", "cat /dev/zero >"+root+"/fill 2>/dev/null; test $RETRY_ATTEMPT = "+attempts)
	if warnings := strings.Count(r.stderr, "warning:"); r.code != 0 || warnings > 1 || (attempts == "1" && warnings > 0) {
		s.Errorf("exit %d, stderr %q", r.code, r.stderr)
	}
	if r := s.sound("status"); !strings.Contains(r.stdout, "SUCCEEDED") {
		s.Errorf("status: %s", r.stdout)
	}
	if r := s.run("retry", "resume", "--all"); r.code != 0 || !strings.Contains(r.stderr, "nothing to resume") {
		s.Errorf("resume: exit %d, %s", r.code, r.stderr)
	}
	if err := os.Remove(filepath.Join(root, "fill")); err != nil {
		s.Fatal(err)
	}
	s.sound("--", "true")
	if _, err := os.Stat(filepath.Join(s.state, "reserve")); err != nil {
		s.Errorf("the reserve is not made again: %v", err)
	}
}

// A run without delays lets its log grow, where there is room. A small disk is no reason to go on without a journal.
func TestManyAttemptsOnASmallDisk(t *testing.T) {
	s := newSite(t)
	s.mount("1m")
	r := s.run("retry", "-n", "400", "-b", "constant:0", "--", "false")
	if strings.Contains(r.stderr, "warning:") {
		t.Error(r.stderr)
	}
	if r := s.sound("status"); !strings.Contains(r.stdout, "400/400") {
		t.Errorf("status: %s", r.stdout)
	}
}

// Nor is a limit of the size of files.
func TestManyAttemptsWithALimitOfFiles(t *testing.T) {
	s := newSite(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, whose exec can name a program")
	}
	s.sound("--", "true") // the reserve is as large
	r := s.run("bash", "-c", `ulimit -f 200 && exec -a retry "$RETRY" -n 400 -b constant:0 -- false`)
	if strings.Contains(r.stderr, "warning:") {
		t.Error(r.stderr)
	}
	if r := s.sound("status"); !strings.Contains(r.stdout, "400/400") {
		t.Errorf("status: %s", r.stdout)
	}
}

// What is kept for a command goes where there is room: it runs as it would without a journal. A warning says, once, what a resume will
// not find.
func TestStreamsOnAFullDisk(t *testing.T) {
	for script, want := range map[string]struct {
		code, bytes, warnings int
	}{
		"echo hello | retry -n 3 -b constant:0 --stdin replay -- sh -c 'cat; test $RETRY_ATTEMPT = 2'":          {0, 2 * len("hello\n"), 1},
		"echo hello | retry -n 3 -b constant:0 --stdin replay --output final -- sh -c 'cat; exit 3'":            {3, len("hello\n"), 1},
		"retry -n 1 --output success -- head -c 1500000 /dev/zero":                                              {0, 1500000, 0},
		"retry -n 3 -b constant:0 --output final -- sh -c 'head -c 1500000 /dev/zero; test $RETRY_ATTEMPT = 2'": {0, 1500000, 0},
	} {
		s := newSite(t) // a run may spend what another one needs of the reserve
		root := s.mount("2m")
		s.sound("--", "true")
		s.run("sh", "-c", "cat /dev/zero >"+root+"/fill 2>/dev/null")
		if r := s.run("sh", "-c", script); r.code != want.code || len(r.stdout) != want.bytes || strings.Count(r.stderr, "warning:") != want.warnings {
			t.Errorf("%s: exit %d, %d bytes, stderr %q", script, r.code, len(r.stdout), r.stderr)
		}
	}
}

func TestAStrangersDirectory(t *testing.T) {
	s := newSite(t)
	s.needRoot()
	s.sound("--", "true")
	if err := os.Chown(s.state, 4242, -1); err != nil {
		t.Fatal(err)
	}
	s.survives("belongs to user 4242, not to you (0)", "chown it, or use a directory of your own", "✗ directory")
}

// As under sudo, which keeps HOME on some systems: nothing may be made in the home of its caller.
func TestAStrangersHome(t *testing.T) {
	s := newSite(t)
	s.needRoot()
	home := t.TempDir()
	if err := os.Chown(home, 4242, -1); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"RETRY_STATE_DIR=", "XDG_STATE_HOME=", "HOME=" + home}
	s.survives("HOME leads to "+home+", which belongs to user 4242", "sudo -H sets the home", "✗ directory")
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
		t.Errorf("made in a stranger's home: %v, %v", entries, err)
	}
}

// The doctor names who keeps everybody from writing, and finds the lock free afterwards.
func TestDoctorFindsWhoHoldsTheLock(t *testing.T) {
	s := newSite(t)
	s.sound("--", "true")
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
	if want := " process " + strconv.Itoa(os.Getpid()) + " holds the lock of the journal"; r.code != 1 || !strings.Contains(r.stdout, want) {
		t.Errorf("doctor: exit %d, %s; want %q", r.code, r.stdout, want)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if r := s.sound("doctor"); !strings.Contains(r.stdout, "a write can begin") {
		t.Errorf("doctor: %s", r.stdout)
	}
}

// Whatever limit lets the command run without a journal lets it run with one: the command goes before being written down.
func TestFewFileDescriptors(t *testing.T) {
	s := newSite(t)
	limited := func(n int, flags string) report {
		script := `ulimit -n ` + strconv.Itoa(n) + ` && exec -a retry "$RETRY" ` + flags + ` -- true`
		return s.run("bash", "-c", script)
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, whose exec can name a program")
	}
	enough, without := 0, 0
	for n := 4; n <= 40; n++ {
		if limited(n, "--no-state").code != 0 {
			continue
		}
		enough++
		r := limited(n, "")
		if warnings := strings.Count(r.stderr, "warning:"); r.code != 0 || warnings > 1 {
			t.Errorf("of %d descriptors: exit %d, stderr %q", n, r.code, r.stderr)
		} else if without += warnings; warnings == 1 && !strings.Contains(r.stderr, "\nhint: raise the limit with ulimit -n") {
			t.Errorf("of %d descriptors: no hint: %q", n, r.stderr)
		}
	}
	if without == 0 || without == enough {
		t.Errorf("%d limits let the command run, %d of them without a journal", enough, without)
	}
}

// Wherever a journal is damaged: the command runs, at most one warning comes, nothing panics or hangs, and what was there is kept.
func TestDamageAnywhere(t *testing.T) {
	s := newSite(t)
	for range 4 {
		s.run("retry", "-n", "2", "-b", "constant:0", "--capture", "both", "--", "sh", "-c", "echo out; echo err >&2; exit 1")
	}
	intact, err := os.ReadFile(filepath.Join(s.state, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for range 150 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := newSite(t)
			damaged := damage(rand.New(rand.NewPCG(seed, 0)), bytes.Clone(intact))
			s.plant(damaged)
			r := s.run("retry", "status")
			if (r.code != 0 && r.code != 125) || strings.Contains(r.stderr, "goroutine ") {
				t.Errorf("status: exit %d, %s", r.code, r.stderr)
			}
			r = s.run("retry", "--", "echo", "ran")
			if r.code != 0 || r.stdout != "ran\n" || strings.Count(r.stderr, "warning:") > 1 {
				t.Errorf("run: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
			}
			aside += s.kept(damaged)
		})
	}
	if aside == 0 {
		t.Error("no damage was found")
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

func (s *site) plant(database []byte) {
	s.Helper()
	if err := errors.Join(os.Mkdir(s.state, 0o700), os.WriteFile(filepath.Join(s.state, "journal.db"), database, 0o600)); err != nil {
		s.Fatal(err)
	}
}

// kept returns 1 where the damaged journal was set aside, as it was.
func (s *site) kept(damaged []byte) int {
	s.Helper()
	found, _ := filepath.Glob(filepath.Join(s.state, "corrupt-*", "journal.db"))
	if len(found) == 0 {
		return 0
	}
	data, err := os.ReadFile(found[0])
	if len(found) > 1 || err != nil || !bytes.Equal(data, damaged) {
		s.Errorf("what was set aside in %q is not what was damaged: %v", found, err)
	}
	return 1
}
