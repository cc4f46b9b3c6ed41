package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"
)

// scriptedCalls is a server of grpc-go that answers grpc.testing.TestService/UnaryCall as the lines of a file say, the
// last line for ever: "ok", "stall", "reset", or a status with a message and perhaps "pushback=MS".
type scriptedCalls struct {
	grpc_testing.UnimplementedTestServiceServer
	log   string // a file: a JSON object for each call
	lines []string
	drop  func()
	mutex sync.Mutex
	count int
}

// serveGRPC [noreflection] FILE starts a server; $GRPC is host:port.
func serveGRPC(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: grpcserve [noreflection] FILE")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	tracked := &trackedListener{Listener: listener}
	file := args[len(args)-1]
	s := &scriptedCalls{log: ts.MkAbs("calls"), lines: strings.Split(strings.TrimSpace(ts.ReadFile(file)), "\n"),
		drop: tracked.drop}
	ts.Check(os.WriteFile(s.log, nil, 0o600))
	server := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(server, s)
	if len(args) == 1 {
		reflection.Register(server)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(tracked)
	}()
	ts.Setenv("GRPC", listener.Addr().String())
	ts.Setenv("METHOD", "grpc.testing.TestService/UnaryCall")
	ts.Defer(func() { server.Stop(); <-done })
}

// UnaryCall answers one call, and logs it.
func (s *scriptedCalls) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse,
	error) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mutex.Lock()
	line := s.lines[min(s.count, len(s.lines)-1)]
	s.count++
	entry, err := json.Marshal(map[string]any{"body": string(r.GetPayload().GetBody()), "metadata": md})
	if err == nil {
		err = appendLine(s.log, entry)
	}
	s.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	name, message, _ := strings.Cut(line, " ")
	switch name {
	case "ok":
		return &grpc_testing.SimpleResponse{Payload: r.GetPayload(), Username: "me"}, nil
	case "stall":
		<-ctx.Done()
		return nil, ctx.Err()
	case "reset":
		s.drop()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if text, delay, found := strings.Cut(message, " pushback="); found {
		message = text
		if err := grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", delay)); err != nil {
			return nil, err
		}
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		return nil, err
	}
	return nil, grpcstatus.Error(codes.Code(number), message)
}

func appendLine(path string, line []byte) error {
	file, err := os.OpenFile(filepath.Clean(path), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// trackedListener can drop its connections.
type trackedListener struct {
	net.Listener
	mutex sync.Mutex
	conns []net.Conn
}

// Accept implements net.Listener.
func (l *trackedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mutex.Lock()
		l.conns = append(l.conns, c)
		l.mutex.Unlock()
	}
	return c, err
}

// drop resets all connections.
func (l *trackedListener) drop() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, c := range l.conns {
		if socket, ok := c.(*net.TCPConn); ok {
			_ = socket.SetLinger(0)
		}
		_ = c.SetDeadline(time.Now())
		_ = c.Close()
	}
	l.conns = nil
}
