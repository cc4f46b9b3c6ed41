package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// generator chooses processes at random: their role, and when they are killed.
type generator struct {
	*rand.Rand
	service
	binary string
	self   string // the test binary, which is the children's too
	tally  *tally
}

func newGenerator(binary string, tally *tally, seeds ...uint64) (*generator, error) {
	self, err := os.Executable()
	return &generator{Rand: rand.New(rand.NewPCG(seeds[0], seeds[1])), binary: binary, self: self, tally: tally}, err
}

// The roles.
const (
	roleFirst     = "first wrapper" // on a fresh journal
	roleWrapper   = "wrapper"
	roleReplayer  = "wrapper with stdin"
	roleNamed     = "named wrapper"
	roleNester    = "nested wrapper"
	roleResumer   = "resumer"
	roleCanceller = "canceller"
	roleRequeuer  = "requeuer"
	roleReader    = "reader"
	roleAdder     = "adder"
	roleWorker    = "worker"
	roleServer    = "server"
)

// next makes a process. Some work on one of the tasks.
func (c *generator) next(tasks []string) process {
	a := c.process(tasks)
	a.kill = c.killPlan(a.role, false)
	if a.role == roleWorker || a.role == roleServer { // which end only when they are told to
		a.kill.term = workingTime/2 + time.Duration(c.Int64N(int64(workingTime)))
		a.kill.after *= 5
	}
	return a
}

// workingTime is about how long a worker works that is not killed.
const workingTime = 150 * time.Millisecond

// first makes a wrapper for a new journal, which dies at a step that few have died at: some steps are passed only with
// a new journal.
func (c *generator) first() process {
	return process{role: roleFirst, args: append(c.policy(), "--", c.self), kill: c.killPlan(roleFirst, true)}
}

func (c *generator) process(tasks []string) process {
	switch roll := c.IntN(100); {
	case roll < 12:
		return process{role: roleAdder, args: c.adder()}
	case roll < 22:
		return process{role: roleWorker, args: workerArgs("--grace", "50ms")}
	case roll < 30:
		return process{role: roleServer, args: []string{"serve", "--grace", "50ms", "--allow-target", "127.0.0.0/8",
			"--allow-exec", "--listen", "unix:" + c.socket}}
	}
	switch roll := c.IntN(100); {
	case roll < 18:
		return process{role: roleWrapper, args: c.wrapper()}
	case roll < 28:
		return c.replayer()
	case roll < 44:
		return process{role: roleNamed, args: c.named()}
	case roll < 50:
		return process{role: roleNester, args: c.nester()}
	case roll < 68 || (roll < 90 && len(tasks) == 0):
		return process{role: roleResumer, args: c.resumer("--all")}
	case roll < 78:
		return process{role: roleResumer, args: c.resumer(tasks[c.IntN(len(tasks))])}
	case roll < 86:
		return process{role: roleCanceller, args: []string{"cancel", tasks[c.IntN(len(tasks))]}}
	case roll < 92 && len(tasks) > 0:
		return process{role: roleRequeuer, args: c.requeuer(tasks[c.IntN(len(tasks))])}
	}
	return process{role: roleReader, args: []string{"status", "--json"}}
}

// policy returns flags by which every task ends soon.
func (c *generator) policy() []string {
	delay := max(0, c.IntN(21)-7) // often none: only then an outcome and the next claim are one transaction
	return []string{
		"-n", fmt.Sprint(1 + c.IntN(7)), "-b", fmt.Sprintf("constant:%dms", delay), "-B", "1h", "--stop-on",
		fmt.Sprint(exitStop),
	}
}

// adder queues a command or a request.
func (c *generator) adder() []string {
	args := append([]string{"add"}, c.policy()...)
	if c.IntN(2) == 0 {
		args = args[:len(args)-2] // the stop is an exit status
		return append(args, "--timeout", "300ms", "http", "--json", `{"n": 1}`, c.target)
	}
	return append(args, "--", c.self)
}

func (c *generator) wrapper() []string {
	args := c.policy()
	switch c.IntN(5) {
	case 0:
		args = append(args, "--capture", "both")
	case 1:
		args = append(args, "--output", "final")
	case 2:
		args = append(args, "--require-state")
	}
	if c.IntN(3) > 0 {
		return append(args, "--", c.self)
	}
	// What sh starts does not die with retry, so that a resume has something to wait for.
	return append(args, "--", "sh", "-c", `"$0" `+argSlow+` & wait $!`, c.self)
}

func (c *generator) replayer() process {
	stdin := make([]byte, c.IntN(200_000))
	for i := range stdin {
		stdin[i] = byte(c.Uint32())
	}
	return process{role: roleReplayer,
		args: append(c.policy(), "--stdin", "replay", "--", c.self, argReads, sum(stdin)), stdin: stdin}
}

// onceName is the name that is to succeed only once.
const onceName = "once"

// named returns a wrapper with one of two names, so that several use the same name.
func (c *generator) named() []string {
	name := []string{"nightly", "nightly", "nightly", onceName}[c.IntN(4)]
	args := c.policy()
	args[1] = "5" // what is typed when a task is continued holds from there on; the other numbers may change
	args = append(args, "--id", name, "--if-running", []string{"fail", "skip", "wait"}[c.IntN(3)])
	switch {
	case name == onceName:
		args = append(args, "--once")
	case c.IntN(6) == 0:
		args = append(args, "--fresh")
	}
	return append(args, "--", c.self, argNamed, name, argSlow)
}

func (c *generator) nester() []string {
	inner := append(c.policy(), "--", c.self)
	if c.IntN(3) == 0 {
		inner = append([]string{"env", "RETRY_CRASH_AT=" + c.killPlan(roleWrapper, false).at(), c.binary}, inner...)
	} else {
		inner = append([]string{c.binary}, inner...)
	}
	return append(append(c.policy(), "--"), inner...)
}

// at returns the plan as a value of the variable; "" for a process that is killed after a time.
func (f killPlan) at() string { return fmt.Sprint(f.step, ":", f.times) }

func (c *generator) resumer(what string) []string {
	args := []string{"resume", what}
	if c.IntN(2) == 0 {
		args = append(args, "--now")
	}
	if c.IntN(4) == 0 {
		args = append(args, "--kill-orphans")
	}
	return args
}

// requeuer returns a process that gives a task fresh attempts, most likely one that was cancelled or has ended.
func (c *generator) requeuer(task string) []string {
	if c.IntN(2) == 0 {
		return []string{"requeue", "--run", task}
	}
	return []string{"requeue", task}
}

// lifetime bounds the time after which a process is killed; most take about as long to end by themselves.
const lifetime = 40 * time.Millisecond

func (c *generator) killPlan(role string, fresh bool) killPlan {
	switch roll := c.IntN(10); {
	case fresh || roll < 5:
		step, times := c.tally.choose(c.Rand, role, fresh)
		return killPlan{step: step, times: times}
	case roll < 8:
		return killPlan{after: 1 + time.Duration(c.Int64N(int64(lifetime)))}
	}
	return killPlan{}
}
