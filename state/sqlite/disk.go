package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/lock"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// awaitSync waits until a task that this process created is synced.
func (j *Journal) awaitSync(t *task.Task) error {
	wait, ok := j.syncs.Load(t.Number)
	if !ok {
		return nil
	}
	err := wait.(func() error)()
	if err != nil {
		err = cmp.Or(j.moved(), err)
	}
	return j.diagnose(err)
}

const (
	reserveName = "reserve"
	reserveSize = 256 << 10 // bytes
	lastReserve = 64 << 10  // bytes that are kept for the end of a task, which writes a few pages
)

// keepReserve creates a file that takes up space. Removing it makes room for the end of a task on a full disk: without
// that record, a resume would run a command again that has succeeded. On a disk without room there is no reserve.
func (j *Journal) keepReserve() {
	path := filepath.Join(j.dir, reserveName)
	if _, err := os.Lstat(path); err == nil {
		return
	}
	for _, size := range []int{reserveSize, lastReserve} {
		if os.WriteFile(path, make([]byte, size), 0o600) == nil {
			return
		}
		_ = os.Remove(path)
	}
}

// openOnFullDisk is OpenWritable, also where the disk has no room for the index of the WAL: the reserve makes some,
// first without what the end of a task needs. Else what was accepted would wait until somebody has made room.
func openOnFullDisk(ctx context.Context, dir string) (*Journal, error) { // fault: disk-full
	j, err := OpenWritable(ctx, dir)
	reserve := filepath.Join(dir, reserveName)
	if info, _ := stat(reserve); errors.Is(err, state.ErrFull) && info != nil && info.Size() > lastReserve &&
		os.Truncate(reserve, lastReserve) == nil {
		j, err = OpenWritable(ctx, dir)
	}
	if errors.Is(err, state.ErrFull) && os.Remove(reserve) == nil {
		j, err = OpenWritable(ctx, dir)
	}
	return j, err
}

// writeEnd is write for the end of an attempt. If the attempt ends the task and the disk is full, it removes the
// reserve and tries again. Between two attempts it does not: the next attempt would use up that room as well.
func (j *Journal) writeEnd(ctx context.Context, t *task.Task, do func(*conn.Conn) error) error {
	err := j.write(ctx, do)
	if errors.Is(err, state.ErrFull) && t.Status.Finished() && os.Remove(filepath.Join(j.dir, reserveName)) == nil {
		err = j.write(ctx, do)
	}
	if err == nil {
		err = j.moved()
	}
	return err
}

const (
	endPrefix = "ended-" // begins the names of the files that keep ends; the task's number follows
	keptBase  = 36       // of the numbers in them: a name has at most 255 bytes
)

// KeepEnd keeps the end of a task beside the journal, which is locked for long or has no room: else a resume would run
// a command again that has ended. The file is empty, and its name says all, so that it fits on a full disk.
func (j *Journal) KeepEnd(t *task.Task) error {
	a, o := t.Last, t.Last.Outcome
	number := func(n int64) []string { return []string{strconv.FormatInt(n, keptBase)} }
	name := url.Values{
		"id": {t.ID}, "again": number(t.RequeuedAt.UnixMicro()), "count": number(int64(t.AttemptCount)),
		"is": {string(t.Status)}, "why": {string(t.Reason)}, "at": number(t.FinishedAt.UnixMicro()),
		"no": number(int64(a.Number)), "from": number(a.StartedAt.UnixMicro()), "took": number(o.Duration.Microseconds()),
		"exit": number(int64(o.Exit)), "sig": {o.Signal}, "err": {string(o.Error)}, "as": {string(a.Decision.Verdict)},
	}
	if r := o.Reply; r != nil { // whether the request may have taken effect
		name["sent"], name["got"] = number(int64(r.Written)), number(int64(r.Status))
	}
	path := filepath.Join(j.dir, fmt.Sprintf("%s%d.%s", endPrefix, t.Number, name.Encode()))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return cmp.Or(file.Close(), files.SyncDir(j.dir))
}

// keptEnd reads what KeepEnd wrote. What is missing is zero, and fits no task.
func keptEnd(number int64, name string) *task.Task {
	v, _ := url.ParseQuery(name)
	whole := func(key string) int64 {
		n, _ := strconv.ParseInt(v.Get(key), keptBase, 64)
		return n
	}
	var reply *task.Reply
	if v.Has("sent") {
		reply = &task.Reply{Written: int(whole("sent")), Status: int(whole("got"))}
	}
	return &task.Task{
		Number: number, ID: v.Get("id"), RequeuedAt: time.UnixMicro(whole("again")), AttemptCount: int(whole("count")),
		Status: task.Status(v.Get("is")), Reason: task.Reason(v.Get("why")), FinishedAt: time.UnixMicro(whole("at")),
		Last: task.Attempt{
			Number: int(whole("no")), StartedAt: time.UnixMicro(whole("from")),
			Outcome: task.Outcome{
				Exit: int(whole("exit")), Signal: v.Get("sig"), Error: task.ErrorClass(v.Get("err")),
				Duration: time.Duration(whole("took")) * time.Microsecond, Reply: reply,
			},
			Decision: task.Decision{Verdict: task.Verdict(v.Get("as"))},
		},
	}
}

// writeKeptEnds writes what KeepEnd has kept of a task to the journal, or of all tasks: 0. What no longer fits goes. It
// returns the tasks that it has ended.
func (j *Journal) writeKeptEnds(ctx context.Context, number int64) (written []*task.Task, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		rest, found := strings.CutPrefix(entry.Name(), endPrefix)
		txt, name, _ := strings.Cut(rest, ".")
		n, err := strconv.ParseInt(txt, 10, 64)
		if !found || err != nil || number != 0 && number != n {
			continue
		}
		t := keptEnd(n, name)
		err = j.CatchUp(ctx, t)
		if err != nil && !errors.Is(err, task.ErrNotOwner) && !errors.Is(err, state.ErrCorrupt) {
			return written, fmt.Errorf("%w, where it cannot be written: %w", state.ErrEndKept, err)
		}
		if err == nil {
			j.DropInput(t)
			written = append(written, t)
		}
		_ = os.Remove(filepath.Join(j.dir, entry.Name()))
	}
	return written, nil
}

// moved returns ErrMoved if the files of this journal are no longer in their place: what was just written is in none
// that another command will open. SQLite removes the WAL only where nobody has the database open.
func (j *Journal) moved() error {
	path := filepath.Join(j.dir, DatabaseName)
	return cmp.Or(isStill(path, j.file), isStill(path+walSuffix, j.log))
}

// isStill returns ErrMoved if a path names another file than the one that was opened; nil is not known.
func isStill(path string, opened os.FileInfo) error {
	current, err := stat(path)
	if err != nil || opened == nil || current != nil && os.SameFile(current, opened) {
		return nil
	}
	return state.NewFault(state.ErrMoved, "what it had of this task went with it; the next run begins a new one",
		"%s was moved away or removed while the task ran", path)
}

// makeRoom copies the WAL into the database when the disk is full, so that the next write reuses the WAL's space. The
// database may need a part of the reserve to grow. From then on, SQLite keeps the WAL short. makeRoom reports false if
// it gained nothing: the WAL was copied before, or a reader keeps it from being copied.
func (j *Journal) makeRoom() (made bool) {
	_ = j.conn.Use(func() error {
		c := j.conn
		pages, copied, err := c.Checkpoint("NOOP")
		if err != nil || pages == copied {
			return err
		}
		reserve := filepath.Join(j.dir, reserveName)
		if info, err := os.Stat(reserve); err == nil && info.Size() > lastReserve {
			_ = os.Truncate(reserve, lastReserve)
		}
		if pages, copied, err = c.Checkpoint("PASSIVE"); err != nil {
			return err
		}
		made = pages == copied
		_, err = c.Exec(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", walPages))
		return err
	})
	return made
}

// enoughRoom is the free space below which only the journal itself is written.
const enoughRoom = 16 << 20 // bytes

// HasRoom reports whether the file system has room for inputs and outputs.
func (j *Journal) HasRoom() bool {
	system, err := lock.Statfs(j.dir)
	return err == nil && system.Free >= enoughRoom
}

const (
	walSuffix   = "-wal"
	shmSuffix   = "-shm"
	asidePrefix = "corrupt-"
	asideTime   = "20060102T150405Z"
)

// asideOrder is the order in which the files of a damaged journal are moved: the database first, its WAL last. If the
// process dies in between, the next one sees a WAL without a database, which is damage. A database without its WAL
// would look sound and lack acknowledged tasks. Locks, inputs and kept ends are moved because the numbers of tasks
// start again.
func asideOrder(dir string) []string {
	names := []string{DatabaseName, DatabaseName + shmSuffix, lock.OwnersFile, inputsName}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), endPrefix) {
			names = append(names, entry.Name())
		}
	}
	return append(names, DatabaseName+walSuffix)
}

// SetAside moves the journal that is named in damage, an ErrCorrupt, into a directory of its own and returns that. It
// returns "" if another process has moved it already. Processes that have the old files open continue to use them.
func SetAside(ctx context.Context, damage error) (aside string, err error) {
	f, ok := errors.AsType[*state.Fault](damage)
	if !ok || !errors.Is(f.Kind, state.ErrCorrupt) || f.Dir == "" {
		return "", damage
	}
	unlock, err := lock.Exclusive(ctx, f.Dir)
	if err != nil {
		return "", fmt.Errorf("set the damaged journal aside: %w", diagnose(f.Dir, err))
	}
	defer unlock()
	current, err := stat(filepath.Join(f.Dir, DatabaseName))
	if err != nil || !os.SameFile(current, f.File) && (current != nil || f.File != nil) {
		return "", err
	}
	aside, err = moveAside(f.Dir, time.Now())
	if err != nil {
		err = fmt.Errorf("set the damaged journal aside: %w", diagnose(f.Dir, err))
	}
	return aside, err
}

func moveAside(dir string, now time.Time) (aside string, err error) {
	if aside = unfinishedAside(dir); aside != "" {
		conn.Step("about to set aside")
		err := os.Rename(filepath.Join(dir, DatabaseName+walSuffix), filepath.Join(aside, DatabaseName+walSuffix))
		return aside, errors.Join(err, files.SyncDir(aside), files.SyncDir(dir))
	}
	if aside, err = makeAside(dir, now); err != nil {
		return "", err
	}
	for _, name := range asideOrder(dir) {
		conn.Step("about to set aside")
		err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, errors.Join(files.SyncDir(aside), files.SyncDir(dir))
}

// unfinishedAside returns where a process that died in between has moved the database of a WAL; "" where none has. The
// empty database beside that WAL, and the other files, are then those of the new journal.
func unfinishedAside(dir string) string {
	database, err := stat(filepath.Join(dir, DatabaseName))
	asides := Asides(dir)
	if err != nil || database == nil || database.Size() > 0 || len(asides) == 0 {
		return ""
	}
	last := asides[len(asides)-1]
	moved, _ := stat(filepath.Join(last, DatabaseName))
	log, err := stat(filepath.Join(last, DatabaseName+walSuffix))
	if err != nil || moved == nil || log != nil {
		return ""
	}
	return last
}

// makeAside creates a directory with a name that is not in use.
func makeAside(dir string, now time.Time) (string, error) {
	name := filepath.Join(dir, asidePrefix+now.UTC().Format(asideTime))
	for n := 1; ; n++ {
		path := name
		if n > 1 {
			path = fmt.Sprintf("%s-%d", name, n)
		}
		if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// Asides lists the directories of the journals that were set aside, oldest first.
func Asides(dir string) (found []string) {
	entries, _ := os.ReadDir(dir) // sorted, and the names begin with their times
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), asidePrefix) {
			found = append(found, filepath.Join(dir, entry.Name()))
		}
	}
	return found
}
