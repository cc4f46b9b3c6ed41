// Package cli is the command line: one file a subcommand, each a struct of flags with a run method. It wires the parts.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	_ "github.com/10f93571/retry/internal/expression"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/task"
)

// Process is all that retry has of the process it runs in.
type Process struct {
	Args []string // without the program's name
	session.Host
}

// subcommand is a parsed command line that can run. It returns the exit status.
type subcommand interface {
	run(p *Process) (int, error)
}

// newSubcommand makes the flags of a subcommand but run, whose name may be of two words.
func newSubcommand(name string) subcommand {
	if strings.Contains(name, " ") {
		return ofTwoWords(name)
	}
	return ofOneWord(name)
}

// ofOneWord makes such flags; nil: there is no such subcommand. A map would be made at every start.
func ofOneWord(name string) subcommand {
	switch name {
	case "http":
		return &httpCommand{}
	case "status":
		return &statusCommand{}
	case "logs":
		return &logsCommand{}
	case "resume":
		return &resumeCommand{}
	case "cancel":
		return &cancelCommand{}
	case "requeue":
		return &requeueCommand{}
	case "doctor":
		return &doctorCommand{}
	case "stats":
		return &statsCommand{}
	case "metrics":
		return &metricsCommand{}
	case "prune":
		return &pruneCommand{}
	case "policy", "simulate":
		return &groupCommand{word: name}
	case "plot":
		return &plotCommand{}
	}
	return nil
}

// Main runs retry and returns its exit status. It does not return where retry dies of a signal, as its caller expects.
// args are without the program's name.
func Main(args, environ []string, stdin, stdout, stderr *os.File) int {
	p := &Process{Args: args, Host: session.Host{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	session.SettleSignals()
	if err := sqlite.CheckDriver(); err != nil {
		return p.fail(err)
	}
	code, err := p.dispatch()
	if err != nil {
		return p.fail(err)
	}
	return code
}

func (p *Process) dispatch() (int, error) {
	run := newRunCommand()
	command, err := p.parse(run, typedFlags(run, p.Args))
	if err != nil { // what is wrong, and what may have been meant, only the whole parser can say
		command, err = p.parse(newRunCommand(), nil)
	}
	if command == nil || err != nil {
		return 0, err
	}
	return command.run(p)
}

// parse fills the subcommand that the command line names; nil where it printed help instead. Where flags is not nil, those are all of run's
// that the parser knows.
func (p *Process) parse(run *runCommand, flags *kong.Plugins) (subcommand, error) {
	line, command, parser, err := p.split(run, flags)
	if err != nil || parser == nil {
		return command, err
	}
	helped, err := parser.parse(line)
	if err != nil || helped {
		return nil, err
	}
	return command, nil
}

// split takes the command line apart, and makes the subcommand that it names with its parser: nil for a run without any flag.
func (p *Process) split(run *runCommand, typed *kong.Plugins) (line commandLine, command subcommand, parser *parser, err error) {
	flags := flagSet{subcommand: "run"}
	first := len(p.Args) == 0 || ofOneWord(p.Args[0]) == nil // else no flag of run precedes it, and what those are need not be known
	if first && (typed == nil || len(*typed) > 0) {
		if parser, err = p.newRunParser(run, typed); err != nil {
			return line, nil, nil, err
		}
		flags = newFlagSet("run", parser.Model)
	}
	if line, err = splitLine(p.Args, flags); err != nil {
		return line, nil, nil, err
	}
	if line.subcommand == "run" {
		run.Command = line.command
		if parser == nil && len(line.flags) > 0 { // unknown ones
			parser, err = p.newRunParser(run, nil)
		}
		return line, run, parser, err
	}
	command = newSubcommand(line.subcommand)
	parser, err = p.newParser(line.subcommand, command)
	return line, command, parser, err
}

// newRunParser makes run's parser, of the typed flags alone where those are known.
func (p *Process) newRunParser(run *runCommand, typed *kong.Plugins) (*parser, error) {
	if typed == nil {
		return p.newParser("run", run)
	}
	return p.newParser("run", &struct{ kong.Plugins }{*typed})
}

// fail prints an error and its hints and returns the exit status of an error of retry itself.
func (p *Process) fail(err error) int {
	switch {
	case errors.Is(err, syscall.EPIPE): // the reader of our report has seen enough
		return task.ExitSignalBase + int(syscall.SIGPIPE)
	case errors.Is(err, policies.ErrDeadlinePassed):
		printError(p.Stderr, err)
		return task.ExitTimeout
	}
	printError(p.Stderr, err)
	return task.ExitInternal
}

// printError writes "retry: message"; the hints, which follow the message line by line, stay lines of their own.
func printError(w io.Writer, err error) {
	_, _ = fmt.Fprintf(w, "retry: %s\n", render.Message(err))
}

// warn tells of what does not keep a report from being printed.
func (p *Process) warn(err error) {
	printError(p.Stderr, fmt.Errorf("warning: %w", err))
}
