//go:build unix

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// rowsBench is where rows are tried.
type rowsBench struct {
	*docsBench
	config *tls.Config
	ca     string
}

func newRowsBench(t *testing.T) *rowsBench {
	testkit.Slow(t, "it runs the program for every row of the retry tables")
	b := &rowsBench{docsBench: newDocsBench(t)}
	b.config, b.ca = rawTLS(t)
	return b
}

func (b *rowsBench) run(t *testing.T, row httpRow) {
	for flags, want := range map[string]string{
		"": row.get, "-d a=b": row.post, "-d a=b --idempotency-key k": row.keyed, "-d a=b --idempotent": row.idemp,
	} {
		if want == "" {
			continue
		}
		t.Run(row.name+"/"+flags, func(t *testing.T) {
			t.Parallel()
			b.column(t, row, flags, want)
		})
	}
}

// column runs one request, with a journal of its own.
func (b *rowsBench) column(t *testing.T, row httpRow, flags, want string) {
	s := rawServe(t, b.secured(row.to), row.serve)
	if row.serve == nil {
		s.stop()
	}
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	cmd := b.command(strings.Fields("http -n 4 -b constant:0 --report " + report + " " + b.at(s, row.flags+" "+flags+" "+target(row.to)))...)
	cmd.Env = append(cmd.Env, "RETRY_STATE_DIR="+filepath.Join(dir, "state"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	exit := 0
	if failed := (*exec.ExitError)(nil); errors.As(cmd.Run(), &failed) {
		exit = failed.ExitCode()
	}
	s.stop()
	tk := readReport(t, report, &stderr)
	tk.compare(t, row, want)
	if exit != row.exit || stdout.Len() > 0 || !strings.Contains(stderr.String(), row.message) {
		t.Errorf("exit %d, want %d; want %q in\n%sand nothing in %q", exit, row.exit, row.message, &stderr, &stdout)
	}
	if got, want := int(s.requests.Load()), row.wire*tk.Count; got != want {
		t.Errorf("%d requests on the wire, want %d", got, want)
	}
}

// secured is the configuration of a server for a kind of address.
func (b *rowsBench) secured(to string) *tls.Config {
	switch to {
	case "tls:", "https://other.invalid:PORT/":
		return b.config
	case "h2:":
		config := b.config.Clone()
		config.NextProtos = []string{"h2"}
		return config
	case "alert:":
		return refusing()
	}
	return nil
}

// target is a URL, still without its address.
func target(to string) string {
	switch to {
	case "http:":
		return "http://ADDRESS/"
	case "https:", "tls:", "h2:", "alert:":
		return "https://ADDRESS/"
	}
	return to
}

// at puts addresses and files into a command line.
func (b *rowsBench) at(s *rawServer, line string) string {
	return strings.NewReplacer("ADDRESS", s.address, "PORT", s.address[strings.LastIndex(s.address, ":")+1:], "CA", b.ca).Replace(line)
}

// reported is what of a report the tests look at.
type reported struct {
	Status, Reason string
	Count          int `json:"attempt_count"`
	Attempts       []struct {
		Exit    int
		Error   string
		Written int `json:"requests_written"`
	}
}

func readReport(t *testing.T, path string, stderr *bytes.Buffer) (tk reported) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &tk)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return tk
}

// compare fails unless the task and each attempt came to what a row says.
func (tk reported) compare(t *testing.T, row httpRow, want string) {
	t.Helper()
	status := map[string]string{"": "SUCCEEDED", "attempts": "EXHAUSTED"}[tk.Reason]
	if status == "" {
		status = "FAILED"
	}
	if got := strings.TrimSpace(fmt.Sprint(tk.Count, " ", tk.Reason)); got != want || tk.Status != status {
		t.Errorf("%s, %s; want %s", got, tk.Status, want)
	}
	for i, a := range tk.Attempts {
		if a.Exit != row.exit || a.Error != row.class || a.Written != row.wire {
			t.Errorf("attempt %d: %q, exit %d, %d requests written; want %q, %d, %d", i+1, a.Error, a.Exit, a.Written, row.class, row.exit, row.wire)
		}
	}
}
