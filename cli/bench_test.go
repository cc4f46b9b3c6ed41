package cli

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkParser(b *testing.B) {
	for _, name := range []string{"run", "http"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newTestParser(b, name, newCommand(name))
			}
		})
	}
}

func BenchmarkCommandLine(b *testing.B) {
	for _, args := range []string{"-- true", "-n 3 -- true", "-n 3 --id x --capture both -q -- true",
		"--json --dry-run -- true"} {
		b.Run(args, func(b *testing.B) {
			p := testProcess()
			p.Args = strings.Fields(args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.parse(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A whole call without a journal or a command: the arguments are parsed, the policy is resolved and shown.
func BenchmarkDispatch(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for _, line := range []string{"--version", "--dry-run -- true",
		"--dry-run -n 8 -b exp:2s..2m --retry-on 1,75 -- rsync a b"} {
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if code := Main(strings.Fields(line), []string{"HOME=/nonexistent"}, null, null, null); code != 0 {
					b.Fatal(code)
				}
			}
		})
	}
}
