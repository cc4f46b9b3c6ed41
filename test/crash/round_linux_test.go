package crash

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// trial is a journal with the observations of its processes, over one round or several.
type trial struct {
	harness
	service
	tally *tally
	near  *near

	mutex      sync.Mutex
	number     int // of the latest process
	seen       observations
	unfinished []string // when they were last looked at
	problems   []string
	counted    int // events of the log that the tally has already
	tasks      int // the same of tasks
	attempts   int
}

func newTrial(binary, dir string, tally *tally) *trial {
	s := &trial{harness: harness{binary: binary, dir: dir}, tally: tally, seen: newObservations(), near: newNear()}
	s.service = service{socket: filepath.Join(dir, "api"), target: s.near.URL}
	return s
}

// run runs a process, and records a problem with its end.
func (s *trial) run(a process) {
	s.mutex.Lock()
	s.number++
	number := s.number
	s.mutex.Unlock()
	hangUp := func() {}
	if a.role == roleServer {
		hangUp = s.call(number)
	}
	e, err := s.execute(a, number)
	hangUp()
	s.tally.count(a, e)
	if err != nil {
		s.fail("%s: %v", a.describe(number), err)
		return
	}
	if problem := a.problem(e); problem != "" {
		s.fail("%s: %s", a.describe(number), problem)
	}
	s.keepMessages(a, e)
	if a.role == roleAdder && e.exit == 0 {
		s.acknowledged(strings.TrimSpace(string(e.stdout)), "")
	}
	if a.role == roleReader && !e.killed {
		s.keepStatus(a.describe(number), e)
	}
}

func (a process) describe(number int) string {
	return fmt.Sprintf("process %d, a %s that %s: retry %s", number, a.role, a.kill, strings.Join(a.args, " "))
}

func (s *trial) fail(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// atOnce is how many processes run at a time.
const atOnce = 6

// round runs processes on the journal until quota of them were killed, then ends the unfinished tasks, and checks
// everything.
func (s *trial) round(quota int, fresh bool, newCast func(nth int) (*generator, error)) error {
	goal := s.tally.kills() + quota
	var group sync.WaitGroup
	for n := range atOnce {
		c, err := newCast(n)
		if err != nil {
			return err
		}
		group.Go(func() {
			if fresh {
				s.run(c.first())
			}
			for s.tally.kills() < goal && !s.failed() {
				s.run(c.next(s.recent()))
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	s.carry(goal, ended)
	s.tally.rounds++
	if err := s.settle(); err != nil {
		return err
	}
	return s.examine()
}

// carry has workers carry what is queued when enough processes were killed: one that was told to may wait for its end.
func (s *trial) carry(goal int, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(workingTime):
		}
		if s.tally.kills() >= goal {
			s.run(process{role: roleWorker, args: workerArgs("--grace", "1s"), kill: killPlan{term: workingTime}})
		}
	}
}

// workerArgs starts a worker that may send requests to this machine.
func workerArgs(more ...string) []string {
	return append([]string{"worker", "--allow-target", "127.0.0.0/8"}, more...)
}

func (s *trial) failed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.problems) > 0
}

// passes limits how often the unfinished tasks are resumed without kills. One pass is enough, except for tasks with
// living children.
const passes = 20

// settle resumes without kills until every task has ended.
func (s *trial) settle() error {
	for range passes {
		s.run(process{role: roleResumer, args: []string{"resume", "--all", "--now"}})
		s.run(process{role: roleWorker, args: workerArgs("--drain")})
		left, err := s.leftovers()
		if err != nil || len(left) == 0 {
			return err
		}
		for _, t := range left {
			s.finish(t)
		}
	}
	s.fail("tasks do not end, however often they are resumed: %q", s.unfinished)
	return nil
}

// finish ends the tasks that resume --all skips: those of nested wrappers, and those without their stdin.
func (s *trial) finish(t *task.Task) {
	switch {
	case t.Options.Stdin == task.StdinReplay && !s.keepsInput(t):
		s.run(process{role: roleCanceller, args: []string{"cancel", t.ID}})
		s.tally.lostIn++
	case t.Parent != "":
		s.run(process{role: roleResumer, args: []string{"resume", "--now", t.ID}})
	}
}

func (s *trial) input(t *task.Task) string {
	return filepath.Join(s.journal(), "stdin", fmt.Sprintf("%d.%s", t.Number, t.ID))
}

func (s *trial) keepsInput(t *task.Task) bool {
	_, err := os.Stat(s.input(t))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s *trial) leftovers() ([]*task.Task, error) {
	ctx := context.Background()
	j, err := sqlite.Open(ctx, s.journal())
	if err != nil {
		return nil, err
	}
	tasks, err := j.Unfinished(ctx)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.unfinished = nil
	for _, t := range tasks {
		s.unfinished = append(s.unfinished, t.ID)
	}
	return tasks, errors.Join(err, j.Close())
}

// record is a task as the journal has it at the end.
type record struct {
	*task.Task
	attempts []task.Attempt
}

// examine compares the journal with the logs of the children and the readers.
func (s *trial) examine() error {
	records, err := readRecords(s.journal())
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if err := checkFile(filepath.Join(s.journal(), "journal.db")); err != nil {
		return err
	}
	events, err := readLog(filepath.Join(s.dir, logName))
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.problems = append(s.problems, check(records, events, s.near.sent(), s.seen, s.binary)...)
	s.add(records, events)
	return nil
}

// add counts what is new since the last round on the journal.
func (s *trial) add(records []record, events []event) {
	attempts := 0
	for _, r := range records {
		attempts += len(r.attempts)
		if matches, _ := filepath.Glob(s.input(r.Task) + "*"); r.Number > int64(s.tasks) {
			s.tally.left += len(matches)
		}
	}
	for _, e := range events[s.counted:] {
		if e.Kind == eventStart {
			s.tally.children++
		}
	}
	s.tally.tasks += len(records) - s.tasks
	s.tally.attempts += attempts - s.attempts
	s.tasks, s.attempts, s.counted = len(records), attempts, len(events)
}

func readRecords(dir string) (records []record, err error) {
	ctx := context.Background()
	j, err := sqlite.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for t, err := range j.All(ctx, state.Filter{}) {
		if err != nil {
			return nil, err
		}
		attempts, err := j.Attempts(ctx, t.Number)
		if err != nil {
			return nil, err
		}
		records = append(records, record{t, attempts})
	}
	return records, nil
}

// checkFile lets SQLite check the file, with the driver of the state package.
func checkFile(path string) (err error) {
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var verdict string
	var broken int
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
		return err
	}
	if err := db.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken); err != nil {
		return err
	}
	if verdict != "ok" || broken > 0 {
		return fmt.Errorf("integrity_check: %s; %d rows refer to nothing", verdict, broken)
	}
	return nil
}

// readLog returns the lines of the log. The kernel ends a write of a killed process at the end of a page: it leaves out
// what such a write has begun.
func readLog(path string) (events []event, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	page, end := os.Getpagesize(), 0
	for line := range bytes.Lines(text) {
		begin := end
		end += len(line)
		if cut := page - begin%page; cut < len(line) && bytes.HasPrefix(line[cut:], []byte(`{"Kind"`)) {
			line = line[cut:]
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the log has the line %q: %w", line, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// observations are what processes reported about tasks, to be compared with their ends.
type observations struct {
	byID      map[string]observation // by id
	cancelled map[string]bool        // ids that a canceller was told it had cancelled
	refused   map[string]bool        // short ids that an owner was told had been cancelled
	stored    map[string]bool        // ids that were acknowledged
	keys      map[string]string      // the id of the task with each key that the API has acknowledged
}

// observation is what a reader saw of a task.
type observation struct {
	ID     string      `json:"id"`
	Status task.Status `json:"status"`
	Key    string      `json:"idempotency_key"`
	Count  int         `json:"attempt_count"`
}

func newObservations() observations {
	return observations{byID: map[string]observation{}, cancelled: map[string]bool{}, refused: map[string]bool{},
		stored: map[string]bool{}, keys: map[string]string{}}
}

// cancelledByOther matches the message of an owner whose write was refused. The end of the id of the task follows.
var cancelledByOther = regexp.MustCompile(`cancelled by another process \(retry status ([0-9a-f]{8})\)`)

// keepMessages records the messages about the end of a task.
func (s *trial) keepMessages(a process, e result) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if a.role == roleCanceller && e.exit == 0 {
		s.seen.cancelled[a.args[len(a.args)-1]] = true
	}
	for _, match := range cancelledByOther.FindAllStringSubmatch(e.stderr, -1) {
		s.seen.refused[match[1]] = true
	}
}

// keepStatus records the answer of a reader. Two may read at the same time, so a later answer may be the older one.
func (s *trial) keepStatus(who string, e result) {
	var list struct{ Tasks []observation }
	if err := json.Unmarshal(e.stdout, &list); err != nil || e.exit != 0 {
		s.fail("%s: exit %d, %v: %s", who, e.exit, err, e.stderr)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, t := range list.Tasks {
		if before, ok := s.seen.byID[t.ID]; !ok || t.Count > before.Count || t.Status.Finished() {
			s.seen.byID[t.ID] = t
		}
	}
}

// recent returns the tasks of the children that started last: most of them are still running.
func (s *trial) recent() (ids []string) {
	const lines, size = 8, 16 << 10
	text, _ := readTail(filepath.Join(s.dir, logName), size)
	for line := range strings.Lines(text) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == eventStart {
			ids = append(ids, e.Task)
		}
	}
	return ids[max(0, len(ids)-lines):]
}

func readTail(path string, size int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	tail := make([]byte, min(size, info.Size()))
	_, err = file.ReadAt(tail, info.Size()-int64(len(tail)))
	return string(tail), err
}
