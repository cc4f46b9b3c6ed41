// Command rivals puts the same work on retry serve, asynq and River, side by side, and prints one table. It is a module
// of its own, so that their libraries never become dependencies of retry. docs/speed.md says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/10f93571/retry/test/bench/load"
)

// options are the flags.
type options struct {
	retry, before, systems, rows, million, json, serve string
	runs                                               int
	tuning
	sizes load.Sizes
}

// tuning is what the systems are configured with; a worker's process gets it as JSON.
type tuning struct {
	Concurrency  int           // slots of retry and of asynq
	RiverWorkers int           // slots of River, which needs more than the others to be fast
	RiverPoll    time.Duration // River's FetchPollInterval
	Forward      time.Duration // asynq's DelayedTaskCheckInterval
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "rivals worker:", err)
			os.Exit(1)
		}
		return
	}
	o := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

func parse() options {
	o := options{sizes: load.Usual()}
	flag.StringVar(&o.retry, "retry", "", "the built retry, `FILE`; without it the table has the others alone")
	flag.StringVar(&o.before, "before", "", "another built retry, `FILE`, measured as the system before")
	flag.StringVar(&o.systems, "systems", "retry,before,asynq,river-postgres", "measure these `SYSTEMS`; also river-sqlite")
	flag.StringVar(&o.rows, "rows", "", "print only these `ROWS`: "+rowNames())
	flag.StringVar(&o.million, "million", "retry", "the `SYSTEMS` that get the rows beside a million")
	flag.StringVar(&o.json, "json", "", "write all figures to `FILE`, too")
	flag.StringVar(&o.serve, "serve-flags", "", "more `FLAGS` of retry serve, separated by spaces")
	flag.IntVar(&o.runs, "runs", 3, "measure short rows `N` times, long ones N/3 times")
	flag.IntVar(&o.Concurrency, "concurrency", load.Slots, "slots of the workers of retry and asynq")
	flag.IntVar(&o.RiverWorkers, "river-workers", 500, "slots of River's worker")
	flag.DurationVar(&o.RiverPoll, "river-poll", 100*time.Millisecond, "River's FetchPollInterval; 1s is its default")
	flag.DurationVar(&o.Forward, "forward", 5*time.Second, "asynq's DelayedTaskCheckInterval; 5s is its default")
	z := &o.sizes
	flag.IntVar(&z.Attempts, "attempts", z.Attempts, "tasks of the row attempts")
	flag.IntVar(&z.Clients, "clients", z.Clients, "clients of the row creates")
	flag.DurationVar(&z.Creating, "creating", z.Creating, "how long they create")
	flag.IntVar(&z.Scheduled, "scheduled", z.Scheduled, "tasks of the rows late and million")
	flag.DurationVar(&z.Span, "span", z.Span, "how long tasks come due")
	flag.IntVar(&z.Half, "half", z.Half, "tasks a second of the row half")
	flag.IntVar(&z.Million, "waiting-million", z.Million, "tasks that wait in the rows beside a million")
	flag.IntVar(&z.InHand, "in-hand", z.InHand, "tasks in hand in the row kill")
	flag.IntVar(&z.Waiting, "waiting", z.Waiting, "tasks that wait in the row memory")
	flag.DurationVar(&z.Patience, "patience", z.Patience, "how long to wait for tasks that do not come")
	flag.DurationVar(&z.Back, "back", z.Back, "how long the row kill waits for tasks to come back")
	flag.DurationVar(&z.SecondTries, "second-tries", z.SecondTries, "how long the row kill waits for a further attempt")
	flag.Parse()
	z.InHand = min(z.InHand, o.Concurrency)
	return o
}

func rowNames() string {
	var names []string
	for _, row := range load.Rows() {
		names = append(names, row.Name)
	}
	return strings.Join(names, ",")
}

// run starts the systems, measures them and prints what came out.
func run(ctx context.Context, o options) (err error) {
	rows, err := load.Choose(o.rows)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rivals-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL runs as another user than root
		return fmt.Errorf("open the folder: %w", err)
	}
	systems, settings, err := start(ctx, o, dir)
	defer func() {
		for _, s := range systems {
			err = errors.Join(err, s.Close())
		}
	}()
	if err != nil {
		return err
	}
	million := map[string]bool{}
	for name := range strings.SplitSeq(o.million, ",") {
		million[name] = true
	}
	plan := load.Plan{Systems: slices.Collect(values(systems)), Rows: rows, Runs: o.runs, Sizes: o.sizes, Log: os.Stderr,
		Leaves: func(row string, s load.System) bool {
			return strings.HasPrefix(row, "million") &&
				!slices.ContainsFunc(systems, func(n named) bool { return n.System == s && million[n.id] })
		}}
	results, err := plan.Measure(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d cores (%s), %s, %s, medians of %d (long rows %d). The target runs in the process that measures.\n%s\n\n", runtime.NumCPU(),
		runtime.GOARCH, runtime.Version(), time.Now().UTC().Format("2006-01-02 15:04"), o.runs, max(1, o.runs/3),
		strings.Join(settings, "\n"))
	load.Markdown(os.Stdout, results)
	if o.json == "" {
		return load.Failed(results)
	}
	file, err := os.Create(o.json)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return errors.Join(load.JSON(file, results), file.Close(), load.Failed(results))
}

// named is a system by the name that the flags have for it.
type named struct {
	id string
	load.System
}

func values(all []named) func(yield func(load.System) bool) {
	return func(yield func(load.System) bool) {
		for _, n := range all {
			if !yield(n.System) {
				return
			}
		}
	}
}

// start returns the systems and a line about the settings of each. After an error it returns those that have to be closed.
func start(ctx context.Context, o options, dir string) (systems []named, settings []string, err error) {
	for id := range strings.SplitSeq(o.systems, ",") {
		var s load.System
		var setting string
		place := filepath.Join(dir, id)
		if err := os.Mkdir(place, 0o700); err != nil {
			return systems, nil, fmt.Errorf("make a folder: %w", err)
		}
		switch id {
		case "retry", "before":
			program := map[string]string{"retry": o.retry, "before": o.before}[id]
			if program == "" {
				continue
			}
			path, err := exec.LookPath(program)
			if err != nil {
				return systems, nil, fmt.Errorf("find %s: %w", id, err)
			}
			s = &load.Retry{Label: id, Program: path, Dir: place, Concurrency: o.Concurrency,
				Flags: strings.Fields(o.serve)}
			setting = fmt.Sprintf("%s: %d slots.", id, o.Concurrency)
		case "asynq":
			s, setting, err = startAsynq(ctx, place, o.tuning)
		case "river-postgres":
			s, setting, err = startRiverPostgres(ctx, place, o.tuning)
		case "river-sqlite":
			s, setting, err = startRiverSQLite(place, o.tuning)
		default:
			err = fmt.Errorf("unknown system %q", id)
		}
		if err != nil {
			return systems, nil, fmt.Errorf("start %s: %w", id, err)
		}
		systems, settings = append(systems, named{id, s}), append(settings, setting)
	}
	return systems, settings, nil
}
