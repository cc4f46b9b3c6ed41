package session

import (
	"os"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/task"
)

func testHost(environ ...string) *Host {
	return &Host{Environ: environ, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

// A task that waited for another run of its name begins after that: its budget, and the age of its key.
func TestBeginAfterAWait(t *testing.T) {
	p, w := testHost(), &Wrapper{}
	var err error
	if w.choice, err = policies.Choose(&w.PolicyFlags, &w.ConfigFlag, p.Getenv, func(error) {}); err != nil {
		t.Fatal(err)
	}
	made := time.Now().Add(-48 * time.Hour)
	tk := &task.Task{CreatedAt: made, Target: &request.Request{Method: "POST", KeyTTL: 24 * time.Hour}}
	tk.History = task.History{Began: made, Expires: tk.Expiry()}
	if err := w.begin(t.Context(), p, nameResult{waited: true}, tk, nil); err != nil {
		t.Fatal(err)
	}
	if tk.History.Began.Equal(made) || !tk.History.Expires.Equal(tk.History.Began.Add(24*time.Hour)) {
		t.Errorf("began %v, the key expires %v", tk.History.Began, tk.History.Expires)
	}
}
