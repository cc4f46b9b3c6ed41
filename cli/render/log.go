package render

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// logObserver writes the lines of a run as JSON, one object each, with the field names of the JSON of retry status.
type logObserver struct {
	logger  zerolog.Logger
	verbose bool
}

// NewLog returns the observer for programs.
func NewLog(w io.Writer, verbose bool) Observer {
	return &logObserver{logger: zerolog.New(escapedJSON{w}), verbose: verbose}
}

// escapedJSON escapes the characters that are valid in JSON and that a terminal would act on.
type escapedJSON struct{ io.Writer }

// Write reports the whole line or nothing, since the escaped line has another length.
func (w escapedJSON) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, text.EscapeJSON(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (l *logObserver) event(level zerolog.Level, t *task.Task) *zerolog.Event {
	event := l.logger.WithLevel(level).Str("time", *timestamp(time.Now()))
	if t != nil {
		event = event.Str("task", t.ID).Int("attempt", t.AttemptCount).Int("max_attempts", t.Policy.Attempts)
	}
	return event
}

func (l *logObserver) Started(t *task.Task) {
	if l.verbose {
		l.event(zerolog.InfoLevel, t).Msg("attempt started")
	}
}

func (l *logObserver) Ended(t *task.Task, a task.Attempt) {
	if a.Decision.Verdict == task.VerdictSucceeded {
		return
	}
	event := l.event(zerolog.WarnLevel, t).Str("decision", string(a.Decision.Verdict)).
		Int64("duration_ms", a.Outcome.Duration.Milliseconds()).Int("exit", a.Outcome.Exit)
	if a.Outcome.Signal != "" {
		event.Str("signal", a.Outcome.Signal)
	}
	if a.Outcome.Error != task.ErrorNone {
		event.Str("error", string(a.Outcome.Error)).Str("detail", a.Outcome.Message)
	}
	logReply(event, a.Outcome)
	if a.Decision.Verdict == task.VerdictRetry {
		event.Int64("delay_ms", a.Decision.Delay.Milliseconds()).Bool("shortened", a.Decision.Shortened)
	}
	event.Msg("attempt failed")
}

func (l *logObserver) Waiting(*task.Task, time.Duration) time.Duration { return rarely }

func (l *logObserver) Share() {}

func (l *logObserver) Clear() {}

func (l *logObserver) Progress() func(task.Transfer) { return nil }

func (l *logObserver) Finished(t *task.Task, r runner.Result) {
	if r.Decision.Verdict == task.VerdictSucceeded && t.AttemptCount == 1 {
		return
	}
	level := zerolog.ErrorLevel
	switch {
	case r.Decision.Verdict == task.VerdictSucceeded:
		level = zerolog.InfoLevel
	case r.Decision.Reason == task.ReasonDeferred:
		level = zerolog.WarnLevel
	}
	elapsed := max(0, time.Since(t.Began()))
	event := l.event(level, t).Str("status", string(t.Status)).Int64("elapsed_ms", elapsed.Milliseconds())
	if r.Decision.Reason != "" {
		event.Str("reason", string(r.Decision.Reason))
	}
	if r.Decision.Reason == task.ReasonDeferred {
		event.Time("next_attempt_at", t.NextAttemptAt)
	}
	if r.Decision.Why != "" {
		event.Str("why", ended(r.Outcome, r.Decision)+" "+r.Decision.Why)
	}
	if r.Signal != nil {
		event.Str("stopped_by", signalName(r.Signal))
	}
	event.Msg("run ended")
}

func (l *logObserver) Say(text string) {
	l.event(zerolog.InfoLevel, nil).Msg(text)
}

func (l *logObserver) Warn(err error) {
	l.event(zerolog.WarnLevel, nil).Msg(err.Error())
}
