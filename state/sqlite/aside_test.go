//go:build unix && cgo

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
)

const noise = "this is no database, but it is long enough to have a header of a hundred bytes, so that SQLite reads it and says so itself"

// damagedIn makes a journal with a task, and damages it.
func damagedIn(t *testing.T, dir string) {
	t.Helper()
	j, err := Open(t.Context(), dir)
	must(t, err)
	inFlight(t, j)
	must(t, j.Close())
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), []byte(noise), 0o600))
}

// damageOf opens a damaged journal.
func damageOf(t *testing.T, dir string) error {
	t.Helper()
	j, err := Open(t.Context(), dir)
	if err == nil {
		must(t, j.Close())
	}
	if !errors.Is(err, state.ErrCorrupt) {
		t.Fatalf("opening a damaged journal: %v", err)
	}
	return err
}

func TestADamagedJournalIsSetAsideWhole(t *testing.T) {
	dir := t.TempDir()
	damagedIn(t, dir)
	damage := damageOf(t, dir) // SQLite has copied what it could read of a WAL, and deleted that
	for _, name := range []string{DatabaseName + walSuffix, DatabaseName + shmSuffix} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, inputsName), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, inputsName, "1"), []byte("input"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ended-1.id=x"), nil, 0o600))
	aside, err := SetAside(t.Context(), damage)
	must(t, err)
	want := []string{"ended-1.id=x", DatabaseName, DatabaseName + shmSuffix, DatabaseName + walSuffix, lock.OwnersFile,
		inputsName}
	if got := testkit.Names(t, aside); !slices.Equal(got, want) {
		t.Errorf("aside are %q, not %q", got, want)
	}
	if data, err := os.ReadFile(filepath.Join(aside, DatabaseName)); err != nil || string(data) != noise {
		t.Errorf("%q, %v", data, err)
	}
	if got := testkit.Names(t, dir); !slices.Equal(got, []string{filepath.Base(aside), reserveName}) {
		t.Errorf("left are %q", got)
	}
	if mode := modes(t, aside)["."]; mode != 0o700 {
		t.Errorf("its mode is %04o", mode)
	}
	inFlight(t, openIn(t, dir))
}

// SQLite takes a WAL whose beginning it cannot read for an empty one: a young journal, which is all in its WAL, would
// begin anew. The WAL is kept as it is, since its end can be read by other means.
func TestAJournalWithADamagedWALIsSetAside(t *testing.T) {
	young, old := t.TempDir(), t.TempDir()
	for _, dir := range []string{young, old} {
		j := openIn(t, dir)
		inFlight(t, j)
		if dir == old {
			must(t, j.conn.Use(func() error {
				_, _, err := j.conn.Checkpoint("TRUNCATE")
				return err
			}))
		}
		inFlight(t, j)
	}
	const database, wal = DatabaseName, DatabaseName + walSuffix
	tests := []struct {
		name, from string
		at         map[string]int64 // where noise is written
		cut        map[string]int64 // to which size
	}{
		{name: "header", from: young, at: map[string]int64{wal: 0}},
		{name: "headers", from: young, at: map[string]int64{wal: 0, database: 0}},
		{name: "checksum of the header", from: young, at: map[string]int64{wal: 31}},
		{name: "first frame", from: young, at: map[string]int64{wal: walHeaderSize}},
		{name: "first transaction", from: young, at: map[string]int64{wal: 3 * 4096}},
		{name: "header of an old one", from: old, at: map[string]int64{wal: 0}},
		{name: "headers of an old one", from: old, at: map[string]int64{wal: 0, database: 0}},
		{name: "database of one byte", from: young, cut: map[string]int64{database: 1}},
		{name: "part of the header", from: young, cut: map[string]int64{wal: 31}},
		{name: "part of the header of an old one", from: old, cut: map[string]int64{wal: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, copyFiles(filepath.Join(test.from, database), filepath.Join(dir, database)))
			for name, at := range test.at {
				f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
				must(t, err)
				_, err = f.WriteAt([]byte("noise"), at)
				must(t, errors.Join(err, f.Close()))
			}
			for name, size := range test.cut {
				must(t, os.Truncate(filepath.Join(dir, name), size))
			}
			want, err := os.ReadFile(filepath.Join(dir, wal))
			must(t, err)
			if j, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrCorrupt) {
				t.Errorf("reader: got %v, %v, want ErrCorrupt", j, err)
			}
			aside, err := SetAside(t.Context(), damageOf(t, dir))
			must(t, err)
			if got, err := os.ReadFile(filepath.Join(aside, wal)); err != nil || string(got) != string(want) {
				t.Errorf("got a WAL of %d bytes, %v, want the %d that were there", len(got), err, len(want))
			}
			inFlight(t, openIn(t, dir))
		})
	}
}

// A process that dies before it has committed the schema leaves a WAL with nothing to lose in it.
func TestAnUnfinishedFirstTransactionIsNoDamage(t *testing.T) {
	from, dir := openIn(t, t.TempDir()), t.TempDir()
	must(t, copyFiles(filepath.Join(from.dir, DatabaseName), filepath.Join(dir, DatabaseName)))
	must(t, os.Truncate(filepath.Join(dir, DatabaseName+walSuffix), walHeaderSize+2*(frameHeaderSize+4096)))
	inFlight(t, openIn(t, dir))
}

// The second one to come with the same damage finds a fresh journal, and leaves it alone.
func TestAFreshJournalIsNotSetAside(t *testing.T) {
	dir := t.TempDir()
	damagedIn(t, dir)
	first, second := damageOf(t, dir), damageOf(t, dir)
	_, err := SetAside(t.Context(), first)
	must(t, err)
	tk := inFlight(t, openIn(t, dir))
	if aside, err := SetAside(t.Context(), second); aside != "" || err != nil {
		t.Errorf("set aside in %q, %v", aside, err)
	}
	stored(t, openIn(t, dir), tk.ID)
}

func TestManyFindTheDamageAtOnce(t *testing.T) {
	dir := t.TempDir()
	damagedIn(t, dir)
	damage := damageOf(t, dir)
	asides := make([]string, 16)
	var group sync.WaitGroup
	for i := range asides {
		group.Go(func() {
			aside, err := SetAside(t.Context(), damage)
			if err != nil {
				t.Error(err)
			}
			asides[i] = aside
			j, err := Open(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			inFlight(t, j)
			must(t, j.Close())
		})
	}
	group.Wait()
	slices.Sort(asides)
	if asides[14] != "" || asides[15] == "" {
		t.Errorf("set aside in %q", asides)
	}
	if n := count(t, openIn(t, dir), "tasks"); n != 16 {
		t.Errorf("got %d tasks in the new journal, want 16", n)
	}
}

// Death between two moves: what is left is damage to who comes next, whichever move was the last, and no fresh journal
// lies beside a WAL or locks of the old one.
func TestSettingAsideCanBeCutOff(t *testing.T) {
	order := asideOrder(t.TempDir())
	for moved := 1; moved < len(order); moved++ {
		t.Run(order[moved-1], func(t *testing.T) {
			dir := t.TempDir()
			damagedIn(t, dir)
			for _, name := range order[1:] {
				if name != inputsName && name != lock.OwnersFile {
					must(t, os.WriteFile(filepath.Join(dir, name), []byte(noise), 0o600))
				}
			}
			before, err := makeAside(dir, time.Now())
			must(t, err)
			for _, name := range order[:moved] {
				_ = os.Rename(filepath.Join(dir, name), filepath.Join(before, name))
			}
			aside, err := SetAside(t.Context(), damageOf(t, dir))
			must(t, err)
			if data, err := os.ReadFile(filepath.Join(aside, DatabaseName+walSuffix)); err != nil || string(data) != noise {
				t.Errorf("the WAL is not kept: %q, %v", data, err)
			}
			inFlight(t, openIn(t, dir))
		})
	}
}

// Who had the old journal open goes on with it where it is now. Its end must not touch the new one's files, which have
// the names that it knows.
func TestAnOwnerOfTheOldJournalHarmsNothing(t *testing.T) {
	dir := t.TempDir()
	p := startPuppet(t)
	p.ask("open", dir)
	p.create()
	old := &state.Fault{Kind: state.ErrCorrupt, Err: errors.New("damaged"), Dir: dir}
	var err error
	old.File, err = statDatabase(dir)
	must(t, err)
	aside, err := SetAside(t.Context(), old)
	must(t, err)
	j := openIn(t, dir)
	tk := inFlight(t, j)
	p.create()
	p.ask("close")
	if got := testkit.Names(t, dir); !slices.Contains(got, DatabaseName+walSuffix) {
		t.Errorf("the new journal's WAL is gone: %q", got)
	}
	stored(t, j, tk.ID)
	integrity(t, j)
	read, err := OpenReader(t.Context(), aside)
	must(t, err)
	defer func() { must(t, read.Close()) }()
	if n := count(t, read, "tasks"); n != 2 {
		t.Errorf("got %d tasks in the old journal, want 2", n)
	}
}

// What cannot be known to be damaged stays where it is.
func TestOnlyDamageIsSetAside(t *testing.T) {
	dir := t.TempDir()
	inFlight(t, openIn(t, dir))
	for _, err := range []error{errors.New("other"), state.NewFault(state.ErrFull, "", "full"), state.NewFault(state.ErrCorrupt, "", "of no directory")} {
		if aside, got := SetAside(t.Context(), err); aside != "" || !errors.Is(got, err) {
			t.Errorf("%v: set aside in %q, %v", err, aside, got)
		}
	}
}

// A name that is taken is not used twice.
func TestAsidesHaveTheirOwnNames(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"corrupt-20260102T030405Z", "corrupt-20260102T030405Z-2", "corrupt-20260102T030405Z-3"} {
		if got, err := makeAside(dir, epoch); filepath.Base(got) != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if got := Asides(dir); len(got) != 3 {
		t.Errorf("found %q", got)
	}
}

// The bodies of a journal that was set aside are kept as long as that is: they are what its tasks send.
func TestBodiesOfAJournalThatWasSetAside(t *testing.T) {
	q := openQueue(t)
	aside, err := makeAside(q.dir, time.Now())
	must(t, err)
	must(t, os.Chtimes(aside, epoch, epoch))
	for used, want := range map[time.Time]bool{epoch.Add(-time.Hour): true, epoch.Add(time.Hour): false} {
		if got, err := q.BlobInUse(t.Context(), "hash", used); got != want || err != nil {
			t.Errorf("last used %s: got %v, %v, want %v", used, got, err, want)
		}
	}
	must(t, os.Remove(aside))
	if got, err := q.BlobInUse(t.Context(), "hash", epoch.Add(-time.Hour)); got || err != nil {
		t.Errorf("without it: got %v, %v, want false", got, err)
	}
}

// A journal is opened only while nobody moves it.
func TestOpeningWaitsForWhoSetsAside(t *testing.T) {
	dir := t.TempDir()
	inFlight(t, openIn(t, dir))
	unlock, err := lock.Exclusive(t.Context(), dir)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
	openIn(t, dir)
}

// Until the database is open, and its WAL with it: the two must be of one journal.
func TestOpeningIsNotCutInTwo(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	writer, err := sql.Open("sqlite3", dataSource(filepath.Join(dir, DatabaseName))+"&_txlock=immediate")
	must(t, err)
	defer func() { _ = writer.Close() }()
	tx, err := writer.Begin() // keeps the opening waiting
	must(t, err)
	opened := make(chan error, 1)
	go func() {
		j, err := Open(context.Background(), dir)
		if err == nil {
			err = j.Close()
		}
		opened <- err
	}()
	cancelled, cancel := context.WithCancel(t.Context()) // tries once
	cancel()
	for held := 0; held < 50; time.Sleep(time.Millisecond) {
		switch unlock, err := lock.Exclusive(cancelled, dir); {
		case errors.Is(err, context.Canceled):
			held++
		case err != nil:
			t.Fatal(err)
		case held > 0:
			t.Fatal("the directory was free before the journal was open")
		default:
			unlock()
		}
	}
	must(t, tx.Rollback())
	must(t, <-opened)
}

func TestTheReserveTakesUpRoom(t *testing.T) {
	dir := t.TempDir()
	openIn(t, dir)
	info, err := os.Stat(filepath.Join(dir, reserveName))
	must(t, err)
	if info.Size() != reserveSize || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, mode %04o", info.Size(), info.Mode().Perm())
	}
}

// The end of a task on a full disk costs the reserve, once; nothing else does.
func TestTheReserveIsForAFullDisk(t *testing.T) {
	j := open(t)
	must(t, j.conn.Use(func() error { // a shorter log would leave room, too
		_, _, err := j.conn.Checkpoint("PASSIVE")
		return err
	}))
	reserve := filepath.Join(j.dir, reserveName)
	ended := &task.Task{Status: task.Succeeded}
	calls := 0
	failing := func(err error) func(*conn.Conn) error {
		calls = 0
		return func(*conn.Conn) error {
			calls++
			return err
		}
	}
	if err := j.writeEnd(t.Context(), ended, failing(task.ErrNotOwner)); !errors.Is(err, task.ErrNotOwner) || calls != 1 {
		t.Errorf("%v after %d tries", err, calls)
	}
	if _, err := os.Stat(reserve); err != nil {
		t.Errorf("given up for nothing: %v", err)
	}
	full := state.NewFault(state.ErrFull, "make room", "full")
	if err := j.writeEnd(t.Context(), &task.Task{Status: task.Pending}, failing(full)); !errors.Is(err, state.ErrFull) || calls != 1 {
		t.Errorf("between two attempts: %v after %d tries", err, calls)
	}
	for _, want := range []int{2, 1} { // the second time nothing is left to give up
		if err := j.writeEnd(t.Context(), ended, failing(full)); !errors.Is(err, state.ErrFull) || calls != want {
			t.Errorf("%v after %d tries, not %d", err, calls, want)
		}
	}
}

// A write that finds no row, though nobody has taken the task, is damage and no cancellation.
func TestALostRowIsNoCancellation(t *testing.T) {
	lose := map[string]string{
		"the task":       "DELETE FROM attempts; DELETE FROM tasks",
		"the attempt":    "DELETE FROM attempts",
		"another's task": "UPDATE tasks SET id = 'other', status = 'FAILED'",
	}
	for name, statement := range lose {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			tk := inFlight(t, j)
			_, err := rawExec(j, statement)
			must(t, err)
			if err := recorded(j, tk, exit(0), succeeded, epoch); !errors.Is(err, state.ErrCorrupt) || errors.Is(err, task.ErrNotOwner) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// reader opens a journal to read it.
func reader(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenReader(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

func TestAReaderMakesNoJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrNoJournal) {
		t.Errorf("without a directory: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600)) // whoever made it died
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrNoJournal) {
		t.Errorf("with an empty file: %v", err)
	}
	if got := testkit.Names(t, dir); !slices.Equal(got, []string{DatabaseName}) {
		t.Errorf("made were %q", got)
	}
}

func TestAnEmptyJournalHasNoTasks(t *testing.T) {
	j, err := OpenEmpty()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	if list, err := storetest.List(j, state.Filter{}); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := j.Find(t.Context(), "x"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A reader sees what a living writer has committed, and who owns it, and cannot write.
func TestAReaderBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	p := startPuppet(t)
	p.ask("open", dir)
	_, id := p.create()
	j := reader(t, dir)
	tk := stored(t, j, id)
	if interrupted, err := j.Interrupted(t.Context(), tk); interrupted || err != nil {
		t.Errorf("interrupted %v, %v", interrupted, err)
	}
	if err := j.Cancel(t.Context(), tk.Number, epoch); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("a reader wrote: %v", err)
	}
	_, id = p.create()
	stored(t, j, id)
	p.kill()
	if interrupted, err := j.Interrupted(t.Context(), tk); !interrupted || err != nil {
		t.Errorf("interrupted %v, %v after its owner's death", interrupted, err)
	}
}

// What cannot be read in place is read from a copy with its WAL; the copy is private, and goes.
func TestAReaderOfACopy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	withStep(t, "SELECT 1") // an older schema
	p := startPuppet(t)
	p.ask("open", dir)
	_, id := p.create()
	j, err := OpenReader(t.Context(), dir)
	must(t, err)
	stored(t, j, id)
	if mode := modes(t, j.copied); mode["."] != 0o700 || mode[DatabaseName] != 0o600 {
		t.Errorf("others may read the copy: %v", mode)
	}
	must(t, j.Close())
	if left := testkit.Names(t, os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("the copy is left: %q", left)
	}
}

// A journal of an older retry is read, and stays one.
func TestAReaderOfAnOlderSchema(t *testing.T) {
	dir := closedJournal(t)
	withStep(t, "ALTER TABLE tasks ADD COLUMN later TEXT")
	before := contents(t, dir)
	j := reader(t, dir)
	if got := version(t, j); got != len(migrations) || j.copied == "" {
		t.Errorf("schema %d, copied to %q", got, j.copied)
	}
	if list, err := storetest.List(j, state.Filter{}); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if !slices.Equal(contents(t, dir), before) {
		t.Error("the journal was changed")
	}
}

func TestAReaderRefuses(t *testing.T) {
	tests := []struct {
		name, statements string
		want             error
	}{
		{"a newer journal", "PRAGMA user_version = 99", state.ErrNewer},
		{"another program's database", "PRAGMA application_id = 7", state.ErrForeign},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := closedJournal(t)
			execute(t, dir, test.statements)
			if _, err := OpenReader(t.Context(), dir); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	dir := t.TempDir()
	damagedIn(t, dir)
	if _, err := OpenReader(t.Context(), dir); !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// A database that changes while it is copied is no database.
func TestACopyOfWhatChangesIsMadeAnew(t *testing.T) {
	dir := closedJournal(t)
	path := filepath.Join(dir, DatabaseName)
	before := fingerprint(path)
	must(t, os.WriteFile(path+walSuffix, []byte("more"), 0o600))
	if fingerprint(path) == before {
		t.Error("a WAL that has come is not noticed")
	}
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(to+walSuffix, []byte("old"), 0o600))
	must(t, os.Remove(path+walSuffix))
	must(t, copyFiles(path, to))
	if _, err := os.Stat(to + walSuffix); err == nil {
		t.Error("the WAL of an earlier try is left")
	}
}

// A process that opens the journal, or that closes it as the last one, has it for itself for a moment. A reader waits.
func TestAReaderWaitsForAnExclusiveLock(t *testing.T) {
	dir := t.TempDir()
	writer, err := Open(t.Context(), dir)
	must(t, err)
	must(t, writer.Close())
	holder, err := conn.Open(dataSource(filepath.Join(dir, DatabaseName)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT"); err != nil {
		t.Fatal(err)
	}
	if c, err := conn.Open(dataSource(filepath.Join(dir, DatabaseName)) + "&mode=ro"); err == nil {
		_, err = identify(c)
		_ = c.Close()
		if !conn.IsBusy(err) {
			t.Fatalf("got %v while the database is locked, want busy", err)
		}
	}
	opened := make(chan error)
	go func() {
		reader, err := OpenReader(t.Context(), dir)
		if err == nil {
			err = reader.Close()
		}
		opened <- err
	}()
	time.Sleep(20 * time.Millisecond) // the reader meets the lock; where it does not yet, the test passes for another reason
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("got %v, want the reader to wait", err)
	}
}

// What another process makes at the moment is not lost: it makes the reserve after the WAL, and its tables are in the
// database before its WAL goes.
func TestAJournalThatIsBeingMadeIsNotLost(t *testing.T) {
	j := open(t)
	lost := func(what string, want bool) {
		t.Helper()
		got, err := hasLostWAL(j.dir)
		must(t, err)
		if got != want {
			t.Errorf("%s: got lost %v, want %v", what, got, want)
		}
	}
	path := filepath.Join(j.dir, DatabaseName)
	lost("with its tables in the WAL", false)
	must(t, os.Rename(path+walSuffix, path+".moved"))
	lost("without the WAL", true)
	must(t, os.Rename(path+".moved", path+walSuffix))
	must(t, os.Rename(filepath.Join(j.dir, reserveName), path+".reserve"))
	lost("before the reserve is made", false)
	must(t, os.Rename(path+".reserve", filepath.Join(j.dir, reserveName)))
	_ = j.conn.Use(func() error { _, _, err := j.conn.Checkpoint("TRUNCATE"); return err })
	lost("with its tables in the database", false)
}
