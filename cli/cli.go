// Package cli is the command line: one file a command, each a struct of flags with a Run method. It parses, and wires
// the parts together.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/cli/syntax"
	_ "github.com/10f93571/retry/internal/expression"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// Process is what retry knows of the process that it runs in.
type Process struct {
	Args []string // without the program's name
	session.Host
}

// command is one of retry's own commands: a struct whose fields are its flags and words. Run returns the exit status.
type command interface {
	Run(p *Process) (int, error)
}

// commands lists retry's own commands. A name of two words belongs to the group of its first word.
var commands = []struct {
	name, usage string // usage is what --help prints above the flags
	make        func() command
}{
	{"run", runUsage, func() command { return &runCommand{} }},
	{"http", httpUsage, func() command { return &httpCommand{} }},
	{"grpc", grpcUsage, func() command { return &grpcCommand{} }},
	{"add", addUsage, func() command { return &addCommand{} }},
	{"add http", addRequestUsage, func() command { return &addRequestCommand{} }},
	{"add grpc", addCallUsage, func() command { return &addCallCommand{} }},
	{"worker", workerUsage, func() command { return &workerCommand{} }},
	{"serve", serveUsage, func() command { return &serveCommand{} }},
	{"wait", waitUsage, func() command { return &waitCommand{} }},
	{"status", statusUsage, func() command { return &statusCommand{} }},
	{"logs", logsUsage, func() command { return &logsCommand{} }},
	{"resume", resumeUsage, func() command { return &resumeCommand{} }},
	{"cancel", cancelUsage, func() command { return &cancelCommand{} }},
	{"requeue", requeueUsage, func() command { return &requeueCommand{} }},
	{"doctor", doctorUsage, func() command { return &doctorCommand{} }},
	{"stats", statsUsage, func() command { return &statsCommand{} }},
	{"metrics", metricsUsage, func() command { return &metricsCommand{} }},
	{"prune", pruneUsage, func() command { return &pruneCommand{} }},
	{"policy", policyUsage, func() command { return &groupCommand{word: "policy"} }},
	{"policy list", policyListUsage, func() command { return &policyListCommand{} }},
	{"policy show", policyShowUsage, func() command { return &policyShowCommand{} }},
	{"policy set", policySetUsage, func() command { return &policySetCommand{} }},
	{"policy rm", policyRemoveUsage, func() command { return &policyRemoveCommand{} }},
	{"policy check", policyCheckUsage, func() command { return &policyCheckCommand{} }},
	{"policy schema", policySchemaUsage, func() command { return &policySchemaCommand{} }},
	{"token", tokenUsage, func() command { return &groupCommand{word: "token"} }},
	{"token add", tokenAddUsage, func() command { return &tokenAddCommand{} }},
	{"token list", tokenListUsage, func() command { return &tokenListCommand{} }},
	{"token rm", tokenRemoveUsage, func() command { return &tokenRemoveCommand{} }},
	{"simulate", simulateUsage, func() command { return &groupCommand{word: "simulate"} }},
	{"simulate lock", simulateLockUsage, func() command { return &simulateLockCommand{} }},
	{"simulate outage", simulateOutageUsage, func() command { return &simulateOutageCommand{} }},
	{"plot", plotUsage, func() command { return &plotCommand{} }},
	{"completion", completionUsage, func() command { return &completionCommand{} }},
	{"version", versionUsage, func() command { return &versionCommand{} }},
}

// newCommand returns nil where no command has the name.
func newCommand(name string) command {
	for _, c := range commands {
		if c.name == name {
			return c.make()
		}
	}
	return nil
}

// Main runs retry and returns its exit status; args are without the program's name. It does not return where a signal
// ended the command: retry then dies of the same signal.
func Main(args, environ []string, stdin, stdout, stderr *os.File) (code int) {
	p := &Process{Args: args, Host: session.Host{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	session.SettleSignals()
	err := cmp.Or(sqlite.CheckDriver(), session.CheckDescriptors())
	if err != nil {
		return p.fail(err)
	}
	c, err := p.parse()
	if err == nil && c != nil {
		code, err = c.Run(p)
	}
	if err != nil {
		return p.fail(err)
	}
	return code
}

// parse returns the command that the arguments name, with its fields filled; nil where it printed help instead.
func (p *Process) parse() (command, error) {
	if len(p.Args) > 0 && p.Args[0] == completeWord {
		return &completeCommand{args: p.Args[1:]}, nil
	}
	if run := p.parseFew(); run != nil {
		return run, nil
	}
	run := &runCommand{}
	newParser := sync.OnceValues(func() (*syntax.Parser, error) { return p.newParser("run", run) })
	line, err := splitLine(p.Args, newParser)
	if err != nil {
		return nil, err
	}
	run.Command = line.command
	c := command(run)
	noFlags := len(line.flags) == 0 && !slices.ContainsFunc(line.words, syntax.IsFlag)
	switch {
	case line.name == "http" && noFlags: // it can do without a parser
		http := &httpCommand{URL: line.words}
		setDefaults(reflect.ValueOf(http).Elem())
		return http, nil
	case line.name == "add", strings.HasPrefix(line.name, "add "):
		if kind, found := strings.CutPrefix(line.name, "add "); found {
			line.words = append([]string{kind}, line.words...)
		}
		if line, c, err = p.splitAdd(line); err != nil {
			return nil, err
		}
		if add, ok := c.(*addCommand); ok {
			add.Command = line.command
		}
		newParser = func() (*syntax.Parser, error) { return p.newParser(line.name, c) }
	case line.name != "run":
		c = newCommand(line.name)
		newParser = func() (*syntax.Parser, error) { return p.newParser(line.name, c) }
	}
	parser, err := newParser()
	if err != nil {
		return nil, err
	}
	if helped, err := parser.Parse(line.flags, line.words); err != nil || helped {
		return nil, err
	}
	p.Typed = parser.Typed
	return c, nil
}

// newParser makes the parser of a command.
func (p *Process) newParser(name string, c command) (*syntax.Parser, error) {
	described := syntax.Command{Name: name, Fields: c}
	for _, other := range commands {
		if other.name == name {
			described.Usage = other.usage
		}
	}
	switch name {
	case "run":
		described.Short, described.UsageAll = true, runUsageAll
	case "http":
		described.Help = func(flag string) string { return httpHelp[flag] }
	case "grpc":
		described.Help = grpcHelp
	}
	return syntax.New(described, syntax.Output{Stdout: p.Stdout, Stderr: p.Stderr, Getenv: p.Getenv})
}

// Commands returns the parsers of retry's own commands, for pages that are made of what they say.
func Commands() (all []*syntax.Parser, err error) {
	p := &Process{Host: session.Host{Stdout: os.Stdout, Stderr: os.Stderr}}
	for _, c := range commands {
		parser, err := p.newParser(c.name, c.make())
		if err != nil {
			return nil, fmt.Errorf("describe retry %s: %w", c.name, err)
		}
		all = append(all, parser)
	}
	return all, nil
}

// commandLine is a command line split into what kong parses and the command to run, which must stay as it is.
type commandLine struct {
	name    string   // of one of retry's own commands
	flags   []string // before that name or before the command to run, as --name or --name=value
	words   []string // after that name, unless it is run
	command []string // the command to run
}

// splitLine finds where retry's own flags end. A -- before the first word starts the command to run; otherwise the
// first word does, unless it names one of retry's own commands. The parser of run tells which flags take a value; it is
// made when the first flag is found.
func splitLine(args []string, runParser func() (*syntax.Parser, error)) (commandLine, error) {
	line := commandLine{name: "run"}
	named := false
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			line.command = args[1:]
			return line, nil
		case syntax.IsFlag(arg):
			p, err := runParser()
			if err != nil {
				return line, err
			}
			taken, rest, err := p.Take(args)
			if err != nil {
				return line, err
			}
			line.flags, args = append(line.flags, taken...), rest
		case named || newCommand(arg) == nil:
			line.command = args
			return line, nil
		default:
			line.name, named, args = arg, true, args[1:]
			if len(args) > 0 && newCommand(arg+" "+args[0]) != nil {
				line.name, args = arg+" "+args[0], args[1:]
			}
			if arg != "run" {
				line.words = args
				return line, nil
			}
		}
	}
	return line, nil
}

// fillIn gives the flags of a resume that were not typed what variables and the config file say.
func (p *Process) fillIn(c command) error {
	_, warnings, err := p.SetDefaults(c, &flags.ConfigFlag{})
	for _, warning := range warnings {
		p.warn(warning)
	}
	return err
}

// fillInService does so for a worker and for the API, and warns of mistakes that are not about them.
func (p *Process) fillInService(c command, config *flags.ConfigFlag) error {
	file, warnings, err := p.SetDefaults(c, config)
	for _, warning := range warnings {
		p.warn(warning)
	}
	if err == nil {
		file.Warn("", p.warn)
		policies.WarnOfVariables(p.Environ, p.warn)
	}
	return err
}

// fail prints an error with its hints, and returns the exit status of an error in retry itself.
func (p *Process) fail(err error) int {
	if errors.Is(err, syscall.EPIPE) { // whoever reads the report has closed the pipe, as head does
		return task.ExitSignalBase + int(syscall.SIGPIPE)
	}
	p.printError(err)
	if errors.Is(err, policies.ErrDeadlinePassed) {
		return task.ExitTimeout
	}
	return task.ExitInternal
}

// printError writes "retry: message", with each hint on its own line.
func (p *Process) printError(err error) {
	_, _ = fmt.Fprintf(p.Stderr, "%s: %s\n", render.Speaker(p.Level()), render.Message(err))
}

// warn prints an error that does not stop the command.
func (p *Process) warn(err error) {
	p.printError(fmt.Errorf("warning: %w", err))
}

// each calls do for every name of a command line. One that fails does not stop the others.
func each(names []string, do func(name string) error) error {
	var failures []error
	for _, name := range names {
		if err := do(name); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// withJournal opens the journal for a call: session.ReadJournal to report, session.ChangeJournal to change tasks,
// session.OpenJournal to make it where there is none.
func (p *Process) withJournal(open func(context.Context, *session.Host, string) (state.Store, error), stateDir string,
	use func(context.Context, state.Store) error) error {
	ctx := context.Background()
	journal, err := open(ctx, &p.Host, stateDir)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	return use(ctx, journal)
}

// groupCommand is the first word of several commands, as policy is, typed alone or with a second word that is none of
// theirs.
type groupCommand struct {
	Words []string `arg:"" optional:"" hidden:""`

	word string
}

func (c *groupCommand) Run(*Process) (int, error) {
	var verbs []string
	for _, other := range commands {
		if verb, ok := strings.CutPrefix(other.name, c.word+" "); ok {
			verbs = append(verbs, verb)
		}
	}
	all := fmt.Sprintf("retry %s %s; retry %[1]s --help tells more", c.word, strings.Join(verbs, "|"))
	if len(c.Words) == 0 {
		return 0, fmt.Errorf("retry %s needs a word more\nhint: %s", c.word, all)
	}
	hint := "write " + all + "."
	if found := text.Nearest(c.Words[0], verbs); found != "" {
		hint = fmt.Sprintf("did you mean retry %s %s?", c.word, found)
	}
	return 0, fmt.Errorf("retry %s has no %q"+
		"\nhint: %s To run a program named %[1]s: retry -- %[1]s", c.word, c.Words[0], hint)
}
