package packaging_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

type descriptor struct {
	MediaType string            `json:"mediaType"`
	Digest    string            `json:"digest"`
	Size      int64             `json:"size"`
	Platform  map[string]string `json:"platform"`
}

type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type imageConfig struct {
	Architecture string
	Config       struct {
		User            string
		Env             []string
		Entrypoint, Cmd []string
		Volumes         map[string]any
		Healthcheck     struct{ Test []string }
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// layout is an OCI layout in a directory.
type layout struct {
	t   *testing.T
	dir string
}

// blob returns what a descriptor names, whose size and digest it compares.
func (l layout) blob(d descriptor) []byte {
	l.t.Helper()
	content, err := os.ReadFile(filepath.Join(l.dir, "blobs", "sha256", strings.TrimPrefix(d.Digest, "sha256:")))
	testkit.Must(l.t, err)
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); got != d.Digest || int64(len(content)) != d.Size {
		l.t.Errorf("got a blob of %d bytes with digest %s, want %d and %s", len(content), got, d.Size, d.Digest)
	}
	return content
}

func (l layout) decode(d descriptor, into any) {
	l.t.Helper()
	testkit.Must(l.t, json.Unmarshal(l.blob(d), into))
}

// image returns the configuration of an image and its files, as a tar.
func (l layout) image() (config imageConfig, files []byte) {
	l.t.Helper()
	var top, index, image manifest
	testkit.Must(l.t, json.Unmarshal([]byte(testkit.Contents(l.t, filepath.Join(l.dir, "index.json"))), &top))
	l.decode(top.Manifests[0], &index)
	l.decode(index.Manifests[0], &image)
	l.decode(image.Config, &config)
	unzipped, err := gzip.NewReader(bytes.NewReader(l.blob(image.Layers[0])))
	testkit.Must(l.t, err)
	files, err = io.ReadAll(unzipped)
	testkit.Must(l.t, err)
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(files)); !slices.Equal(config.RootFS.DiffIDs, []string{got}) {
		l.t.Errorf("got diff ids %q, want %s", config.RootFS.DiffIDs, got)
	}
	return config, files
}

// unpack writes the files of a layer below a directory, with their owners, and lists them.
func unpack(t *testing.T, files []byte, root string) (list []string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(files)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		testkit.Must(t, err)
		list = append(list, fmt.Sprintf("%s %d %o", header.Name, header.Uid, header.Mode))
		path := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			testkit.Must(t, os.Mkdir(path, 0o700))
		} else {
			content, err := io.ReadAll(r)
			testkit.Must(t, err, os.WriteFile(path, content, 0o600))
		}
		testkit.Must(t, os.Chown(path, header.Uid, header.Gid), syscall.Chmod(path, uint32(header.Mode)))
	}
}

// buildImage builds the image of a static binary, with the certificates of one authority, and returns its layout.
func buildImage(t *testing.T, binary, certificates string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	environment := append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "COMMIT=c0ffee", "VERSION=1.2.3",
		"CERTIFICATES="+certificates)
	if got := execute(t, ".", environment, "container/build", dir, "amd64="+binary); got.status != 0 {
		t.Fatalf("container/build: got status %d: %s", got.status, got.stderr)
	}
	return dir
}

// digests tell two layouts apart.
func digests(t *testing.T, dir string) []string {
	t.Helper()
	return append(testkit.Names(t, filepath.Join(dir, "blobs", "sha256")),
		testkit.Contents(t, filepath.Join(dir, "index.json")))
}

// The image of a release is built, and run in a chroot as its user, with its environment and nothing else.
func TestContainer(t *testing.T) {
	testkit.Slow(t, "links a release")
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root")
	}
	for _, tool := range []string{"bash", "tar", "readelf"} {
		need(t, tool)
	}
	binary := filepath.Join(t.TempDir(), "retry")
	if output, err := exec.Command("bash", "../.ci/release", binary).CombinedOutput(); err != nil {
		t.Fatalf(".ci/release: %v\n%s", err, output)
	}
	headers := execute(t, ".", os.Environ(), "readelf", "--program-headers", binary)
	if strings.Contains(headers.stdout, "INTERP") {
		t.Skip("there is no static C library")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "pong")
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "authority.pem")
	certificate := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	testkit.Write(t, authority, string(pem.EncodeToMemory(certificate)))

	dir := buildImage(t, binary, authority)
	if first, second := digests(t, dir), digests(t, buildImage(t, binary, authority)); !slices.Equal(first, second) {
		t.Errorf("two builds of one image differ: got %q and %q", first, second)
	}
	config, files := layout{t, dir}.image()
	root := t.TempDir()
	testkit.Must(t, os.Chmod(root, 0o755), os.Chmod(filepath.Dir(root), 0o755))
	list := unpack(t, files, root)
	for _, want := range []string{"var/lib/retry/ 65532 700", "tmp/ 0 1777", "usr/bin/retry 0 755"} {
		if !slices.Contains(list, want) {
			t.Errorf("got files %q, want %q in them", list, want)
		}
	}
	if config.Config.User != "65532:65532" || config.Config.Volumes["/var/lib/retry"] == nil {
		t.Errorf("got user %s and volumes %v", config.Config.User, config.Config.Volumes)
	}

	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Dir, c.Env = "/", config.Config.Env
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return c
	}
	for _, test := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"the health check before there is a journal", config.Config.Healthcheck.Test[1:], 0, "no tasks"},
		{"a request, whose server the certificates vouch for",
			[]string{"/usr/bin/retry", "http", "-n", "1", "-sS", server.URL}, 0, "pong"},
		{"a command that is in the image",
			[]string{"/usr/bin/retry", "-n", "1", "--require-state", "--", "retry", "--version"}, 0, "commit"},
		{"a command of the shell", []string{"/usr/bin/retry", "-n", "1", "-c", "echo"}, 127, "sh: command not found"},
		{"an API for everybody",
			append(config.Config.Entrypoint, "serve", "--listen", "0.0.0.0:0"), 125, "anybody who reaches this address"},
		{"a token for it", append(config.Config.Entrypoint, "token", "add", "billing", "--scope", "write",
			"--token-file", "/var/lib/retry/tokens"), 0, "rtk_"},
		{"the health check after that", config.Config.Healthcheck.Test[1:], 0, "sh -c echo"},
	} {
		c := command(test.args...)
		output, _ := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != test.status || !strings.Contains(string(output), test.says) {
			t.Errorf("%s: got status %d and %s, want %d and %q", test.name, got, output, test.status, test.says)
		}
	}

	for _, flags := range [][]string{
		{"--listen", "127.0.0.1:0"},
		{"--listen", "0.0.0.0:0", "--token-file", "/var/lib/retry/tokens", "--insecure"},
	} {
		serve := command(append(config.Config.Entrypoint, append(config.Config.Cmd, flags...)...)...)
		stderr, err := serve.StderrPipe()
		testkit.Must(t, err, serve.Start())
		line, err := bufio.NewReader(stderr).ReadString('\n')
		if want := "retry: serves http://"; err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("serve %q: got %q and %v, want %q", flags, line, err, want)
		}
		testkit.Must(t, serve.Process.Signal(syscall.SIGTERM))
		if err := serve.Wait(); err != nil {
			t.Errorf("serve %q, after TERM: got %v, want success", flags, err)
		}
	}

	journals, err := filepath.Glob(filepath.Join(root, "var/lib/retry/*.db"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("got journals %q and %v, want one", journals, err)
	}
	testkit.Must(t, os.WriteFile(journals[0], bytes.Repeat([]byte("damage"), 2000), 0o600))
	c := command(config.Config.Healthcheck.Test[1:]...)
	if output, err := c.CombinedOutput(); err == nil {
		t.Errorf("the health check of a damaged journal: got success and %s, want a failure", output)
	}
}
