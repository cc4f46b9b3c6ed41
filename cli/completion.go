package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/cli/completion"
	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/cli/syntax"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/access"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

type completionCommand struct {
	Shell string `arg:"" optional:"" help:"bash, zsh or fish."`
}

const completionUsage = `Print a script that has a shell complete retry's command lines: flags with their values, policies by name, tasks by name and id,
and after -- whatever the command itself completes. The script asks the retry in PATH at each Tab; it costs no start anything.

Usage:
  retry completion bash|zsh|fish

Examples:
  eval "$(retry completion bash)"                                      in ~/.bashrc
  source <(retry completion zsh)                                       in ~/.zshrc, after compinit
  retry completion fish >~/.config/fish/completions/retry.fish
`

// Run implements command.
func (c *completionCommand) Run(p *Process) (int, error) {
	script := completion.Script(c.Shell)
	switch {
	case c.Shell == "":
		return 0, errors.New("no shell to complete for\nhint: retry completion bash, zsh or fish")
	case script == "":
		hint := "there are " + strings.Join(completion.Shells(), ", ")
		if found := text.Nearest(c.Shell, completion.Shells()); found != "" {
			hint = "did you mean " + found + "?"
		}
		return 0, fmt.Errorf("no completion for the shell %q\nhint: %s", c.Shell, hint)
	}
	_, err := io.WriteString(p.Stdout, script)
	return 0, err
}

// completeCommand answers a script of retry completion. No help names it, and its name is looked for before anything is
// parsed.
type completeCommand struct{ args []string }

const completeWord = "__complete"

// Run implements command.
func (c *completeCommand) Run(p *Process) (int, error) {
	asked, err := completion.Ask(c.args)
	if err != nil {
		return 0, err
	}
	return 0, asked.Reply(p.Stdout, p.answer(asked.Words))
}

// completer walks over the words of a command line as splitLine and splitAdd do.
type completer struct {
	process    *Process
	name       string            // of retry's own command
	named      bool              // the name stands there, so that no other may follow
	ended      bool              // by a --, so that no flag may follow
	parsers    []*syntax.Parser  // of the command; add knows the flags of add http, too
	positional int               // how many words stand after the name
	given      map[string]string // flags with their values
}

// answer says what the last of the words may be.
func (p *Process) answer(words []string) completion.Answer {
	c := &completer{process: p, given: map[string]string{}}
	c.begin("run")
	last := len(words) - 1
	for i := 0; i < last; {
		word := words[i]
		switch {
		case !c.ended && word == "--" && c.wraps():
			return completion.Answer{Kind: completion.Command, First: i + 1}
		case !c.ended && word == "--":
			c.ended, i = true, i+1
		case !c.ended && syntax.IsFlag(word):
			rest, value, isValue := c.take(words[i:])
			if isValue {
				return c.valueAt(value)
			}
			i = len(words) - len(rest)
		case !c.ended && c.isName(words[i:last]):
			i += strings.Count(c.name, " ") + 1
			if strings.HasPrefix(c.name, "add ") { // whose first word was read before
				i--
			}
		case c.wraps():
			return completion.Answer{Kind: completion.Command, First: i}
		default:
			c.positional, i = c.positional+1, i+1
		}
	}
	return c.at(words[last], last)
}

// begin makes the parsers of a command.
func (c *completer) begin(name string) {
	c.name, c.parsers = name, nil
	for _, name := range []string{name, name + " http"} {
		if fields := newCommand(name); fields != nil {
			if parser, err := c.process.newParser(name, fields); err == nil {
				c.parsers = append(c.parsers, parser)
			}
		}
	}
}

// wraps reports whether a command to run may follow.
func (c *completer) wraps() bool { return c.name == "run" || c.name == "add" }

// take reads a flag with its value, which may be the word at the cursor.
func (c *completer) take(words []string) (rest []string, value syntax.Spot, isValue bool) {
	for _, parser := range c.parsers {
		var taken []string
		if taken, rest, value, isValue = parser.ValueAt(words); taken == nil {
			continue
		}
		for _, flag := range taken {
			name, text, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
			c.given[name] = text
		}
		break
	}
	return rest, value, isValue
}

// isName reports whether the words begin with the name of one of retry's own commands, and goes on as this one.
func (c *completer) isName(words []string) bool {
	switch {
	case c.name == "add" && newCommand("add "+words[0]) != nil:
		c.begin("add " + words[0])
		return true
	case c.named || newCommand(words[0]) == nil:
		return false
	}
	name := words[0]
	if len(words) > 1 && name != "add" && newCommand(name+" "+words[1]) != nil {
		name += " " + words[1]
	}
	c.named = true
	c.begin(name)
	return true
}

// at says what the word at the cursor may be, which is not the value of the flag before it.
func (c *completer) at(word string, index int) completion.Answer {
	a := completion.Answer{Kind: completion.Values}
	if !c.ended && strings.HasPrefix(word, "-") {
		for _, parser := range c.parsers {
			items, value, isValue := parser.FlagAt(word)
			if isValue {
				return c.valueAt(value)
			}
			a.Items = append(a.Items, items...)
		}
		return a
	}
	_, isGroup := newCommand(c.name).(*groupCommand)
	switch {
	case isGroup && c.positional == 0:
		a.Items = commandItems(c.name + " ")
	case c.wraps():
		a.Kind, a.First = completion.Command, index
		if prefix := map[string]string{"run": "", "add": "add "}[c.name]; c.name == "add" || !c.named {
			a.Items = completion.With(word, commandItems(prefix))
		}
		if len(a.Items) > 0 { // all programs of the machine would hide them; after -- there are these alone
			a.Kind, a.First = completion.Values, 0
		}
	default:
		if value, ok := c.parsers[0].WordAt(c.positional, word); ok {
			return c.valueAt(value)
		}
	}
	return a
}

// commandItems are retry's own commands: those of one word, or of two that begin with prefix.
func commandItems(prefix string) (items []completion.Item) {
	for _, c := range commands {
		name, found := strings.CutPrefix(c.name, prefix)
		if found && !strings.Contains(name, " ") {
			about, _, _ := strings.Cut(c.usage, "\n\n")
			about, _, _ = strings.Cut(strings.ReplaceAll(about, "\n", " "), ": ")
			items = append(items, completion.Item{Value: name, About: about})
		}
	}
	return items
}

// valueAt says what a value may be. The lists are those that reading the value knows.
func (c *completer) valueAt(s syntax.Spot) completion.Answer {
	a := completion.Answer{Kind: completion.Values, Offset: s.Offset}
	switch {
	case s.Choices != nil:
		a.Items = plainItems(s.Choices)
	case s.Name == "backoff":
		a.Items = curveItems(s.Typed)
	case s.Name == "jitter":
		a.Items = jitterItems()
	case s.Name == "spec":
		name, jitter := cutJitter(s.Typed)
		if strings.HasSuffix(s.Typed, "/") || jitter != "" {
			a.Offset += len(name) + 1
			a.Items = jitterItems()
			break
		}
		a.Items = append(c.policyItems(), curveItems(s.Typed)...)
	case s.Name == "policy", s.Name == "name" && strings.HasPrefix(c.name, "policy "):
		a.Items = c.policyItems()
	case s.Name == "name" && c.name == "token rm":
		a.Items = c.tokenItems()
	case s.Name == "id", s.Name == "task":
		a.Items = c.taskItems(s.Name == "task")
	case s.Name == "signal":
		for _, name := range task.SignalNames() {
			a.Items = append(a.Items, completion.Item{Value: strings.TrimPrefix(name, "SIG")})
		}
	case s.Name == "status":
		a.Items = plainItems(statusWords[:])
	case s.Name == "scope":
		a.Items = plainItems(access.ScopeNames())
	case s.Name == "shell" && !s.IsFlag:
		a.Items = plainItems(completion.Shells())
	case s.Name == "drain":
		a.Items = plainItems([]string{string(flags.DrainDue), string(flags.DrainAll)})
	case s.Name == "keep-env", s.Name == "env-allow":
		for _, variable := range c.process.Environ {
			name, _, _ := strings.Cut(variable, "=")
			a.Items = append(a.Items, completion.Item{Value: name})
		}
	default:
		return fileAt(a, s)
	}
	return a
}

// fileAt completes what is a file by the look of a value, or of what is typed of it: @FILE, NAME=@FILE, unix:PATH.
func fileAt(a completion.Answer, s syntax.Spot) completion.Answer {
	for _, before := range []string{"@", "unix:", "=@", "=<"} {
		if at := strings.Index(s.Typed, before); at == 0 || at > 0 && before[0] == '=' {
			a.Kind, a.Offset = completion.Files, a.Offset+at+len(before)
			return a
		}
	}
	switch {
	case strings.Contains(s.Placeholder, "unix:"):
		a.Items = plainItems([]string{"unix:"})
	case strings.Contains(s.Placeholder, "FILE"), s.Placeholder == "PATH", s.Name == "file", s.Name == "target":
		a.Kind = completion.Files
	case s.Placeholder == "DIR":
		a.Kind = completion.Directories
	}
	return a
}

func plainItems(words []string) (items []completion.Item) {
	for _, word := range words {
		items = append(items, completion.Item{Value: word})
	}
	return items
}

// curveItems are the presets and the curves; a curve that is being typed has its usual forms.
func curveItems(typed string) (items []completion.Item) {
	for _, f := range backoff.Forms() {
		switch {
		case strings.HasPrefix(typed, f.Name+":"):
			items = append(items, completion.Item{Value: f.Example})
		case f.Alone:
			items = append(items, completion.Item{Value: f.Name, About: "or " + f.Example})
		default:
			items = append(items, completion.Item{Value: f.Name + ":", About: f.Example})
		}
	}
	for _, p := range backoff.Presets() {
		items = append(items, completion.Item{Value: p.Name, About: p.Curve + ", jitter " + p.Jitter})
	}
	return items
}

func jitterItems() (items []completion.Item) {
	for _, name := range backoff.Jitters() {
		switch name {
		case "percent":
			items = append(items, completion.Item{Value: "30%", About: "so much more or less"})
		case "add":
			items = append(items, completion.Item{Value: "add:", About: "add:5s, add:1s..5s, add:30s*n"})
		default:
			items = append(items, completion.Item{Value: name})
		}
	}
	return items
}

// policyItems are the named policies that a run would find. A journal or a file that cannot be read has none.
func (c *completer) policyItems() (items []completion.Item) {
	ignore := func(error) {}
	config := &flags.ConfigFlag{}
	if path, given := c.given["config"]; given {
		config.Config = &path
	}
	file, _ := policies.Load(config, c.process.Getenv, ignore)
	var stored []state.StoredPolicy
	_ = c.process.withJournal(session.ReadJournal, c.given["state"], func(ctx context.Context, journal state.Store) (err error) {
		stored, err = journal.Policies(ctx)
		return err
	})
	for _, row := range policies.Rows(stored, file) {
		about := row.Layer
		if row.Damage == nil {
			about = fmt.Sprintf("%s, jitter %s (%s)", row.Backoff.Curve(), row.Backoff.Jitter(), row.Layer)
		}
		items = append(items, completion.Item{Value: row.Name, About: about})
	}
	return items
}

// mostTasks is how many tasks are offered, the newest.
const mostTasks = 100

// taskItems are names of tasks, and with ids these too. Of a name, the newest task is shown.
func (c *completer) taskItems(ids bool) (items []completion.Item) {
	filter := state.Filter{Limit: mostTasks}
	switch c.name {
	case "resume", "cancel":
		filter.Statuses = []task.Status{task.Pending, task.InFlight}
	case "requeue":
		filter.Statuses = []task.Status{task.Failed, task.Exhausted, task.Cancelled}
	}
	var numbers []completion.Item
	seen := map[string]bool{}
	_ = c.process.withJournal(session.ReadJournal, c.given["state"], func(ctx context.Context, journal state.Store) error {
		for t, err := range journal.All(ctx, filter) {
			if err != nil {
				return err
			}
			about := render.StatusWord(t.Status) + ", " + render.Title(t)
			numbers = append(numbers, completion.Item{Value: render.ShortID(t.ID), About: about})
			if t.Name != "" && !seen[t.Name] && !strings.HasPrefix(t.Name, "-") {
				items = append(items, completion.Item{Value: t.Name, About: about})
			}
			seen[t.Name] = true
		}
		return nil
	})
	if ids {
		items = append(items, numbers...)
	}
	return items
}

// tokenItems are the names in the file of tokens.
func (c *completer) tokenItems() (items []completion.Item) {
	file, err := (&tokenFlags{TokenFile: c.given["token-file"]}).file(c.process)
	if err != nil {
		return nil
	}
	tokens, _ := access.List(file)
	for _, t := range tokens {
		items = append(items, completion.Item{Value: t.Name, About: t.Scope.String()})
	}
	return items
}
