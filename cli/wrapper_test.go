package cli

import (
	"testing"
	"time"

	"github.com/10f93571/retry/runner"
)

// A task that waited for another run of its name begins after that: its budget, and the age of its key.
func TestBeginAfterAWait(t *testing.T) {
	p, w := testProcess(), &wrapper{}
	var err error
	if w.choice, err = p.choose(&w.policyFlags, &w.configFlag, func(error) {}); err != nil {
		t.Fatal(err)
	}
	made := time.Now().Add(-48 * time.Hour)
	task := &runner.Task{CreatedAt: made, Request: &runner.Request{Method: "POST", KeyTTL: 24 * time.Hour}}
	task.History = runner.History{Began: made, Expires: task.Expiry()}
	if err := w.begin(t.Context(), p, meeting{waited: true}, task, nil); err != nil {
		t.Fatal(err)
	}
	if task.History.Began.Equal(made) || !task.History.Expires.Equal(task.History.Began.Add(24*time.Hour)) {
		t.Errorf("began %v, the key expires %v", task.History.Began, task.History.Expires)
	}
}
