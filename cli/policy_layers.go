package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/config"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// namedPolicy is a policy as one layer has it: it is built in, or in the journal, or in the config file. The later one replaces the
// earlier one whole.
type namedPolicy struct {
	task.Policy
	stored bool          // in the journal
	file   *policyFile   // nil where it is not in the config file
	entry  *config.Entry // there
	damage error         // what of it cannot be read
}

const (
	builtIn   = "built in"
	inJournal = "journal"
)

// source says where the policy is from.
func (n *namedPolicy) source() string {
	switch {
	case n.file != nil:
		return n.file.Place(n.entry.Offset)
	case n.stored:
		return inJournal
	}
	return builtIn
}

// origin says where the value of a key is from. A jitter that is not written follows from the backoff.
func (n *namedPolicy) origin(key string) string {
	if n.file == nil {
		return n.source()
	}
	keys := []string{key}
	if key == "jitter" {
		keys = append(keys, "backoff")
	}
	if e := firstOf(n.entry.Value.Table, keys...); e.Offset > 0 {
		return n.file.Place(e.Offset)
	}
	return builtIn
}

// builtinPolicy returns nil where none has the name.
func builtinPolicy(name string) *namedPolicy {
	p, err := task.BuiltinPolicy(name)
	if err != nil {
		return nil
	}
	return &namedPolicy{Policy: p}
}

func storedPolicy(s *state.StoredPolicy) *namedPolicy {
	return &namedPolicy{Policy: s.Policy, stored: true, damage: s.Damage}
}

// policyChoice is what a command line and an environment ask for, and the policy that this begins with as far as it is known.
type policyChoice struct {
	flags, env *policyFlags
	outer      string // the deadline of a retry that runs this one
	name       string
	file       *policyFile
	base       *namedPolicy // nil: not found yet
	settled    bool         // the journal cannot change it
	unasked    bool         // --no-state: the journal could know it
	known      []string     // names
	once       bool         // it cannot be read, and may forbid a second attempt
}

// choose reads the flags, the environment and the config file. Nothing is made.
func (p *Process) choose(flags *policyFlags, file *configFlag, warn func(error)) (*policyChoice, error) {
	if err := flags.check(func(key string) string { return "--" + key }); err != nil {
		return nil, err
	}
	env, err := policyFromEnv(p.getenv)
	if err != nil {
		return nil, err
	}
	c := &policyChoice{flags: flags, env: env, outer: p.getenv(cmdexec.EnvDeadline), name: task.DefaultPolicyName}
	if asked := flags.over(env).Policy; asked != nil {
		c.name = *asked
	}
	if c.file, err = file.load(p.getenv, warn); err != nil {
		return nil, err
	}
	return c, c.begin(c.name)
}

// begin looks the name up where no journal is needed.
func (c *policyChoice) begin(name string) error {
	c.name, c.base, c.settled = name, builtinPolicy(name), false
	c.known = append(builtinNames(), namesOf(c.file)...)
	entry := c.file.entry(name)
	if entry == nil {
		return nil
	}
	policy, mistakes := c.file.policy(entry)
	c.base, c.settled = &namedPolicy{Policy: policy, file: c.file, entry: entry}, true
	return joined(mistakes)
}

// ask takes what the journal has of the name in place of a built-in policy.
func (c *policyChoice) ask(ctx context.Context, journal *sqlite.Journal) error {
	stored, err := journal.Policy(ctx, c.name)
	switch {
	case err != nil:
		return fmt.Errorf("read the journal's policies: %w", err)
	case stored != nil && stored.Damage != nil:
		return &damagedPolicy{stored.Name, stored.Damage}
	case stored != nil:
		c.base = storedPolicy(stored)
	case c.base == nil:
		all, _ := journal.Policies(ctx) // for the hint alone
		for _, s := range all {
			c.known = append(c.known, s.Name)
		}
	}
	return nil
}

// damagedPolicy says that the journal has a policy of the name, and nobody knows what it says.
type damagedPolicy struct {
	name string
	err  error
}

func (e *damagedPolicy) Error() string {
	return fmt.Sprintf("the journal's policy %s cannot be read: %v\nhint: retry policy set %s writes it anew",
		text.Escape(e.name), e.err, render.Command([]string{e.name}))
}

func (e *damagedPolicy) Unwrap() error { return e.err }

// unread stands in for a policy that cannot be read: it may forbid a second attempt, so there is none.
func (c *policyChoice) unread() {
	stand := task.DefaultPolicy()
	stand.Name = c.name
	c.base, c.once = &namedPolicy{Policy: stand}, true
}

// resolve layers the environment and the flags over it.
func (c *policyChoice) resolve(now time.Time) (task.Policy, error) {
	if c.base == nil {
		return task.Policy{}, c.unknown()
	}
	policy, err := c.flags.resolve(c.base.Policy, c.env, c.outer, now)
	if c.once {
		policy.Attempts, policy.Consecutive = 1, 1
	}
	return policy, err
}

// unknown is the error for a name that no layer has.
func (c *policyChoice) unknown() error {
	err := unknownPolicy(c.name, c.known)
	if c.unasked {
		err = fmt.Errorf("%w; --no-state leaves those of the journal out", err)
	}
	if c.flags.Policy == nil && c.env.Policy != nil {
		return inEnvironment(&policyFlags{Policy: c.env.Policy}, err)
	}
	return err
}

// layer names the layer without its place.
func (n *namedPolicy) layer() string {
	if n.file != nil {
		return "config file"
	}
	return n.source()
}
