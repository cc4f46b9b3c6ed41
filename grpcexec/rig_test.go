package grpcexec

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
	alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// service answers calls of grpc.testing.TestService as a test wants it.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
	unary func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error)
}

func (s *service) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return s.unary(ctx, r)
}

// reflections are the versions of reflection that a server may have.
const (
	bothVersions = "v1 and v1alpha"
	onlyV1       = "v1"
	onlyAlpha    = "v1alpha"
	noReflection = "none"
)

// newServer returns a server with reflection.
func newServer(unary func(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error)) *grpc.Server {
	s := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(s, &service{unary: unary})
	reflection.Register(s)
	return s
}

// pipe returns a connection of HTTP/2 over a pipe that nobody reads from.
func pipe(t *testing.T) *http.ClientConn {
	t.Helper()
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	transport := &http.Transport{Protocols: &http.Protocols{},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	c, err := transport.NewClientConn(t.Context(), "http", "x:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), far.Close() })
	return c
}

// serve starts a server of grpc-go, and returns the URL of its method UnaryCall.
func serve(t testing.TB, version string, unary func(context.Context, *grpc_testing.SimpleRequest) (
	*grpc_testing.SimpleResponse, error), options ...grpc.ServerOption) string {
	t.Helper()
	s := grpc.NewServer(options...)
	grpc_testing.RegisterTestServiceServer(s, &service{unary: unary})
	switch version {
	case bothVersions:
		reflection.Register(s)
	case onlyV1:
		reflection.RegisterV1(s)
	case onlyAlpha:
		alpha.RegisterServerReflectionServer(s, reflection.NewServer(reflection.ServerOptions{Services: s}))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return "grpc://" + listener.Addr().String() + "/grpc.testing.TestService/UnaryCall"
}

// newTask returns a task of a call of JSON, with a key.
func newTask(t testing.TB, url, body string, metadata ...string) *task.Task {
	t.Helper()
	call, err := New(url, []byte(body), nil, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return taskOf(call)
}

func taskOf(call *Call) *task.Task {
	return &task.Task{ID: "0198-test", Kind: Kind, Target: call, Policy: task.DefaultPolicy(), IdempotencyKey: "key-1",
		Status: task.InFlight, AttemptCount: 1, CreatedAt: time.Now()}
}

// attemptOf makes one attempt within 10 seconds.
func attemptOf(t testing.TB, e *Executor, tk *task.Task) task.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, runner.ErrTimeout)
	defer cancel()
	return e.Execute(ctx, tk, runner.Call{Number: 1})
}
