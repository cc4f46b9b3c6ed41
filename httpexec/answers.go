package httpexec

import (
	"github.com/10f93571/retry/task"
)

func retry(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassRetryable}
}

func stop(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassFatal}
}

// ambiguous stops since the request may have taken effect.
func ambiguous(Safety, Facts) task.Eligibility {
	return task.Eligibility{Class: task.ClassFatal, Ambiguous: true}
}

// atMost retries until n attempts in a row have ended so.
func atMost(n int) answer {
	return func(Safety, Facts) task.Eligibility {
		return task.Eligibility{Class: task.ClassRetryable, AtMost: n}
	}
}

// ifAsked retries where the server asked for it: then it did not process the request. Else nobody knows.
func ifAsked(s Safety, f Facts) task.Eligibility {
	if f.Asked {
		return retry(s, f)
	}
	return ambiguous(s, f)
}

// ifAskedOrNothing retries where the refusal is one of a limit.
func ifAskedOrNothing(s Safety, f Facts) task.Eligibility {
	if f.Asked || f.Nothing {
		return retry(s, f)
	}
	return stop(s, f)
}

// ifKeyed retries where the conflict may be with the same request, still under way.
func ifKeyed(s Safety, f Facts) task.Eligibility {
	if s.Keyed {
		return retry(s, f)
	}
	return stop(s, f)
}

// unlessReplayed retries unless the server has kept this very reply.
func unlessReplayed(s Safety, f Facts) task.Eligibility {
	if f.Replayed {
		return stop(s, f)
	}
	return retry(s, f)
}
