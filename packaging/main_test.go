package packaging_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/oasdiff/yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/10f93571/retry/cli"
	"github.com/10f93571/retry/internal/testkit"
)

// TestMain makes this test a retry where it is started by that name, which is in the PATH.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"retry": func() {
		log.SetOutput(io.Discard)
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}})
}

// need finds a program. Where there is none the test is skipped.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not in the PATH", name)
	}
	return path
}

// parse reads YAML into a structure with JSON's tags, which has to know all its keys.
func parse(t *testing.T, text []byte, into any) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(text)
	testkit.Must(t, err)
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	testkit.Must(t, decoder.Decode(into))
}

// parseLoosely reads what of YAML a structure asks for.
func parseLoosely(t *testing.T, text []byte, into any) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(text)
	testkit.Must(t, err, json.Unmarshal(asJSON, into))
}

// result is how a script ended.
type result struct {
	status         int
	stdout, stderr string
}

// execute runs a command in a directory with no environment but its own.
func execute(t *testing.T, dir string, environment []string, command ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, environment, &stdout, &stderr
	err := c.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// release serves the archive of a release for this machine, whose retry is the script, and returns its address and sum.
// A release whose sums are wrong names other sums than its archive has.
func release(t *testing.T, script string, wrongSums bool) (address, sum string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the release that this test makes is for Linux on amd64")
	}
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	packed := tar.NewWriter(zipped)
	const name = "retry_1.2.3_linux_amd64"
	testkit.Must(t, packed.WriteHeader(&tar.Header{Name: name + "/retry", Mode: 0o755, Size: int64(len(script))}))
	_, err := packed.Write([]byte(script))
	testkit.Must(t, err, packed.Close(), zipped.Close())
	hash := sha256.Sum256(archive.Bytes())
	sum = hex.EncodeToString(hash[:])
	listed := sum
	if wrongSums {
		listed = strings.Repeat("0", len(sum))
	}
	sums := listed + "  " + name + ".tar.gz.spdx.json\n" + listed + "  " + name + ".tar.gz\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/download/SHA256SUMS", "/download/v1.2.3/SHA256SUMS":
			_, _ = io.WriteString(w, sums)
		case "/download/v1.2.3/" + name + ".tar.gz":
			_, _ = w.Write(archive.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, sum
}
