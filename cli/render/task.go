package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Task draws one task in detail: its properties, its attempts, their replies, a timeline, and the end of its output.
func Task(w io.Writer, s Screen, t TaskView, attempts []task.Attempt, now time.Time) error {
	var sections [][]string
	for _, section := range []string{
		s.facts(t, now), s.attempts(t, attempts, now), s.replies(attempts), s.timeline(t, attempts, now),
		s.tails(attempts) + s.nextSteps(t, attempts),
	} {
		sections = append(sections, slices.Collect(strings.Lines(section)))
	}
	if s.Height > 0 {
		sections = s.fit(sections[0], sections[1], sections[2], sections[3], sections[4])
	}
	_, err := io.WriteString(w, strings.Join(slices.Concat(sections...), ""))
	return err
}

const (
	tableHead = 2 // lines above the attempts
	leastRows = 3 // attempts that are shown beside a timeline
)

// fit leaves out what does not fit on a screen that does not scroll: the replies first, then the output, then the
// timeline, then the oldest attempts.
func (s Screen) fit(facts, table, replies, chart, tail []string) [][]string {
	if len(facts)+len(table)+len(replies)+len(chart)+len(tail) > s.Height {
		replies = nil
	}
	if len(facts)+len(table)+len(chart)+len(tail) > s.Height {
		tail = nil
	}
	if len(facts)+min(len(table), tableHead+leastRows)+len(chart) > s.Height {
		chart = nil
	}
	switch height := s.Height - len(facts) - len(chart); {
	case height <= tableHead:
		table = nil
	case len(table) > height:
		table = slices.Concat(table[:tableHead], table[len(table)-height+tableHead:])
	}
	return [][]string{facts, table, replies, chart, tail}
}

// factColumn is where the values of a task's properties begin.
const factColumn = 10

func (s Screen) facts(t TaskView, now time.Time) string {
	var b strings.Builder
	add := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s %s\n", s.Paint(Bold, fmt.Sprintf("%-*s", factColumn-1, name)), text)
		}
	}
	addWrapped := func(name, text string) { // what is copied stays in one line, which the terminal may break
		if s.Height == 0 && s.Width >= 2*factColumn {
			text = strings.Join(Wrapped(text, s.Width-factColumn), "\n"+strings.Repeat(" ", factColumn))
		}
		add(name, text)
	}
	name := brief(t.Name)
	if t.Once {
		name += " (once: not run again after a success)"
	}
	add("Name", name)
	addWrapped("Status", s.status(t)+s.explanation(t, now))
	if t.Damage != nil {
		add("Damaged", s.Paint(Red, wholeLine(t.Damage.Error())))
	}
	add("Worker", brief(t.WorkerName))
	add("Command", commandUpTo(t.ShownCommand(), longLine))
	key := brief(t.IdempotencyKey)
	if t.Target != nil {
		details := t.Target.Details(t.Status.Finished(), t.Options.Mask)
		for _, row := range details.Rows {
			add(row[0], wholeLine(row[1]))
		}
		if key != "" {
			key += " (" + details.Key + ")"
		}
	}
	add("Directory", wholeLine(t.Directory))
	add("Kept", wholeLine(strings.Join(keptNames(t.Task), ", ")))
	if !lacksPolicy(t.Task) {
		addWrapped("Policy", Policy(&t.Policy))
	}
	addWrapped("Options", optionsOf(t.Task))
	add("Created", stampPast(t.CreatedAt, now))
	if !t.RequeuedAt.IsZero() {
		add("Requeued", fmt.Sprintf("%s, after attempt %d", stampPast(t.RequeuedAt, now), t.RequeuedAfter))
	}
	if end, ok := t.Deadline(); ok && !t.Status.Finished() {
		add("Deadline", Stamp(end, now))
	}
	add("Next", Stamp(t.NextAttemptAt, now))
	add("Finished", stampPast(t.FinishedAt, now))
	add("Key", key)
	add("Partition", brief(t.Partition))
	add("Tags", brief(strings.Join(t.Tags, ", ")))
	add("Task", brief(t.ID))
	return b.String()
}

// optionsOf writes the options of a task. For the captured output it uses the values of retry http.
func optionsOf(t *task.Task) string {
	o := t.Options
	if t.Kind != task.KindCommand {
		modes := map[task.CaptureMode]task.CaptureMode{"": "none", task.CaptureStderr: "", task.CaptureBoth: "all"}
		if o.Capture = modes[o.Capture]; t.Kind == task.KindGRPC && o.Capture == "none" { // which is its default
			o.Capture = ""
		}
	}
	return Options(&o)
}

// lacksPolicy reports whether the policy of a damaged task cannot be read. Every policy that can be read has a name.
func lacksPolicy(t *task.Task) bool {
	return t.Damage != nil && t.Policy.Name == ""
}

func (s Screen) attempts(t TaskView, attempts []task.Attempt, now time.Time) string {
	if len(attempts) == 0 {
		return ""
	}
	rows := [][]string{{"#", "STARTED", "TOOK", "OUTCOME", "THEN", ""}}
	for _, a := range attempts {
		rows = append(rows, []string{
			strconv.Itoa(a.Number), clock(a.StartedAt, now), took(a, now, t), s.outcome(t, a), s.Paint(Faint, AfterAttempt(a)),
			brief(message(a.Outcome)),
		})
	}
	return "\n" + s.Rows(rows)
}

// hasDoneIt reports whether an attempt has succeeded, also where its task was cancelled meanwhile.
func hasDoneIt(a task.Attempt) bool {
	d := a.Decision
	return d.Verdict == task.VerdictSucceeded || d.Verdict == task.VerdictCancelled && d.Success
}

// nextSteps are the command lines that are most likely typed next, each with what it does.
func (s Screen) nextSteps(t TaskView, attempts []task.Attempt) string {
	if s.Height > 0 { // nobody types below a picture that is drawn again and again
		return ""
	}
	id := ShortID(t.ID)
	var steps [][2]string
	if slices.ContainsFunc(attempts, func(a task.Attempt) bool { return a.Outcome.Stdout+a.Outcome.Stderr != "" }) {
		steps = append(steps, [2]string{"retry logs " + id, "all that was captured"})
	}
	switch {
	case t.Interrupted && t.Queue == task.QueueWorker:
		steps = append(steps, [2]string{"retry cancel " + id, "never go on"})
	case t.Interrupted && t.Damage != nil:
		steps = append(steps, [2]string{"retry cancel " + id, "it cannot go on"})
	case t.Interrupted:
		steps = append(steps, [2]string{"retry resume " + id, "go on"}, [2]string{"retry cancel " + id, "never go on"})
	case t.Status == task.Pending:
		steps = append(steps, [2]string{"retry resume --now " + id, "do not wait"},
			[2]string{"retry cancel " + id, "stop it"})
	case t.Status == task.InFlight:
		steps = append(steps, [2]string{"retry status --watch " + id, "see it go on"},
			[2]string{"retry cancel " + id, "stop it"})
	case t.Once && slices.ContainsFunc(attempts, hasDoneIt): // under a cancel, or before it was requeued
	case t.Status != task.Succeeded && t.Reason != task.ReasonAmbiguous && !t.KeepsInput():
		how := "try again"
		if t.Queue != task.QueueNone {
			how = "try again, in a worker"
		}
		steps = append(steps, [2]string{Requeue(t.Task), how})
	}
	text := ""
	if outputLost(t, attempts) {
		text = "\n# its output was not kept: --capture stderr keeps the end of it"
	}
	for _, step := range steps {
		text += fmt.Sprintf("\n%-34s  # %s", step[0], step[1])
	}
	if text != "" {
		text = "\n" + strings.TrimPrefix(text, "\n") + "\n"
	}
	return text
}

// outputLost reports whether a command failed of whose output nothing was to be kept.
func outputLost(t TaskView, attempts []task.Attempt) bool {
	return t.Kind == task.KindCommand && t.Status != task.Succeeded &&
		t.Options.Capture == "" && !t.Options.Output.Held() &&
		slices.ContainsFunc(attempts, func(a task.Attempt) bool {
			failed := a.Decision.Verdict != "" && a.Decision.Verdict != task.VerdictSucceeded
			return failed && a.Outcome.Error == task.ErrorNone && !a.Outcome.IsCrash() || a.Outcome.Error == task.ErrorTimeout
		})
}

func (s Screen) explanation(t TaskView, now time.Time) string {
	switch {
	case t.Queue == task.QueueWorker && t.Interrupted && t.Unattended:
		return fmt.Sprintf(" (%s, its worker is dead, and no other runs): retry worker", StatusWord(t.Status))
	case t.Queue == task.QueueWorker && t.Interrupted:
		return fmt.Sprintf(" (%s, its worker is dead: another one takes it over)", StatusWord(t.Status))
	case t.Queue == task.QueueWorker && t.Status == task.Pending && t.Unattended:
		return reason(t, now) + " (for a worker, and none runs): retry worker"
	case t.Queue == task.QueueWorker && t.Status == task.Pending && t.Paused:
		return reason(t, now) + " (" + text.Escape(t.Host()) + " is paused)"
	case t.Queue == task.QueueWorker && t.Status == task.Pending:
		return reason(t, now) + " (for a worker)"
	case t.Interrupted && t.Damage != nil:
		return fmt.Sprintf(" (%s, its owner is dead, and it cannot go on): retry cancel %s", StatusWord(t.Status),
			ShortID(t.ID))
	case deferred(t):
		return reason(t, now) + ": retry resume " + ShortID(t.ID)
	case t.Interrupted && t.Requeued():
		return fmt.Sprintf(" (requeued, nobody has taken it up yet): retry resume %s", ShortID(t.ID))
	case t.Interrupted:
		return fmt.Sprintf(" (%s, its owner is dead): retry resume %s", StatusWord(t.Status), ShortID(t.ID))
	}
	return reason(t, now)
}

func (s Screen) outcome(t TaskView, a task.Attempt) string {
	text := ended(a.Outcome, a.Decision)
	switch {
	case a.Decision.Verdict == "":
		return s.Paint(Blue, withoutOutcome(t))
	case a.Decision.Verdict == task.VerdictSucceeded:
		return s.Paint(Green, text)
	case a.Outcome.IsCrash():
		return s.Paint(Yellow, text)
	}
	return s.Paint(Red, text)
}

func took(a task.Attempt, now time.Time, t TaskView) string {
	switch {
	case a.Decision.Verdict == "" && !t.Interrupted:
		return age(a.StartedAt, now)
	case a.Outcome.IsCrash():
		return "-"
	}
	return text.Duration(a.Outcome.Duration)
}

// AfterAttempt says what was decided after an attempt: another one, or the status that ended the task.
func AfterAttempt(a task.Attempt) string {
	d := a.Decision
	switch {
	case d.Verdict == "":
		return "-"
	case d.Verdict == task.VerdictRetry && d.Shortened:
		return "last retry after " + text.Duration(d.Delay) + ", to fit the budget"
	case d.Verdict == task.VerdictRetry && d.Rule != 0:
		return fmt.Sprintf("retry after %s, by rule %d", text.Duration(d.Delay), d.Rule)
	case d.Verdict == task.VerdictRetry:
		return "retry after " + text.Duration(d.Delay)
	}
	if d.Verdict == task.VerdictExhausted {
		return StatusWord(task.Exhausted)
	}
	return brief(string(d.Verdict))
}

// Options writes in one line those options of a task that differ from the defaults.
func Options(o *task.Options) string {
	var parts []string
	for _, row := range optionRows(o) {
		if row[1] != "" {
			parts = append(parts, row[0]+" "+row[1])
		}
	}
	return strings.Join(parts, ", ")
}

// optionRows are the names of a task's options, each with its value, which is empty for a default.
func optionRows(o *task.Options) [][2]string {
	rows := [][2]string{
		{"stdin", string(o.Stdin)}, {"output", string(o.Output)}, {"capture", string(o.Capture)},
		{"on start", o.OnStart}, {"on retry", o.OnRetry}, {"on success", o.OnSuccess}, {"on failure", o.OnFailure},
		{"ping", o.Ping}, {"report", o.Report},
	}
	for i, row := range rows {
		if row[1] != "" {
			rows[i][1] = quote(text.Shorten(text.Mask(row[1], o.Mask), longText))
		}
	}
	hookTimeout, seed := "", ""
	if o.HookTimeout != 0 {
		hookTimeout = text.FormatDuration(o.HookTimeout)
	}
	if o.Seed != nil {
		seed = strconv.FormatUint(*o.Seed, 10)
	}
	return append(rows, [2]string{"hook timeout", hookTimeout}, [2]string{"signal", o.Signal}, [2]string{"seed", seed})
}

// deferred reports whether a task waits for the time that a server asked for, without a process that waits with it.
func deferred(t TaskView) bool {
	return t.Interrupted && t.Reason == task.ReasonDeferred && t.Damage == nil
}

// reason explains why a task has its status.
func reason(t TaskView, now time.Time) string {
	switch t.Reason {
	case task.ReasonDeferred:
		asks := "asks"
		if t.NextAttemptAt.Before(now) {
			asks = "asked"
		}
		return " (deferred: the server " + asks + " to come back at " + Stamp(t.NextAttemptAt, now) + ")"
	case task.ReasonAmbiguous:
		return " (ambiguous: it may have taken effect; " + checkServer(t.Task) + ")"
	case task.ReasonStdin:
		return " (stdin: what it has read of a pipe is gone)"
	case task.ReasonExpired:
		return " (expired: its idempotency key " + expiredKey(t.Task) + ")"
	case "", task.ReasonCancelled: // which the status says already
		return ""
	}
	return " (" + brief(string(t.Reason)) + ")"
}

// expiredKey says what is wrong with an expired key. The request itself may be unreadable.
func expiredKey(t *task.Task) string {
	if t.Target == nil {
		return "is too old"
	}
	return "would be older than " + text.Duration(t.Target.KeyLifetime())
}

// checkServer says what to do about a request that may have taken effect.
func checkServer(t *task.Task) string {
	switch {
	case t.Number == 0:
		return "look at the server before you send it again"
	case t.KeepsInput():
		return "look at the server before you send it again; its stdin is kept no longer"
	}
	return "look at the server before you send it again: " + Requeue(t)
}

// Requeue is the command that gives a task fresh attempts where those before were made.
func Requeue(t *task.Task) string {
	if t.Queue != task.QueueNone {
		return "retry requeue " + ShortID(t.ID)
	}
	return "retry requeue --run " + ShortID(t.ID)
}
