package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/task"
)

// subjectFlags say which policies are examined: each SPEC, or else the policy that a run here would use.
type subjectFlags struct {
	flags.PolicyFlags
	flags.ConfigFlag
	flags.StateFlag
	Specs []string `arg:"" optional:"" name:"spec" help:"A backoff, a preset or a named policy; /JITTER after it puts another jitter in place of its own."`
}

// subjects returns the policies to examine, each labelled as it was typed. A bare curve has no limit of attempts.
func (p *Process) subjects(f *subjectFlags) (subjects []plot.Subject, err error) {
	if len(f.Specs) == 0 {
		return p.defaultSubject(f)
	}
	if err := f.checkFlags(); err != nil {
		return nil, err
	}
	once := func() func(error) {
		var told sync.Once
		return func(err error) { told.Do(func() { p.warn(err) }) }
	}
	r := &subjectReader{
		process: p, flags: f, now: time.Now(),
		file:       sync.OnceValues(func() (*policies.File, error) { return policies.Load(&f.ConfigFlag, p.Getenv, p.warn) }),
		warnOfFile: once(), warnOfJournal: once(),
	}
	for _, spec := range f.Specs {
		policy, err := r.read(spec)
		if err != nil {
			return nil, fmt.Errorf("spec %q: %w", spec, err)
		}
		subjects = append(subjects, plot.Subject{Label: spec, Policy: policy})
	}
	return subjects, nil
}

// defaultSubject is the policy that a run here would use.
func (p *Process) defaultSubject(f *subjectFlags) ([]plot.Subject, error) {
	choice, err := policies.Choose(&f.PolicyFlags, &f.ConfigFlag, p.Getenv, p.warn)
	if err != nil {
		return nil, err
	}
	if err := session.AskReader(context.Background(), &p.Host, choice, f.State, p.warn); err != nil {
		return nil, err
	}
	policy, err := choice.Resolve(time.Now())
	return []plot.Subject{{Label: policy.Name, Policy: policy}}, err
}

// checkFlags refuses flags that contradict the SPECs.
func (f *subjectFlags) checkFlags() error {
	for _, k := range policies.Keys() {
		if slices.Contains([]string{"policy", "backoff", "jitter"}, k.Name) && k.Given(&f.PolicyFlags) {
			return fmt.Errorf("--%s and a SPEC exclude each other"+
				"\nhint: write a SPEC like exp:1s..1m/30%%; the flag is for the policy that is shown without one",
				k.Name)
		}
	}
	return policies.CheckFlags(&f.PolicyFlags)
}

// subjectReader turns SPECs into policies. It reads the config file once.
type subjectReader struct {
	process *Process
	flags   *subjectFlags
	now     time.Time
	file    func() (*policies.File, error)

	warnOfFile, warnOfJournal func(error) // once each, however many names are looked up there
}

// read returns the policy of a SPEC, changed by the flags. Variables do not change it.
func (r *subjectReader) read(spec string) (task.Policy, error) {
	name, jitter := cutJitter(spec)
	if jitter == "" && name != spec {
		return task.Policy{}, errors.New("no jitter follows the /" +
			"\nhint: write one like 30% or full, or leave the / out")
	}
	policy, err := r.base(name)
	if err != nil {
		return policy, err
	}
	if policy.Backoff, err = policy.Backoff.With("", jitter); err != nil {
		return policy, err
	}
	return policy, policies.Overlay(&policy, &r.flags.PolicyFlags, r.now)
}

// cutJitter splits SPEC/JITTER. In a formula a / is a division, unless a jitter follows it.
func cutJitter(spec string) (name, jitter string) {
	at := strings.LastIndex(spec, "/")
	if at < 0 {
		return spec, ""
	}
	_, err := backoff.Parse("constant:1s", spec[at+1:]) // a curve that fits every jitter
	if strings.HasPrefix(spec, "expr:") && (err != nil || spec[at+1:] == "") {
		return spec, ""
	}
	return spec[:at], spec[at+1:]
}

// base returns the policy of a curve or of a name. A policy may have the name of a curve, but no colon.
func (r *subjectReader) base(name string) (task.Policy, error) {
	spec, notCurve := backoff.Parse(name, "")
	curve := task.DefaultPolicy()
	curve.Name, curve.Attempts, curve.Backoff = "", 0, spec
	if notCurve == nil && strings.Contains(name, ":") {
		return curve, nil
	}
	choice, err := r.named(name)
	switch {
	case err != nil:
		return task.Policy{}, err
	case choice.Base == nil && notCurve == nil:
		return curve, nil
	case choice.Base == nil && strings.Contains(name, ":"):
		return task.Policy{}, notCurve
	case choice.Base == nil:
		return task.Policy{}, choice.UnknownSpec(notCurve)
	}
	return choice.Base.Policy, nil
}

// named looks for a policy in the config file, in the journal and among the built-in ones.
func (r *subjectReader) named(name string) (c *policies.Choice, err error) {
	file, err := r.file()
	if err != nil {
		return nil, err
	}
	file.Warn(name, r.warnOfFile)
	c = &policies.Choice{Flags: &flags.PolicyFlags{}, Env: &flags.PolicyFlags{}, File: file}
	if err := c.Begin(name); err != nil {
		return nil, err
	}
	return c, session.AskReader(context.Background(), &r.process.Host, c, r.flags.State, r.warnOfJournal)
}
