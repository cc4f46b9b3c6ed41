// Package otlp sends spans of tasks and of their attempts to an OpenTelemetry collector, as JSON over HTTP. Spans never
// hold up an attempt: what the collector does not take in time is dropped, and counted. The SDK of OpenTelemetry would
// add a millisecond to each start.
package otlp

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/10f93571/retry/metrics"
)

const (
	queueSize     = 8192 // spans that wait for the collector: half a second of a busy worker
	batchSize     = 512  // spans of a request
	batchDelay    = 5 * time.Second
	flushPatience = 2 * time.Second // of Shutdown
)

// Config says where spans go. FromEnvironment makes it.
type Config struct {
	Endpoint string // the URL for traces, whole
	Headers  http.Header
	Timeout  time.Duration // of a request; 0 for 10 s
	Service  string        // service.name
	Version  string        // of this program; may be empty
	Resource []Attribute   // what else describes the service
	Sampler  Sampler

	Dropped *metrics.Counter // counts spans that were not delivered; may be nil
	OnError func(error)      // is told of a failure that follows a success, not of each; may be nil
}

// Exporter sends spans. A nil one sends none. Its methods may be called at the same time.
type Exporter struct {
	config   Config
	client   http.Client
	resource resource
	queue    chan span
	closed   atomic.Bool
	stop     chan struct{} // closed by Shutdown: send what there is
	stopOnce sync.Once
	done     chan struct{} // closed when nothing more will be sent
	cancel   context.CancelFunc
	failing  bool // the latest request failed; of the sending goroutine alone
}

// New starts to send spans. End it with Shutdown.
func New(c Config) *Exporter {
	if c.Dropped == nil {
		c.Dropped = new(metrics.Counter)
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{
		config:   c,
		resource: newResource(&c),
		queue:    make(chan span, queueSize),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		cancel:   cancel,
	}
	e.client = http.Client{
		Timeout:   cmp.Or(c.Timeout, 10*time.Second),
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, ForceAttemptHTTP2: true},
		// The headers hold a secret, which is meant for this endpoint alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	go e.run(ctx)
	return e
}

// Shutdown sends what is queued, for two seconds at most, and drops the rest. Spans that come later are dropped.
func (e *Exporter) Shutdown(ctx context.Context) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	e.stopOnce.Do(func() {
		e.closed.Store(true)
		close(e.stop)
	})
	select {
	case <-e.done:
	case <-ctx.Done():
	}
	e.cancel()
	<-e.done
	e.client.CloseIdleConnections()
}

func (e *Exporter) offer(s span) {
	if e.closed.Load() {
		e.config.Dropped.Inc()
		return
	}
	select {
	case e.queue <- s:
	default:
		e.config.Dropped.Inc()
	}
}

// run sends batches until Shutdown.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	batch := make([]span, 0, batchSize)
	flush := func() {
		if len(batch) > 0 {
			e.deliver(ctx, batch)
		}
		clear(batch)
		batch = batch[:0]
	}
	late := time.NewTimer(batchDelay)
	for {
		select {
		case s := <-e.queue:
			if len(batch) == 0 {
				late.Reset(batchDelay)
			}
			if batch = append(batch, s); len(batch) == batchSize {
				flush()
			}
		case <-late.C:
			flush()
		case <-e.stop:
			for {
				select {
				case s := <-e.queue:
					if batch = append(batch, s); len(batch) == batchSize {
						flush()
					}
					continue
				default:
				}
				flush()
				return
			}
		}
	}
}
