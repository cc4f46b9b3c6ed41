package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
)

// requests times a small reply of a server on loopback next to curl, which stands for the bare command here. Where there is no curl the
// group is empty. Call close when it is measured.
func requests(o options, retry, dir string) (g group, close func(), err error) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		return group{}, func() {}, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return group{}, nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })}
	go func() { _ = server.Serve(listener) }()
	url := "http://" + listener.Addr().String() + "/"
	return group{title: "One request on loopback, compared with curl", warmups: 5, runs: o.runs, commands: []command{
		{label: "curl -s URL", role: bare, argv: []string{curl, "-s", url}},
		{label: "retry http URL", argv: []string{retry, "http", url}, state: filepath.Join(dir, "requests")},
		{label: "retry http --no-state URL", argv: []string{retry, "http", "--no-state", url}},
	}}, func() { _ = server.Close() }, nil
}
