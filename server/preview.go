package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/task"
)

// The size of a preview. It has to be done while a slider moves.
const (
	previewTasks   = 100
	mostTasks      = 10_000
	mostPreviewed  = 1_000_000 // retries of all tasks
	previewRetries = 8         // of a policy without a limit
)

// preview is what a policy does to tasks that fail together, as `retry plot --json` has it.
type preview struct {
	Policy  wire.Policy    `json:"policy"`
	Backoff string         `json:"backoff"`
	Jitter  string         `json:"jitter"`
	Tasks   int            `json:"tasks"`
	Seed    uint64         `json:"seed"`
	Retries []previewRetry `json:"retries"`
	Window  previewWindow  `json:"window"` // from the first failure to the last retry of a task
	Load    previewLoad    `json:"load"`
}

type previewRetry struct {
	N    int     `json:"n"`
	Base int64   `json:"baseMs"`
	Min  int64   `json:"minMs"`
	Max  *int64  `json:"maxMs"` // null: nothing bounds it
	Mean int64   `json:"meanMs"`
	CV   float64 `json:"cv"`
}

type previewWindow struct {
	Min  int64 `json:"minMs"`
	Mean int64 `json:"meanMs"`
	Max  int64 `json:"maxMs"`
}

type previewLoad struct {
	Peak  float64 `json:"peak"` // retries a second
	Mean  float64 `json:"mean"`
	Idle  float64 `json:"idle"`  // share of the seconds without one
	Local float64 `json:"local"` // 1 is even
}

// previewPolicy is POST /retry-policies:preview. Like a read, it waits for its turn: it takes long for its answer.
func (s *Server) previewPolicy(w http.ResponseWriter, r *http.Request) error {
	o, err := s.body(w, r)
	if err != nil {
		return err
	}
	var p task.Policy
	if inline := o.Object("policy"); inline != nil {
		inline.Raw("source")
		p, err = taking(r.Context(), s.reads, func() (task.Policy, error) {
			return wire.ReadPolicy(inline, s.Limits.Limits), nil
		})
		if err != nil {
			return err
		}
	}
	switch name := o.String("policyId", task.DefaultPolicyName); {
	case o.Has("policy") && o.Has("policyId"):
		o.Failf("policy", "policy and policyId say the same thing\nhint: give one of them")
	case !o.Has("policy"):
		found, err := s.named.find(name)
		if errors.Is(err, wire.ErrUnread) {
			return err
		}
		if err != nil {
			o.Fail("policyId", err)
			break
		}
		p = *found
	}
	options := plot.Options{
		Tasks: int(o.Int("tasks", previewTasks, 1, mostTasks)), Seed: uint64(o.Int("seed", 1, 0, 1<<53)),
		Retries: int(o.Int("retries", previewRetries, 1, wire.MaxAttempts-1)),
	}
	if p.Attempts > 0 {
		options.Retries = p.Attempts - 1
	}
	if options.Tasks*options.Retries > mostPreviewed {
		o.Failf("tasks", "%d tasks of %d retries take too long\nhint: together at most %d retries", options.Tasks,
			options.Retries, mostPreviewed)
	}
	if err := o.Finish(); err != nil {
		return err
	}
	if options.Retries == 0 {
		return reply(w, http.StatusOK, preview{
			Policy: wire.EncodePolicy(&p, wire.ViewNumbers), Backoff: p.Backoff.Curve(), Jitter: p.Backoff.Jitter(),
			Tasks: options.Tasks, Seed: options.Seed, Retries: []previewRetry{},
		})
	}
	study, err := taking(r.Context(), s.reads, func() (plot.Study, error) {
		study, err := plot.NewStudy(plot.Subject{Label: p.Name, Policy: p}, options)
		if err != nil {
			return study, problem.Unprocessable("%v", err)
		}
		return study, nil
	})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, previewOf(&p, study, options))
}

func previewOf(p *task.Policy, study plot.Study, options plot.Options) preview {
	ms := time.Duration.Milliseconds
	v := preview{
		Policy: wire.EncodePolicy(p, wire.ViewNumbers), Backoff: p.Backoff.Curve(), Jitter: p.Backoff.Jitter(),
		Tasks: options.Tasks, Seed: options.Seed, Retries: []previewRetry{},
		Window: previewWindow{ms(study.Window.Least), ms(study.Window.Mean), ms(study.Window.Most)},
		Load: previewLoad{
			sixDigits(study.Load.Peak), sixDigits(study.Load.Mean), sixDigits(study.Load.Idle), sixDigits(study.Load.Local),
		},
	}
	for _, n := range study.Retries {
		row := previewRetry{N: n.N, Base: ms(n.Base), Min: ms(n.Least), Mean: ms(n.Mean), CV: sixDigits(n.CV)}
		if !n.Unbounded {
			row.Max = new(ms(n.Most))
		}
		v.Retries = append(v.Retries, row)
	}
	return v
}

// sixDigits rounds to six significant digits.
func sixDigits(x float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // it has just been written
	return short
}
