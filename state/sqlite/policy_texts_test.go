package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

func policyText(t testing.TB, attempts int) string {
	t.Helper()
	p := task.DefaultPolicy()
	p.Attempts = attempts
	text, err := p.MarshalJSON()
	must(t, err)
	return string(text)
}

func TestPolicyTexts(t *testing.T) {
	var c policyTexts
	for attempts := range 3 * mostTexts {
		for range 2 {
			if p, err := c.read(policyText(t, attempts)); err != nil || p.Attempts != attempts {
				t.Fatalf("%d attempts: %+v, %v", attempts, p, err)
			}
		}
		if len(c.known) > mostTexts {
			t.Fatalf("%d policies are remembered", len(c.known))
		}
	}
	for range 2 {
		if _, err := c.read(policyText(t, -1)); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("a negative limit: %v", err)
		}
	}
}

// A policy that cannot be read damages its own tasks, however many others were read before.
func TestPolicyTextsOfDamagedTasks(t *testing.T) {
	j := open(t)
	good, bad := newTask(), newTask()
	bad.ID = "another"
	must(t, claimed(j, good, epoch))
	must(t, claimed(j, bad, epoch))
	_, err := rawExec(j, fmt.Sprintf("UPDATE tasks SET policy = '{' WHERE number = %d", bad.Number))
	must(t, err)
	for range 2 {
		list, err := j.Unfinished(t.Context())
		must(t, err)
		if list[0].Damage != nil || list[1].Damage == nil || list[1].Policy.Attempts != 0 {
			t.Errorf("%v, %v", list[0].Damage, list[1].Damage)
		}
	}
}
