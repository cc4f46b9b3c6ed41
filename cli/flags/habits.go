package flags

import (
	"slices"
	"strings"
)

// habit is what people type who come from another tool. Names are those of flags, without dashes. Where such a flag
// means the same as one of ours, as is that one, with a % where the value goes; else hint says what to write.
type habit struct{ names, as, hint string }

// habits are those of timeout, watch, parallel, wget, Debian's retry, recur, joshdk/retry, kadwanev/retry,
// sgaunet/retry, nick-fields/retry, tenacity and wrappers for cron. Aliases stay out of --help: each thing has one
// documented name.
var habits = []habit{
	{names: "delay d sleep interval i every wait pause fixed constant wait-fixed retry-delay retry-wait retry-interval",
		as: "backoff=%"},
	{names: "retry-wait-seconds delay-seconds sleep-seconds wait-seconds backoff-seconds wait-time sleep-time",
		as: "backoff=%"},
	{names: "max-delay max-backoff max-interval max-wait max-sleep", as: "backoff=exp:1s..%"},
	{names: "no-delay no-backoff no-sleep", as: "backoff=0"},
	{names: "no-jitter", as: "jitter=none"},
	{names: "max-attempts a attempt tries max-tries times count limit repeat stop-after-attempt", as: "attempts=%"},
	{names: "forever infinite unlimited indefinitely until-success", as: "attempts=0"},
	{names: "retry max-retries max-retry retry-count num-retries", as: "retries=%"},
	{names: "timeout-seconds attempt-timeout task-time task-timeout command-timeout", as: "timeout=%"},
	{names: "timeout-minutes", as: "timeout=%m"},
	{names: "k", as: "kill-after=%"},
	{names: "total-timeout overall-timeout max-elapsed-time max-duration total-time max-total-time stop-after-delay",
		as: "budget=%"},
	{names: "until", as: "success-on=%"},
	{names: "while on retry-on-exit retry-on-exit-code", as: "retry-on=%"},
	{names: "stop-on-exit stop-on-exit-code", as: "stop-on=%"},
	{names: "on-fail on-error", as: "on-failure=%"},
	{names: "on-retry-command", as: "on-retry=%"},
	{names: "command cmd", as: "shell=%"},
	{names: "replay-stdin I", as: "stdin=replay"},
	{names: "hold-stdout O", as: "output=success"},
	{names: "name label", as: "id=%"},
	{names: "silent", as: "quiet"},
	{names: "debug", as: "verbose"},
	{names: "V", as: "version"},

	{names: "w u", hint: "-b TIME waits between attempts; --retry-on LIST and --success-on LIST say what is tried again"},
	{names: "s", hint: "-b TIME waits between attempts; --signal NAME is what a timeout sends first"},
	{names: "m x min max min-delay min-sleep", hint: "-b exp:MIN..MAX for the waits, -n N for all attempts"},
	{names: "f", hint: "-n 0 tries for ever; --on-failure CMD runs when it has failed for good"},
	{names: "fail fail-script", hint: "--on-failure CMD runs when it has failed for good"},
	{names: "e exit-code exit-codes codes",
		hint: "--retry-on LIST, --stop-on LIST or --success-on LIST takes exit statuses"},
	{names: "r", hint: "--retries N, or -n N for all attempts; --reset-after TIME starts the backoff anew"},
	{names: "max-time", hint: "-t TIME for one attempt, -B TIME for everything together"},
	{names: "for retry-max-time", hint: "-n 0 -B TIME tries until the time is over"},
	{names: "exponential exponential-backoff exp linear fibonacci fib F",
		hint: "-b exp, -b linear or -b fib; with values -b exp:1s..1m"},
	{names: "strategy backoff-strategy backoff-type delay-type", hint: "-b exp:1s..1m, -b linear:1s, -b fib:1s or -b 5s"},
	{names: "factor multiplier backoff-factor backoff-multiplier exponential-base",
		hint: "-b exp:FIRST*FACTOR..MAX, for example -b exp:1s*1.5..1m"},
	{names: "initial initial-delay initial-backoff initial-interval base base-delay wait-exponential",
		hint: "-b exp:FIRST..MAX, for example -b exp:2s..1m"},
	{names: "waitretry", hint: "-b linear:1s..MAX"},
	{names: "random randomize randomisation randomization", hint: "-j 30% or -j full"},
	{names: "invert until-fail", hint: "--success-on any ends at the first failure, with exit status 0"},
	{names: "grep match contains retry-if-contains retry-on-output",
		hint: `--retry-on 'stderr contains "TEXT"'; --stop-on and --success-on take the same`},
	{names: "retry-connrefused retry-all-errors",
		hint: "leave it out: any failure is tried again; --retry-on LIST says which"},
	{names: "preserve-status", hint: "leave it out: the exit status is the command's, 124 where the timeout stopped it"},
	{names: "continue-on-error ignore-errors", hint: "retry … || true"},
	{names: "new-command-on-retry", hint: "-c 'if [ $RETRY_ATTEMPT = 1 ]; then ./first; else ./again; fi'"},
	{names: "warning-on-retry polling-interval-seconds",
		hint: "leave it out: each failed attempt has its line, and an end is seen at once"},
	{names: "jobs", hint: "retry runs one command: parallel -j 4 retry -- COMMAND ::: …"},
	{names: "joblog log log-file logfile",
		hint: "2>>FILE, with --log-format json for a program; retry status lists all runs"},
	{names: "retry-failed resume-failed",
		hint: "retry resume --all goes on with what was cut off, retry requeue TASK with what has failed"},
	{names: "mail mailto email notify",
		hint: "-q --output failure lets cron mail what failed; --on-failure CMD runs a command then"},
	{names: "lock no-overlap skip-if-running", hint: "--id NAME --if-running skip"},
	{names: "background bg daemon detach",
		hint: "retry … & as for any command; retry status shows it, retry resume goes on with it"},
	{names: "C cwd chdir directory working-directory", hint: "cd DIR && retry …"},
	{names: "env", hint: "NAME=VALUE retry …"},
	{names: "header H data request X location L insecure url", hint: "retry http takes the flags of curl"},
	{names: "host port", hint: "retry wait HOST:PORT"},
}

// reportHabits are those of ps, tail, docker, kubectl, git and grpcurl, by the command of ours.
var reportHabits = map[string][]habit{
	"grpc": {{names: "plaintext", hint: "leave it out: host:port is without TLS here, and grpcs://host:port with it"}},
	"serve": {
		{names: "port p", as: "listen=127.0.0.1:%"},
		{names: "bind b addr address host hostname", hint: "--listen HOST:PORT, or --listen unix:PATH"},
		{names: "socket", as: "listen=unix:%"},
		{names: "workers threads c", as: "concurrency=%"},
		{names: "cert tls-certificate", as: "tls-cert=%"},
		{names: "key tls-private-key", as: "tls-key=%"},
		{names: "token", hint: "--token-file FILE; retry token add NAME --token-file FILE makes one"},
	},
	"worker": {
		{names: "workers threads c j jobs", as: "concurrency=%"},
		{names: "once burst", as: "drain"},
	},
	"status": {
		{names: "n l num number count lines head tail max-count", as: "limit=%"},
		{names: "a all", as: "limit=0"},
		{names: "running active", as: "live"},
		{names: "follow w", as: "watch"},
		{names: "f", hint: "--failed lists what failed for good; --watch draws it again every second"},
	},
	"logs": {
		{names: "f follow w watch",
			hint: "retry status --watch TASK follows a run; what an attempt wrote is kept when it has ended"},
		{names: "n lines tail", hint: "leave it out: the end is all that is kept; --attempt N shows an earlier attempt"},
	},
}

// Habit returns what a flag of another tool is for a command of ours: one of its flags without dashes, with a % in
// place of the value, or a hint. Both are empty for any other word. retry http speaks curl, whose letters mean other
// things.
func Habit(command, name string) (as, hint string) {
	if len(name) > 1 {
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	}
	switch as, hint = lookUp(reportHabits[command], name); {
	case as+hint != "":
		return as, hint
	case command == "run":
		return lookUp(habits, name)
	case command == "http" && len(name) > 1:
		return lookUp(slices.Concat(curlHabits, habits), name)
	case command == "http":
		return lookUp(curlHabits, name)
	}
	as, _ = lookUp(habits, name) // the hints are about runs
	return as, ""
}

func lookUp(table []habit, name string) (as, hint string) {
	for _, row := range table {
		if slices.Contains(strings.Fields(row.names), name) {
			return row.as, row.hint
		}
	}
	return "", ""
}

// HabitNames are the names that other tools than curl have for flags.
func HabitNames() (names []string) {
	for _, row := range habits {
		names = append(names, strings.Fields(row.names)...)
	}
	return names
}
