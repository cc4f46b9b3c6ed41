package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// fullPolicy returns a policy with something in every field.
func fullPolicy(t *testing.T, name, curve, jitter string) task.Policy {
	t.Helper()
	p := task.DefaultPolicy()
	var err error
	p.Name = name
	p.Backoff, err = backoff.Parse(curve, jitter)
	must(t, err)
	p.Attempts, p.Timeout, p.Budget, p.ResetAfter, p.Consecutive = 8, time.Second, time.Hour, time.Minute, 2
	p.StopOn, err = task.ParseConditions([]string{"2", "SIGSEGV"})
	must(t, err)
	rule, err := task.ParseRule("75", "constant:500ms", "30%")
	must(t, err)
	p.Rules = []task.Rule{rule}
	return p
}

func TestPolicies(t *testing.T) {
	j := open(t)
	if p, err := j.Policy(t.Context(), "deploy"); p != nil || err != nil {
		t.Fatalf("%v, %v out of nothing", p, err)
	}
	deploy := fullPolicy(t, "deploy", "exp:2s..2m", "full")
	must(t, j.SetPolicy(t.Context(), deploy, epoch))
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "a 'name'\n", "fib:1s", ""), epoch))
	got, err := j.Policy(t.Context(), "deploy")
	must(t, err)
	if asJSON(t, got.Policy) != asJSON(t, deploy) || got.Damage != nil || got.UpdatedAt != epoch.Truncate(time.Microsecond).Local() {
		t.Errorf("got %s of %v, %v", asJSON(t, got.Policy), got.UpdatedAt, got.Damage)
	}
	all, err := j.Policies(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].Name != "a 'name'\n" || all[1].Name != "deploy" {
		t.Errorf("%+v", all)
	}
	must(t, j.RemovePolicy(t.Context(), "deploy"))
	if err := j.RemovePolicy(t.Context(), "deploy"); !errors.Is(err, state.ErrNoPolicy) {
		t.Errorf("removed twice: %v", err)
	}
	if p, err := j.Policy(t.Context(), "deploy"); p != nil || err != nil {
		t.Errorf("%v, %v after its removal", p, err)
	}
}

// Nothing of the policy that had the name before is left.
func TestSetPolicyReplacesWhole(t *testing.T) {
	j := open(t)
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "deploy", "exp:2s..2m", "full"), epoch))
	plain := task.DefaultPolicy()
	plain.Name = "deploy"
	must(t, j.SetPolicy(t.Context(), plain, epoch.Add(time.Hour)))
	got, err := j.Policy(t.Context(), "deploy")
	must(t, err)
	if asJSON(t, got.Policy) != asJSON(t, plain) || !got.UpdatedAt.Equal(epoch.Add(time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("got %s of %v", asJSON(t, got.Policy), got.UpdatedAt)
	}
}

// A jitter that was asked for stays, one that the curve brought along gives way: in the journal as on the command line.
func TestAStoredJitterIsChosenOrNot(t *testing.T) {
	j := open(t)
	for _, tt := range []struct{ jitter, with, want string }{{"", "buckets:3", "none"}, {"phase", "buckets:3", "none"}, {"full", "linear:1s", "full"}, {"full", "buckets:3", ""}} {
		must(t, j.SetPolicy(t.Context(), fullPolicy(t, "x", "exp:1s", tt.jitter), epoch))
		got, err := j.Policy(t.Context(), "x")
		must(t, err)
		spec, err := got.Backoff.With(tt.with, "")
		if (err != nil) != (tt.want == "") || err == nil && spec.Jitter() != tt.want {
			t.Errorf("%q, then %s: %v, %v", tt.jitter, tt.with, spec, err)
		}
	}
}

// One row that cannot be read hides no other, and is named.
func TestADamagedPolicy(t *testing.T) {
	j := open(t)
	must(t, j.SetPolicy(t.Context(), fullPolicy(t, "sound", "exp:1s", ""), epoch))
	bad := []string{``, `{`, `[]`, `{"backoff":"nope"}`, `{"attempts":-1,"backoff":"exp:1s"}`, `{"attempts":"many"}`}
	for i, text := range bad {
		_, err := rawExec(j, "INSERT INTO policies VALUES (?, ?, ?)", fmt.Sprint("bad", i), text, int64(-1)<<63)
		must(t, err)
	}
	all, err := j.Policies(t.Context())
	must(t, err)
	if len(all) != len(bad)+1 || all[len(bad)].Damage != nil {
		t.Fatalf("%+v", all)
	}
	for i, p := range all[:len(bad)] {
		if p.Name != fmt.Sprint("bad", i) || p.Damage == nil || !strings.HasPrefix(p.Damage.Error(), "policy: ") || strings.Contains(p.Damage.Error(), "\n") {
			t.Errorf("%s: %v", bad[i], p.Damage)
		}
	}
}

// The journal of an older retry can be asked for policies, and stays as it is.
func TestPoliciesOfAnOlderJournal(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, DatabaseName), nil, 0o600))
	execute(t, dir, strings.Join(migrations[:3], ";")+fmt.Sprintf(";PRAGMA journal_mode = WAL; PRAGMA application_id = %d; PRAGMA user_version = 3;", applicationID))
	before := contents(t, dir)
	j := readerOf(t, dir)
	if all, err := j.Policies(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if !slices.Equal(contents(t, dir), before) {
		t.Error("the journal was changed")
	}
	must(t, openIn(t, dir).SetPolicy(t.Context(), fullPolicy(t, "x", "exp:1s", ""), epoch))
	if p, err := readerOf(t, dir).Policy(t.Context(), "x"); err != nil || p == nil {
		t.Errorf("%v, %v", p, err)
	}
}

func readerOf(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenReader(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}
