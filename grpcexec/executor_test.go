package grpcexec

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/testkit"
	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

type (
	ask    = grpc_testing.SimpleRequest
	answer = grpc_testing.SimpleResponse
)

func echo(_ context.Context, r *ask) (*answer, error) {
	return &answer{Payload: r.GetPayload(), Username: "me", ServerId: "äöü <1>"}, nil
}

const echoed = `{
  "payload": {
    "body": "aGVsbG8="
  },
  "username": "me",
  "serverId": "äöü <1>"
}
`

func TestReflection(t *testing.T) {
	for _, version := range []string{bothVersions, onlyV1, onlyAlpha} {
		t.Run(version, func(t *testing.T) {
			url := serve(t, version, echo)
			var out bytes.Buffer
			e := &Executor{Stdout: &out}
			tk := newTask(t, url, `{"payload": {"body": "aGVsbG8="}}`)
			o := attemptOf(t, e, tk)
			if o.Exit != 0 || o.Error != task.ErrorNone || o.Reply.StatusName != "OK" || o.Reply.Body != echoed ||
				o.Reply.Written != 1 || o.Reply.Default.Class != task.ClassSuccess {
				t.Errorf("got %+v, %+v, want a success", o, o.Reply)
			}
			tk.Status = task.Succeeded
			if _, err := e.Flush(tk, nil); err != nil || out.String() != echoed {
				t.Errorf("got output %q, %v, want %q", out.String(), err, echoed)
			}
		})
	}
}

// What is wrong with a call before it is sent ends the task, and has sent nothing that takes effect.
func TestReflectionErrors(t *testing.T) {
	var calls atomic.Int64
	count := func(ctx context.Context, r *ask) (*answer, error) { calls.Add(1); return echo(ctx, r) }
	with, without := serve(t, bothVersions, count), serve(t, noReflection, count)
	for _, tt := range []struct{ url, body, want string }{
		{url: without, body: `{}`, want: "it has no reflection; send an encoded message"},
		{url: with, body: `{"payloadd": {}}`, want: `grpc.testing.SimpleRequest has no field "payloadd"; did you mean payload?`},
		{url: with, body: `{"responseSize": "x"}`, want: "field responseSize: the string is no number"},
		{url: strings.Replace(with, "UnaryCall", "UnaryCal", 1), want: `no method "UnaryCal"; did you mean UnaryCall?`},
		{url: strings.Replace(with, "TestService", "Service", 1), want: "describes no service grpc.testing.Service"},
		{url: strings.Replace(with, "UnaryCall", "FullDuplexCall", 1), want: "streams, and only unary calls"},
	} {
		o := attemptOf(t, &Executor{}, newTask(t, tt.url, tt.body))
		if o.Error != task.ErrorLocal || o.Exit != task.ExitInternal || !strings.Contains(o.Message, tt.want) ||
			o.Reply.Written != 0 || o.Reply.Default.Class != task.ClassFatal || o.Reply.Default.Ambiguous {
			t.Errorf("%s: got %+v, %+v, want %q", tt.body, o, o.Reply, tt.want)
		}
	}
	if calls.Load() > 0 {
		t.Errorf("got %d calls, want none", calls.Load())
	}
}

func TestRawMessage(t *testing.T) {
	url := serve(t, noReflection, echo)
	message, err := proto.Marshal(&ask{Payload: &grpc_testing.Payload{Body: []byte("hello")}})
	if err != nil {
		t.Fatal(err)
	}
	call, err := New(url, nil, message, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e, tk := &Executor{Stdout: &out}, taskOf(call)
	o := attemptOf(t, e, tk)
	tk.Status = task.Succeeded
	_, err = e.Flush(tk, nil)
	got := &answer{}
	if err := errors.Join(err, proto.Unmarshal(out.Bytes(), got)); err != nil || string(got.GetPayload().GetBody()) != "hello" {
		t.Errorf("got %v, %v of %+v", got, err, o)
	}
}

// The metadata that the server sees: the key, the deadline, the user's own lines, and nothing in the questions before.
func TestMetadata(t *testing.T) {
	seen := make(chan metadata.MD, 1)
	var left time.Duration
	url := serve(t, bothVersions, func(ctx context.Context, r *ask) (*answer, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		seen <- md
		return echo(ctx, r)
	})
	tk := newTask(t, url, "", "Authorization: Bearer {env:TOKEN}", "x-trace-bin: AAEC/w==", "x-two: 1", "x-two: 2")
	e := &Executor{UserAgent: "retry/1.2", Lookup: func(string) (string, bool) { return "secret-token", true },
		Address: func(_ *task.Task, attempt int, h http.Header) { h.Set("retry-attempt", string(rune('0'+attempt))) }}
	if o := attemptOf(t, e, tk); o.Exit != 0 {
		t.Fatalf("got %+v", o)
	}
	md := <-seen
	for name, want := range map[string]string{
		"authorization": "Bearer secret-token", "idempotency-key": "key-1", "user-agent": "retry/1.2",
		"x-trace-bin": "\x00\x01\x02\xff", "x-two": "1,2", "retry-attempt": "1", "content-type": "application/grpc",
	} {
		if got := strings.Join(md.Get(name), ","); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if left <= 0 || left > 10*time.Second {
		t.Errorf("got a deadline in %v, want one in less than 10 s", left)
	}
	tk.Target.(*Call).KeyStyle = request.KeyNone
	attemptOf(t, e, tk)
	if md := <-seen; len(md.Get("idempotency-key")) > 0 {
		t.Errorf("got a key %q, want none", md.Get("idempotency-key"))
	}
}

// What follows a status, for a call that is safe to repeat and for another.
func TestStatuses(t *testing.T) {
	var code codes.Code
	var pushback []string
	url := serve(t, bothVersions, func(ctx context.Context, _ *ask) (*answer, error) {
		for _, value := range pushback {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", value))
		}
		return nil, status.Error(code, "50% ä\nfull")
	})
	retry, stop := task.ClassRetryable, task.ClassFatal
	for _, tt := range []struct {
		code           codes.Code
		pushback       []string
		idempotent     task.Class
		other          task.Class
		otherAmbiguous bool
		delay          time.Duration
		noRetry        bool
	}{
		{code: codes.Unavailable, idempotent: retry, other: retry},
		{code: codes.Unavailable, pushback: []string{"1500"}, idempotent: retry, other: retry, delay: 1500 * time.Millisecond},
		{code: codes.Unavailable, pushback: []string{"0"}, idempotent: retry, other: retry},
		{code: codes.Unavailable, pushback: []string{"-1"}, idempotent: retry, other: retry, noRetry: true},
		{code: codes.Unavailable, pushback: []string{"soon"}, idempotent: retry, other: retry, noRetry: true},
		{code: codes.Unavailable, pushback: []string{"1", "2"}, idempotent: retry, other: retry, noRetry: true},
		{code: codes.ResourceExhausted, idempotent: stop, other: stop}, {code: codes.Aborted, idempotent: stop, other: stop},
		{code: codes.NotFound, idempotent: stop, other: stop}, {code: codes.InvalidArgument, idempotent: stop, other: stop},
		{code: codes.Internal, idempotent: stop, other: stop, otherAmbiguous: true},
		{code: codes.DeadlineExceeded, idempotent: stop, other: stop, otherAmbiguous: true},
		{code: codes.Unknown, idempotent: stop, other: stop, otherAmbiguous: true},
		{code: codes.Code(99), idempotent: stop, other: stop, otherAmbiguous: true},
	} {
		code, pushback = tt.code, tt.pushback
		for _, idempotent := range []bool{true, false} {
			tk := newTask(t, url, "")
			tk.Target.(*Call).Idempotent = idempotent
			o := attemptOf(t, &Executor{}, tk)
			want, number := tt.other, int(tt.code)
			if idempotent {
				want = tt.idempotent
			}
			text := ": 50% ä\nfull"
			if tt.code == 99 {
				number, text = int(codes.Unknown), ": status 99, 50% ä\nfull"
			}
			if e := o.Reply.Default; e.Class != want || e.Ambiguous != (tt.otherAmbiguous && !idempotent) {
				t.Errorf("%v, idempotent %v: got %+v, want class %v", tt.code, idempotent, e, want)
			}
			name := task.StatusNames()[number]
			if o.Reply.Status != number || o.Exit != 64+number || o.Message != name+text || o.Error != task.ErrorNone ||
				o.Reply.ServerDelay != tt.delay || o.Reply.NoRetry != tt.noRetry {
				t.Errorf("%v %q: got %+v, %+v, want status %s", tt.code, tt.pushback, o, o.Reply, name)
			}
		}
	}
}

// A server that never says so again: a condition that names the status does not change it.
func TestPushbackStops(t *testing.T) {
	policy := task.DefaultPolicy()
	c, err := task.ParseCondition("UNAVAILABLE")
	if err != nil {
		t.Fatal(err)
	}
	policy.RetryOn = []task.Condition{c}
	for _, stops := range []bool{false, true} {
		o := task.Outcome{Exit: 78, Reply: &task.Reply{Status: 14, StatusName: "UNAVAILABLE", NoRetry: stops}}
		d := task.Decide(&policy, task.History{}, o, time.Now(), func() float64 { return 0 })
		if (d.Verdict == task.VerdictFailed) != stops {
			t.Errorf("no retry %v: got %+v", stops, d)
		}
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 2)
	url := serve(t, bothVersions, func(ctx context.Context, _ *ask) (*answer, error) {
		entered <- struct{}{}
		select {
		case <-ctx.Done():
		case <-release:
		}
		return nil, ctx.Err()
	})
	defer close(release)
	for _, idempotent := range []bool{true, false} {
		tk := newTask(t, url, "")
		tk.Target.(*Call).Idempotent = idempotent
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, runner.ErrTimeout)
		o := (&Executor{}).Execute(ctx, tk, runner.Call{Number: 1})
		cancel()
		<-entered
		if o.Error != task.ErrorTimeout || o.Exit != 68 || o.Reply.StatusName != "DEADLINE_EXCEEDED" || o.Reply.Written != 1 ||
			o.Reply.Default.Ambiguous == idempotent || o.Reply.Default.Event != string(eventLost) {
			t.Errorf("idempotent %v: got %+v, %+v, want a timeout", idempotent, o, o.Reply)
		}
	}
}

func TestStopSignal(t *testing.T) {
	entered := make(chan struct{})
	url := serve(t, bothVersions, func(ctx context.Context, _ *ask) (*answer, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	signals := make(chan os.Signal, 1)
	go func() { <-entered; signals <- syscall.SIGTERM }()
	o := (&Executor{}).Execute(t.Context(), newTask(t, url, ""), runner.Call{Number: 1, Signals: signals})
	if o.Stop != syscall.SIGTERM || o.Signal != "SIGTERM" || o.Exit != 143 || !o.Reply.Default.Ambiguous {
		t.Errorf("got %+v, %+v, want the end by a signal, ambiguous", o, o.Reply)
	}
}

// What was stopped before it was sent is no success: it is sent again.
func TestStopSignalBeforeTheCall(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer func() { _ = silent.Close() }()
	signals := make(chan os.Signal, 1)
	go func() {
		c, err := silent.Accept()
		if err == nil {
			defer func() { _ = c.Close() }()
		}
		signals <- syscall.SIGTERM
		<-t.Context().Done()
	}()
	tk := newTask(t, "grpcs://"+silent.Addr().String()+"/a.B/C", "")
	o := (&Executor{}).Execute(t.Context(), tk, runner.Call{Number: 1, Signals: signals})
	if o.Stop != syscall.SIGTERM || o.Reply.Default.Class != task.ClassRetryable || o.Reply.Default.Ambiguous {
		t.Errorf("got %+v, %+v, want the end by a signal, to be tried again", o, o.Reply)
	}
}

func TestConnectFailures(t *testing.T) {
	closed := serve(t, bothVersions, echo)
	_, port, _ := strings.Cut(strings.TrimPrefix(closed, "grpc://127.0.0.1"), ":")
	port, _, _ = strings.Cut(port, "/")
	for _, tt := range []struct {
		url    string
		class  task.ErrorClass
		retry  bool
		status string
		want   string
	}{
		{url: "grpc://127.0.0.1:1/a.B/C", class: task.ErrorConnect, retry: true, status: "UNAVAILABLE", want: "connect: 127.0.0.1:1: connection refused"},
		{url: "grpc://no-such-host.invalid:1/a.B/C", class: task.ErrorDNS, retry: true, status: "UNAVAILABLE", want: "look up the host: "},
		{url: "grpcs://127.0.0.1:" + port + "/a.B/C", class: task.ErrorTLS, want: "TLS handshake: the server does not speak TLS"},
	} {
		o := attemptOf(t, &Executor{}, newTask(t, tt.url, ""))
		if o.Error != tt.class || (o.Reply.Default.Class == task.ClassRetryable) != tt.retry || o.Reply.StatusName != tt.status ||
			!strings.Contains(o.Message, tt.want) || o.Exit != 78 || o.Reply.Written != 0 || o.Reply.Default.Ambiguous {
			t.Errorf("%s: got %+v, %+v, want %s", tt.url, o, o.Reply, tt.want)
		}
	}
}

// The guard judges where a call of the API goes, and nothing is sent to what it refuses.
func TestGuard(t *testing.T) {
	var calls, judged atomic.Int64
	url := serve(t, bothVersions, func(ctx context.Context, r *ask) (*answer, error) { calls.Add(1); return echo(ctx, r) })
	tk := newTask(t, url, "")
	call := tk.Target.(*Call)
	call.Guarded = true
	refuse := errors.New("127.0.0.0/8 is loopback")
	control := func(host string) func(_, address string, _ syscall.RawConn) error {
		return func(_, address string, _ syscall.RawConn) error {
			judged.Add(1)
			if host != "127.0.0.1" || !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("got host %q, address %q", host, address)
			}
			return refuse
		}
	}
	pool := &Pool{Control: control, Idle: time.Second}
	defer pool.Close()
	o := attemptOf(t, &Executor{Pool: pool}, tk)
	if o.Error != task.ErrorRefused || o.Message != "the target is refused: 127.0.0.0/8 is loopback" ||
		o.Reply.Default.Class != task.ClassFatal || o.Reply.Default.Ambiguous || calls.Load() != 0 || judged.Load() != 1 {
		t.Errorf("got %+v, %+v, %d calls, want a refusal", o, o.Reply, calls.Load())
	}
	refuse = nil
	if o := attemptOf(t, &Executor{Pool: pool}, tk); o.Exit != 0 {
		t.Errorf("got %+v, want a success", o)
	}
	for name, change := range map[string]func(){
		"only a worker": func() { pool = &Pool{} }, "a socket or a file": func() { call.Network.UnixSocket = "/run/x" },
	} {
		before := *call
		change()
		if o := attemptOf(t, &Executor{Pool: pool}, tk); o.Error != task.ErrorLocal || !strings.Contains(o.Message, name) {
			t.Errorf("got %+v, want %q", o, name)
		}
		*call, pool = before, &Pool{Control: control}
	}
	call.Metadata = []string{"x: {env:HOME}"}
	e := &Executor{Pool: pool, Lookup: os.LookupEnv}
	if o := attemptOf(t, e, tk); o.Error != task.ErrorLocal || !strings.Contains(o.Message, "HOME is not set") {
		t.Errorf("got %+v, want no variable of this process", o)
	}
}

func TestLargeReply(t *testing.T) {
	url := serve(t, bothVersions, func(_ context.Context, r *ask) (*answer, error) {
		return &answer{Payload: &grpc_testing.Payload{Body: make([]byte, r.GetResponseSize())}}, nil
	})
	size := `{"responseSize": 100000}`
	o := attemptOf(t, &Executor{MaxReply: 50000}, newTask(t, url, size))
	if o.Error != task.ErrorLocal || o.Exit != 72 || !o.Reply.Default.Ambiguous ||
		o.Message != "the reply is too large: it has 97.7 KiB, and 48.8 KiB are read" {
		t.Errorf("got %+v, %+v, want a reply that is too large", o, o.Reply)
	}
	if o := attemptOf(t, &Executor{}, newTask(t, url, size)); o.Exit != 0 || !strings.Contains(o.Reply.Body, base64.StdEncoding.EncodeToString(make([]byte, 90000))) {
		t.Errorf("got %+v, want a reply of 100 kB", o)
	}
}
