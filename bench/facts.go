package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// facts say what the figures depend on, and nothing that tells whose machine it was.
type facts struct {
	Cores      int    `json:"cores"`
	Arch       string `json:"arch"`
	Go         string `json:"go"`
	Kernel     string `json:"kernel"`
	FileSystem string `json:"file_system"` // under the journal; "" where unknown
	Load       string `json:"load"`        // of the last minute, before the run; "" where unknown
	Began      string `json:"began"`       // RFC 3339, UTC
}

func gatherFacts(ctx context.Context, dir string) facts {
	f := facts{
		Cores:      runtime.NumCPU(),
		Arch:       runtime.GOARCH,
		Go:         runtime.Version(),
		Kernel:     ask(ctx, "uname", "-sr"),
		FileSystem: ask(ctx, "stat", "-f", "-c", "%T", dir), // GNU's; others have no such format
		Began:      time.Now().UTC().Format(time.RFC3339),
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		f.Load, _, _ = strings.Cut(string(load), " ")
	}
	if f.Kernel == "" {
		f.Kernel = runtime.GOOS
	}
	return f
}

// ask is a command's output, "" where it fails.
func ask(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (f facts) String() string {
	line := fmt.Sprintf("%s: %d cores (%s), %s, %s", f.Began, f.Cores, f.Arch, f.Go, f.Kernel)
	if f.FileSystem != "" {
		line += ", journal on " + f.FileSystem
	}
	if f.Load != "" {
		line += ", load " + f.Load
	}
	return line
}
