package httpexec

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/task"
)

// meter reports the progress of the current body. A nil meter does not.
type meter struct {
	report func(task.Transfer)
	over   chan struct{}
	ended  chan struct{}
	body   atomic.Pointer[metered] // the latest; nil: none has begun
}

// reportInterval is the interval of reports. They go on while no bytes arrive, as the elapsed time changes.
const reportInterval = 100 * time.Millisecond

func newMeter(report func(task.Transfer)) *meter {
	if report == nil {
		return nil
	}
	m := &meter{report: report, over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.send(false)
			case <-m.over:
				m.send(true)
				return
			}
		}
	}()
	return m
}

func (m *meter) send(over bool) {
	if b := m.body.Load(); b != nil {
		now := b.what
		now.Bytes, now.Over = now.From+b.count.Load(), over
		m.report(now)
	}
}

// end reports for the last time.
func (m *meter) end() {
	if m != nil {
		close(m.over)
		<-m.ended
	}
}

// metered counts what is read of a body.
type metered struct {
	io.ReadCloser
	meter *meter
	what  task.Transfer
	count atomic.Int64
	begin sync.Once
}

func (b *metered) Read(p []byte) (int, error) {
	b.begin.Do(func() { // not before: to connect may have taken a while
		b.what.Began = time.Now()
		b.meter.body.Store(b)
	})
	n, err := b.ReadCloser.Read(p)
	b.count.Add(int64(n))
	return n, err
}

// watched returns a body whose bytes are counted if progress is reported.
func (m *meter) watched(body io.ReadCloser, t task.Transfer) io.ReadCloser {
	if m == nil || body == nil {
		return body
	}
	return &metered{ReadCloser: body, meter: m, what: t}
}
