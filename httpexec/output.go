package httpexec

import (
	"io"
	"os"

	"github.com/10f93571/retry/runner"
)

// Output is where the reply's body goes: whole or not at all.
type Output struct {
	Stdout io.Writer
	Fail   bool // an error's body is not shown, as with curl's -f
}

// Release implements runner.Executor: it passes on the body of the task's last attempt, where it came whole.
func (e *Executor) Release(t *runner.Task, signals <-chan os.Signal) (os.Signal, error) {
	r := e.held
	e.held = nil
	if r == nil {
		return nil, nil
	}
	if !t.Status.Finished() || !r.whole || r.body == nil || (e.Output.Fail && r.status >= 400) {
		r.drop()
		return nil, nil
	}
	copied := make(chan error, 1)
	go func() {
		defer r.drop()
		_, err := io.Copy(struct{ io.Writer }{e.Output.Stdout}, io.NewSectionReader(r.body, 0, r.body.Size()))
		copied <- err
	}()
	for {
		select {
		case err := <-copied:
			return nil, err
		case sig := <-signals:
			if runner.Stops(sig) {
				return sig, runner.ErrStopped
			}
		}
	}
}
