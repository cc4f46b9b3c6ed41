package httpexec

import (
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/10f93571/retry/task"
)

// stage is the progress of a request.
type stage int

const (
	stageStart   stage = iota
	stageDNS           // the host is looked up
	stageConnect       // to the host or to a proxy
	stageProxy         // the proxy is asked for a tunnel
	stageTLS           // the handshake
	stageSend          // there is a connection
	stageWait          // the request is being written, or the reply is awaited
	stageHeader        // the first byte of the reply was received
	stageBody          // the reply's header was received
)

// tracer follows one request through its stages. Its hooks are called from several goroutines.
type tracer struct {
	viaProxy bool  // the connection is made to a proxy
	tunnel   bool  // the proxy has to open a tunnel to the host
	socks    bool  // the proxy speaks SOCKS, not HTTP
	secure   bool  // the reply comes over TLS, of the server or of the proxy
	conn     *conn // nil until there is a connection
	wrote    int64 // what conn had carried of earlier requests when this one began
	read     int64
	kept     bool          // conn was there before the request
	recorded *recordedConn // nil: the text of the reply's header is not recorded
	ended    chan struct{} // closed when net/http has written the request, or has given that up; nil: nothing can cut it
	head     []byte        // what came of the reply while the request was written

	mutex   sync.Mutex
	end     sync.Once
	sendErr error // why the request was not written to its end
	stage   stage
	http2   bool
	written int // requests that were begun
	phases  task.Phases
	began   [stageBody + 1]time.Time
}

// at returns the stage that was reached.
func (w *tracer) at() stage {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.stage
}

// startRequest notes that what is written from now on belongs to the request. Over HTTP/2 other requests write, too:
// then this one may count as sent although it was not.
func (w *tracer) startRequest() {
	w.enter(stageSend)
	w.wrote, w.read = w.conn.startRequest()
}

// sent reports whether the server may have received a part of the request.
func (w *tracer) sent() bool {
	return w.at() >= stageWait && w.conn.wrote.Load() > w.wrote
}

// received returns how many bytes the server has sent since the request began.
func (w *tracer) received() int64 { return w.conn.read.Load() - w.read }

// measured returns the phases so far, the current one included.
func (w *tracer) measured() task.Phases {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	phases := w.phases
	since := time.Since(w.began[w.stage])
	switch w.stage {
	case stageDNS:
		phases.DNS += since
	case stageConnect:
		phases.Connect += since
	case stageTLS:
		phases.TLS += since
	case stageWait:
		phases.FirstByte += since
	}
	return phases
}

// requests returns how many requests were written.
func (w *tracer) requests() int {
	if !w.sent() {
		return 0
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.written
}

// enter notes that a stage begins.
func (w *tracer) enter(s stage) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.stage = s
	w.began[s] = time.Now()
}

// endPhase adds the time since a stage began to a phase, and enters the next stage.
func (w *tracer) endPhase(s stage, phase *time.Duration, next stage) {
	w.mutex.Lock()
	*phase += time.Since(w.began[s])
	w.mutex.Unlock()
	w.enter(next)
}

// connected returns the stage after a connection or a handshake.
func (w *tracer) connected() stage {
	if w.tunnel {
		return stageProxy
	}
	return stageSend
}

// trace returns the hooks of net/http.
func (w *tracer) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { w.enter(stageDNS) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil {
				w.endPhase(stageDNS, &w.phases.DNS, stageConnect)
			}
		},
		TLSHandshakeStart: func() { w.enter(stageTLS) },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			if err == nil {
				w.http2 = state.NegotiatedProtocol == "h2"
				w.endPhase(stageTLS, &w.phases.TLS, w.connected())
			}
		},
		WroteHeaderField:     func(name string, _ []string) { w.writing(name) },
		WroteRequest:         func(info httptrace.WroteRequestInfo) { w.endRequest(info.Err) },
		GotFirstResponseByte: w.gotFirstByte,
	}
}

// writing counts a request by the header that each one has. The hook WroteHeaders is too late: HTTP/2 calls it after
// sending the headers, perhaps after the reply.
func (w *tracer) writing(name string) {
	if name == "Host" || name == ":authority" {
		w.beginRequest()
	}
}

func (w *tracer) beginRequest() {
	w.mutex.Lock()
	w.written++
	w.mutex.Unlock()
	w.enter(stageWait)
}

// endRequest starts the wait for the reply, unless the reply has already begun.
func (w *tracer) endRequest(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.stage == stageWait {
		w.began[stageWait] = time.Now()
	}
	if w.sendErr = err; err == nil && w.conn != nil {
		if broke := w.conn.writeErr.Load(); broke != nil {
			w.sendErr = *broke
		}
	}
	if w.ended != nil {
		w.end.Do(func() { close(w.ended) })
	}
}

func (w *tracer) gotFirstByte() { w.endPhase(stageWait, &w.phases.FirstByte, stageHeader) }

// hookDelay is how long the hook for the end of a request may come after the reply to it.
const hookDelay = time.Second

// checkSent returns an error where a reply came before the server had all of the request's body, and net/http has then
// closed the connection: the server may have taken what it got for all of it. One that closes itself wants no more.
func (w *tracer) checkSent(reply *http.Response) error {
	if w.ended == nil || reply.Close {
		return nil
	}
	select {
	case <-w.ended:
	case <-time.After(hookDelay):
		return errUnsent
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.sendErr != nil {
		return errUnsent
	}
	return nil
}
