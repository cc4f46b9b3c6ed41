package crash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/10f93571/retry/task"
)

// seen is what actors told of tasks, to be compared with their ends.
type seen struct {
	sights    map[string]sight // by id
	cancelled map[string]bool  // ids that a canceller was told it had cancelled
	refused   map[string]bool  // short ids that an owner was told had been cancelled
}

// sight is what a reader saw of a task.
type sight struct {
	ID     string      `json:"id"`
	Status task.Status `json:"status"`
	Key    string      `json:"idempotency_key"`
	Count  int         `json:"attempt_count"`
}

func newSeen() seen {
	return seen{sights: map[string]sight{}, cancelled: map[string]bool{}, refused: map[string]bool{}}
}

// takenAway is what an owner says that was refused a write. The end of the id follows.
var takenAway = regexp.MustCompile(`cancelled by another process \(retry status ([0-9a-f]{8})\)`)

// listen keeps what an actor was told of a task's end.
func (s *scene) listen(a actor, e end) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if a.role == roleCanceller && e.exit == 0 {
		s.seen.cancelled[a.args[len(a.args)-1]] = true
	}
	for _, match := range takenAway.FindAllStringSubmatch(e.stderr, -1) {
		s.seen.refused[match[1]] = true
	}
}

// look keeps what a reader has read. Two may have read at once, so the later answer need not be the newer one.
func (s *scene) look(who string, e end) {
	var list struct{ Tasks []sight }
	if err := json.Unmarshal(e.stdout, &list); err != nil || e.exit != 0 {
		s.problem("%s: exit %d, %v: %s", who, e.exit, err, e.stderr)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, t := range list.Tasks {
		if before, ok := s.seen.sights[t.ID]; !ok || t.Count > before.Count || t.Status.Finished() {
			s.seen.sights[t.ID] = t
		}
	}
}

// recent returns the tasks of the children that started last: most of them live.
func (s *scene) recent() (ids []string) {
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
