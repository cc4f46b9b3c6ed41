package httpexec

import (
	"io"
	"sync"
	"time"

	"github.com/10f93571/retry/task"
)

// meter counts the bytes of an attempt, and tells of them now and then. A nil one does neither.
type meter struct {
	report func(task.Transfer)
	over   chan struct{}
	ended  chan struct{}

	mutex sync.Mutex
	now   task.Transfer
}

// reportEvery is the interval of reports. They go on where no bytes arrive, as the elapsed time changes.
const reportEvery = 100 * time.Millisecond

func newMeter(tell func(task.Transfer)) *meter {
	if tell == nil {
		return nil
	}
	m := &meter{report: tell, over: make(chan struct{}), ended: make(chan struct{})}
	go m.run()
	return m
}

func (m *meter) run() {
	defer close(m.ended)
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if now := m.read(); !now.Began.IsZero() {
				m.report(now)
			}
		case <-m.over:
			return
		}
	}
}

// begin starts to count for one direction.
func (m *meter) begin(t task.Transfer) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t.Bytes, t.Began = t.From, time.Now()
	m.now = t
}

func (m *meter) read() task.Transfer {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.now
}

// add counts bytes of one direction. A reply may begin before the request has ended.
func (m *meter) add(sending bool, n int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.now.Sending == sending {
		m.now.Bytes += int64(n)
	}
}

// end tells for the last time. Nothing is told after it.
func (m *meter) end() {
	if m == nil {
		return
	}
	close(m.over)
	<-m.ended
	if now := m.read(); !now.Began.IsZero() {
		now.Over = true
		m.report(now)
	}
}

// metered counts what is read of a body.
type metered struct {
	io.ReadCloser
	meter *meter
	what  task.Transfer
	begin sync.Once
}

func (b *metered) Read(p []byte) (int, error) {
	b.begin.Do(func() { b.meter.begin(b.what) }) // the connection may have taken a while
	n, err := b.ReadCloser.Read(p)
	b.meter.add(b.what.Sending, n)
	return n, err
}

// watched returns a body whose bytes are counted, where progress is reported.
func (m *meter) watched(body io.ReadCloser, t task.Transfer) io.ReadCloser {
	if m == nil || body == nil {
		return body
	}
	return &metered{ReadCloser: body, meter: m, what: t}
}
