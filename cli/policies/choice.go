// Package policies finds the policy of a run: built in, from the config file or from the journal, with what the
// environment and the flags change.
package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cmdexec"
	"github.com/10f93571/retry/cmdexec/proc"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// Named is a policy as one layer has it. The journal's replaces the built-in one whole, and the config file's both.
type Named struct {
	task.Policy
	stored bool  // in the journal
	file   *File // nil where it is not in the config file
	damage error // what of it cannot be read
}

const builtIn = "built in"

// source says where the policy is from.
func (n *Named) source() string {
	switch {
	case n.file != nil:
		return n.file.Place(policyTable, n.Name)
	case n.stored:
		return "journal"
	}
	return builtIn
}

// origin says where the value of a key is from. A jitter that is not written follows from the backoff.
func (n *Named) origin(key string) string {
	if n.file == nil {
		return n.source()
	}
	keys := []string{key}
	if key == "jitter" {
		keys = append(keys, "backoff")
	}
	if key := firstOf(n.file.policies[n.Name], keys...); key != "" {
		return n.file.Place(policyTable, n.Name, key)
	}
	return builtIn
}

// Builtin returns nil where none has the name.
func Builtin(name string) *Named {
	p, err := task.BuiltinPolicy(name)
	if err != nil {
		return nil
	}
	return &Named{Policy: p}
}

// Choice is what a command line and an environment ask for, and the policy that this begins with as far as it is known.
type Choice struct {
	Flags, Env *flags.PolicyFlags
	outer      string // the deadline of a retry that runs this one
	Name       string
	File       *File
	Base       *Named   // nil: not found yet
	Settled    bool     // the journal cannot change it
	Stateless  bool     // --no-state: the journal could know it
	known      []string // names
	once       bool     // it cannot be read, and may forbid a second attempt
}

// Choose reads the flags, the environment and the config file. Nothing is made. Where the config file is wrong in the
// policy itself, it returns the choice with the error.
func Choose(flags *flags.PolicyFlags, config *flags.ConfigFlag, getenv func(string) string,
	warn func(error)) (*Choice, error) {
	file, err := Load(config, getenv, warn)
	if err != nil {
		return nil, err
	}
	return ChooseFrom(flags, file, getenv, warn)
}

// ChooseFrom is Choose with a config file that was read; nil for none.
func ChooseFrom(flags *flags.PolicyFlags, file *File, getenv func(string) string, warn func(error)) (*Choice, error) {
	if err := CheckFlags(flags); err != nil {
		return nil, err
	}
	env, err := FromEnvironment(getenv)
	if err != nil {
		return nil, err
	}
	c := &Choice{Flags: flags, Env: env, File: file, outer: getenv(cmdexec.EnvDeadline), Name: task.DefaultPolicyName}
	if asked := over(flags, env).Policy; asked != nil {
		c.Name = *asked
	}
	c.File.Warn(c.Name, warn)
	return c, c.Begin(c.Name)
}

// Begin looks the name up where no journal is needed. It returns the mistakes that the config file has in that policy.
func (c *Choice) Begin(name string) error {
	c.Name, c.Base, c.Settled = name, Builtin(name), false
	c.known = append(BuiltinNames(), c.File.Names()...)
	if c.File == nil {
		return nil
	}
	mistakes := c.File.mistakesIn(name)
	if c.File.Has(name) {
		policy, values := c.File.Policy(name)
		c.Base, c.Settled = &Named{Policy: policy, file: c.File}, true
		mistakes = append(mistakes, values...)
	}
	return joined(mistakes)
}

// Ask takes what the journal has of the name in place of a built-in policy.
func (c *Choice) Ask(ctx context.Context, journal state.Policies) error {
	stored, err := journal.Policy(ctx, c.Name)
	switch {
	case err != nil:
		return fmt.Errorf("read the journal's policies: %w", err)
	case stored != nil && stored.Damage != nil:
		return &Damaged{stored.Name, stored.Damage}
	case stored != nil:
		c.Base = &Named{Policy: stored.Policy, stored: true}
	case c.Base == nil:
		all, _ := journal.Policies(ctx) // for the hint alone
		for _, s := range all {
			c.known = append(c.known, s.Name)
		}
	}
	return nil
}

// Damaged says that the journal has a policy of the name, and nobody knows what it says.
type Damaged struct {
	name string
	Err  error
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("the journal's policy %s cannot be read: %v\nhint: retry policy set %s --replace writes it anew",
		text.Escape(e.name), e.Err, render.Command([]string{e.name}))
}

func (e *Damaged) Unwrap() error { return e.Err }

// StandIn stands in for a policy that cannot be read: it may forbid a second attempt, so there is none.
func (c *Choice) StandIn() {
	stand := task.DefaultPolicy()
	stand.Name = c.Name
	c.Base, c.once = &Named{Policy: stand}, true
}

// Resolve layers the environment and the flags over it.
func (c *Choice) Resolve(now time.Time) (task.Policy, error) {
	if c.Base == nil {
		return task.Policy{}, c.unknown()
	}
	policy := c.Base.Policy
	err := Overlay(&policy, over(c.Flags, c.Env), now)
	if err == nil {
		err = obeyOuterDeadline(&policy, c.outer, now)
	} else if alone := c.Base.Policy; Overlay(&alone, c.Flags, now) == nil {
		err = inEnvironment(c.Env, err)
	}
	if c.once {
		policy.Attempts, policy.Consecutive = 1, 1
	}
	return policy, err
}

// unknown is the error for a name that no layer has.
func (c *Choice) unknown() error {
	err := Unknown(c.Name, c.known)
	if c.Stateless {
		err = fmt.Errorf("%w; --no-state leaves those of the journal out", err)
	}
	if c.Flags.Policy == nil && c.Env.Policy != nil {
		return inEnvironment(&flags.PolicyFlags{Policy: c.Env.Policy}, err)
	}
	return err
}

// layer names the layer without its place.
func (n *Named) layer() string {
	if n.file != nil {
		return "config file"
	}
	return n.source()
}

// BuiltinNames are the policies that every retry has.
func BuiltinNames() []string {
	names := []string{task.DefaultPolicyName}
	for _, p := range backoff.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Unknown is the error for a name among those that are known.
func Unknown(name string, known []string) error {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	hint := "the policies are " + strings.Join(known, ", ")
	if found := text.Nearest(name, known); found != "" {
		hint = fmt.Sprintf("did you mean %s? %s", found, hint)
	}
	return fmt.Errorf("unknown policy %q\nhint: %s", name, hint)
}

// hintFor names the nearest of the known words, or says what is known.
func hintFor(word string, known []string, near, otherwise string) string {
	if found := text.Nearest(word, known); found != "" {
		return fmt.Sprintf(near, found)
	}
	return otherwise
}

// maxPolicyName is the length of a name in bytes.
const maxPolicyName = 200

// CheckName refuses a name that could not be typed, shown or be a part of a path.
func CheckName(name string) error {
	bad := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	if name != "" && len(name) <= maxPolicyName && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, bad) {
		return nil
	}
	return fmt.Errorf("invalid policy name %q"+
		"\nhint: a name has letters, digits, spaces within and signs but /, and 1 to %d bytes", name, maxPolicyName)
}

// UnknownSpec is the error for a word that is no policy. It tells why it is no curve, unless a policy's name is near.
func (c *Choice) UnknownSpec(notCurve error) error {
	unknown := Unknown(c.Name, c.known)
	if c.Name == "" {
		return errors.New("it is empty\nhint: write a backoff like exp:1s..1m, or the name of a policy")
	}
	if text.Nearest(c.Name, c.known) != "" {
		return unknown
	}
	_, hint, _ := strings.Cut(unknown.Error(), "\nhint: ")
	return fmt.Errorf("%w\nhint: %s", notCurve, hint)
}

// variables are those that no flag has given its name. The last ones are what a command finds in its environment.
var variables = []string{
	"RETRY_STATE_DIR", "RETRY_CONFIG", "RETRY_OUTER_TASKS", "RETRY_CONTAINER",
	"RETRY_TASK_ID", "RETRY_ATTEMPT", "RETRY_MAX_ATTEMPTS", "RETRY_IDEMPOTENCY_KEY", "RETRY_LAST_EXIT", "RETRY_STATUS",
}

// WarnOfVariables tells in one warning of RETRY_… variables that nobody knows. A nested retry leaves that to the outer
// one.
func WarnOfVariables(environ []string, warn func(error)) {
	var known, unknown []string // made when a variable is not one of the list above
	for _, setting := range environ {
		if !strings.HasPrefix(setting, "RETRY_") {
			continue
		}
		name, value, _ := strings.Cut(setting, "=")
		if name == proc.EnvTaskID && value != "" {
			return
		}
		if value == "" || slices.Contains(variables, name) { // an empty one is as if it were not set
			continue
		}
		if known == nil {
			known = knownVariables()
		}
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return
	}
	var near []string
	for _, name := range unknown {
		if found := text.Nearest(strings.TrimPrefix(name, "RETRY_"), withoutPrefix(known)); found != "" {
			near = append(near, Variable(found))
		}
	}
	hint := "unset it, or give the flag itself"
	if near != nil {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	warn(fmt.Errorf("unknown in the environment: %s\nhint: %s", text.Escape(strings.Join(unknown, ", ")), hint))
}

func knownVariables() []string {
	known := slices.Clone(variables)
	for _, k := range Keys() {
		known = append(known, Variable(k.Name))
	}
	for _, s := range Settings() {
		known = append(known, Variable(s.Name))
	}
	return known
}

// withoutPrefix leaves out what all names begin with: two short names would look alike with it.
func withoutPrefix(names []string) []string {
	short := slices.Clone(names)
	for i := range short {
		short[i] = strings.ReplaceAll(strings.TrimPrefix(short[i], "RETRY_"), "_", "-")
	}
	return short
}
