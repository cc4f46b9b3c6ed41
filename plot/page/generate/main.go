// Generate makes plot/page/engine.wasm.gz, and engine.sum: a digest of the sources that it is made from. A test compares that digest,
// since another release of Go makes other bytes from the same sources.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"

	"github.com/10f93571/retry/plot/page/source"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "make the engine of the page:", err)
		os.Exit(1)
	}
}

func generate() error {
	wasm, err := build()
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression) // its header holds neither name nor time
	if err != nil {
		return err
	}
	if _, err := w.Write(wasm); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	digest, err := source.Digest(".")
	if err != nil {
		return err
	}
	if err := os.WriteFile("engine.wasm.gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile("engine.sum", []byte(digest+"\n"), 0o644)
}

// build compiles the engine; flags keep the machine's paths and the state of the repository out of it.
func build() ([]byte, error) {
	file, err := os.CreateTemp("", "engine-*.wasm")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_ = file.Close()
	command := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file.Name(), "./engine")
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWASM=")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(file.Name())
}
