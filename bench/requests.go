package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// requests times a small reply of a server on loopback next to curl, which stands for the bare command here.
func (p plan) requests() group {
	return group{name: "http", title: "One request on loopback, compared with curl", warmups: 5, runs: p.runs, commands: []command{
		{name: bare, label: "curl -s URL", argv: []string{p.curl, "-s"}},
		{name: "retry", label: "retry http URL", argv: []string{p.retry, "http"}, state: p.journal("http")},
		{name: "no-state", label: "retry http --no-state URL", argv: []string{p.retry, "http", "--no-state"}},
	}, setUp: serve}
}

// serve starts the server, and gives each command its address.
func serve(_ context.Context, g *group) (done func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })}
	go func() { _ = server.Serve(listener) }()
	for i := range g.commands {
		g.commands[i].argv = append(g.commands[i].argv, "http://"+listener.Addr().String()+"/")
	}
	return func() { _ = server.Close() }, nil
}
