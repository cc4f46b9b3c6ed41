package grpcexec

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/task"
)

// connections counts those of a server.
type connections struct{ made, open atomic.Int64 }

func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *connections) HandleRPC(context.Context, stats.RPCStats)                         {}
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.made.Add(1)
		c.open.Add(1)
	case *stats.ConnEnd:
		c.open.Add(-1)
	}
}

// until waits for what another goroutine does.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got no %s", what)
		}
	}
}

func TestSharedConnections(t *testing.T) {
	var counted connections
	url := serve(t, bothVersions, echo, grpc.StatsHandler(&counted))
	pool := &Pool{Idle: time.Minute}
	e := &Executor{Pool: pool}
	call := func(idempotent bool) task.Outcome {
		tk := newTask(t, url, `{"payload": {"body": "aGVsbG8="}}`)
		tk.Target.(*Call).Idempotent = idempotent
		return attemptOf(t, e, tk)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if o := call(true); o.Exit != 0 || o.Reply.Body != echoed {
				t.Errorf("got %+v, %+v", o, o.Reply)
			}
		})
	}
	all.Wait()
	if n := counted.made.Load(); n != 1 {
		t.Errorf("got %d connections for 50 safe calls, want 1", n)
	}
	if o := call(false); o.Exit != 0 || counted.made.Load() != 2 {
		t.Errorf("got %d connections, %+v, want another one for a call that is not safe", counted.made.Load(), o)
	}
	until(t, "end of the fresh connection", func() bool { return counted.open.Load() == 1 })
	pool.Close()
	until(t, "end of the kept connection", func() bool { return counted.open.Load() == 0 })
}

// A connection whose call was not answered may be dead: the next call has another one.
func TestUnansweredConnectionIsDropped(t *testing.T) {
	var counted connections
	var calls atomic.Int64
	url := serve(t, bothVersions, func(ctx context.Context, r *ask) (*answer, error) {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return echo(ctx, r)
	}, grpc.StatsHandler(&counted))
	pool := &Pool{Idle: time.Minute}
	defer pool.Close()
	e := &Executor{Pool: pool}
	tk := newTask(t, url, "")
	tk.Target.(*Call).Idempotent = true
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for calls.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel(runner.ErrTimeout)
	}()
	if o := e.Execute(ctx, tk, runner.Call{Number: 1}); o.Error != task.ErrorTimeout {
		t.Errorf("got %+v, want a timeout", o)
	}
	if o := attemptOf(t, e, tk); o.Exit != 0 || counted.made.Load() != 2 {
		t.Errorf("got %d connections, %+v, want a second one", counted.made.Load(), o)
	}
}

// A server that was replaced while its connection was kept: the connection is looked at before it is used.
func TestServerRestarts(t *testing.T) {
	pool := &Pool{Idle: time.Minute}
	defer pool.Close()
	e := &Executor{Pool: pool}
	address := "127.0.0.1:0"
	for i := range 3 {
		func() {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			address = listener.Addr().String()
			server := newServer(echo)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			tk := newTask(t, "grpc://"+address+"/grpc.testing.TestService/UnaryCall", "")
			tk.Target.(*Call).Idempotent = true
			if o := attemptOf(t, e, tk); o.Exit != 0 {
				t.Errorf("server %d: got %+v, %+v", i, o, o.Reply)
			}
		}()
		until(t, "end of the connection", func() bool {
			pool.mutex.Lock()
			defer pool.mutex.Unlock()
			for _, kept := range pool.kept {
				if slices.ContainsFunc(kept, func(c *connection) bool { return c.Err() == nil }) {
					return false
				}
			}
			return true
		})
	}
}

// count returns how many places have kept connections.
func count(p *Pool) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.kept)
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{Idle: 2 * time.Second, kept: map[place][]*connection{}}
		c := &connection{ClientConn: pipe(t), users: 1}
		p.kept[c.place] = []*connection{c}
		p.release(c, true)
		time.Sleep(1999 * time.Millisecond)
		synctest.Wait()
		if count(p) != 1 {
			t.Fatal("got a connection that was closed too early")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if count(p) != 0 || c.Err() == nil {
			t.Errorf("got %d connections, want none after 2 s", count(p))
		}
	})
}

func BenchmarkKeptConnection(b *testing.B) {
	url := serve(b, bothVersions, echo)
	pool := &Pool{Idle: time.Minute}
	defer pool.Close()
	e := &Executor{Pool: pool}
	tk := newTask(b, url, `{"payload": {"body": "aGVsbG8="}}`)
	tk.Target.(*Call).Idempotent = true
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if o := attemptOf(b, e, tk); o.Exit != 0 {
				b.Fatal(o)
			}
		}
	})
}
