package crash

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// record is a task as the journal has it in the end.
type record struct {
	*task.Task
	attempts []task.Attempt
}

// examine compares the journal with what the children and the readers saw.
func (s *scene) examine() error {
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
	s.problems = append(s.problems, check(records, events, s.seen, s.binary)...)
	s.add(records, events)
	return nil
}

// add counts what has come since the last round on the journal.
func (s *scene) add(records []record, events []event) {
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
	tasks, err := j.List(ctx, state.Filter{})
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		attempts, err := j.Attempts(ctx, t.Number)
		if err != nil {
			return nil, err
		}
		records = append(records, record{t, attempts})
	}
	return records, nil
}

// checkFile has SQLite check the file, with the driver that state brings.
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

func readLog(path string) (events []event, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the log has the line %q: %w", line, err)
		}
		events = append(events, e)
	}
	return events, nil
}
