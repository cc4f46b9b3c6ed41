package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// scene is a journal and everything that was seen of it, over one round or several.
type scene struct {
	stage
	tally *tally

	mutex      sync.Mutex
	number     int // of the latest actor
	seen       seen
	unfinished []string // when they were last looked at
	problems   []string
	counted    int // events of the log that the tally has already
	tasks      int // the same of tasks
	attempts   int
}

func newScene(binary, dir string, tally *tally) *scene {
	return &scene{stage: stage{binary: binary, dir: dir}, tally: tally, seen: newSeen()}
}

// act plays an actor, and notes what is wrong with its end.
func (s *scene) act(a actor) {
	s.mutex.Lock()
	s.number++
	number := s.number
	s.mutex.Unlock()
	e, err := s.play(a, number)
	s.tally.count(a, e)
	if err != nil {
		s.problem("%s: %v", a.describe(number), err)
		return
	}
	if complaint := a.complaint(e); complaint != "" {
		s.problem("%s: %s", a.describe(number), complaint)
	}
	s.listen(a, e)
	if a.role == roleReader && !e.killed {
		s.look(a.describe(number), e)
	}
}

func (a actor) describe(number int) string {
	return fmt.Sprintf("actor %d, a %s that %s: retry %s", number, a.role, a.fate, strings.Join(a.args, " "))
}

func (s *scene) problem(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// atOnce is how many actors are at work at a time.
const atOnce = 6

// round has actors at the journal until quota of them were killed, then ends what they left, and checks all of it.
func (s *scene) round(quota int, fresh bool, newCast func(nth int) (*cast, error)) error {
	goal := s.tally.kills() + quota
	var group sync.WaitGroup
	for n := range atOnce {
		c, err := newCast(n)
		if err != nil {
			return err
		}
		group.Go(func() {
			if fresh {
				s.act(c.first())
			}
			for s.tally.kills() < goal && !s.failed() {
				s.act(c.next(s.recent()))
			}
		})
	}
	group.Wait()
	s.tally.rounds++
	if err := s.settle(); err != nil {
		return err
	}
	return s.examine()
}

func (s *scene) failed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.problems) > 0
}

// passes bounds how often the unfinished tasks are resumed undisturbed. One is enough, but for what is found alive still.
const passes = 20

// settle resumes undisturbed until every task has ended.
func (s *scene) settle() error {
	for range passes {
		s.act(actor{role: roleResumer, args: []string{"resume", "--all", "--now"}})
		left, err := s.leftovers()
		if err != nil || len(left) == 0 {
			return err
		}
		for _, t := range left {
			s.finish(t)
		}
	}
	s.problem("tasks do not end, however often they are resumed: %q", s.unfinished)
	return nil
}

// finish ends what resume --all passes over: the tasks of nested wrappers, and those without their stdin.
func (s *scene) finish(t *task.Task) {
	switch {
	case t.Options.Stdin == task.StdinReplay && !s.keepsInput(t):
		s.act(actor{role: roleCanceller, args: []string{"cancel", t.ID}})
		s.tally.lostIn++
	case t.Parent != "":
		s.act(actor{role: roleResumer, args: []string{"resume", "--now", t.ID}})
	}
}

func (s *scene) input(t *task.Task) string {
	return filepath.Join(s.journal(), "stdin", fmt.Sprintf("%d.%s", t.Number, t.ID))
}

func (s *scene) keepsInput(t *task.Task) bool {
	_, err := os.Stat(s.input(t))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s *scene) leftovers() ([]*task.Task, error) {
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
