package cli

import (
	"errors"
	"slices"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/syntax"
)

// addCommand queues a command.
type addCommand struct {
	runCommand
	flags.WhenFlags
}

// addRequestCommand queues a request.
type addRequestCommand struct {
	httpCommand
	flags.WhenFlags
}

// addCallCommand queues a call of gRPC.
type addCallCommand struct {
	grpcCommand
	flags.WhenFlags
}

const addUsage = `Queue a command or a request for a worker, and print its id once the disk has it. It runs in this directory, as
soon as retry worker or retry serve has a slot for it; the end of its output is kept.

Usage:
  retry add [flags] [--] COMMAND [ARG…]
  retry add [flags] http [flags of retry http] URL
  retry add [flags] grpc [flags of retry grpc] host:port package.Service/Method

Examples:
  retry add -- ./report.sh                         now, and not in this shell
  retry add --in 10m -n 8 -b exp:1s..5m -- ./sync  later, with a policy of its own
  retry add --id nightly --at 03:00 -- ./backup    only once: the name is taken until it has ended
  pg_dump db | retry add --stdin replay -- ./upload
  retry add http --json @order.json https://example.org/orders
  retry worker --drain                             carry what is queued, and end
`

const addRequestUsage = `Queue a request for a worker, and print its id once the disk has it.

Usage:
  retry add [flags] http [flags] URL

Example:
  retry add --in 10m http --json @order.json https://example.org/orders
`

const addCallUsage = `Queue a call of gRPC for a worker, and print its id once the disk has it.

Usage:
  retry add [flags] grpc [flags] host:port package.Service/Method

Example:
  retry add --in 10m grpc -d '{"item": 3}' localhost:50051 shop.Orders/Create
`

// splitAdd finds the command or the request to queue among the words after add. The flags before it are add's own, or
// those of a request.
func (p *Process) splitAdd(line commandLine) (commandLine, command, error) {
	c := command(&addCommand{})
	parser, err := p.newParser("add", c)
	if err != nil {
		return line, nil, err
	}
	requests, err := p.newParser("add http", &addRequestCommand{})
	if err != nil {
		return line, nil, err
	}
	queued := map[string]command{"http": &addRequestCommand{}, "grpc": &addCallCommand{}}
	args := line.words
	for line.words = nil; len(args) > 0; {
		switch {
		case args[0] == "--":
			line.command = args[1:]
			return line, c, nil
		case !syntax.IsFlag(args[0]) && queued[args[0]] != nil:
			line.name, line.words = "add "+args[0], append(line.words, args[1:]...)
			return line, queued[args[0]], nil
		case !syntax.IsFlag(args[0]):
			line.command = args
			return line, c, nil
		}
		taken, rest, err := parser.Take(args)
		if err != nil {
			var unknown error
			if taken, rest, unknown = requests.Take(args); unknown != nil {
				return line, nil, err
			}
		}
		line.words, args = append(line.words, taken...), rest
	}
	return line, c, nil
}

// Run implements command.
func (c *addCommand) Run(p *Process) (int, error) {
	if len(c.Command) == 0 && c.Shell == nil {
		return 0, errors.New("nothing to add" +
			"\nhint: retry add [flags] -- COMMAND, or retry add [flags] http URL")
	}
	return c.Add(&p.Host, c, c.WhenFlags)
}

// Run implements command.
func (c *addCallCommand) Run(p *Process) (int, error) { return c.Add(&p.Host, c, c.WhenFlags) }

// Run implements command.
func (c *addRequestCommand) Run(p *Process) (int, error) {
	if err := c.settle(); err != nil {
		return 0, err
	}
	if c.Output != nil || c.RemoteName || slices.Contains(p.Typed, "write-out") || slices.Contains(p.Typed, "include") {
		return 0, errors.New("-o, -O, -w and -i make no sense for a queued request: its reply goes nowhere but" +
			" into the journal\nhint: retry logs TASK shows the end of it")
	}
	return c.Add(&p.Host, c, c.WhenFlags)
}
