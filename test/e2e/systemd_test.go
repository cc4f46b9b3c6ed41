//go:build unix

package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/10f93571/retry/internal/testkit"
)

// manager stands in for systemd: it has the socket to which services tell how they are.
type manager struct {
	t      *testing.T
	binary string
	dir    string
	socket *net.UnixConn
	env    []string
}

func newManager(t *testing.T) *manager {
	m := &manager{t: t, binary: buildRetry(t), dir: t.TempDir()}
	path := filepath.Join(m.dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	m.socket = socket
	m.env = append(os.Environ(), "RETRY_STATE_DIR="+filepath.Join(m.dir, "state"), "NOTIFY_SOCKET="+path, "RETRY_CONFIG=/dev/null")
	return m
}

// start runs a service with descriptors from 3 on, which its LISTEN_PID says are for it.
func (m *manager) start(files []*os.File, env []string, args ...string) *exec.Cmd {
	m.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, m.binary}, args...)...)
	cmd.Env, cmd.ExtraFiles, cmd.Stderr, cmd.Dir = slices.Concat(m.env, env), files, os.Stderr, m.dir
	testkit.Must(m.t, cmd.Start())
	m.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// expect waits until the service has told something.
func (m *manager) expect(wanted string) {
	m.t.Helper()
	testkit.Must(m.t, m.socket.SetReadDeadline(time.Now().Add(patience)))
	told := make([]byte, 1024)
	for {
		n, err := m.socket.Read(told)
		if err != nil {
			m.t.Fatalf("the service did not tell %s: %v", wanted, err)
		}
		if string(told[:n]) == wanted {
			return
		}
	}
}

// ends waits until a service has ended with status 0.
func (m *manager) ends(cmd *exec.Cmd) {
	m.t.Helper()
	if err := cmd.Wait(); err != nil {
		m.t.Errorf("got %v, want exit status 0", err)
	}
}

func (m *manager) retry(args ...string) string {
	m.t.Helper()
	cmd := exec.Command(m.binary, args...)
	cmd.Env, cmd.Dir = m.env, m.dir
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("retry %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func TestAWorkerTellsItsManager(t *testing.T) {
	m := newManager(t)
	m.retry("add", "--", "sh", "-c", "env >env")
	worker := m.start(nil, []string{"WATCHDOG_USEC=20000"}, "worker", "-q")
	m.expect("READY=1")
	if doctor := m.retry("doctor"); !strings.Contains(doctor, "renewed") {
		t.Errorf("got %s, want the worker to be registered when it is ready", doctor)
	}
	for range 3 {
		m.expect("WATCHDOG=1")
	}
	testkit.Must(t, worker.Process.Signal(syscall.SIGTERM))
	m.expect("STOPPING=1")
	m.ends(worker)
	env, err := os.ReadFile(filepath.Join(m.dir, "env"))
	testkit.Must(t, err)
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_PID"} {
		if strings.Contains(string(env), name+"=") {
			t.Errorf("got %s in the environment of a command, want it left out", name)
		}
	}
}

func TestServeTakesASocketFromItsManager(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		m := newManager(t)
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(m.dir, "api")
		}
		listener, err := net.Listen(network, address)
		testkit.Must(t, err)
		file, err := listener.(interface{ File() (*os.File, error) }).File()
		testkit.Must(t, err)
		address = listener.Addr().String()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}}
		for _, more := range [][]string{nil, {"--no-worker"}} { // one after the other: the socket stays
			serve := m.start([]*os.File{file}, []string{"LISTEN_FDS=1", "WATCHDOG_USEC=20000"}, append([]string{"serve", "-q"}, more...)...)
			m.expect("READY=1")
			m.expect("WATCHDOG=1")
			reply, err := client.Get("http://localhost/readyz")
			testkit.Must(t, err)
			body, _ := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			if reply.StatusCode != http.StatusOK {
				t.Errorf("%s: got %s: %s, want it ready", network, reply.Status, body)
			}
			client.CloseIdleConnections()
			testkit.Must(t, serve.Process.Signal(syscall.SIGTERM))
			m.expect("STOPPING=1")
			m.ends(serve)
		}
		_ = listener.Close()
		_ = file.Close()
	}
}

// An address that the manager listens on is judged like one of --listen, and two sockets are one too many.
func TestServeRefusesSocketsOfItsManager(t *testing.T) {
	m := newManager(t)
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	testkit.Must(t, err)
	defer func() { _ = listener.Close() }()
	file, err := listener.(*net.TCPListener).File()
	testkit.Must(t, err)
	defer func() { _ = file.Close() }()
	for count, want := range map[string]string{"1": "anybody who reaches this address", "2": "passed 2 sockets"} {
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" serve`, m.binary)
		cmd.Env, cmd.ExtraFiles = slices.Concat(m.env, []string{"LISTEN_FDS=" + count}), []*os.File{file, file}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s sockets: got %v: %s, want %q", count, err, out, want)
		}
	}
}
